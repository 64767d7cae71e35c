"""The one thread that writes what a run finds into its study's file.

Invariants: nothing else of a run writes; what was begun to be written is written to its end, whatever interrupts the
run meanwhile; what the run noted of itself is always written whole.

What a study's file knows when a run begins.

Invariant: what is there already is neither tried nor looked at a second time as if it were new.
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
from reyn_jupyter.evaluation.store.usage_totals import dearest, spent
from reyn_jupyter.evaluation.trial.runner import TrialPlan
from reyn_jupyter.evaluation.trial.trial import Trial, TrialUsage
from reyn_jupyter.runtime.events import Event

T = TypeVar("T")


class Writer:
    """Writes one run; a context manager, whose thread ends with it.

    Args:
        store: the study's file.
        run: the run's id.
        order: what it is to do.

    Attributes:
        kept: what the trials used that are stored.
    """

    def __init__(self, store: Store, run: str, order: RunPlan) -> None:
        self._store, self._run, self._order = store, run, order
        self._thread = ThreadPoolExecutor(1, "reyn-study")
        self.kept = TrialUsage()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    async def begin(self, known: Mapping[str, Any], suite: tuple[Scenario, ...], code: str) -> PriorRuns:
        """Note the run; what the file knew before it. An interrupt meanwhile is left to who looks for it next."""

        def begun() -> PriorRuns:
            self._store.begin(self._run, time.time(), known, suite, self._order.variants)
            return before(self._store, self._order, code)

        return await self._written(begun, last=True)

    async def keep(
        self, plan: TrialPlan, trial: Trial, events: tuple[Event, ...], ground: str
    ) -> float | None:
        """Grade and store a trial; the primary check's value, None where it does not apply.

        Raises:
            DiskFullError, StoreError: nothing of it was stored.
        """

        def written() -> float | None:
            verdicts = {}
            if not is_missing(trial):
                for check in (self._order.check, *self._order.others):
                    verdicts[check.name] = (check.version, check.grade(trial, plan.scenario))
            entry = TrialEntry(trial, events, plan.scenario, plan.variant, ground, verdicts)
            self._store.add(self._run, entry)
            self.kept += TrialUsage.of(trial)
            graded = verdicts.get(self._order.check.name)
            return graded[1].value if graded is not None else None

        return await self._written(written)

    async def note(self, data: Mapping[str, Any], *, last: bool = False) -> None:
        """Write what is known of the run by now. Raises DiskFullError, StoreError."""
        noted = {**data, "stored": self.kept.trials}
        await self._written(lambda: self._store.note(self._run, noted, time.time()), last=last)

    async def _written(self, work: Callable[[], T], *, last: bool = False) -> T:
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


def known(order: RunPlan, sources: Mapping[str, Source], stop: Mapping[str, Any]) -> dict[str, Any]:
    """What a run notes of itself from its first moment on.

    Args:
        order: what it is to do.
        sources: variant → where its trials come from.
        stop: its stopping rule, and what that saw by now.
    """
    return {
        **order.provenance,
        "variants": [each.name for each in order.variants],
        "sources": sources,
        "scenarios": len(order.scenarios),
        "repeats": list(order.repeats),
        "order": [each.id for each in order.scenarios],
        "planned": order.size,
        "check": order.check.name,
        "seed": order.seed,
        "budget": order.budget,
        "stop": stop,
    }


class PriorRuns(NamedTuple):
    """What runs before this one left.

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


def before(store: Store, order: RunPlan, code: str) -> PriorRuns:
    """Read it. What the primary check has not graded yet is graded.

    Args:
        store: the study's file.
        order: what is to be run.
        code: the version of the code whose trials count.
    """
    grade_stored(store, order.check, code)
    return PriorRuns(
        spent(store),
        dearest(store),
        store.done(code, order.check),
        store.fingerprints(code),
        looked_before(store, order, code),
    )


def looked_before(store: Store, order: RunPlan, code: str) -> list[Looked]:
    """What runs of the same two variants and check saw on their way (`Tally.looked`); one that only went on where
    another had stopped takes its place."""
    same = sorted(each.name for each in order.variants), order.check.name, code
    found: list[Looked] = []
    for run in store.runs():
        looked = run.get("looked")
        if not looked or (sorted(run["variants"]), run["check"], run["code"]) != same:
            continue
        if not any(looked.items() <= each.items() for each in found):
            found = [*(each for each in found if not each.items() <= looked.items()), looked]
    return found
