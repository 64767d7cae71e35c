"""What a person says of a study when it is made, checked before anything is done.

Invariant: an option that nothing could run with is refused here, with the word that it takes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from reyn_jupyter.config.wording import shown
from reyn_jupyter.evaluation.answering import Agent
from reyn_jupyter.evaluation.answers import CassetteMode
from reyn_jupyter.evaluation.asked import choice, instance, number, whole
from reyn_jupyter.evaluation.budget import Budget
from reyn_jupyter.evaluation.catalogs import Catalog
from reyn_jupyter.evaluation.concurrency import Concurrency
from reyn_jupyter.evaluation.executor import AsyncioExecutor, Executor
from reyn_jupyter.evaluation.plans import PlanError
from reyn_jupyter.evaluation.scenario import Scenario
from reyn_jupyter.evaluation.suite import Suite, SuiteError
from reyn_jupyter.evaluation.suites import load_suite

MOST_WORKERS = max(16, 4 * (os.cpu_count() or 1))
_PARTS = ("label", "tier", "host", "real", "complete")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a study runs its trials; see `Study`."""

    models: Mapping[str, Any] = field(default_factory=dict)
    cassette: CassetteMode = "off"
    cassette_path: str | Path | None = None
    config: Mapping[str, Any] | None = None
    root: str | Path = "."
    seed: int = 0
    timeout: float = 300.0
    workers: int = 0
    executor: Executor = field(default_factory=AsyncioExecutor)
    concurrency: Concurrency = field(default_factory=Concurrency)
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        choice("cassette", self.cassette, get_args(CassetteMode), PlanError)
        object.__setattr__(self, "seed", whole("seed", self.seed, PlanError, least=0))
        object.__setattr__(self, "timeout", number("timeout", self.timeout, PlanError))
        object.__setattr__(
            self, "workers", whole("workers", self.workers, PlanError, least=0, most=MOST_WORKERS)
        )
        if not callable(getattr(self.executor, "run", None)):
            raise PlanError(
                f"executor={shown(self.executor)} runs nothing; give an object with run(plans, one)."
            )
        instance("concurrency", self.concurrency, Concurrency, PlanError, "a Concurrency(…)")
        instance("budget", self.budget, Budget, PlanError, "reyn.Budget(usd=2.0)")
        for name, given in (("models", self.models), ("config", self.config or {})):
            if not isinstance(given, Mapping):
                raise PlanError(f"{name}={shown(given)}: give a mapping.")
        for name, model in self.models.items():
            lacking = [part for part in _PARTS if not hasattr(model, part)]
            if lacking and not isinstance(model, Agent):
                raise PlanError(
                    f"models[{name!r}]={shown(model)} is no model; it lacks {', '.join(lacking)}."
                )


def suite_of(suite: str | Path | Suite | Scenario | Sequence[Scenario]) -> Suite:
    """A suite from its name, a file, or scenarios over the installed actions. Raises SuiteError."""
    if isinstance(suite, Suite):
        return suite
    if isinstance(suite, str | Path):
        return load_suite(suite)
    try:
        scenarios = (suite,) if isinstance(suite, Scenario) else tuple(suite)
    except TypeError as error:
        raise SuiteError(
            f"suite={shown(suite)}: give the name of a suite, a .yaml file, a Suite, or a list of scenarios"
        ) from error
    title = f"{len(scenarios)} scenarios"
    checks = ("first_call_is", "arguments_correct", "chain")
    return Suite(name="scenarios", title=title, primary="task_done", checks=checks, scenarios=scenarios,
                 catalogs={"standard": Catalog.standard})  # fmt: skip
