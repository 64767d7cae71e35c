"""The one thread that writes what a run finds into its study's file.

Invariants: nothing else of a run writes; what was begun to be written is written to its end, whatever interrupts the
run meanwhile; what the run noted of itself is always written whole.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

from reyn_jupyter.evaluation.checks import is_missing
from reyn_jupyter.evaluation.earlier import Before, before
from reyn_jupyter.evaluation.scenario import Scenario, Source
from reyn_jupyter.evaluation.store import Store
from reyn_jupyter.evaluation.store_rows import Entry, Use
from reyn_jupyter.evaluation.tally import Order
from reyn_jupyter.evaluation.trial import Trial
from reyn_jupyter.evaluation.trial_run import TrialPlan
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

    def __init__(self, store: Store, run: str, order: Order) -> None:
        self._store, self._run, self._order = store, run, order
        self._thread = ThreadPoolExecutor(1, "reyn-study")
        self.kept = Use()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    async def begin(self, known: Mapping[str, Any], suite: tuple[Scenario, ...], code: str) -> Before:
        """Note the run; what the file knew before it. An interrupt meanwhile is left to who looks for it next."""

        def begun() -> Before:
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
            entry = Entry(trial, events, plan.scenario, plan.variant, ground, verdicts)
            self._store.add(self._run, entry)
            self.kept += Use.of(trial)
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


def known(order: Order, sources: Mapping[str, Source], stop: Mapping[str, Any]) -> dict[str, Any]:
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
