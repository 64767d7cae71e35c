"""The budget of a study: money, tokens, calls. It is hard: a trial starts only if it is expected to fit.

Invariants:
- The usage so far, the expected usage of the running trials, and that of one more trial stay within every limit, or
  nothing more starts. A trial is expected to use as much as the most expensive trial of its variant so far. A variant
  without a trial is expected to use as much as the most expensive trial of any variant. As long as that says nothing
  about a limited quantity, trials of untried variants run alone and count as `FIRST`. So a limit is exceeded at most by
  what the running trials use beyond the most expensive trials before them.
- Trials start in the order of the plan's scenarios. Wherever the budget ends a run, two variants differ by at most one
  scenario in their numbers of trials.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from reyn_jupyter.evaluation.plan.validation import number, whole
from reyn_jupyter.evaluation.store.rows import StudyUsage
from reyn_jupyter.evaluation.trial.trial import Trial, TrialUsage
from reyn_jupyter.support.user_errors import UserError


class BudgetError(UserError, ValueError):
    """A budget that cannot be kept; says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of a whole study, earlier runs in the same file included; None is no limit. What an interrupted trial had
    used by then counts too, with an estimate of the call that was under way.

    Attributes:
        usd: US dollars.
        tokens: prompt and completion tokens together.
        calls: model calls, retries aside.

    Raises:
        BudgetError: a limit that is no number above 0, or no whole one where things are counted.

    Example:
        >>> Budget(usd=2.5).sentence
        'at most $2.50'
    """

    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None

    def __post_init__(self) -> None:
        if self.usd is not None:
            object.__setattr__(self, "usd", number("usd", self.usd, BudgetError))
        for name in ("tokens", "calls"):
            limit = getattr(self, name)
            if limit is not None:
                object.__setattr__(self, name, whole(name, limit, BudgetError))

    @property
    def sentence(self) -> str:
        """The limits in words."""
        parts = [
            f"${self.usd:,.2f}" if self.usd is not None else "",
            f"{self.tokens:,} tokens" if self.tokens is not None else "",
            f"{self.calls:,} model calls" if self.calls is not None else "",
        ]
        said = ", ".join(part for part in parts if part)
        return f"at most {said}" if said else "no limit"


@dataclass(frozen=True)
class TrialEstimate:
    """The measured or expected usage of one trial."""

    usd: float = 0.0
    tokens: int = 0
    calls: int = 0

    def larger(self, other: TrialEstimate) -> TrialEstimate:
        return TrialEstimate(
            max(self.usd, other.usd), max(self.tokens, other.tokens), max(self.calls, other.calls)
        )


FIRST = TrialEstimate(
    0.0, 3_000, 3
)  # a listing, an invocation and an answer, of about a thousand tokens each


_UNITS = (("usd", "dollars"), ("tokens", "tokens"), ("calls", "model calls"))


class Ledger:
    """Keeps a budget while trials run, several at a time.

    Args:
        budget: the limits.
        spent: what the study has used before.
        dearest: digest of a variant's behaviour → the dearest trial of it so far.

    Attributes:
        exhausted: why nothing more starts; "" while there is room.
    """

    def __init__(self, budget: Budget, spent: StudyUsage, dearest: Mapping[str, StudyUsage]) -> None:
        self.budget = budget
        self.usd, self.tokens, self.calls, self.unpriced = (
            spent.usd,
            spent.tokens,
            spent.calls,
            spent.unpriced,
        )
        self.exhausted = ""
        self._dearest = {
            key: TrialEstimate(most.usd, most.tokens, most.calls)
            for key, most in dearest.items()
            if most.calls
        }
        self._reserved: list[TrialEstimate] = []
        self._unstarted: Counter[int] = Counter()  # trials that wait for their start, by scenario
        self._moved = asyncio.Event()

    @property
    def _unlimited(self) -> bool:
        return self.budget == Budget()

    @asynccontextmanager
    async def turn(self, scenario: int) -> AsyncIterator[Callable[[], None]]:
        """Wait until no trial of an earlier scenario can start after this one.

        Enter the turns in the order of the plan, and acquire nothing before that another trial may wait for.

        Args:
            scenario: Position of the trial's scenario in the plan.

        Yields:
            A function to call when the trial starts. A trial that leaves without a start does not hold up others.
        """
        self._unstarted[scenario] += 1
        waiting = True

        def start() -> None:
            nonlocal waiting
            if waiting:
                waiting = False
                self._unstarted -= Counter({scenario: 1})
                self._wake()

        try:
            while not (self._unlimited or self.exhausted) and min(self._unstarted) < scenario:
                await self._moved.wait()
            yield start
        finally:
            start()

    async def reserve(self, behaviour: str) -> TrialEstimate | None:
        """Wait until a trial of a variant may start. Return its expected usage, or None if nothing more may start."""
        while not self.exhausted:
            need, alone = self._expected(behaviour)
            lacking = self._lacking(need)
            if self._unlimited or (not lacking and not (alone and self._reserved)):
                self._reserved.append(need)
                return need
            if not self._reserved:
                self.exhausted = lacking
                self._wake()
                break
            await self._moved.wait()
        return None

    def settle(
        self, need: TrialEstimate, behaviour: str, trial: Trial | None, cut: TrialUsage | None = None
    ) -> None:
        """Count what a trial used in place of what it was expected to; of one that did not finish, what it had used
        until it was `cut` short."""
        self._reserved.remove(need)
        used = TrialUsage.of(trial) if trial is not None else cut or TrialUsage()
        self.usd, self.tokens, self.calls = (
            self.usd + used.usd,
            self.tokens + used.tokens,
            self.calls + used.calls,
        )
        self.unpriced += used.unpriced
        if trial is not None:
            if used.unpriced and self.budget.usd is not None:
                self.exhausted = f"the price of {trial.model} is not known, so dollars cannot be counted"
            if used.calls:
                self.expect(behaviour, used)
        self._wake()

    def expect(self, behaviour: str, used: TrialUsage) -> None:
        """Expect as much as this of what comes, where that is more than what was expected by now."""
        most = TrialEstimate(used.usd, used.tokens, used.calls)
        self._dearest[behaviour] = most.larger(self._dearest.get(behaviour, TrialEstimate()))

    def _expected(self, behaviour: str) -> tuple[TrialEstimate, bool]:
        """Return the expected usage of a variant's next trial, and whether it must run alone to be known at all."""
        known = self._dearest.get(behaviour)
        if known is not None:
            return known, False
        most = functools.reduce(TrialEstimate.larger, self._dearest.values(), TrialEstimate())
        told = all(getattr(most, name) for name, _ in _UNITS if getattr(self.budget, name) is not None)
        return (most, False) if told else (most.larger(FIRST), True)

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    def _lacking(self, need: TrialEstimate) -> str:
        """Return what a trial that needs so much does not fit into, in words; "" where it fits."""
        for name, unit in _UNITS:
            limit = getattr(self.budget, name)
            if limit is None:
                continue
            held = getattr(self, name) + sum(getattr(each, name) for each in self._reserved)
            wanted = getattr(need, name)
            if held + wanted > limit or held >= limit:
                return (
                    f"the budget of {limit:,g} {unit} is reached: {held:,.4g} are spent, and another trial is "
                    f"expected to need {wanted:,.4g}"
                )
        return ""
