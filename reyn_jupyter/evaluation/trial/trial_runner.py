"""One trial: a fresh world, one turn of the real router loop, the facts.

Invariants: nothing that a model does raises out of `TrialRunner.run`; a trial sees nothing of another one; replaying a
recording never reaches a model or the network.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cachetools import LRUCache

from reyn_jupyter.config import Effective, Settings
from reyn_jupyter.config.layers import from_mapping
from reyn_jupyter.evaluation.plan.distractors import require_size, shipped_distractors
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import Suite, SuiteError
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.trial.code_version import code_version
from reyn_jupyter.evaluation.trial.confinement import trial_policy
from reyn_jupyter.evaluation.trial.environment import SharedFixtures, TrialEnvironment
from reyn_jupyter.evaluation.trial.facts import denied_actions, effort, help_counts, outcome_of
from reyn_jupyter.evaluation.trial.model_factory import CassetteMode, ModelFactory
from reyn_jupyter.evaluation.trial.trial import Outcome, Trial, trial_key
from reyn_jupyter.evaluation.trial.trial_model import Agent, OnModelError, UsageMeter
from reyn_jupyter.evaluation.trial.workspaces import Template, TemplateError
from reyn_jupyter.models.base import Model
from reyn_jupyter.models.providers.provider_facts import is_local
from reyn_jupyter.runtime.record.call_facts import call_facts
from reyn_jupyter.runtime.record.events import Event
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.search.active_class import EmbeddingClassError
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.sessions.runs.run_lifecycle import turn
from reyn_jupyter.sessions.runs.turn_options import TurnOptions
from reyn_jupyter.support.files.scratch import Scratch

TIMEOUT = 300.0  # seconds of one trial
MOST_FILLED = 64  # catalogs with distractors that are kept
FIRST_LOCAL = 3  # times that, for the first trial of a model on this machine


@dataclass(frozen=True)
class TrialPlan:
    """One trial to be run: plain data. `repeat` counts from 0; `key` is what the trial will be found by."""

    scenario: Scenario
    variant: Variant
    repeat: int
    key: str


class TrialRunner:
    """The runner of a study's trials, with what they share: frozen catalogs, models, settings, a temporary folder.

    Attributes:
        models: the factory of the models that answer, which knows their sources, labels, and limits.

    Args:
        suite: its scenarios and catalogs; the catalogs are frozen here.
        models: by the name that variants use: models behind the seam, or agents that are given the scenario.
        cassette: "record" adds every trial's model calls to the file, "replay" answers from it alone.
        cassette_path: the file; needed unless the cassette is off.
        config: settings for every trial, under the variant's own; nested, as in a configuration file.
        settings: where the models of tiers are looked up: the person's own; none is configured otherwise.
        seed: handed to models that are made here (the simulator).
        timeout: seconds that one trial may take; three times as many for the first one of a model on this machine.
        on_model_error: gets (provider, error) for each failed attempt of a model call, for whoever paces the calls.
        scratch: where the temporary folder lies; the system's place for such when None.

    Raises:
        SuiteError: the cassette has no path, or a scenario's template cannot be laid out.
        ModelError: the recording to replay cannot be read.
        ConfigError: a setting of `config` that there is not.

    Example:
        >>> trial_runner = TrialRunner(suite, models={"mine": model})                # doctest: +SKIP
        >>> trial, events = await trial_runner.run(trial_runner.plan(scenario, variant, 0)) # doctest: +SKIP
    """

    def __init__(
        self,
        suite: Suite,
        *,
        models: Mapping[str, Model | Agent] | None = None,
        cassette: CassetteMode = "off",
        cassette_path: str | Path | None = None,
        config: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        seed: int = 0,
        timeout: float = TIMEOUT,
        on_model_error: OnModelError | None = None,
        scratch: Path | None = None,
    ) -> None:
        self.suite = suite
        self.code = code_version()
        self.catalogs: Mapping[str, Catalog] = {name: suite.catalog(name) for name in suite.catalogs}
        self.catalog_hashes: Mapping[str, str] = {name: made.hash for name, made in self.catalogs.items()}
        self.models = ModelFactory(
            models or {},
            settings or Settings(),
            seed=seed,
            cassette=cassette,
            path=None if cassette_path is None else Path(cassette_path),
            on_model_error=on_model_error,
        )
        self._config = dict(config or {})
        self._timeout = timeout
        self._scratch = Scratch(scratch)
        self._asked: set[str] = set()  # models on this machine that had a trial
        self._fixtures = SharedFixtures.in_folder(self._scratch, os.environ)
        self._indexing = asyncio.Lock()
        self._narrowed: dict[tuple[str, tuple[str, ...]], Catalog] = {}
        self._filled: LRUCache[tuple[str, tuple[str, ...], int], Catalog] = LRUCache(MOST_FILLED)
        self._effective: dict[str, Effective] = {}
        self._templates: dict[str, Template] = {}
        from_mapping(self._config)
        for scenario in suite.scenarios:
            self._template(scenario)

    def close(self) -> None:
        """Remove everything temporary, and end what worked for its trials."""
        if not self._fixtures.is_idle:
            ENGINE.run(self.release())
        self._fixtures.children.close()
        self._scratch.close()

    async def release(self) -> None:
        """Close the categories that its trials started, on their loop; a later trial starts them again."""
        await self._fixtures.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def plan(self, scenario: Scenario, variant: Variant, repeat: int) -> TrialPlan:
        """Return the plan of one trial, with its key."""
        return TrialPlan(scenario, variant, repeat, trial_key(scenario, variant, repeat, self.code))

    def check(self, variant: Variant) -> None:
        """See `ModelFactory.check`. Raises SuiteError, too: the variant leaves out a category that no catalog holds, or
        a scenario's catalog cannot have its size."""
        held = {name for catalog in self.catalogs.values() for name in catalog.snapshot.slices}
        for name in variant.without:
            if name not in held:
                raise SuiteError(
                    f"variant {variant.name!r}: without: no catalog of the suite holds the category {name!r}; "
                    f"there are {', '.join(sorted(held))}"
                )
        require_size(variant, self.suite.scenarios, lambda scenario: self._narrow(scenario, variant))
        self.models.check(variant)

    async def run(
        self, plan: TrialPlan, model: Model | None = None, meter: UsageMeter | None = None
    ) -> tuple[Trial, tuple[Event, ...]]:
        """Run one trial; what the model does, fails at or never finishes is in the trial.

        Args:
            plan: what is tried.
            model: what answers in place of the variant's model (a replay).
            meter: reads what the trial uses while it goes on.

        Raises:
            asyncio.CancelledError: the trial was interrupted; it never happened, but for what the meter reads.
            SuiteError: the variant searches, and no embeddings are there to search with.
        """
        scenario, variant, began = plan.scenario, plan.variant, time.time()
        phrasing, prompt = scenario.prompt(plan.repeat)
        template = self._template(scenario)
        offered = self._offered(scenario, variant)
        environment = TrialEnvironment(
            self._fixtures,
            scenario,
            template,
            offered,
            self._settings_of(variant),
            variant.behaviour_digest,
            trial_policy(self._settings_of(variant).settings, self.suite.allow_actions),
        )
        try:
            answering, source = self.models.to(plan.scenario, variant, plan.repeat, model, meter)
            if variant.search:
                await self._build_index(environment)
            trace, timed_out = await self._turn(environment, plan, prompt, answering)
            if trace is None:
                late = f"its {self._timeout:g} s were over before the model was asked"
                return self.lost(plan, late, began, outcome="timeout"), ()
            outcome, why = outcome_of(trace, timed_out=timed_out)
            files = template.facts(environment.private, (one.path for one in scenario.expected))
        finally:
            environment.close()
        trial = Trial(
            key=plan.key,
            scenario=scenario.id,
            variant=variant.name,
            repeat=plan.repeat,
            code=self.code,
            phrasing=phrasing,
            source=source,
            outcome=outcome,
            error=why,
            answer=trace.answer,
            calls=call_facts(trace, offered.distractors),
            denied=denied_actions(trace),
            helped=help_counts(trace),
            files=files,
            catalog=self.catalog_hashes[scenario.catalog],
            **effort(trace),
        )
        return trial, trace.events

    def lost(self, plan: TrialPlan, why: str, started: float, *, outcome: Outcome = "error") -> Trial:
        """Return a trial without any event: it took the process with it in which it ran, or had no time to begin.

        Args:
            plan: what was tried.
            why: how the process ended, or what else there was.
            started: seconds since the epoch.
            outcome: how it counts.
        """
        scenario, variant = plan.scenario, plan.variant
        return Trial(
            key=plan.key,
            scenario=scenario.id,
            variant=variant.name,
            repeat=plan.repeat,
            code=self.code,
            phrasing=scenario.prompt(plan.repeat)[0],
            source=self.models.source(variant),
            outcome=outcome,
            error=why,
            model=self.models.label(variant),
            catalog=self.catalog_hashes[scenario.catalog],
            started=started,
        )

    def _offered(self, scenario: Scenario, variant: Variant) -> Catalog:
        """Return the catalog that a trial is offered."""
        narrowed, size = self._narrow(scenario, variant), variant.catalog_size
        if size is None:
            return narrowed
        key = (scenario.digest, variant.without, size)
        if key not in self._filled:
            self._filled[key] = shipped_distractors().fill(scenario, narrowed, size)
        return self._filled[key]

    def _narrow(self, scenario: Scenario, variant: Variant) -> Catalog:
        """Return a scenario's catalog without the categories that a variant leaves out."""
        if not variant.without:
            return self.catalogs[scenario.catalog]
        key = (scenario.catalog, variant.without)
        if key not in self._narrowed:
            self._narrowed[key] = self.catalogs[scenario.catalog].without(variant.without)
        return self._narrowed[key]

    async def _turn(
        self, environment: TrialEnvironment, plan: TrialPlan, prompt: str, model: Model
    ) -> tuple[Trace | None, bool]:
        """Return the turn's trace, None where it had no time to begin, and whether it took too long."""
        options = TurnOptions(model=model, approve="all", attended=False, repeat=plan.repeat)
        try:
            async with asyncio.timeout(self._patience(model)) as limit:
                trace = await turn(environment.parts, prompt, options)
        except TimeoutError:
            if not limit.expired():
                raise
            if not environment.parts.runs.ids():
                return None, True
            trace = environment.parts.runs.load()
        if trace.status == "interrupted" and not limit.expired():
            raise asyncio.CancelledError
        return trace, limit.expired() and trace.status == "interrupted"

    def _patience(self, model: Model) -> float:
        """Return the seconds that a trial may take: more for the first one of a model on this machine, whose server may
        have to load it, and reads the whole prompt for the first time."""
        asked = f"{model.label} at {model.host}"
        if model.host is None or not is_local(model.host) or asked in self._asked:
            return self._timeout
        self._asked.add(asked)
        return self._timeout * FIRST_LOCAL

    async def _build_index(self, environment: TrialEnvironment) -> None:
        async with self._indexing:
            try:
                await environment.index()
            except EmbeddingClassError as error:
                raise SuiteError(f"a variant with search cannot run: {error} {error.hint}".strip()) from error

    def _settings_of(self, variant: Variant) -> Effective:
        made = self._effective.get(variant.behaviour_digest)
        if made is None:
            made = from_mapping(self._config, variant.config)
            self._effective[variant.behaviour_digest] = made
        return made

    def _template(self, scenario: Scenario) -> Template:
        made = self._templates.get(scenario.digest)
        if made is None:
            try:
                made = Template(scenario.workspace)
            except TemplateError as error:
                raise SuiteError(
                    f"the workspace of scenario {scenario.id!r} cannot be made: {error}"
                ) from error
            self._templates[scenario.digest] = made
        return made
