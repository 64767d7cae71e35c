"""The parts of a study, checked and put together in one place.

Invariants: an option that nothing could run with is refused here, with the word that it takes, before anything is done;
catalogs, models and code are frozen with the trial runner, which is made once, before the first trial; reading needs
none of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from reyn_jupyter.config import Settings, load
from reyn_jupyter.evaluation.judging.judge import JudgePass, JudgeSummary
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.model_grader import ModelGrader
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import Suite, SuiteError
from reyn_jupyter.evaluation.plan.validation import choice, instance, number, whole
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.grading import describe_broken_checks
from reyn_jupyter.evaluation.results.load_trials import (
    LoadedTrials,
    StudySpec,
    describe_catalog_changes,
    describe_changes,
    load_trials,
)
from reyn_jupyter.evaluation.results.trials import TrialActions, TrialView
from reyn_jupyter.evaluation.results.true_rates import find_true_rates
from reyn_jupyter.evaluation.run.budget import Budget
from reyn_jupyter.evaluation.run.concurrency import Concurrency
from reyn_jupyter.evaluation.run.lock import running_alone
from reyn_jupyter.evaluation.run.planning import (
    PlanError,
    RunOptions,
    plan_run,
    stamps_of,
    summarise_unstarted,
)
from reyn_jupyter.evaluation.run.progress import Progress, RunSummary
from reyn_jupyter.evaluation.run.run_state import RunPlan
from reyn_jupyter.evaluation.run.sent_trials import RunnerSpec, SentTrials
from reyn_jupyter.evaluation.run.study_runner import StudyRunner
from reyn_jupyter.evaluation.store.judgement_record import judge_identity
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.evaluation.suites import check_suite, load_suite
from reyn_jupyter.evaluation.trial.code_version import code_version
from reyn_jupyter.evaluation.trial.model_factory import CassetteMode
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.evaluation.trial.trial_model import Agent, replaying_model
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.executors.clients import executor_of_client
from reyn_jupyter.executors.executor import Executor
from reyn_jupyter.executors.processes import ProcessExecutor
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.guard.trust import Trust
from reyn_jupyter.models.base import Model, ModelError
from reyn_jupyter.models.model_registry import resolve_model
from reyn_jupyter.runtime.pump import Interrupted
from reyn_jupyter.runtime.record.events import Event
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.support.validation_messages import quote_value

if TYPE_CHECKING:
    from distributed import Client


class StudyParts:
    """The pieces of one study. Without a suite it is open for reading only; a suite that was not `checked` when it was
    loaded is held to its catalogs before the first trial."""

    def __init__(
        self, store: Store, suite: Suite | None, options: StudyOptions, *, checked: bool = True
    ) -> None:
        self.store = store
        self.suite = suite
        self.options = options
        self._checked = checked
        self._making = threading.RLock()  # several threads may read a study, and ask for its runner at once
        self._trial_runner: TrialRunner | None = None
        self._sent_trials: SentTrials | None = None
        self._own_executor: Executor | None = options.own_executor
        self._gathered: tuple[Any, LoadedTrials] | None = None

    def close(self) -> None:
        if self._own_executor is not None:
            self._own_executor.close()
        if self._trial_runner is not None:
            self._trial_runner.close()
        self.store.close()

    @property
    def trial_runner(self) -> TrialRunner:
        """The runner that holds what trials share; see `prepare`."""
        return self.prepare()

    def prepare(self) -> TrialRunner:
        """Make what trials share, unless it is there. Raises PlanError in a study that is open for reading, and
        SuiteError for gold that its catalogs do not have."""
        with self._making:
            if self._trial_runner is None:
                self._trial_runner = self._make_runner()
            return self._trial_runner

    def _make_runner(self) -> TrialRunner:
        options = self.options
        path = options.cassette_path
        if path is None and options.cassette != "off" and self.store.path is not None:
            path = self.store.path.with_suffix(".cassette.jsonl")
        made = TrialRunner(
            self._own_suite,
            models=options.models,
            cassette=options.cassette,
            cassette_path=path,
            config=options.config,
            settings=_settings(options.root),
            seed=options.seed,
            timeout=options.timeout,
        )
        if not self._checked:
            try:
                check_suite(replace(self._own_suite, catalogs=made.catalogs))
            except BaseException:
                made.close()
                raise
        return made

    @property
    def sent_trials(self) -> SentTrials | None:
        """Where trials of models in this process run; None for here. Made once. Raises PlanError."""
        options = self.options
        with self._making:
            if self._sent_trials is None and options.executor != "asyncio":
                if options.cassette != "off":
                    raise PlanError(
                        "A cassette is one file for one process; leave executor out, or the cassette."
                    )
                spec = RunnerSpec(
                    self._own_suite,
                    options.models,
                    options.config,
                    _settings(options.root),
                    options.seed,
                    options.timeout,
                )
                self._sent_trials = SentTrials(spec, self._executor())
            return self._sent_trials

    def _executor(self) -> Executor:
        chosen = self.options.executor
        if isinstance(chosen, Executor):
            return chosen
        if self._own_executor is None:
            self._own_executor = ProcessExecutor()
        return self._own_executor

    @property
    def _own_suite(self) -> Suite:
        if self.suite is None:
            raise PlanError(
                "This study is open for reading. To run trials, open it with its suite: Study(path, suite=…)."
            )
        return self.suite

    @cached_property
    def _last(self) -> StudySpec:
        """The subject of the file before this study did anything."""
        return StudySpec.of_store(self.store)

    def spec(self) -> StudySpec:
        """Return what the trials that count are about."""
        if self.suite is None:
            return self._last
        if self._trial_runner is None:
            return StudySpec.of_suite(self.suite, code_version(), self._last.catalogs, self._last.stamps)
        return self._now(self.suite, self._trial_runner)

    def _now(self, suite: Suite, trial_runner: TrialRunner) -> StudySpec:
        stamps = stamps_of(trial_runner, self.store.variants().values(), self.options.config)
        return StudySpec.of_suite(suite, trial_runner.code, trial_runner.catalog_hashes, stamps)

    def moved(self) -> tuple[str, ...]:
        """Return what is different from the last run of the file, a sentence each."""
        if self.suite is None:
            return ()
        return describe_changes(self._last, self._now(self.suite, self.trial_runner))

    def gathered(self) -> LoadedTrials:
        """Return the trials that count; read again only when something was stored since."""
        spec, judges = self.spec(), self.judges_now()
        counts = self.store.rows("SELECT (SELECT max(id) FROM trials), (SELECT count(*) FROM variants), "
                                 "(SELECT max(ended) FROM runs), (SELECT count(*) FROM runs)")  # fmt: skip
        # Moves with what another connection stored, verdicts too.
        elsewhere = self.store.rows("PRAGMA data_version")
        stamp = (counts, elsewhere, spec.code, dict(spec.catalogs), dict(spec.stamps), judges)
        if self._gathered is None or self._gathered[0] != stamp:
            self._gathered = (stamp, load_trials(self.store, spec, judges))
        return self._gathered[1]

    def forget_gathered(self) -> None:
        """Let the trials be read again, since verdicts came to them that no run made."""
        self._gathered = None

    def check_graders(self) -> None:
        """Refuse model graders that cannot be asked, before anything costs; no call is made.

        Raises:
            ModelError: there is no such model, or, as far as it can say so, no call could reach it.
        """
        for grader in self.spec().graders:
            try:
                check = getattr(self._judge_of(grader), "check", None)
                if check is not None:
                    check()
            except ModelError as error:
                said = f"The model grader {grader.name!r}: {error.message}"
                raise ModelError(error.kind, said, error.hint) from error

    def _judge_of(self, grader: ModelGrader) -> Model:
        """Return the model that judges today. Raises ModelError."""
        given = self.options.models.get(grader.model)
        if isinstance(given, Agent):
            raise ModelError(
                "configuration",
                f"models[{grader.model!r}] is an agent, and a judge is a model.",
                "Give the grader another model.",
            )
        return resolve_model(_settings(self.options.root), grader.model) if given is None else given

    def judges_now(self) -> dict[str, str]:
        """Grader's name → the model that it stands for today, where the study knows; see `judge_identity`."""
        found: dict[str, str] = {}
        for grader in self.suite.graders if self.suite is not None else ():
            with suppress(ModelError):
                found[grader.name] = judge_identity(self._judge_of(grader))
        return found

    def judge(self, grader: ModelGrader, budget: Budget, again: bool, *, ask: bool = True) -> JudgeSummary:
        """Ask a judge about the trials that it has not judged; see `Study.judge`.

        Args:
            ask: False where an interrupt ended the judging before its turn came; nothing is asked then.
        """
        model = self._judge_of(grader)
        with running_alone(self.store.path, self.store.alone):
            spec = self.spec()
            others = [each for each in spec.graders if each.name != grader.name]
            work = JudgePass(self.store, grader, model, budget, spec.code, again, others)
            summary, interrupted = work.summary, not ask
            try:
                if ask:
                    ENGINE.run(work.run())
            except Interrupted:
                interrupted = True
        if interrupted:
            summary.reason, summary.interrupted = "Interrupted: the next time it goes on.", True
        self.forget_gathered()
        return summary

    def run_plan(self, variants: Sequence[Variant], options: RunOptions) -> RunPlan:
        """Return the plan of a run. Raises PlanError, BudgetError, UnknownCheckError, ImportError."""
        study = self.options
        noted = {"cassette": study.cassette}
        return plan_run(
            self.trial_runner, variants, options, seed=study.seed, budget=study.budget, config=study.config, noted=noted
        )  # fmt: skip

    async def run(
        self, variants: Sequence[Variant], options: RunOptions, listener: Callable[[Progress], None] | None
    ) -> RunSummary:
        """Run what is wished for, on the engine.

        In a thread beside it an order is made of it, which takes catalogs, a look at every model, and the seconds of
        LiteLLM's import; an interrupt meanwhile ends the run before it began.

        Raises:
            PlanError, BudgetError, UnknownCheckError, ImportError, StudyBusyError, StoreError: it cannot be run.
        """
        try:
            run_plan = await asyncio.to_thread(self.run_plan, variants, options)
        except asyncio.CancelledError:
            return summarise_unstarted(self._own_suite, variants, options, self.options.seed)
        return await self.follow(run_plan, listener)

    async def follow(self, run_plan: RunPlan, listener: Callable[[Progress], None] | None) -> RunSummary:
        """Run an order, on the engine."""
        changed = self.moved()
        try:
            truths = await self._truths(run_plan)
        except asyncio.CancelledError:  # the run begins all the same, sees that, and ends with its summary
            truths = {}
        run_plan = replace(run_plan, provenance={**run_plan.provenance, "truths": truths, "moved": changed})
        options = self.options
        coordinator = StudyRunner(
            self.store,
            self.trial_runner,
            self._own_suite.scenarios,
            run_plan,
            options.concurrency,
            listener,
            self.sent_trials,
        )
        summary = await coordinator.run()
        self.store.settle()
        self.__dict__.pop("_last", None)
        meanwhile: tuple[str, ...] = ()
        if summary.ended != "interrupted":
            hashes = self.trial_runner.catalog_hashes
            with suppress(asyncio.CancelledError):  # the run is over, and has its summary
                # In a thread, since what makes a person's catalog may take its time.
                meanwhile = await asyncio.to_thread(
                    describe_catalog_changes, self._own_suite, hashes, run_plan.scenarios
                )
        broken = describe_broken_checks(self.store, summary.run)
        return replace(summary, warnings=(*changed, *meanwhile, *broken, *summary.warnings))

    async def _truths(self, run_plan: RunPlan) -> dict[str, Any]:
        """Return what the simulators of an order should show; see `truths`."""
        suite = replace(self._own_suite, scenarios=run_plan.scenarios)
        options = self.options
        checks = (run_plan.check, *run_plan.others)
        return await find_true_rates(
            suite,
            run_plan.variants,
            run_plan.repeats,
            checks,
            self.trial_runner,
            options.models,
            options.config,
            self.store.runs(),
        )

    # One trial again

    def events(self, trial: Trial) -> tuple[Event, ...]:
        """Return the stored events of a trial."""
        return self.store.events(self.gathered().rows[trial.variant, trial.key, trial.source])

    async def replay(self, view: TrialView, actions: TrialActions) -> TrialView:
        """Return the trial once more with the replies of then."""
        plan = self.trial_runner.plan(view.scenario, view.variant, view.trial.repeat)
        trial, events = await self.trial_runner.run(plan, replaying_model(view.actions.events(view.trial)))
        return replace(view, trial=trial, actions=replace(actions, events=lambda _: events))

    async def fork(self, view: TrialView, run_plan: RunPlan, actions: TrialActions) -> TrialView:
        """Return the trial of an order of one scenario and one variant, stored."""
        run_plan = replace(run_plan, scenarios=(view.scenario,), repeats=(view.trial.repeat,))
        summary = await self.follow(run_plan, None)
        variant = run_plan.variants[0]
        key = self.trial_runner.plan(view.scenario, variant, view.trial.repeat).key
        source = self.trial_runner.models.source(variant)
        for trial in self.gathered().evidence.trials:
            if (trial.variant, trial.key, trial.source) == (variant.name, key, source):
                return replace(view, trial=trial, variant=variant, actions=actions)
        raise PlanError(f"The trial was not run. {summary.reason}")


