"""Plan a run: which trials are tried, in which order, and which of them are still to be tried.

Invariants:
- Whatever cannot work (no such check, no such model, a price that nobody knows) is refused here, before the first trial
  is paid for.
- The order follows from the seed and the scenarios alone. All variants of one scenario and repeat stand side by side,
  in random order, and families come in proportion; so a study that is stopped anywhere is balanced, and whatever drifts
  with time (a provider's load, a model that is replaced) touches all variants alike.
- A trial that is in the file is not tried again, unless it ended in an error or a timeout and the person asks for that;
  variants that behave alike share a trial, which is tried once and counts for each of them.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, get_args

from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.plan.conditions import conditions_digest
from reyn_jupyter.evaluation.plan.scenario import Scenario, Source
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.validation import choice, instance, number, whole
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.load_trials import StudySpec
from reyn_jupyter.evaluation.run.budget import Budget, BudgetError
from reyn_jupyter.evaluation.run.progress import RunSummary
from reyn_jupyter.evaluation.run.run_state import RunPlan, RunState, StopRule
from reyn_jupyter.evaluation.statistics.scipy_import import library
from reyn_jupyter.evaluation.store.rows import Found
from reyn_jupyter.evaluation.trial.trial import MISSING
from reyn_jupyter.evaluation.trial.trial_runner import TrialPlan, TrialRunner
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.support.text import meant_clause
from reyn_jupyter.support.user_errors import UserError
from reyn_jupyter.support.validation_messages import quote_value
from reyn_jupyter.support.versions import version_of, versions


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run; see `Study.run`.

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


def plan_run(
    trial_runner: TrialRunner,
    variants: Sequence[Variant],
    options: RunOptions,
    *,
    seed: int,
    budget: Budget,
    config: Mapping[str, Any] | None,
    noted: Mapping[str, Any],
) -> RunPlan:
    """Return the plan of a run, and refuse what cannot work.

    Args:
        trial_runner: the study's.
        variants, options: what is asked for.
        seed: of the order of trials.
        budget: the study's, where the wish has none.
        config: the settings of every trial.
        noted: what else the run's provenance says.

    Raises:
        PlanError, BudgetError, UnknownCheckError, ImportError: says what cannot work and what to do.
    """
    suite = trial_runner.suite
    check_variants(variants)
    if options.stop == "evalue" and len(variants) != 2:
        raise PlanError(
            f'stop="evalue" compares two variants, and here the number is {len(variants)}; name two, or take '
            'stop="fixed".'
        )
    library("scipy.special")
    primary = find_check(options.check or suite.primary)
    others = [find_check(name) for name in dict.fromkeys((suite.primary, *suite.checks))]
    for variant in variants:
        _refuse_what_has_no_model(trial_runner, variant, options.budget or budget)
    stamps = stamps_of(trial_runner, variants, config)
    return RunPlan(
        variants=tuple(variants),
        scenarios=select_scenarios(suite.scenarios, options.n, options.families, seed),
        repeats=tuple(range(options.repeats)),
        check=primary,
        stop=options.stop,
        others=tuple(each for each in others if each.name != primary.name),
        alpha=options.alpha,
        retry=options.retry,
        budget=options.budget or budget,
        seed=seed,
        stamps=stamps,
        provenance={
            **_provenance(trial_runner, suite, variants, stamps),
            "config": dict(config or {}),
            "allow_actions": list(suite.allow_actions),
            **noted,
        },
    )


def summarise_unstarted(
    suite: Suite, variants: Sequence[Variant], options: RunOptions, seed: int
) -> RunSummary:
    """Return the summary of a run that was interrupted before it had a plan: nothing was run, and nothing noted.

    Raises:
        PlanError, UnknownCheckError: as `plan_run`, of what could not have been run.
    """
    check_variants(variants)
    scenarios = len(select_scenarios(suite.scenarios, options.n, options.families, seed))
    return RunSummary(
        run="",
        variants=tuple(each.name for each in variants),
        check=find_check(options.check or suite.primary).name,
        ended="interrupted",
        reason="Interrupted before the first trial; run it again.",
        planned=scenarios * len(variants) * options.repeats,
        done=0,
        earlier=0,
        scenarios=scenarios,
        finished=0,
        missing={each.name: 0 for each in variants},
        usd=0.0,
        tokens=0,
        calls=0,
        seconds=0.0,
        stop={"rule": options.stop, "ended": "interrupted", "scenarios": 0},
    )


def stamps_of(
    trial_runner: TrialRunner, variants: Iterable[Variant], config: Mapping[str, Any] | None
) -> dict[str, str]:
    """Model's name → what its trials stand on besides the catalog, of the models that can be had."""
    found: dict[str, str] = {}
    for variant in variants:
        with suppress(ModelError):
            found[variant.model] = conditions_digest(
                config, trial_runner.models.made_of(variant), trial_runner.suite.allow_actions
            )
    return found


