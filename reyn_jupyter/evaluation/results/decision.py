"""Say what a study found to somebody who decides: which variant does the work, and what is not known yet.

Invariants: the check that leads is chosen by a rule that knows no outcome: the first of `GOALS` that the suite asks and
that applies to every variant that was graded, else the primary one. What is counted in the sentence is what was
compared, so that the words and the verdict never contradict each other. How many more scenarios would settle a
comparison is told only where the difference seen is at least its own standard error; below that any number would be
made of chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.results.comparison import (
    ALPHA,
    ENOUGH,
    POWER,
    Comparison,
    adjust,
    compare,
    other_scenarios,
)
from reyn_jupyter.evaluation.results.trial_set import EvidenceError, TrialSet
from reyn_jupyter.evaluation.statistics.power import pairs_needed
from reyn_jupyter.evaluation.statistics.rates import FLOOR, Rate, rate
from reyn_jupyter.evaluation.trial.trial import MISSING
from reyn_jupyter.support.text import count, enumerate_words

# What people want of a model, where the suite can tell; keeping to a rule of the catalog is only a means to it.
GOALS = ("task_done", "chain")
_FEWEST = (
    6  # pairs that differ; with fewer no test reaches .05, and their share is known too badly to plan with
)
_NAMED = 4  # variants of a group that are called by their names


@dataclass(frozen=True)
class Decision:
    """What somebody who decides needs to know of a study.

    Attributes:
        check: the check that leads.
        rates: variant → its rate on it, of those that have one.
        comparisons: the first variant against each other one on it, corrected together.
        source_mark: the words before a sentence where no real model answered; "" otherwise.
        suite: the suite's name.
    """

    check: Check
    rates: Mapping[str, Rate]
    comparisons: tuple[Comparison, ...]
    source_mark: str = ""
    suite: str = ""

    @property
    def sentence(self) -> str:
        """The finding in plain words: counts, who does better, and what would settle what is open.

        Example:
            >>> study.report().decision.sentence   # doctest: +SKIP
            'A finishes 18 of 100 tasks, B 11; too close to call; about 60 more scenarios would settle it, if the
            difference is as large as it looks.'
        """
        if len(self.comparisons) == 1 and len(self.rates) == 2:
            said = self._of_two(self.comparisons[0])
        elif self.comparisons:
            said = self._of_many()
        else:
            said = f"{_count_sentence(self.check, list(self.rates.items()))}; {self._alone()}."
        return f"{self.source_mark}{said}"

    def _alone(self) -> str:
        """Return what follows the counts where nothing is compared."""
        if len(self.rates) > 1:
            return "they share no scenario, so nothing says which is better"
        (found,) = self.rates.values()
        if found.on_floor and found.scenarios >= ENOUGH:
            return f"that is the floor of this suite; {other_scenarios(self.suite, 'floor')} to see what it can do"
        if found.scenarios == 1:
            return "one scenario says nothing of others"
        return f"of many such scenarios {100 * found.low:.0f} to {100 * found.high:.0f} % is likely"

    def _of_two(self, found: Comparison) -> str:
        pairs = [(found.a, found.difference.a), (found.b, found.difference.b)]
        rates = [(name, each) for name, each in pairs if isinstance(each, Rate)]
        rates.sort(key=lambda each: -each[1].estimate)
        return f"{_count_sentence(self.check, rates)}; {describe_verdict(found, 1)}."

    def _of_many(self) -> str:
        """Tell the first variant's count, then the others in groups by what their comparison says."""
        first = self.comparisons[0].a
        base = _count_sentence(self.check, [(first, self.rates[first])])
        total = self.rates[first].trials
        more = [each for each in self.comparisons if each.clear and each.difference.estimate > 0]
        fewer = [each for each in self.comparisons if each.clear and each.difference.estimate < 0]
        open_ = [each for each in self.comparisons if not each.clear]
        done = self.check.name == "task_done"
        groups = (
            (("finishes more", "finish more") if done else ("passes more", "pass more"), more),
            (("finishes fewer", "finish fewer") if done else ("passes fewer", "pass fewer"), fewer),
            (("is too close to call", "are too close to call"), open_),
        )
        size = len(self.comparisons)
        parts = [
            (len(found), f"{words[len(found) > 1]} ({self._name_few(found, total)})")
            for words, found in groups
            if found
        ]
        if len(parts) == 1 and size > 1:
            said = f"{'Both others' if size == 2 else f'All {size} others'} {parts[0][1]}"
        else:
            said = f"Of the {count(size, 'other')}, {enumerate_words([f'{n} {words}' for n, words in parts])}"
        return f"{base}. {said}.{self._settling(open_)}"

    def _name_few(self, found: Sequence[Comparison], total: int) -> str:
        ordered = sorted(found, key=lambda each: -each.difference.estimate)
        named = [
            f"{each.b} {_count(each.difference.b, total)}"
            for each in ordered[:_NAMED]
            if isinstance(each.difference.b, Rate)
        ]
        return ", ".join([*named, *([f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else [])])

    def _settling(self, found: Sequence[Comparison]) -> str:
        """Say what would settle the comparison that is nearest to it."""
        needs = {each.b: more_scenarios(each, len(self.comparisons)) for each in found}
        known = {name: number for name, number in needs.items() if number is not None}
        if not known:
            ends = {each.end_of_scale for each in found}
            if len(ends) == 1 and (end := ends.pop()):
                said = _end_words("all", end, self.suite, any(each.is_early for each in found))
                return f" {said[0].upper()}{said[1:]}."
            return ""
        name = min(known, key=lambda each: known[each])
        whom = "it" if len(found) == 1 else name
        return f" About {_rounded(known[name]):,} more scenarios would settle {whom}, {_IF}."


_IF = "if the difference is as large as it looks"


def _end_words(
    who: Literal["both", "all"], end: Literal["floor", "ceiling"], suite: str, is_early: bool
) -> str:
    advice = other_scenarios(suite, end)
    if is_early:
        return f"{who} failed in every scenario, and these are too few to say more; {advice}"
    return f"{who} lie on the {end} of this suite, which cannot tell them apart; {advice}"


def leading_check(evidence: TrialSet, variants: Sequence[str] | None = None) -> str:
    """Return the name of the check that leads: an outcome that applies to every variant.

    Args:
        evidence: a study's trials.
        variants: those that it has to apply to; all that were tried when None. One of which no trial could be graded
            is passed over.
    """
    names = evidence.tried if variants is None else variants
    graded = [
        name for name in names if any(t.outcome not in MISSING for t in evidence.by_variant.get(name, ()))
    ]

    def applies(check: str) -> bool:
        return not evidence.check(check).numeric and all(evidence.arm(name, check) for name in graded)

    wanted = [*(goal for goal in GOALS if goal in evidence.checks), evidence.primary]
    if evidence.check(evidence.primary).numeric and len(wanted) == 1:
        return evidence.primary
    return next((name for name in (*wanted, *evidence.checks) if applies(name)), evidence.primary)


def decide(evidence: TrialSet) -> Decision | None:
    """Return what a study found on the check that leads; None where that gives numbers, or nothing was graded."""
    name = leading_check(evidence)
    check = evidence.check(name)
    if check.numeric:
        return None
    arms = {variant: evidence.arm(variant, name) for variant in evidence.tried}
    rates = {variant: rate(arm) for variant, arm in arms.items() if arm}
    if not rates:
        return None
    # The rule chose the check before any trial, so it is not one of many that happens to differ.
    comparisons = tuple(replace(each, named=True) for each in compare_with_first(evidence, name))
    return Decision(check, rates, comparisons, _source_mark(evidence, rates), evidence.suite)


def compare_with_first(evidence: TrialSet, check: str) -> tuple[Comparison, ...]:
    """Return the first variant against each other one that it shares a pair with, corrected together."""
    first, *others = evidence.tried
    found = []
    for other in others:
        try:
            found.append(compare(evidence, first, other, check))
        except EvidenceError:  # no pair in common; the figures stand alone
            continue
    return adjust(found)


def _source_mark(evidence: TrialSet, rates: Mapping[str, Rate]) -> str:
    sources = list(dict.fromkeys(evidence.sources[name] for name in rates))
    if sources == ["real"]:
        return ""
    if len(sources) == 1:
        return f"{sources[0].capitalize()} trials: "
    return f"Trials of several sources ({', '.join(f'{name}: {evidence.sources[name]}' for name in rates)}): "


def _count(found: Rate, total: int) -> str:
    """Return passes, and of how many where that is not what stands before."""
    return f"{found.passed:,.0f}" if found.trials == total else f"{found.passed:,.0f} of {found.trials:,}"


def _count_sentence(check: Check, rates: Sequence[tuple[str, Rate]]) -> str:
    """Return the counts of variants: ``A finishes 18 of 100 tasks, B 11``."""
    (name, first), *others = rates
    tries = count(first.trials, "trial")
    passed = f"{first.passed:,.0f} of "
    if check.name == "task_done":
        alone = first.trials == first.scenarios
        what = count(first.trials, "task") if alone else f"{tries} at {count(first.scenarios, 'task')}"
        head = f"{name} finishes {passed}{what}"
    else:
        alone = first.trials == first.scenarios
        head = f"{name} passes “{check.title}” in {passed}{tries}"
        head += "" if alone else f" of {count(first.scenarios, 'scenario')}"
    return ", ".join((head, *(f"{other} {_count(found, first.trials)}" for other, found in others)))


def describe_verdict(found: Comparison, comparisons: int) -> str:
    """Return what a comparison comes to, in plain words.

    Args:
        found: the comparison.
        comparisons: how many are corrected together.

    Returns:
        Words without a full stop: who is better and by how much, or that it is too close to call and what would settle
        it.
    """
    seen = found.difference
    if found.clear:
        head = f"{found.winner} is better" if found.winner is not None else "they differ"
        if seen.low is None or seen.high is None:
            return head
        low, high = sorted(each if seen.estimate > 0 else -each for each in (seen.low, seen.high))
        return f"{head}, by {f'{100 * low:.0f} to' if low >= FLOOR else 'up to'} {100 * high:.0f} points"
    if found.end_of_scale:
        return _end_words("both", found.end_of_scale, found.suite, found.is_early)
    if seen.scenarios == 1:
        return "too close to call, since one scenario says nothing of others"
    close = "too close to call"
    if found.stop is not None:
        return f"{close} so far; the run looks after each scenario, so more of them may settle it"
    more = more_scenarios(found, comparisons)
    if more is not None:
        return f"{close}; about {_rounded(more):,} more scenarios would settle it, {_IF}"
    if seen.scenarios < ENOUGH:
        few = f"{seen.scenarios} scenarios are too few to say how many would settle it"
        return f"{close}; {few}"
    if seen.estimate and _differing(found) < _FEWEST:
        return f"{close}; too few scenarios differ to say how many would settle it"
    seen_words = "the difference seen is so small" if seen.estimate else "the two do so equally well"
    return f"{close}; {seen_words} that nothing says how many scenarios would settle it"


def more_scenarios(found: Comparison, comparisons: int = 1) -> int | None:
    """Return how many more scenarios would find the difference that was seen, were it the true one.

    The exact power of McNemar's test (Duffy, 1984) at the shares of discordant pairs that were seen, for a chance of
    80 % at a level of 5 %, which is shared out among several comparisons (Bonferroni). With repeats the pairs are
    counted at their effective number. The number is as uncertain as the difference: it says what to plan with, and no
    more.

    Args:
        found: a comparison of verdicts.
        comparisons: how many are corrected together.

    Returns:
        Scenarios beyond those that were compared, at least 1. None where a number would mean nothing: what is clear,
        what was looked at on the way, numbers, fewer than 20 scenarios or 6 independent pairs that differ, a suite on
        whose floor or ceiling both lie, and a difference below its own standard error, whose very sign is open.

    Example:
        >>> more_scenarios(study.compare("A", "B"))   # doctest: +SKIP
        58
    """
    seen = found.difference
    if found.clear or found.check.numeric or found.stop is not None or found.end_of_scale:
        return None
    if seen.a_only is None or seen.b_only is None or seen.scenarios < ENOUGH:
        return None
    size = seen.scenarios if seen.effective_n is None else seen.effective_n
    gap = abs(seen.estimate)
    discordant = max(gap, (seen.a_only + seen.b_only) / seen.pairs)
    if _differing(found) < _FEWEST:
        return None
    if gap == 0 or gap < math.sqrt((discordant - gap**2) / size):
        return None
    needed = pairs_needed(discordant, (discordant + gap) / (2 * discordant), POWER, ALPHA / comparisons)
    return max(1, math.ceil(needed * seen.scenarios / size) - seen.scenarios)


def _differing(found: Comparison) -> float:
    """Return how many independent pairs the discordant ones are worth."""
    seen = found.difference
    size = seen.scenarios if seen.effective_n is None else seen.effective_n
    return ((seen.a_only or 0) + (seen.b_only or 0)) * size / seen.pairs


def _rounded(number: int) -> int:
    """Return a number that claims no more than is known, never a smaller one.

    >>> [_rounded(each) for each in (3, 58, 137, 1234)]
    [10, 60, 140, 1300]
    """
    step = int(10 ** max(1, len(str(number)) - 2))
    return math.ceil(number / step) * step
