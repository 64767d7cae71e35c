"""Compare two variants under one check: what differs, how sure that is, and the sentence that says so.

Invariants: pairs are the same scenario and repeat under both; the scenario is the unit; "beats" is said only where the
interval leaves out zero and the test, corrected among several comparisons, agrees; variants that a run looked at on its
way are judged by the e-value, in every check and whatever ran since; what did not come from a real model is marked in
the sentence. The order of those looks is the one that was planned before the first trial, cut off at the first scenario
that is not finished: scenarios in the order in which they happened to finish would be a choice by speed, and a variant
that is quick when it does well would seem to win.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.results.trial_set import EvidenceError, TrialSet
from reyn_jupyter.evaluation.statistics.arms import significant
from reyn_jupyter.evaluation.statistics.confidence_sequence import SequentialState
from reyn_jupyter.evaluation.statistics.intervals import rate_limits
from reyn_jupyter.evaluation.statistics.missing import worst_difference
from reyn_jupyter.evaluation.statistics.multiple import benjamini_hochberg, closed_e, holm
from reyn_jupyter.evaluation.statistics.paired import Difference, difference
from reyn_jupyter.evaluation.statistics.power import independent_arms, mcnemar_power, pairs_needed
from reyn_jupyter.evaluation.statistics.rates import Rate
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    import pandas as pd

    from reyn_jupyter.evaluation.plan.scenario import Source


ALPHA = 0.05
DETECT = 0.15  # the difference whose chance of being found is told where none was found
FIRST_STEPS = "first-steps"  # the suite for models that are on the floor of the others
ENOUGH = 20  # pairs from which their discordant share is taken in place of the most cautious one
POWER = 0.8
_LARGEST = 700.0  # the logarithm of the largest e-value that is told; beyond it floats end


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        a, b: the variants' names; differences are b − a.
        check: what was asked of each trial.
        sources: where a's and b's trials come from; anything but "real" is said in the sentence.
        difference: estimate, interval, test, discordant pairs.
        missing, not_applicable: variant → trials left out for that reason.
        bounds: the estimate if every missing trial had gone the worst way for b, and for a.
        families: family → its own difference, for exploration only.
        changed: field → (a's, b's) settings that the comparison changes.
        adjusted_p: p after correction for the other comparisons of a report; None when there is but one.
        truth: the true difference, where a simulator's table says it.
        named: whether the check was named in advance: it is the suite's primary one, or a run's.
        suite: the suite's name.
    """

    a: str
    b: str
    check: Check
    sources: tuple[Source, Source]
    difference: Difference
    missing: Mapping[str, int]
    not_applicable: Mapping[str, int]
    bounds: tuple[float, float] | None
    families: Mapping[str, Difference] = field(default_factory=dict)
    changed: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    adjusted_p: float | None = None
    truth: float | None = None
    named: bool = True
    suite: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sentence!r})"

    def __str__(self) -> str:
        return self.sentence

    @property
    def stop(self) -> SequentialState | None:
        """The evidence from looking at one scenario after the other; None where their number was fixed."""
        return self.difference.looks

    @property
    def p(self) -> float | None:
        """The p of the test, corrected where there are several; None where there is none. Where the evidence was looked
        at on the way, it is that of the e-value."""
        return self.adjusted_p if self.adjusted_p is not None else self.difference.p

    @property
    def e_value(self) -> float | None:
        """The largest e-value along the run; None where nobody looked."""
        return None if self.stop is None else math.exp(min(self.stop.peak, _LARGEST))

    @property
    def clear(self) -> bool:
        """True if the difference can be told from none."""
        found, looks = self.difference, self.stop
        if looks is not None:
            enough = self.adjusted_p is None or self.adjusted_p <= math.exp(-looks.threshold)
            return looks.stopped and enough and looks.lead * found.estimate > 0
        if found.low is not None and found.high is not None and found.low <= 0.0 <= found.high:
            return False
        return self.p is not None and self.p <= ALPHA

    @cached_property
    def power(self) -> float | None:
        """The chance that pairs like these find a difference of `DETECT`; None for numbers and for one scenario."""
        assumed = self._assumptions()
        return None if assumed is None else mcnemar_power(*assumed, ALPHA)

    @cached_property
    def needed(self) -> int | None:
        """Scenarios that find a difference of `DETECT` with a chance of `POWER`; None as in `power`."""
        assumed = self._assumptions()
        if assumed is None:
            return None
        size, discordant, split = assumed
        return math.ceil(pairs_needed(discordant, split, POWER, ALPHA) * self.difference.scenarios / size)

    def _assumptions(self) -> tuple[int, float, float] | None:
        """Independent pairs that these are worth, the share of them that differs, and the winner's part of those."""
        found = self.difference
        if self.check.numeric or found.scenarios < 2 or found.a_only is None or found.b_only is None:
            return None
        size = found.scenarios if found.effective_n is None else found.effective_n
        if found.pairs < ENOUGH:
            discordant, _ = independent_arms((1 - DETECT) / 2, (1 + DETECT) / 2)
        else:  # the upper limit: a share that was small by chance would promise too much
            share = (found.a_only + found.b_only) / found.pairs
            discordant = max(DETECT, float(rate_limits(np.asarray(share), np.asarray(size), 1 - ALPHA)[1]))
        return max(1, round(size)), discordant, (discordant + DETECT) / (2 * discordant)

    @property
    def end_of_scale(self) -> Literal["floor", "ceiling", ""]:
        """The end of the suite's scale at which both variants lie, so that it cannot tell them apart; "" where they
        lie between, for numbers, and where too few scenarios were tried. Two that never passed count as on the floor
        from two scenarios on; `is_early` says where these are too few to speak of others."""
        rates = [each for each in (self.difference.a, self.difference.b) if isinstance(each, Rate)]
        if len(rates) < 2 or self.difference.scenarios < 2:
            return ""
        if not any(rate.passed for rate in rates):
            return "floor"
        if self.difference.scenarios < ENOUGH:
            return ""
        if all(rate.on_floor for rate in rates):
            return "floor"
        return "ceiling" if all(rate.on_ceiling for rate in rates) else ""

    @property
    def is_early(self) -> bool:
        """Whether so few scenarios were tried that nothing is known of how more of them would end."""
        return self.difference.scenarios < ENOUGH

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings that a reader should know before believing the comparison."""
        said = list(self.difference.warnings)
        if not self.named:
            said.append(f"{self.check.name} was not named in advance: of many checks some differ by chance.")
        if self.stop is not None:
            said.append(
                "The evidence was looked at after each scenario, so the e-value decides, and the interval is one that "
                "holds at every look. The rates of each variant alone have intervals of a fixed number of scenarios."
            )
        elif not self.clear and (end := self.end_of_scale):
            found = (
                f"Neither passed in any scenario on {self.check.title}, and {self.difference.scenarios} scenarios are "
                "too few to say whether more would tell them apart"
                if self.is_early
                else f"Both are on the {end} of this suite on {self.check.title}, so more scenarios like these would "
                "not tell them apart"
            )
            said.append(f"{found}; {other_scenarios(self.suite, end)}.")
        elif not self.clear and self.power is not None and self.power < POWER:
            chance = f"{100 * self.power:.0f} % or more" if self.power >= 0.01 else "less than 1 %"
            said.append(
                f"A difference of {100 * DETECT:.0f} points would have been found with a chance of {chance}; "
                f"for {100 * POWER:.0f} % it takes up to {self.needed:,} scenarios."
            )
        return tuple(said)

    @property
    def winner(self) -> str | None:
        """The variant that does better; None where that is not clear, or the check prefers neither."""
        if not self.clear or self.check.better is None:
            return None
        return self.b if (self.difference.estimate > 0) == (self.check.better == "more") else self.a

    @property
    def sentence(self) -> str:
        """The finding, in one sentence."""
        found = self.difference
        parts = [self._pairs(), self._estimate()]
        if self.stop is not None:
            after = self.stop.stopped_at or self.stop.scenarios
            parts.append(f"e-value {self.e_value:,.3g} after {after:,} scenarios")
        if found.design_effect is not None and found.design_effect > 1.05:
            parts.append(f"design effect {found.design_effect:.1f}")
        return f"{self.mark}{self.headline}: {', '.join(part for part in parts if part)}."

    @property
    def headline(self) -> str:
        """The finding without figures: ``gate beats plain on task done``."""
        title = self.check.title
        if self.clear and self.winner is not None:
            loser = self.a if self.winner == self.b else self.b
            return f"{self.winner} beats {loser} on {title}"
        if self.clear:
            more = "more" if self.difference.estimate > 0 else "less"
            return f"{self.b} has {more} than {self.a} on {title}"
        return f"{self.b} and {self.a} cannot be told apart on {title}"

    @property
    def mark(self) -> str:
        """The words before the sentence where a trial did not come from a real model; empty otherwise."""
        a, b = self.sources
        if a == b:
            return "" if a == "real" else f"{a.capitalize()} trials: "
        return f"{self.a} ({a}) against {self.b} ({b}): "

    def _pairs(self) -> str:
        found = self.difference
        scenarios = f"{found.scenarios} {'scenario' if found.scenarios == 1 else 'scenarios'}"
        pairs = f"{found.pairs} {'pair' if found.pairs == 1 else 'pairs'} in {scenarios}"
        if self.check.numeric:
            return pairs
        better, worse = (found.b_only, found.a_only) if found.estimate >= 0 else (found.a_only, found.b_only)
        return f"{better} v {worse} discordant of {pairs}"

    def _estimate(self) -> str:
        """Return the difference, seen from the variant that is named first."""
        found, points = self.difference, not self.check.numeric
        sign = -1 if self.winner == self.a else 1
        said = _format_signed(sign * found.estimate, points)
        if found.low is None or found.high is None:
            return f"{said} (no interval: {found.method.removeprefix('none: ')})"
        low, high = sorted((sign * found.low, sign * found.high))
        bounds = f"{_plain(low, points)} to {_plain(high, points)}"
        return f"{said} ({100 * found.level:.0f} % CI {bounds})"

    @property
    def df(self) -> pd.DataFrame:
        """One row for all pairs and one a family: estimate, interval, p, pairs, scenarios, discordant pairs. Families
        are explored, so their p are corrected together by Benjamini-Hochberg."""
        import pandas as pd

        rows = [{"family": "all", **_row(self.difference), "p": self.p, "e_value": self.e_value}]
        tested = {family: found.p for family, found in self.families.items() if found.p is not None}
        shared = dict(zip(tested, benjamini_hochberg(list(tested.values())), strict=True))
        rows += [
            {"family": each, **_row(found), "p": shared.get(each)} for each, found in self.families.items()
        ]
        frame = pd.DataFrame(rows)
        frame.insert(0, "check", self.check.name)
        frame.insert(1, "a", self.a)
        frame.insert(2, "b", self.b)
        frame["source"] = self.sources[0] if self.sources[0] == self.sources[1] else " / ".join(self.sources)
        return frame


def other_scenarios(suite: str, end: Literal["floor", "ceiling"]) -> str:
    """Return what to do at an end of a suite's scale: ``try the easier suite first-steps``, or harder scenarios.

    >>> other_scenarios("mandates", "floor")
    'try the easier suite first-steps'
    """
    if end == "ceiling":
        return "take harder scenarios"
    return (
        "take easier scenarios, or a larger model"
        if suite == FIRST_STEPS
        else f"try the easier suite {FIRST_STEPS}"
    )


def compare(
    evidence: TrialSet, a: str, b: str, check: str | None = None, family: str = "", level: float = 0.95
) -> Comparison:
    """Compare two variants on the trials that both have.

    Args:
        evidence: a study's trials.
        a, b: variants' names; the difference is b − a.
        check: the check's name; the suite's primary one when None.
        family: only the scenarios of this family; all when "".
        level: the confidence level.

    Raises:
        EvidenceError: a variant has no trials, or they have no pair in common.
        UnknownCheckError: there is no such check.
    """
    chosen = evidence.check(check or evidence.primary)
    if a == b:
        raise EvidenceError(f"{a!r} cannot be compared with itself; name two variants")
    arms = [evidence.arm(name, chosen.name, family) for name in (a, b)]
    if not _paired(arms[0], arms[1]):
        times, why = evidence.broken(chosen.name)
        if times:
            raise EvidenceError(
                f"{chosen.name}: {why}. So it is with {count(times, 'trial')}; mend it and run its cell again"
            )
        raise EvidenceError(
            f"{a!r} and {b!r} have no scenario and repeat in common that {chosen.name} applies to; "
            "run both in one study.run(…), or choose another check"
        )
    absent = {name: evidence.absent(name, family) for name in (a, b)}
    missing = {name: sum(map(len, each.values())) for name, each in absent.items()}
    look = looking_at(evidence, a, b)
    order, alpha = (None, ALPHA) if look is None else (look.scenarios, look.alpha)
    families = {}
    for each in evidence.families() if not family else ():
        parts = [evidence.arm(name, chosen.name, each) for name in (a, b)]
        if _paired(parts[0], parts[1]):
            families[each] = difference(parts[0], parts[1], looked=order, alpha=alpha)
    bounds = None
    if any(missing.values()) and not chosen.numeric:
        bounds = worst_difference(arms[0], arms[1], absent[a], absent[b])
    # True rates are those of all scenarios, so they say nothing of one family.
    truths = [None if family else evidence.truths.get(name, {}).get(chosen.name) for name in (a, b)]
    return Comparison(
        a,
        b,
        chosen,
        (evidence.sources[a], evidence.sources[b]),
        difference(arms[0], arms[1], level=level, looked=order, alpha=alpha),
        missing,
        {name: evidence.not_applicable(name, chosen.name, family) for name in (a, b)},
        bounds,
        families if len(families) > 1 else {},
        evidence.variants[a].differences(evidence.variants[b]),
        truth=truths[1] - truths[0] if truths[0] is not None and truths[1] is not None else None,
        named=chosen.name in {evidence.primary, *(run["check"] for run in evidence.runs)},
        suite=evidence.suite,
    )


def adjust(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Return several comparisons on one check, their p corrected together; one alone stays as it is. Where all of
    them were looked at on the way, their e-values of now are closed (unlike a peak's they may be averaged), else
    Holm's method takes their p."""
    tested = [each.p for each in comparisons if each.p is not None]
    if len(tested) < 2:
        return tuple(comparisons)
    looks = [each.stop for each in comparisons if each.stop is not None]
    if len(looks) == len(comparisons):
        closed = closed_e([math.exp(min(each.log_e, _LARGEST)) for each in looks])
        corrected = iter([1 / max(1.0, e) for e in closed])
    else:
        corrected = iter(holm(tested))
    return tuple(
        replace(each, adjusted_p=next(corrected)) if each.p is not None else each for each in comparisons
    )


