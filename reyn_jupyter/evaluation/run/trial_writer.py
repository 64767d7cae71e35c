"""The one thread that writes a run into its study's file, and what that file knew before.

Invariants: nothing else of a run writes; what was begun to be written is written to its end, whatever interrupts the
run meanwhile; what the run noted of itself is always written whole; what is there already is neither tried nor looked
at a second time as if it were new.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Self, TypeVar

from reyn_jupyter.evaluation.checks import is_missing
from reyn_jupyter.evaluation.plan.scenario import Scenario, Source
from reyn_jupyter.evaluation.results.grading import grade_stored
from reyn_jupyter.evaluation.run.run_state import Looked, RunPlan
from reyn_jupyter.evaluation.store.rows import Found, StudyUsage, TrialEntry
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.evaluation.store.usage_totals import largest_usage, total_usage
from reyn_jupyter.evaluation.trial.trial import Trial, TrialUsage
from reyn_jupyter.evaluation.trial.trial_runner import TrialPlan
from reyn_jupyter.runtime.record.events import Event

T = TypeVar("T")


class Writer:
    """Writes one run; a context manager, whose thread ends with it.

    Args:
        store: the study's file.
        run: the run's id.
        run_plan: what it is to do.

    Attributes:
        kept: what the trials used that are stored.
    """

    def __init__(self, store: Store, run: str, run_plan: RunPlan) -> None:
        self._store, self._run, self._run_plan = store, run, run_plan
        self._thread = ThreadPoolExecutor(1, "reyn-study")
        self.kept = TrialUsage()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    async def begin(self, record: Mapping[str, Any], suite: tuple[Scenario, ...], code: str) -> PriorRuns:
        """Note the run; what the file knew before it. An interrupt meanwhile is left to who looks for it next."""

        def begin_run() -> PriorRuns:
            self._store.begin(self._run, time.time(), record, suite, self._run_plan.variants)
            return read_prior_runs(self._store, self._run_plan, code)

        return await self._run_on_thread(begin_run, last=True)

    async def keep(
        self, plan: TrialPlan, trial: Trial, events: tuple[Event, ...], conditions: str
    ) -> float | None:
        """Grade and store a trial; the primary check's value, None where it does not apply.

        Raises:
            DiskFullError, StoreError: nothing of it was stored.
        """

        def write_trial() -> float | None:
            verdicts = {}
            if not is_missing(trial):
                for check in (self._run_plan.check, *self._run_plan.others):
                    verdicts[check.name] = (check.version, check.grade(trial, plan.scenario))
            entry = TrialEntry(trial, events, plan.scenario, plan.variant, conditions, verdicts)
            self._store.add(self._run, entry)
            self.kept += TrialUsage.of(trial)
            graded = verdicts.get(self._run_plan.check.name)
            return graded[1].value if graded is not None else None

        return await self._run_on_thread(write_trial)

    async def note(self, data: Mapping[str, Any], *, last: bool = False) -> None:
        """Write what is known of the run by now. Raises DiskFullError, StoreError."""
        noted = {**data, "stored": self.kept.trials}
        await self._run_on_thread(lambda: self._store.note(self._run, noted, time.time()), last=last)

    async def _run_on_thread(self, work: Callable[[], T], *, last: bool = False) -> T:
        """Do something on the thread, to its end: an interrupt meanwhile is taken up right after, unless it is the
        `last` thing."""
        job = asyncio.get_running_loop().run_in_executor(self._thread, work)
        interrupted = False
        while not job.done():
            try:
                await asyncio.wait([job])
            except asyncio.CancelledError:
                interrupted = True
        if interrupted and not last and (task := asyncio.current_task()) is not None:
            task.cancel()
        return job.result()


def run_record(run_plan: RunPlan, sources: Mapping[str, Source], stop: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run notes of itself from its first moment on.

    Args:
        run_plan: what it is to do.
        sources: variant → where its trials come from.
        stop: its stopping rule, and what that saw by now.
    """
    return {
        **run_plan.provenance,
        "variants": [each.name for each in run_plan.variants],
        "sources": sources,
        "scenarios": len(run_plan.scenarios),
        "repeats": list(run_plan.repeats),
        "order": [each.id for each in run_plan.scenarios],
        "planned": run_plan.size,
        "check": run_plan.check.name,
        "seed": run_plan.seed,
        "budget": run_plan.budget,
        "stop": stop,
    }


class PriorRuns(NamedTuple):
    """The state that earlier runs left.

    Attributes:
        spent: by all trials of the file, and by those that did not come to an end.
        dearest: digest of a variant's behaviour → the most that one of its trials used.
        done: what a trial is found by → its outcome and the primary check's value.
        fingerprints: (digest of a variant's behaviour, source) → what the provider called its model.
        looked: what each run saw that looked at the same comparison; see `looked_before`.
    """

    spent: StudyUsage
    dearest: dict[str, StudyUsage]
    done: dict[Found, tuple[str, float | None]]
    fingerprints: dict[tuple[str, str], tuple[str, ...]]
    looked: list[Looked]


def read_prior_runs(store: Store, run_plan: RunPlan, code: str) -> PriorRuns:
    """Read what earlier runs left, and grade what the primary check has not graded yet.

    Args:
        store: the study's file.
        run_plan: what is to be run.
        code: the version of the code whose trials count.
    """
    grade_stored(store, run_plan.check, code)
    return PriorRuns(
        total_usage(store),
        largest_usage(store),
        store.done(code, run_plan.check),
        store.fingerprints(code),
        looked_before(store, run_plan, code),
    )


def looked_before(store: Store, run_plan: RunPlan, code: str) -> list[Looked]:
    """Return what runs of the same two variants and check saw on their way (`RunState.looked`); one that only went on
    where another had stopped takes its place."""
    same = sorted(each.name for each in run_plan.variants), run_plan.check.name, code
    found: list[Looked] = []
    for run in store.runs():
        looked = run.get("looked")
        if not looked or (sorted(run["variants"]), run["check"], run["code"]) != same:
            continue
        if not any(looked.items() <= each.items() for each in found):
            found = [*(each for each in found if not each.items() <= looked.items()), looked]
    return found
