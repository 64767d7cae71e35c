"""`Study`: scenarios tried under variants, with every trial kept in one file.

Invariants: what a study shows (trials, verdicts, comparisons, a report) follows from its file; running it again tries
what is missing and nothing else, and nothing else tries anything but `replay` and `fork` of one trial. The awaited face
runs and shows the same, and never blocks the loop that awaits it while trials go on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.judging.judge import JudgeSummary, judged_check
from reyn_jupyter.evaluation.plan.model_grader import ModelGrader
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.agreement import (
    Agreement,
    LabelledTrial,
    agreement,
    label_verdicts,
    read_labels,
)
from reyn_jupyter.evaluation.results.grading import grade_stored
from reyn_jupyter.evaluation.results.trial_export import export_trials
from reyn_jupyter.evaluation.results.trial_set import EvidenceError, TrialSet
from reyn_jupyter.evaluation.results.trials import TrialActions, TrialTable, TrialView
from reyn_jupyter.evaluation.run.budget import Budget
from reyn_jupyter.evaluation.run.concurrency import Concurrency
from reyn_jupyter.evaluation.run.planning import PlanError, RunOptions
from reyn_jupyter.evaluation.run.progress import Progress, RunSummary
from reyn_jupyter.evaluation.run.progress_listener import watcher
from reyn_jupyter.evaluation.run.run_state import StopRule
from reyn_jupyter.evaluation.run.sample_size import StudyPlan, plan_comparison
from reyn_jupyter.evaluation.statistics.arms import Arm
from reyn_jupyter.evaluation.store.integrity import StoreCheck, verify
from reyn_jupyter.evaluation.store.rows import StudyUsage
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.evaluation.store.study_file import StoreError
from reyn_jupyter.evaluation.store.usage_totals import total_usage
from reyn_jupyter.evaluation.study_context import ExecutorName, StudyOptions, StudyParts, suite_of
from reyn_jupyter.evaluation.suites import suite_names
from reyn_jupyter.evaluation.trial.model_factory import CassetteMode
from reyn_jupyter.executors.executor import Executor
from reyn_jupyter.runtime.engine import publisher
from reyn_jupyter.runtime.pump import Interrupted
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.support.validation_messages import quote_value

if TYPE_CHECKING:
    from distributed import Client

    from reyn_jupyter.evaluation.results.comparison import Comparison
    from reyn_jupyter.evaluation.results.recommend import Recommendation
    from reyn_jupyter.evaluation.results.report import Report


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class AsyncStudy:
    """The awaited face of a study, for code that has a loop of its own."""

    study: Study

    async def run(
        self, *variants: Variant, on_progress: OnProgress | None = None, **chosen: Any
    ) -> RunSummary:
        """As `Study.run`, with the same choices. Progress is heard on the loop that awaits this.

        Raises:
            asyncio.CancelledError: it was cancelled; the run ended, and what was done is kept.
            PlanError, BudgetError, StudyBusyError, StoreError: as `Study.run`.

        Example:
            >>> summary = await study.aio.run(base, best, stop="evalue")   # doctest: +SKIP
        """
        unknown = chosen.keys() - _CHOICES
        if unknown:
            raise PlanError(
                f"run has no option {', '.join(sorted(unknown))}; it has {', '.join(sorted(_CHOICES))}."
            )
        options = RunOptions(**chosen)
        watching = watcher() if on_progress is None else None
        hear = only_progress(on_progress or watching)
        ended: list[RunSummary] = []

        async def noted() -> RunSummary:
            ended.append(await self.study.running(variants, options))
            return ended[0]

        try:
            return await ENGINE.awaited(noted(), hear)
        finally:
            if watching is not None and ended:  # a cancelled run has its summary too
                watching.finish(ended[0])


_CHOICES = frozenset(each.name for each in fields(RunOptions))


def only_progress(listener: OnProgress | None) -> Callable[[Any], None] | None:
    """Return a listener for all that is published meanwhile, the events of each trial among it."""
    if listener is None:
        return None
    if not callable(listener):
        raise PlanError(
            f"on_progress={quote_value(listener)}: give a function of the progress, such as print."
        )

    def hear(event: Any) -> None:
        if isinstance(event, Progress):
            listener(event)

    return hear


class ReadableStudy:
    """The reading half of `Study`."""

    parts: StudyParts

    def __repr__(self) -> str:
        path = self.parts.store.path
        place = str(path) if path else None
        try:
            return f"Study({place!r}, suite={self.parts.spec().name!r}, trials={len(self.evidence.trials)})"
        except StoreError:  # closed, or its file is gone: still an object that can be looked at
            return f"Study({place!r}, closed)"

    @property
    def suite(self) -> Suite | None:
        """The scenarios, catalogs and suggested variants; None in a study that is open for reading."""
        return self.parts.suite

    @property
    def moved(self) -> tuple[str, ...]:
        """The differences from the last run of this file (suite, catalogs, code), a sentence each."""
        return self.parts.moved()

    @property
    def spent(self) -> StudyUsage:
        """The usage of all trials of the file: trials, calls, tokens, dollars, and the part that belongs to none
        that came to its end (`unfinished`)."""
        return total_usage(self.parts.store)

    @property
    def evidence(self) -> TrialSet:
        """The trials that count, sorted into arms; what reports and comparisons are made from."""
        return self.parts.gathered().evidence

    @property
    def trials(self) -> TrialTable:
        """The trials that count."""
        evidence = self.evidence
        return TrialTable(evidence, tuple(evidence.trials), self._actions)

    @property
    def _actions(self) -> TrialActions:
        return TrialActions(self.parts.events, self._replay, self._fork)

    def _replay(self, view: TrialView) -> TrialView:
        self.parts.prepare()  # here, where nothing waits for the engine
        return ENGINE.run(self.parts.replay(view, self._actions))

    def _fork(self, view: TrialView, variant: Variant) -> TrialView:
        run_plan = self.parts.run_plan((variant,), RunOptions(repeats=1, retry=True))
        return ENGINE.run(self.parts.fork(view, run_plan, self._actions))

    def verdicts(self, check: str | None = None) -> dict[str, Arm]:
        """Variant → scenario → repeat → value of a check, for `evaluation.statistics`. Raises UnknownCheckError."""
        evidence = self.evidence
        name = evidence.check(check or evidence.primary).name
        return {variant: evidence.arm(variant, name) for variant in evidence.tried}

    def grade(self, check: str) -> int:
        """Grade the stored trials by a check, without a model; how many verdicts were made. Those that its present
        version gave stay. Raises UnknownCheckError."""
        return grade_stored(self.parts.store, find_check(check))

    def regrade(self) -> int:
        """Grade all stored trials again, by every check of the suite; how many verdicts were made."""
        checks = self.parts.spec().checks
        return sum(grade_stored(self.parts.store, find_check(name), again=True) for name in checks)

    def label(self, check: str, labels: Mapping[LabelledTrial, bool] | str | Path) -> Agreement:
        """Keep what people say of trials that a judge graded, and return how far it agrees with them.

        Args:
            check: the name of the model grader.
            labels: (variant, scenario, repeat) → whether it passes, or a CSV file; see `results.agreement.read_labels`.
                The trials should be a random sample; a label given again replaces the one before.

        Raises:
            EvidenceError: no such grader, a trial that there is not, or a label that is none.
            StoreError: the file cannot be written to.

        Example:
            >>> study.label("helpful", {("base", "ask-1", 0): True})   # doctest: +SKIP
        """
        found, grader = self.parts.gathered(), self._grader(check)
        kept = label_verdicts(found.evidence, found.rows, read_labels(labels))
        people = replace(judged_check(grader), name=grader.people, version=grader.people_version)
        with self.parts.store.writable() as store:
            store.grade(people, kept)
        self.parts.forget_gathered()
        return self.agreement(check)

    def agreement(self, check: str) -> Agreement:
        """Return how far a judge agrees with people, with its rates corrected. Raises EvidenceError."""
        return agreement(self.evidence, self._grader(check))

    def _grader(self, check: str) -> ModelGrader:
        graders = {each.name: each for each in self.parts.spec().graders}
        if check not in graders:
            there = ", ".join(graders) or "none"
            raise EvidenceError(f"the study has no model grader {check!r}; it has {there}")
        return graders[check]

    def verify(self) -> StoreCheck:
        """Read the whole file and prove that nothing in it is missing or doubled."""
        return verify(self.parts.store)

    def compare(self, a: str | Variant, b: str | Variant, check: str | None = None) -> Comparison:
        """Return two variants under a check, the one that was named in advance if None; differences are b − a.

        Raises:
            EvidenceError: there is nothing to compare, or a variant was tried with other settings.
            UnknownCheckError: there is no such check.
        """
        from reyn_jupyter.evaluation.results.comparison import compare

        evidence = self.evidence
        return compare(evidence, evidence.name_of(a), evidence.name_of(b), check)

    def report(self) -> Report:
        """Everything that the study found."""
        from reyn_jupyter.evaluation.results.report import report

        return report(self.evidence)

    def recommend(self, model: str | None = None, check: str | None = None) -> Recommendation:
        """Settings for a model, from its trials; see `results.recommend`. Raises RecommendationError."""
        from reyn_jupyter.evaluation.results.recommend import recommend

        return recommend(self.evidence, model, check)

    def export(self, path: str | Path) -> Path:
        """Write the trials to a ``.parquet``, ``.csv`` or ``.jsonl`` file. Raises ExportError."""
        return export_trials(self.evidence, self.trials.df, Path(path).expanduser())

    def export_inspect_logs(self, folder: str | Path) -> tuple[Path, ...]:
        """Write a log of inspect_ai for each variant, which inspect view opens.

        Args:
            folder: where; made when it is not there. The same study again writes over its logs.

        Raises:
            ExportError: there are no trials, or nothing can be written there.

        Example:
            >>> study.export_inspect_logs("logs")   # then: inspect view --log-dir logs   # doctest: +SKIP
        """
        from reyn_jupyter.evaluation.inspect_logs.log_writer import write_logs

        return write_logs(self.evidence, self.parts.events, Path(folder).expanduser())


class Study(ReadableStudy):
    """Scenarios under variants, trial by trial, in one SQLite file.

    Args:
        path: the file, made when it is not there; None keeps the study in memory.
        suite: the name of a suite that comes with the package, a suite file, a `Suite`, or scenarios over the
            installed actions.
        models: models behind the seam by the name that variants use, before those of the configuration.
        cassette: "record" keeps every model call beside the study, "replay" answers from there alone.
        cassette_path: another place for it.
        config: settings of every trial, under the variant's own.
        allow_actions: patterns of actions that trials may run although they act outside the trial's own workspace,
            beside those of the suite (see `Suite`); everything of the kind is denied otherwise.
        root: where the person's configuration names the models of tiers.
        seed: of the order of trials, and of the simulator.
        timeout: seconds that one trial may take.
        executor: where the trials of models that answer in this process (the simulator, the offline model) run:
            "asyncio" on the session's loop, "processes" in as many processes as there are processors, the client of a
            Dask cluster, or an `Executor` such as `ProcessExecutor(2)`, which stays open for others. Hosted models are
            always called from here.
        concurrency: how many trials a provider gets at a time.
        budget: what all runs of the study together may use.

    Raises:
        StoreError: the file is not a study's, or newer than this version.
        SuiteError: there is no such suite.
        PlanError: an argument that nothing could run with.

    Example:
        >>> study = Study(None, suite="mandates")                                   # doctest: +SKIP
        >>> base = Variant("generic-1x", model="simulator", mandate="generic")      # doctest: +SKIP
        >>> best = base.but("explicit-3x", mandate="explicit", reinforcement=3)     # doctest: +SKIP
        >>> study.run(base, best, stop="evalue"), study.compare(base, best)         # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | Path | None,
        suite: str | Path | Suite | Scenario | Sequence[Scenario] = "mandates",
        *,
        models: Mapping[str, Any] | None = None,
        cassette: CassetteMode = "off",
        cassette_path: str | Path | None = None,
        config: Mapping[str, Any] | None = None,
        allow_actions: Sequence[str] = (),
        root: str | Path = ".",
        seed: int = 0,
        timeout: float = 300.0,
        executor: ExecutorName | Executor | Client = "asyncio",
        concurrency: Concurrency | None = None,
        budget: Budget | None = None,
    ) -> None:
        options = StudyOptions(
            models=models or {}, cassette=cassette, cassette_path=cassette_path, config=config, root=root, seed=seed,
            timeout=timeout, executor=executor,
            concurrency=concurrency or Concurrency(), budget=budget or Budget(),
        )  # fmt: skip
        if path in suite_names():
            raise PlanError(
                f'{path!r} is a suite; the file comes first: Study("{path}.sqlite", suite={path!r}).'
            )
        own = suite_of(suite)
        if allow_actions:
            own = own.allowing(allow_actions)
        self.parts = StudyParts(Store(_path(path)), own, options, checked=isinstance(suite, str | Path))
        self.aio = AsyncStudy(self)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Return a study to read, also while another process runs it: no suite, no models; labels alone are written.

        Raises:
            StoreError: there is no such file, or it is not a study's.
        """
        study = cls.__new__(cls)
        study.parts = StudyParts(Store(_path(path), read_only=True), None, StudyOptions())
        study.aio = AsyncStudy(study)
        return study

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file and of everything temporary."""
        self.parts.close()

    # Running

    def plan(
        self,
        a: str | Variant,
        b: str | Variant,
        *,
        detect: float = 0.15,
        power: float = 0.8,
        repeats: int = 2,
    ) -> StudyPlan:
        """Return how many pairs a comparison needs, and what they cost; the trials that there are already inform
        it.

        Args:
            a, b: the variants, or the names of two that were tried.
            detect: the smallest difference of rates that must not be missed.
            power: the chance of finding it.
            repeats: pairs of each scenario.

        Raises:
            PlanError: a figure that is none, or one variant twice.
            EvidenceError: a name that was never tried, or was tried with other settings.
            ValueError: see `statistics.power.plan`.
        """
        available = len(self.parts.spec().scenarios)
        return plan_comparison(self.evidence, (a, b), available, detect=detect, power=power, repeats=repeats)

    def run(
        self,
        *variants: Variant,
        repeats: int = 2,
        n: int | None = None,
        families: Collection[str] | None = None,
        stop: StopRule = "fixed",
        check: str | None = None,
        alpha: float = 0.05,
        retry: bool = False,
        budget: Budget | None = None,
        on_progress: OnProgress | None = None,
    ) -> RunSummary:
        """Try what is missing of some variants. An interrupt ends it at once and keeps what is done.

        Args:
            variants: what to try; the scenario and repeat of all stand side by side.
            repeats: trials of each scenario under each variant.
            n: how many scenarios, in proportion from all families; all when None.
            families: only scenarios of these families.
            stop: "fixed" tries all of it; "evalue" looks at the primary check after each finished scenario and stops
                once the evidence for a difference of the two variants reaches 1/alpha.
            check: the primary check; the suite's when None.
            alpha: the chance of stopping by "evalue" where there is no difference.
            retry: try again what ended in an error or a timeout.
            budget: in place of the study's.
            on_progress: hears how far it is, on this thread; when None, a notebook shows it in the cell, and a terminal
                every ten seconds.

        Raises:
            PlanError, BudgetError: it cannot be run so; says why, before the first trial.
            StudyBusyError: another process runs the study.
            StoreError: the file cannot serve.
        """
        options = RunOptions(
            repeats=repeats, n=n, families=families, stop=stop, check=check, alpha=alpha, retry=retry, budget=budget,
        )  # fmt: skip
        watching = watcher() if on_progress is None else None
        hear = only_progress(on_progress or watching)
        try:
            summary = ENGINE.run(self.running(variants, options), hear)
        except Interrupted as interrupted:
            if not isinstance(interrupted.result, RunSummary):
                raise
            summary = interrupted.result
        if watching is not None:
            watching.finish(summary)
        return summary

    def judge(self, *, again: bool = False, budget: Budget | None = None) -> tuple[JudgeSummary, ...]:
        """Ask the suite's model graders about the trials that they have not judged yet, one grader after the other. An
        interrupt ends it and keeps what they said.

        Args:
            again: ask about all trials once more, also where a verdict stands or could not be read.
            budget: what all judgements in this file may use, of all graders together: those of this call, earlier ones,
                and those whose verdicts were replaced; trials are not counted in it.

        Returns:
            What came of it, one a grader.

        Raises:
            ModelError: there is no such model; nobody was asked.
            StudyBusyError: another process runs the study.
            StoreError: the file cannot serve.
        """
        self.check_graders()
        found: list[JudgeSummary] = []
        for grader in self.parts.spec().graders:
            ask = not any(each.interrupted for each in found)
            found.append(self.parts.judge(grader, budget or Budget(), again, ask=ask))
        return tuple(found)

    def check_graders(self) -> None:
        """Refuse model graders that cannot be asked, without a call; before a run it saves the trials' money.

        Raises:
            ModelError: there is no such model, or no call could reach it.
        """
        self.parts.check_graders()

    async def running(self, variants: Sequence[Variant], options: RunOptions) -> RunSummary:
        """Run what is wished for on the engine; progress is published to whoever listens there."""
        summary = await self.parts.run(variants, options, publisher())
        return replace(summary, file=str(self.parts.store.path or ""))


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path).expanduser().absolute()