def _paired(a: Mapping[str, Mapping[int, float]], b: Mapping[str, Mapping[int, float]]) -> bool:
    return any(not repeats.keys().isdisjoint(b.get(scenario, {})) for scenario, repeats in a.items())


def _plain(value: float, points: bool) -> str:
    return f"{100 * value:.0f}".replace("-", "−") if points else significant(value)


def _format_signed(value: float, points: bool) -> str:
    text = _plain(value, points)
    text = text if text.startswith("−") else f"+{text}"
    return f"{text} points" if points else text


def _row(found: Difference) -> dict[str, Any]:
    names = ("estimate", "low", "high", "p", "pairs", "scenarios", "a_only", "b_only", "both", "neither",
             "design_effect", "effective_n", "method", "test")  # fmt: skip
    return {name: getattr(found, name) for name in names}


@dataclass(frozen=True)
class InterimLooks:
    """The looks at a running comparison: the finished scenarios in the planned order, and the alpha of the last one."""

    scenarios: tuple[str, ...]
    alpha: float


def looking_at(evidence: TrialSet, a: str, b: str) -> InterimLooks | None:
    """Return how two variants were looked at on the way; None where every run of the two had a fixed number of
    scenarios.

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
    return InterimLooks(tuple(dict.fromkeys(finished)), alphas[-1])
