"""Trials that failed, each beside the same pair under another variant.

Invariant: only what a check failed is here; what is missing, or what it does not apply to, is no failure.
"""

from __future__ import annotations

from dataclasses import dataclass

from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.verdict import Verdict

FAILURES = 6


@dataclass(frozen=True)
class Failure:
    """A trial that failed the primary check, beside the first variant's trial of the same pair.

    Attributes:
        asked: the prompt of both.
        reason, beside_reason: what the check says of each.
    """

    scenario: str
    family: str
    asked: str
    repeat: int
    reason: str
    trial: Trial
    beside: Trial | None = None
    beside_reason: str = ""


def find_failures(evidence: TrialSet) -> tuple[Failure, ...]:
    """Failures of the variant that the report's sentence is about, disagreements with the first variant first."""
    if evidence.check(evidence.primary).numeric:
        return ()
    first, told = evidence.tried[0], evidence.tried[min(1, len(evidence.tried) - 1)]
    verdicts = evidence.verdicts(evidence.primary)
    others = (
        {(trial.scenario, trial.repeat): trial for trial in evidence.by_variant[first]}
        if first != told
        else {}
    )
    found = []
    for trial in evidence.by_variant[told]:
        verdict = verdicts.get(trial.key)
        if verdict is None or verdict.kind != "fail":
            continue
        beside = others.get((trial.scenario, trial.repeat))
        other = verdicts.get(beside.key) if beside is not None else None
        found.append(
            Failure(
                trial.scenario,
                evidence.scenarios[trial.scenario].family,
                evidence.scenarios[trial.scenario].prompt(trial.repeat)[1],
                trial.repeat,
                verdict.reason,
                trial,
                beside,
                other.reason if other is not None else "",
            )
        )
    disagreeing = {
        each.trial.key
        for each in found
        if each.beside is not None and _is_pass(verdicts.get(each.beside.key))
    }
    found.sort(key=lambda each: (each.trial.key not in disagreeing, each.family, each.scenario, each.repeat))
    return tuple(found[:FAILURES])


def _is_pass(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.kind == "pass"