def _refuse_what_has_no_model(trial_runner: TrialRunner, variant: Variant, budget: Budget) -> None:
    try:
        source, label = trial_runner.models.source(variant), trial_runner.models.label(variant)
        trial_runner.check(variant)
    except ModelError as error:
        raise PlanError(f"Variant {variant.name!r}: {error.message} {error.hint}".strip()) from error
    if budget.usd is not None and source == "real" and _lacks_price(label):
        raise BudgetError(
            f"Variant {variant.name!r}: the price of {label} is not known, so a budget in dollars cannot be kept. "
            "Give the budget in tokens or model calls: Budget(tokens=…)."
        )


def _lacks_price(label: str) -> bool:
    from reyn_jupyter.models.providers.prices import price_of  # brings LiteLLM along

    return price_of(label) is None


def _provenance(
    trial_runner: TrialRunner, suite: Suite, variants: Iterable[Variant], stamps: Mapping[str, str]
) -> dict[str, Any]:
    made = {name: version_of(name) for name in ("litellm", "pydantic", "scipy")}
    models = {variant.model: found for variant in variants if (found := trial_runner.models.made_of(variant))}
    return {
        **StudySpec.of_suite(suite, trial_runner.code, trial_runner.catalog_hashes, stamps).record,
        "versions": {**versions(), **{name: version for name, version in made.items() if version}},
        "date": datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="seconds"),
        "models": models,
    }


class PlanError(UserError, ValueError):
    """The run cannot be planned as asked; the message says why and what to do."""


def select_scenarios(
    scenarios: Sequence[Scenario], n: int | None, families: Collection[str] | None, seed: int
) -> tuple[Scenario, ...]:
    """Return the scenarios to try, in the order of trying.

    Args:
        scenarios: those of the suite.
        n: how many; all when None. The first n of an order are the first n of it for every larger n.
        families: only those of these families; all when None.
        seed: of the shuffle.

    Raises:
        PlanError: none is left, or a family is not known.
    """
    there = {scenario.family for scenario in scenarios}
    if isinstance(families, str):
        families = (families,)
    if families is not None and not isinstance(families, Collection):
        raise PlanError(
            f"families={quote_value(families)}: give names of families: {', '.join(sorted(there))}."
        )
    unknown = sorted(str(each) for each in set(families or ()) - there)
    if unknown:
        near = meant_clause(unknown[0], there) or "."
        raise PlanError(f"The suite has no family {unknown[0]!r}{near} It has {', '.join(sorted(there))}.")
    kept = [scenario for scenario in scenarios if families is None or scenario.family in families]
    if not kept:
        raise PlanError(f"No scenario is selected; name families among {', '.join(sorted(there))}.")
    return tuple(_proportional(kept, random.Random(seed))[:n])  # noqa: S311 - an order, no secret


def _proportional(scenarios: Sequence[Scenario], chance: random.Random) -> list[Scenario]:
    """Shuffled within families, and families in proportion in every part of the order."""
    families: dict[str, list[Scenario]] = defaultdict(list)
    for scenario in scenarios:
        families[scenario.family].append(scenario)
    placed = []
    for members in families.values():
        chance.shuffle(members)
        offset = chance.random()
        placed += [((place + offset) / len(members), scenario) for place, scenario in enumerate(members)]
    return [scenario for _, scenario in sorted(placed, key=lambda each: (each[0], each[1].id))]


