"""Which comparisons were looked at while their trials came in, and in which order.

Invariant: the order is the one that was planned before the first trial, cut off at the first scenario that is not
finished. Scenarios in the order in which they happened to finish would be a choice by speed, and a variant that is
quick when it does well would seem to win.
"""

from __future__ import annotations

from dataclasses import dataclass

from reyn_jupyter.evaluation.evidence import Evidence


@dataclass(frozen=True)
class Looking:
    """How two variants were looked at: the finished scenarios in the planned order, and the alpha of the last look."""

    scenarios: tuple[str, ...]
    alpha: float


def looking_at(evidence: Evidence, a: str, b: str) -> Looking | None:
    """How two variants were looked at on the way; None where every run of the two had a fixed number of scenarios.

    Whatever was looked at, all checks of the two are: a run that stopped when one of them looked good has chosen its
    trials for the others too. Later runs of the two go on where the look left off.
    """
    runs = [run for run in evidence.runs if {a, b} <= set(run["variants"])]
    alphas = [run["alpha"] for run in runs if run["rule"] == "evalue"]
    if not alphas:
        return None
    there = [
        {(trial.scenario, trial.repeat) for trial in evidence.by_variant.get(name, ())} for name in (a, b)
    ]
    both = there[0] & there[1]
    finished: list[str] = []
    for run in runs:
        for scenario in run["order"]:
            if scenario not in evidence.scenarios:  # it left the suite
                continue
            if not all((scenario, repeat) in both for repeat in run["repeats"]):
                break
            finished.append(scenario)
    return Looking(tuple(dict.fromkeys(finished)), alphas[-1])
