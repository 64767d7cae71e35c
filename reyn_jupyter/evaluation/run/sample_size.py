"""Plan the sample size of a comparison before it is run, with what the trials so far say of it.

Invariant: cost and time are told only from measured trials of these variants; without any they are unknown, not zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reyn_jupyter.evaluation.plan.scenario import Source
from reyn_jupyter.evaluation.plan.validation import number, whole
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.comparison import ENOUGH
from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.evaluation.run.planning import PlanError
from reyn_jupyter.evaluation.statistics.power import Plan, plan, smallest_found
from reyn_jupyter.evaluation.statistics.rates import rate
from reyn_jupyter.evaluation.trial.trial import Trial

MOST_REPEATS = 1_000


@dataclass(frozen=True)
class StudyPlan:
    """The planned size of a study.

    Attributes:
        plan: pairs, scenarios, repeats, power and assumptions.
        available: scenarios that the suite has.
        usd, tokens: expected of all trials together; None where no trial of both variants tells, or the price is
            not known.
        seconds: the sum of the expected durations, were the trials run one after another; None as above.
        sources: where the trials come from that tell the cost; empty where none does.
        reach: the smallest difference that all scenarios of the suite find with that chance; None where they are as
            many as the plan asks for, or find none.
    """

    plan: Plan
    available: int
    usd: float | None
    tokens: int | None
    seconds: float | None
    sources: tuple[Source, ...] = ()
    reach: float | None = None

    @property
    def enough(self) -> bool:
        """True if the suite has as many scenarios as the plan asks for."""
        return self.plan.scenarios <= self.available

    @property
    def sentence(self) -> str:
        """The plan in words."""
        need = self.plan
        said = (
            f"{need.pairs:,} pairs ({need.scenarios:,} scenarios × {need.repeats}) find a difference of "
            f"{100 * need.detect:.0f} points with a chance of {100 * need.power:.0f} %"
        )
        if not self.enough:
            said += f"; the suite has {self.available:,} scenarios"
            if self.reach is not None:
                said += f", which find {100 * self.reach:.0f} points"
        if self.tokens is None:
            return f"{said}. What they cost is told once a few trials ran."
        cost = f"${self.usd:,.2f}, " if self.usd is not None else ""
        others = [source for source in self.sources if source != "real"]
        mark = f", as {' and '.join(others)} trials have it" if others else ""
        return f"{said}. Expected{mark}: {cost}{self.tokens:,} tokens, {self.seconds:,.0f} s of model time."

    def __repr__(self) -> str:
        return "\n".join([self.sentence, *(f"- {each}" for each in self.plan.assumptions)])


def plan_comparison(
    evidence: TrialSet,
    variants: tuple[str | Variant, str | Variant],
    available: int,
    *,
    detect: float,
    power: float,
    repeats: int,
) -> StudyPlan:
    """Plan the comparison of two variants; see `Study.plan`."""
    names = (evidence.name_of(variants[0]), evidence.name_of(variants[1]))
    if names[0] == names[1]:
        raise PlanError(f"{names[0]!r} cannot be compared with itself; name two variants.")
    repeats = whole("repeats", repeats, PlanError, most=MOST_REPEATS)
    detect = number("detect", detect, PlanError, below=1)
    power = number("power", power, PlanError, below=1)
    differ = _discordant(evidence, names, detect)
    found = plan(detect=detect, power=power, repeats=repeats, discordant=differ)
    if differ is not None:
        said = f"{100 * differ:.0f} % of pairs differ, the most that the trials so far allow."
        found = replace(found, assumptions=(said, *found.assumptions[1:]))
    reach = None
    if found.scenarios > available:
        reach = smallest_found(available, power=power, discordant=differ, repeats=repeats)
    each = found.scenarios * found.repeats
    trials = [evidence.by_variant.get(name, []) for name in names]
    if not all(trials):
        return StudyPlan(found, available, None, None, None, reach=reach)
    priced = all(trial.cost is not None for arm in trials for trial in arm)
    return StudyPlan(
        found,
        available,
        sum(each * _mean([trial.cost or 0.0 for trial in arm]) for arm in trials) if priced else None,
        round(sum(each * _mean([_tokens(trial) for trial in arm]) for arm in trials)),
        sum(each * _mean([trial.seconds for trial in arm]) for arm in trials),
        tuple(sorted({evidence.sources[name] for name in names})),
        reach,
    )


def _discordant(evidence: TrialSet, names: tuple[str, str], detect: float) -> float | None:
    """Return the share of pairs that may differ, by those that there are; None where they are too few to say."""
    if not all(name in evidence.tried for name in names):
        return None
    a, b = (evidence.arm(name, evidence.primary) for name in names)
    differ = {
        scenario: {
            i: float(a[scenario][i] != value) for i, value in repeats.items() if i in a.get(scenario, {})
        }
        for scenario, repeats in b.items()
    }
    if sum(map(len, differ.values())) < ENOUGH:
        return None
    # The upper limit: a share that was small by chance would promise too few pairs.
    return max(detect, rate(differ).high)


def _tokens(trial: Trial) -> int:
    return trial.prompt_tokens + trial.completion_tokens


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