def order_trials(
    scenarios: Sequence[Scenario], variants: Sequence[Variant], repeats: Sequence[int], seed: int
) -> Iterator[tuple[Scenario, Variant, int]]:
    """Yield every trial of a run, in order: scenario, variant, repeat.

    Example:
        >>> s = [Scenario(id=f"s{i}", family="f", prompts={"natural": "Hi"}) for i in range(2)]
        >>> [scenario.id for scenario, _, _ in ordered(s, [Variant("a"), Variant("b")], [0], 0)]
        ['s0', 's0', 's1', 's1']
    """
    for scenario in scenarios:
        for repeat in repeats:
            # A generator of its own for each pair: what is done already does not move the order of the rest.
            beside = list(variants)
            random.Random(f"{seed}/{scenario.id}/{repeat}").shuffle(beside)  # noqa: S311 - an order, no secret
            for variant in beside:
                yield scenario, variant, repeat


def check_variants(variants: Sequence[object]) -> None:
    """Refuse what cannot be run. Raises PlanError."""
    if not variants:
        raise PlanError("Run what? Name at least one variant: study.run(base, best).")
    names: dict[str, Variant] = {}
    for variant in variants:
        if isinstance(variant, list | tuple):
            raise PlanError("Name the variants one by one; a list with a star: study.run(*variants).")
        if not isinstance(variant, Variant):
            raise PlanError(
                f"{quote_value(variant)} is no variant; make one, reyn.Variant({variant!r:.80}, model=…), or take "
                "one of the suite: study.suite.variants."
            )
        other = names.get(variant.name)
        if other is not None and other.behaviour_digest != variant.behaviour_digest:
            moved = ", ".join(variant.differences(other))
            raise PlanError(
                f"Two variants are called {variant.name!r} and differ in {moved}; give each a name of its own."
            )
        if other is not None:
            raise PlanError(f"The variant {variant.name!r} is named twice; name it once.")
        names[variant.name] = variant


@dataclass
class Remaining:
    """The plans of what is to be tried, in their order.

    Attributes:
        alike: (trial's key, source) → the variants that a trial of several counts for.
    """

    plans: list[TrialPlan] = field(default_factory=list)
    alike: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def names(self, plan: TrialPlan, source: Source) -> list[str]:
        """Return the variants that a trial counts for."""
        return self.alike.get((plan.key, source), [plan.variant.name])


def remaining_trials(
    run_plan: RunPlan,
    trial_runner: TrialRunner,
    stored: Mapping[Found, tuple[str, float | None]],
    conditions: Callable[[TrialPlan], str],
    run_state: RunState,
) -> Remaining:
    """Sort what is there already, and count it, from what is to be tried.

    Args:
        run_plan: what to do.
        trial_runner: makes the plans.
        stored: what a trial is found by → its outcome and the primary check's value.
        conditions: what a trial stands on besides.
        run_state: counts what is there.
    """
    left, planned = Remaining(), dict[tuple[str, str], list[str]]()
    sources = {variant.name: trial_runner.models.source(variant) for variant in run_plan.variants}
    for scenario, variant, repeat in order_trials(
        run_plan.scenarios, run_plan.variants, run_plan.repeats, run_plan.seed
    ):
        plan, source = trial_runner.plan(scenario, variant, repeat), sources[variant.name]
        outcome, value = stored.get((plan.key, source, conditions(plan)), ("", None))
        if outcome and not (run_plan.retry and outcome in MISSING):
            run_state.earlier += 1
            run_state.count(variant.name, scenario.id, repeat, outcome, value)
            continue
        alike = planned.setdefault((plan.key, source), [])
        alike.append(variant.name)
        if len(alike) == 1:
            left.plans.append(plan)
    left.alike = {place: alike for place, alike in planned.items() if len(alike) > 1}
    return left