def _settings(root: str | Path) -> Settings:
    """Return the person's own settings: where the models of tiers are named."""
    folder = Path(root).expanduser().resolve()
    return load(folder, trusted=Trust(StateFolder(folder)).is_trusted).settings


ExecutorName = Literal["asyncio", "processes"]
_PARTS = ("label", "tier", "host", "real", "complete")


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """The options by which a study runs its trials; see `Study`."""

    models: Mapping[str, Any] = field(default_factory=dict)
    cassette: CassetteMode = "off"
    cassette_path: str | Path | None = None
    config: Mapping[str, Any] | None = None
    root: str | Path = "."
    seed: int = 0
    timeout: float = 300.0
    executor: ExecutorName | Executor | Client = "asyncio"
    concurrency: Concurrency = field(default_factory=Concurrency)
    budget: Budget = field(default_factory=Budget)
    own_executor: Executor | None = field(init=False, default=None)  # made here, of a client

    def __post_init__(self) -> None:
        choice("cassette", self.cassette, get_args(CassetteMode), PlanError)
        object.__setattr__(self, "seed", whole("seed", self.seed, PlanError, least=0))
        object.__setattr__(self, "timeout", number("timeout", self.timeout, PlanError))
        if (made := executor_of_client(self.executor)) is not None:
            object.__setattr__(self, "executor", made)
            object.__setattr__(self, "own_executor", made)
        elif isinstance(self.executor, str) or not isinstance(self.executor, Executor):
            choice("executor", self.executor, get_args(ExecutorName), PlanError)
        instance("concurrency", self.concurrency, Concurrency, PlanError, "a Concurrency(…)")
        instance("budget", self.budget, Budget, PlanError, "reyn.Budget(usd=2.0)")
        for name, given in (("models", self.models), ("config", self.config or {})):
            if not isinstance(given, Mapping):
                raise PlanError(f"{name}={quote_value(given)}: give a mapping.")
        for name, model in self.models.items():
            lacking = [part for part in _PARTS if not hasattr(model, part)]
            if lacking and not isinstance(model, Agent):
                raise PlanError(
                    f"models[{name!r}]={quote_value(model)} is no model; it lacks {', '.join(lacking)}."
                )


def suite_of(suite: str | Path | Suite | Scenario | Sequence[Scenario]) -> Suite:
    """Return a suite from its name, a file, or scenarios over the installed actions. Raises SuiteError."""
    if isinstance(suite, Suite):
        return suite
    if isinstance(suite, str | Path):
        return load_suite(suite)
    try:
        scenarios = (suite,) if isinstance(suite, Scenario) else tuple(suite)
    except TypeError as error:
        raise SuiteError(
            f"suite={quote_value(suite)}: give the name of a suite, a .yaml file, a Suite, or a list of scenarios"
        ) from error
    title = f"{len(scenarios)} scenarios"
    checks = ("first_call_is", "arguments_correct", "chain")
    return Suite(name="scenarios", title=title, primary="task_done", checks=checks, scenarios=scenarios,
                 catalogs={"standard": Catalog.standard})  # fmt: skip
