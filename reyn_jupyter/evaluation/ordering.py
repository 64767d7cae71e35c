"""From what a person asks for to an order that can be run.

Invariant: whatever cannot work (no such check, no such model, a price that nobody knows) is refused here, before the
first trial is paid for.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args

from reyn_jupyter.evaluation.asked import choice, instance, number, whole
from reyn_jupyter.evaluation.budget import Budget, BudgetError
from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.gathering import Subject
from reyn_jupyter.evaluation.ground import stamp_of
from reyn_jupyter.evaluation.plans import PlanError, checked, selected
from reyn_jupyter.evaluation.progress import RunSummary
from reyn_jupyter.evaluation.statistics.libraries import library
from reyn_jupyter.evaluation.suite import Suite
from reyn_jupyter.evaluation.tally import Order, StopRule
from reyn_jupyter.evaluation.trial_run import Bench
from reyn_jupyter.evaluation.variant import Variant
from reyn_jupyter.models.seam import ModelError
from reyn_jupyter.version import version_of, versions


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a person asks of a run; see `Study.run`.

    Raises:
        PlanError: a wish that nothing could fulfil.
    """

    repeats: int = 2
    n: int | None = None
    families: Collection[str] | None = None
    stop: StopRule = "fixed"
    check: str | None = None
    alpha: float = 0.05
    retry: bool = False
    budget: Budget | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "repeats", whole("repeats", self.repeats, PlanError))
        if self.n is not None:
            object.__setattr__(self, "n", whole("n", self.n, PlanError))
        choice("stop", self.stop, get_args(StopRule), PlanError)
        object.__setattr__(self, "alpha", number("alpha", self.alpha, PlanError, below=1))
        if self.budget is not None:
            instance("budget", self.budget, Budget, PlanError, "reyn.Budget(usd=2.0)")


def order_of(
    bench: Bench,
    variants: Sequence[Variant],
    wish: Wish,
    *,
    seed: int,
    budget: Budget,
    config: Mapping[str, Any] | None,
    noted: Mapping[str, Any],
) -> Order:
    """What a run is to do.

    Args:
        bench: the study's.
        variants, wish: what is asked for.
        seed: of the order of trials.
        budget: the study's, where the wish has none.
        config: the settings of every trial.
        noted: what else the run's provenance says.

    Raises:
        PlanError, BudgetError, UnknownCheckError, ImportError: says what cannot work and what to do.
    """
    suite = bench.suite
    checked(variants)
    if wish.stop == "evalue" and len(variants) != 2:
        raise PlanError(
            f'stop="evalue" compares two variants, and here the number is {len(variants)}; name two, or take '
            'stop="fixed".'
        )
    library("scipy.special")
    primary = find_check(wish.check or suite.primary)
    others = [find_check(name) for name in dict.fromkeys((suite.primary, *suite.checks))]
    for variant in variants:
        _refuse_what_has_no_model(bench, variant, wish.budget or budget)
    stamps = stamps_of(bench, variants, config)
    return Order(
        variants=tuple(variants),
        scenarios=selected(suite.scenarios, wish.n, wish.families, seed),
        repeats=tuple(range(wish.repeats)),
        check=primary,
        stop=wish.stop,
        others=tuple(each for each in others if each.name != primary.name),
        alpha=wish.alpha,
        retry=wish.retry,
        budget=wish.budget or budget,
        seed=seed,
        stamps=stamps,
        provenance={**_provenance(bench, suite, variants, stamps), "config": dict(config or {}), **noted},
    )


def unbegun(suite: Suite, variants: Sequence[Variant], wish: Wish, seed: int) -> RunSummary:
    """What is said of a run that was interrupted before there was an order: nothing was run, and nothing noted.

    Raises:
        PlanError, UnknownCheckError: as `order_of`, of what could not have been run.
    """
    checked(variants)
    scenarios = len(selected(suite.scenarios, wish.n, wish.families, seed))
    return RunSummary(
        run="",
        variants=tuple(each.name for each in variants),
        check=find_check(wish.check or suite.primary).name,
        ended="interrupted",
        reason="Interrupted before the first trial; run it again.",
        planned=scenarios * len(variants) * wish.repeats,
        done=0,
        earlier=0,
        scenarios=scenarios,
        finished=0,
        missing={each.name: 0 for each in variants},
        usd=0.0,
        tokens=0,
        calls=0,
        seconds=0.0,
        stop={"rule": wish.stop, "ended": "interrupted", "scenarios": 0},
    )


def stamps_of(bench: Bench, variants: Iterable[Variant], config: Mapping[str, Any] | None) -> dict[str, str]:
    """Model's name → what its trials stand on besides the catalog, of the models that can be had."""
    found: dict[str, str] = {}
    for variant in variants:
        with suppress(ModelError):
            found[variant.model] = stamp_of(config, bench.made_of(variant))
    return found


def _refuse_what_has_no_model(bench: Bench, variant: Variant, budget: Budget) -> None:
    try:
        source, label = bench.source(variant), bench.label(variant)
        bench.check(variant)
    except ModelError as error:
        raise PlanError(f"Variant {variant.name!r}: {error.message} {error.hint}".strip()) from error
    if budget.usd is not None and source == "real" and _unpriced(label):
        raise BudgetError(
            f"Variant {variant.name!r}: the price of {label} is not known, so a budget in dollars cannot be kept. "
            "Give the budget in tokens or calls: Budget(tokens=…)."
        )


def _unpriced(label: str) -> bool:
    from reyn_jupyter.sessions.dry import price_of  # brings LiteLLM along

    return price_of(label) is None


def _provenance(
    bench: Bench, suite: Suite, variants: Iterable[Variant], stamps: Mapping[str, str]
) -> dict[str, Any]:
    made = {name: version_of(name) for name in ("litellm", "pydantic", "scipy")}
    models = {variant.model: found for variant in variants if (found := bench.made_of(variant))}
    return {
        **Subject.of_suite(suite, bench.code, bench.catalog_hashes, stamps).record,
        "versions": {**versions(), **{name: version for name, version in made.items() if version}},
        "date": datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="seconds"),
        "models": models,
    }
