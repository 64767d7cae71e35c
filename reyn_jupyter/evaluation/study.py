"""`Study`: scenarios tried under variants, with every trial kept in one file.

Invariant: what a study shows follows from its file; running it again tries what is missing and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from reyn_jupyter.evaluation.answers import CassetteMode
from reyn_jupyter.evaluation.budget import Budget
from reyn_jupyter.evaluation.concurrency import Concurrency
from reyn_jupyter.evaluation.executor import AsyncioExecutor, Executor
from reyn_jupyter.evaluation.ordering import Wish
from reyn_jupyter.evaluation.plans import PlanError
from reyn_jupyter.evaluation.progress import RunSummary
from reyn_jupyter.evaluation.scenario import Scenario
from reyn_jupyter.evaluation.store import Store
from reyn_jupyter.evaluation.study_aio import AsyncStudy, OnProgress, only_progress
from reyn_jupyter.evaluation.study_options import Options, suite_of
from reyn_jupyter.evaluation.study_parts import StudyParts
from reyn_jupyter.evaluation.study_plan import StudyPlan, planned
from reyn_jupyter.evaluation.study_reading import ReadableStudy
from reyn_jupyter.evaluation.suite import Suite
from reyn_jupyter.evaluation.suites import suite_names
from reyn_jupyter.evaluation.tally import StopRule
from reyn_jupyter.evaluation.variant import Variant
from reyn_jupyter.evaluation.watching import watcher
from reyn_jupyter.runtime.engine import publisher
from reyn_jupyter.runtime.pump import Interrupted
from reyn_jupyter.sessions.wiring import ENGINE


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
        root: where the person's configuration names the models of tiers.
        seed: of the order of trials, and of the simulator.
        timeout: seconds that one trial may take.
        workers: processes for the trials of models that answer in this process (the simulator, the offline model), so
            that they use more cores; 0 runs them here.
        executor, concurrency: where trials run, and how many a provider gets at a time.
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
        root: str | Path = ".",
        seed: int = 0,
        timeout: float = 300.0,
        workers: int = 0,
        executor: Executor | None = None,
        concurrency: Concurrency | None = None,
        budget: Budget | None = None,
    ) -> None:
        options = Options(
            models=models or {}, cassette=cassette, cassette_path=cassette_path, config=config, root=root, seed=seed,
            timeout=timeout, workers=workers, executor=executor or AsyncioExecutor(),
            concurrency=concurrency or Concurrency(), budget=budget or Budget(),
        )  # fmt: skip
        if path in suite_names():
            raise PlanError(
                f'{path!r} is a suite; the file comes first: Study("{path}.sqlite", suite={path!r}).'
            )
        own = suite_of(suite)
        self.parts = StudyParts(Store(_path(path)), own, options, checked=isinstance(suite, str | Path))
        self.aio = AsyncStudy(self)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """A study to read, also while another process runs it: no suite, no models, nothing is written.

        Raises:
            StoreError: there is no such file, or it is not a study's.
        """
        study = cls.__new__(cls)
        study.parts = StudyParts(Store(_path(path), read_only=True), None, Options())
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
        """How many pairs a comparison needs, and what they cost; the trials that there are already inform it.

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
        available = len(self.parts.subject().scenarios)
        return planned(self.evidence, (a, b), available, detect=detect, power=power, repeats=repeats)

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
            on_progress: hears how far it is, on this thread; when None, a notebook shows it in the cell.

        Raises:
            PlanError, BudgetError: it cannot be run so; says why, before the first trial.
            StudyBusyError: another process runs the study.
            StoreError: the file cannot serve.
        """
        wish = Wish(
            repeats=repeats, n=n, families=families, stop=stop, check=check, alpha=alpha, retry=retry, budget=budget,
        )  # fmt: skip
        watching = watcher() if on_progress is None else None
        hear = only_progress(on_progress or watching)
        try:
            summary = ENGINE.run(self.running(variants, wish), hear)
        except Interrupted as interrupted:
            if not isinstance(interrupted.result, RunSummary):
                raise
            summary = interrupted.result
        if watching is not None:
            watching.finish(summary)
        return summary

    async def running(self, variants: Sequence[Variant], wish: Wish) -> RunSummary:
        """Run what is wished for on the engine; progress is published to whoever listens there."""
        return await self.parts.run(variants, wish, publisher())


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path).expanduser().absolute()
