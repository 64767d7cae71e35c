"""A budget is kept: nothing starts that is not expected to fit, and what stopped can go on with more."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.run.budget import Budget, BudgetError, Ledger
from reyn_jupyter.evaluation.run.concurrency import Concurrency
from reyn_jupyter.evaluation.store.rows import StudyUsage
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.models.base import Response, Usage
from reyn_jupyter.models.scripted import ScriptedModel
from tests.evaluation.study_support import BASE, BEST, study


def trial(calls: int, tokens: int = 0, cost: float | None = 0.0) -> Trial:
    return Trial(
        key="k", scenario="s", variant="v", repeat=0, code="1", source="real", model="m", model_calls=calls,
        prompt_tokens=tokens, cost=cost,
    )  # fmt: skip


class Priced(ScriptedModel):
    """A model whose every answer costs the same."""

    def __init__(self, usd: float | None, real: bool = False) -> None:
        answer = Response("Done.", usage=Usage(90, 10), cost=usd)
        label = "openai/gpt-4o-mini" if usd is not None else "house/unlisted"
        super().__init__(otherwise=answer, label=label, real=real, host="api.example.com" if real else None)


def test_a_run_stops_at_its_budget_and_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    model = Priced(0.10)
    made = study(tmp_path / "a.sqlite", 6, models={"scripted": model}, budget=Budget(usd=0.55))
    summary = made.run(BASE)
    assert summary.ended == "budget" and "0.55 dollars" in summary.reason
    assert summary.done == 5 == len(model.requests) and made.spent.usd == pytest.approx(0.5)
    assert "7 trials not run" in summary.sentence
    again = made.run(BASE)
    assert (again.ended, again.done, len(model.requests)) == ("budget", 5, 5)
    rest = made.run(BASE, budget=Budget(usd=2.0))
    assert (rest.ended, rest.done, rest.earlier, len(model.requests)) == ("complete", 12, 5, 12)


@pytest.mark.parametrize(("budget", "trials"), [(Budget(tokens=3_200), 3), (Budget(calls=4), 4)])
def test_tokens_and_calls_are_limits_too(budget: Budget, trials: int) -> None:
    model = ScriptedModel(otherwise=Response("Done.", usage=Usage(900, 100)))
    made = study(None, 8, models={"scripted": model}, budget=budget)
    summary = made.run(BASE, repeats=1)
    assert (summary.ended, summary.done, len(model.requests)) == ("budget", trials, trials)
    assert (made.spent.calls, made.spent.tokens) == (trials, trials * 1_000)


def test_a_budget_that_is_too_small_for_a_first_trial_starts_none() -> None:
    model = Priced(0.1)
    summary = study(None, 2, models={"scripted": model}, budget=Budget(calls=2)).run(BASE)
    assert (summary.ended, summary.done, len(model.requests)) == ("budget", 0, 0)


def test_a_price_that_is_not_known_is_told_before_the_start_of_a_budget_in_dollars() -> None:
    model = Priced(None, real=True)
    made = study(None, 2, models={"scripted": model})
    with pytest.raises(BudgetError, match="price of house/unlisted is not known"):
        made.run(BASE, budget=Budget(usd=1.0))
    assert not model.requests
    assert made.run(BASE, budget=Budget(tokens=10**9)).ended == "complete"


def test_a_price_that_turns_out_unknown_ends_the_run() -> None:
    model = Priced(0.1, real=True)
    model._otherwise = Response("Done.", usage=Usage(90, 10), cost=None)
    made = study(None, 6, models={"scripted": model}, concurrency=Concurrency(start=1, most=1))
    summary = made.run(BASE, budget=Budget(usd=1.0))
    assert summary.ended == "budget" and "price of" in summary.reason and summary.usd is None
    assert summary.done < 12


def test_both_variants_of_a_pair_are_there_when_the_budget_ends_a_run() -> None:
    made = study(None, 20, models={"scripted": Priced(0.01)}, budget=Budget(usd=0.2))
    made.run(BASE, BEST)
    counts = [len(made.trials.of(each)) for each in (BASE, BEST)]
    assert abs(counts[0] - counts[1]) <= 2 and sum(counts) >= 18


@pytest.mark.parametrize("limits", [{"usd": 0}, {"tokens": -1}, {"calls": float("inf")}, {"usd": True}])
def test_limits_that_make_no_sense_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(BudgetError):
        Budget(**limits)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=30),
    st.integers(1, 60),
    st.integers(1, 6),
)
def test_what_is_spent_never_exceeds_the_limit_by_more_than_trials_exceed_the_dearest_before(
    calls: list[int], limit: int, at_a_time: int
) -> None:
    async def play() -> None:
        ledger = Ledger(Budget(calls=limit), StudyUsage(), {})
        slots = asyncio.Semaphore(at_a_time)
        started = 0

        async def one(needs: int) -> None:
            nonlocal started
            async with slots:
                need = await ledger.reserve("v")
                if need is None:
                    return
                started += 1
                await asyncio.sleep(0)
                ledger.settle(need, "v", trial(needs))

        await asyncio.wait_for(asyncio.gather(*(one(each) for each in calls)), 60)
        assert ledger.calls <= limit + at_a_time * 5
        if len(set(calls)) == 1:
            assert ledger.calls <= max(limit, calls[0])
        assert started == len(calls) or ledger.exhausted

    asyncio.run(play())


PRICES = (0.0002, 0.001, 0.003, 0.0005, 0.002, 0.008)


class Yielding(Priced):
    """A model that gives other trials a chance to start before each answer."""

    def __init__(self, usd: float, pauses: int) -> None:
        super().__init__(usd)
        self._pauses = pauses

    async def complete(self, request: Any, on_text: Any = None) -> Response:
        for _ in range(self._pauses):
            await asyncio.sleep(0)
        return await super().complete(request, on_text)


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(PRICES), min_size=2, max_size=8),
    st.sampled_from(
        [Budget(usd=0.002), Budget(usd=0.02), Budget(usd=0.06), Budget(tokens=4_000), Budget(calls=17)]
    ),
    st.integers(1, 12),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_budget_ends_with_balanced_variants(
    prices: list[float], budget: Budget, at_a_time: int, repeats: int, chance: random.Random
) -> None:
    models = {f"m{place}": Yielding(usd, chance.randint(0, 200)) for place, usd in enumerate(prices)}
    variants = [Variant(name, model=name) for name in models]
    made = study(
        None, 12, models=models, concurrency=Concurrency(start=at_a_time, most=12, most_local=at_a_time)
    )
    summary = made.run(*variants, budget=budget, repeats=repeats)
    counts = Counter(each.trial.variant for each in made.trials)
    balance = [counts[each.name] for each in variants]
    assert max(balance) - min(balance) <= repeats, counts
    assert summary.done == counts.total()
    assert summary.ended == "budget" or summary.done == 12 * repeats * len(variants)
