"""Measure the reliability of a variant: whether it succeeds again where it succeeded, and whether that was foretold.

Invariants: pass^k asks that all of k trials of a scenario pass (never one of them); a forecast is scored on the check
that it is about, whether the task is done, and only where it was made in advance; both leave out what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

from reyn_jupyter.evaluation.plan.scenario import Source
from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.evaluation.statistics.calibration import Bin, Brier, brier, reliability_table
from reyn_jupyter.evaluation.statistics.rates import Mean
from reyn_jupyter.evaluation.statistics.repeat_success import reliability

FORETOLD = "task_done"  # what `Scenario.forecast` is a probability of
_BINS = 5  # of the reliability table; authors write few distinct forecasts


@dataclass(frozen=True)
class Predictability:
    """One variant.

    Attributes:
        k: repeats of most scenarios; `again` is pass^k on the primary check, None without repeats.
        score: the Brier score of the scenarios' forecasts, None where none was made or the task's end is not checked.
        bins: forecasts of about the same probability, with the share that came true.
    """

    variant: str
    source: Source
    k: int
    again: Mean | None
    score: Brier | None
    bins: tuple[Bin, ...] = ()


def predictability(evidence: TrialSet, variant: str) -> Predictability:
    """Return what a variant's trials say of it. Raises EvidenceError where it has none."""
    source = evidence.sources.get(variant, "real")
    arm = {} if evidence.check(evidence.primary).numeric else evidence.arm(variant, evidence.primary)
    sizes = sorted(len(repeats) for repeats in arm.values())
    k = sizes[len(sizes) // 2] if sizes else 0
    again = reliability(arm, k) if k > 1 else None
    forecasts, happened, about = _foretold(evidence, variant)
    if not forecasts:
        return Predictability(variant, source, k, again, None)
    scored = brier(
        [{"done": each, "not done": 1 - each} for each in forecasts],
        ["done" if each else "not done" for each in happened],
    )
    table = reliability_table(forecasts, happened, scenarios=about, bins=_BINS)
    return Predictability(variant, source, k, again, scored, table)


def _foretold(evidence: TrialSet, variant: str) -> tuple[list[float], list[bool], list[str]]:
    """Return the forecast of each trial that was graded, what came of it, and its scenario."""
    forecasts, happened, about = list[float](), list[bool](), list[str]()
    if FORETOLD not in evidence.checks:
        return forecasts, happened, about
    for scenario, repeats in evidence.arm(variant, FORETOLD).items():
        forecast = evidence.scenarios[scenario].forecast
        for value in repeats.values() if forecast is not None else ():
            forecasts.append(forecast or 0.0)
            happened.append(value == 1.0)
            about.append(scenario)
    return forecasts, happened, about
