"""Run trials on an executor: what is sent of them, and what is taken back.

Only models that answer in the process are run so: a hosted model gains nothing, and its calls are paced here.

Invariants: a worker has a trial runner of its own, made from the same plain data, and gives back trials and events; it
never sees the study's file. What it would try differently (another version of the code, another catalog) is refused
there, before it is tried. A worker that is gone costs no more than the trial that it was at, which is tried again; one
that ends two workers is an error of its own, once others have shown that workers work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from reyn_jupyter.config import Settings
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.run.planning import PlanError
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.evaluation.trial.trial_runner import TrialPlan, TrialRunner
from reyn_jupyter.executors.executor import Executor, SentSpec, Task, UnsendableError, WorkerLostError
from reyn_jupyter.runtime.record.events import Event

_ATTEMPTS = 2  # workers that may die of one trial
_PATIENCE = 2  # trials whose workers died, before any was made: then it is no trial's fault


class TrialRequest(NamedTuple):
    """A trial, as a worker that has the suite is told of it.

    Attributes:
        scenario: its digest.
        key: what the trial is found by, which holds the version of the code.
        catalog: the hash of the frozen catalog.
    """

    scenario: str
    variant: Variant
    repeat: int
    key: str
    catalog: str


@dataclass(frozen=True)
class RunnerSpec:
    """The parts that a trial runner is made from, as plain data for another process; see `TrialRunner`."""

    suite: Suite
    models: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] | None = None
    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    timeout: float = 300.0

    def open(self, folder: Path) -> TrialWorker:
        """See `WorkerSpec.open`."""
        return TrialWorker(
            TrialRunner(
                self.suite, models=self.models, config=self.config, settings=self.settings, seed=self.seed,
                timeout=self.timeout, scratch=folder,
            )
        )  # fmt: skip


class TrialWorker:
    """Runs trials where it was opened."""

    def __init__(self, trial_runner: TrialRunner) -> None:
        self._trial_runner = trial_runner
        self._scenarios = {scenario.digest: scenario for scenario in trial_runner.suite.scenarios}
        self.release, self.close = trial_runner.release, trial_runner.close

    async def run(self, payload: TrialRequest) -> tuple[Trial, tuple[Event, ...]]:
        """Run one trial. Raises PlanError where it would be another one here."""
        scenario = self._scenarios[payload.scenario]
        plan = self._trial_runner.plan(scenario, payload.variant, payload.repeat)
        here = (plan.key, self._trial_runner.catalog_hashes[scenario.catalog])
        if here != (payload.key, payload.catalog):
            raise PlanError(
                "A worker has another catalog or other code than this process, since files changed after this one was "
                "started, or another version is installed there. Restart the kernel, or leave executor out."
            )
        return await self._trial_runner.run(plan)


class SentTrials:
    """Runs the trials of one study on an executor.

    Args:
        spec: what each worker makes its trial runner from.
        executor: who runs them.

    Raises:
        PlanError: the suite or a model cannot be sent to another process.
    """

    def __init__(self, spec: RunnerSpec, executor: Executor) -> None:
        try:
            self._spec = SentSpec.of(spec, f"executor={executor!r}")
        except UnsendableError as error:
            raise PlanError(f"The suite or a model of this study: {error}") from error
        self._executor = executor
        self._works = False
        self._lost: set[str] = set()

    @property
    def most(self) -> int:
        """How many trials keep all workers busy; a cluster may grow and shrink."""
        return self._executor.slots

    async def run(self, plan: TrialPlan, catalog: str) -> tuple[Trial, tuple[Event, ...]]:
        """Run one trial.

        Args:
            plan: what is tried.
            catalog: the hash of the frozen catalog that it is to be tried on.

        Raises:
            WorkerLostError: a worker died of this trial, and another one too.
            PlanError: the worker has other code or another catalog; or so it was with several, and none was made.
        """
        request = TrialRequest(plan.scenario.digest, plan.variant, plan.repeat, plan.key, catalog)
        how = ""
        for _ in range(_ATTEMPTS):
            try:
                trial, events = await self._executor.submit(Task(self._spec, request))
            except WorkerLostError as lost:
                how = str(lost)
            else:
                self._works = True
                return trial, events
        died = (
            f"A worker died at a trial of {plan.scenario.id!r}, and so did the one after it ({how}). Was there too "
            "little memory? Take an executor of fewer processes, or none. A script must keep its work under "
            'if __name__ == "__main__".'
        )
        self._lost.add(plan.key)
        if self._works or len(self._lost) < _PATIENCE:
            raise WorkerLostError(died)
        raise PlanError(died)
