"""Measure the effort of a variant's trials: tokens, model calls, time and money.

Invariants: what is not known is None, never nought; a mean is over the trials that say something, so that one without a
price does not make the others cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass

from reyn_jupyter.evaluation.results.trial_set import TrialSet


@dataclass(frozen=True)
class Effort:
    """Means over the trials of one variant, those included that no check grades.

    Attributes:
        tokens: tokens to the model and from it, a trial.
        model_calls: model calls a trial.
        seconds: seconds a trial.
        cost: US dollars a trial; None where no trial has a price.
    """

    tokens: float
    model_calls: float
    seconds: float
    cost: float | None


def mean_effort(evidence: TrialSet, variant: str) -> Effort:
    """Return what a trial of this variant took on average.

    Raises:
        EvidenceError: the variant has no trial.
    """
    evidence.require_trials(variant)
    trials = evidence.by_variant[variant]
    prices = [trial.cost for trial in trials if trial.cost is not None]
    return Effort(
        tokens=sum(trial.prompt_tokens + trial.completion_tokens for trial in trials) / len(trials),
        model_calls=sum(trial.model_calls for trial in trials) / len(trials),
        seconds=sum(trial.seconds for trial in trials) / len(trials),
        cost=sum(prices) / len(prices) if prices else None,
    )


def cost_per_success(evidence: TrialSet, variant: str, check: str) -> float | None:
    """Return the US dollars that one trial that passes a check takes, the failures before it included.

    The mean cost of a trial over the pass rate, both over the trials that the check grades and that have a price: the
    cost-of-pass of Erol et al., "Cost-of-Pass: An Economic Framework for Evaluating Language Models" (2025).

    Returns:
        None where no graded trial has a price, where none of them passes, and for a check that gives numbers.

    Raises:
        EvidenceError: the variant has no trial.
    """
    evidence.require_trials(variant)
    verdicts = evidence.verdicts(check)
    spent, passes = 0.0, 0
    for trial in evidence.by_variant[variant]:
        verdict = verdicts.get(trial.key)
        if trial.cost is not None and verdict is not None and verdict.kind in ("pass", "fail"):
            spent += trial.cost
            passes += verdict.kind == "pass"
    return spent / passes if passes else None
