"""The coordinator of one run: what is missing is tried and stored at once.

Invariants: only the coordinator writes, from one thread; a trial counts once it is stored; whatever ends a run (the
end, evidence, budget, an interrupt, a full disk), what was stored stays, and the next run of the same order tries
exactly what is missing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from reyn_jupyter.evaluation.budget import Ledger
from reyn_jupyter.evaluation.checks import is_missing
from reyn_jupyter.evaluation.concurrency import Concurrency, ProviderClosedError
from reyn_jupyter.evaluation.earlier import Before, before
from reyn_jupyter.evaluation.executor import Executor, closing
from reyn_jupyter.evaluation.ground import ground_of
from reyn_jupyter.evaluation.locking import running_alone
from reyn_jupyter.evaluation.plans import ordered
from reyn_jupyter.evaluation.progress import Progress, RunSummary
from reyn_jupyter.evaluation.scenario import Scenario, Source
from reyn_jupyter.evaluation.store import Store
from reyn_jupyter.evaluation.store_file import DiskFullError, StoreError
from reyn_jupyter.evaluation.store_rows import Entry
from reyn_jupyter.evaluation.tally import MISSING, Order, Tally, Teller
from reyn_jupyter.evaluation.trial import Trial
from reyn_jupyter.evaluation.trial_run import Bench, TrialPlan
from reyn_jupyter.evaluation.workers import Workers
from reyn_jupyter.runtime.events import Event
from reyn_jupyter.runtime.run import new_run_id

T = TypeVar("T")
Result = tuple[TrialPlan, Trial, tuple[Event, ...]]
_AHEAD = 2  # trials that may be done and not stored yet
_TICK = 1.0  # seconds between two words of progress while no trial ends


class _Halted(Exception):  # noqa: N818 - ends the run in good order
    """Nothing more can be stored."""


class Coordinator:
    """Runs one order.

    Args:
        store, bench: the study's.
        suite: every scenario that the study knows, in its order.
        order: what to do.
        executor, pace: where trials run, and how many at a time.
        listener: hears of progress, on the loop.
        workers: where trials of models in this process run; here when None.
    """

    def __init__(
        self,
        store: Store,
        bench: Bench,
        suite: tuple[Scenario, ...],
        order: Order,
        executor: Executor,
        pace: Concurrency,
        listener: Callable[[Progress], None] | None = None,
        workers: Workers | None = None,
    ) -> None:
        self._store, self._bench, self._suite, self._order = store, bench, suite, order
        self._executor, self._pace, self._workers = executor, pace, workers
        bench.heard = pace.heard
        self.run_id = new_run_id()
        self._sources: dict[str, Source] = {each.name: bench.source(each) for each in order.variants}
        self._providers = {each.name: bench.provider(each) for each in order.variants}
        self._tally = Tally(order)
        self._teller = Teller(self._tally, listener, self._sources)
        self._running = self._stored = 0
        self._unsaved = asyncio.Semaphore(_AHEAD)
        self._plans: list[TrialPlan] = []
        self._alike: dict[tuple[str, str], list[str]] = {}

    async def run(self) -> RunSummary:
        """Try what is missing.

        Returns:
            What was done; interrupted or not, everything in it is stored.

        Raises:
            StudyBusyError: another run of the same study is under way.
            StoreError: the file cannot serve.
        """
        alone = running_alone(self._store.path, self._store.alone)
        with alone, ThreadPoolExecutor(1, "reyn-study") as self._writer:
            self._before = await self._on_writer(self._begin)
            self._ledger = Ledger(self._order.budget, self._before.spent, self._before.dearest)
            self._take_earlier()
            self._pace.afresh()
            ticking = asyncio.create_task(self._ticking())
            try:
                self._tell(force=True)
                await self._until_ended()
            except asyncio.CancelledError:
                self._tally.end("interrupted", "Interrupted; run it again and it goes on where it stopped.")
            except BaseException as fault:
                said = f"failed: {type(fault).__name__}: {fault}"
                with suppress(StoreError):
                    await self._on_writer(lambda: self._note({"ended_by": said}))
                raise
            finally:
                ticking.cancel()
            summary = self._summary()
            told = {"ended_by": summary.ended, "reason": summary.reason, "done": summary.done}
            with suppress(StoreError):  # a full disk: the trials count, not the note about them
                await self._on_writer(lambda: self._note(told), last=True)
        self._tell(force=True)
        return summary

    # Before the first trial

    def _begin(self) -> Before:
        """Note the run; what the file knew before it."""
        self._store.begin(self.run_id, time.time(), self._known(), self._suite, self._order.variants)
        return before(self._store, self._order, self._bench.code)

    def _known(self) -> dict[str, Any]:
        order = self._order
        return {
            **order.provenance,
            "variants": [each.name for each in order.variants],
            "sources": self._sources,
            "scenarios": len(order.scenarios),
            "repeats": list(order.repeats),
            "order": [each.id for each in order.scenarios],
            "planned": order.size,
            "check": order.check.name,
            "seed": order.seed,
            "budget": order.budget,
            "stop": self._tally.stop(),
        }

    def _note(self, told: Mapping[str, Any]) -> None:
        warnings = self._tally.warnings(self._before.looked)
        data = {
            **self._known(),
            **told,
            "looked": self._tally.looked,
            "warnings": warnings,
            "stored": self._stored,
        }
        self._store.note(self.run_id, data, time.time())

    def _take_earlier(self) -> None:
        """Sort what is there already from what is to be tried."""
        order, planned, stored = self._order, dict[tuple[str, str], list[str]](), self._before.done
        for variant in order.variants:
            place = (variant.behaviour_digest, self._sources[variant.name])
            self._tally.known(variant.name, self._before.fingerprints.get(place, ()))
        for scenario, variant, repeat in ordered(order.scenarios, order.variants, order.repeats, order.seed):
            plan = self._bench.plan(scenario, variant, repeat)
            source = self._sources[variant.name]
            outcome, value = stored.get((plan.key, source, self._ground(plan)), ("", None))
            if outcome and not (order.retry and outcome in MISSING):
                self._tally.earlier += 1
                self._tally.count(variant.name, scenario.id, repeat, outcome, value)
                continue
            # Variants that behave alike share a trial: it is tried once and counts for each of them.
            alike = planned.setdefault((plan.key, source), [])
            alike.append(variant.name)
            if len(alike) == 1:
                self._plans.append(plan)
        self._alike = {place: alike for place, alike in planned.items() if len(alike) > 1}

    def _ground(self, plan: TrialPlan) -> str:
        return ground_of(self._catalog(plan.scenario), self._order.stamps.get(plan.variant.model, ""))

    def _catalog(self, scenario: Scenario) -> str:
        return self._bench.catalog_hashes[scenario.catalog]

    # Trials

    async def _until_ended(self) -> None:
        waiting = iter(self._plans)
        plans = iter(lambda: None if self._tally.ended else next(waiting, None), None)
        with suppress(_Halted):
            async with closing(self._executor.run(plans, self._one)) as results:
                async for result in results:
                    if result is not None:
                        await self._keep(*result)
        self._tally.end("complete", "Everything that was planned is there.")

    async def _one(self, plan: TrialPlan) -> Result | None:
        """Run one trial when its provider and the budget have room; None once the run is ending."""
        try:
            return await self._in_turn(plan)
        except ProviderClosedError as closed:
            self._tally.end("errors", f"Stopped: {closed}. Run it again then, with retry=True.")
            return None

    async def _in_turn(self, plan: TrialPlan) -> Result | None:
        variant, behaviour = plan.variant.name, plan.variant.behaviour_digest
        local, workers = self._sources[variant] != "real", self._workers
        most = workers.most if workers is not None and local else None
        async with self._pace.slot(self._providers[variant], local=local, most=most):
            need = None if self._tally.ended else await self._ledger.reserve(behaviour)
            if need is None:
                if self._ledger.exhausted:
                    self._tally.end("budget", f"Stopped: {self._ledger.exhausted}.")
                return None
            trial = None
            self._running += 1
            try:
                trial, events = await self._tried(plan)
            finally:
                self._running -= 1
                self._ledger.settle(need, behaviour, trial)
            # A model that answers at once must not run far ahead of what is stored and looked at.
            with suppress(asyncio.CancelledError):  # the trial is done, so it is kept
                await self._unsaved.acquire()
        return plan, trial, events

    async def _tried(self, plan: TrialPlan) -> tuple[Trial, tuple[Event, ...]]:
        if self._workers is None or self._sources[plan.variant.name] == "real":
            return await self._bench.run(plan)
        return await self._workers.run(plan, self._catalog(plan.scenario))

    async def _keep(self, plan: TrialPlan, trial: Trial, events: tuple[Event, ...]) -> None:
        """Grade and store a trial, then count it."""
        try:
            value = await self._on_writer(lambda: self._write(plan, trial, events))
            self._stored += 1
            self._unsaved.release()
        except DiskFullError as full:
            self._tally.end("disk", f"Stopped: {full}")
            raise _Halted from full
        for variant in self._alike.get((plan.key, trial.source), [plan.variant.name]):
            self._tally.count(variant, plan.scenario.id, plan.repeat, trial.outcome, value)
        self._tally.watch(plan.variant.name, trial)
        self._tell()

    def _write(self, plan: TrialPlan, trial: Trial, events: tuple[Event, ...]) -> float | None:
        """The primary check's value, once everything is stored."""
        verdicts = {}
        if not is_missing(trial):
            for check in (self._order.check, *self._order.others):
                verdicts[check.name] = (check.version, check.grade(trial, plan.scenario))
        entry = Entry(trial, events, plan.scenario, plan.variant, self._ground(plan), verdicts)
        self._store.add(self.run_id, entry)
        graded = verdicts.get(self._order.check.name)
        return graded[1].value if graded is not None else None

    async def _on_writer(self, work: Callable[[], T], *, last: bool = False) -> T:
        """Do something on the writer's thread, to its end: an interrupt meanwhile is taken up right after, unless it is
        the `last` thing of the run."""
        job = asyncio.get_running_loop().run_in_executor(self._writer, work)
        interrupted = False
        while not job.done():
            try:
                await asyncio.wait([job])
            except asyncio.CancelledError:
                interrupted = True
        if interrupted and not last and (task := asyncio.current_task()) is not None:
            task.cancel()
        return job.result()

    # What is told

    async def _ticking(self) -> None:
        """Tell that the run lives while its trials take long."""
        while True:
            await asyncio.sleep(_TICK)
            self._tell()

    def _tell(self, *, force: bool = False) -> None:
        self._teller.tell(self._running, self._ledger, self._pace.limits, self._pace.waits, force=force)

    def _summary(self) -> RunSummary:
        order, tally, ledger, before = self._order, self._tally, self._ledger, self._before.spent
        return RunSummary(
            run=self.run_id,
            variants=tuple(each.name for each in order.variants),
            check=order.check.name,
            ended=tally.ended or "complete",
            reason=tally.reason,
            planned=order.size,
            done=tally.done,
            earlier=tally.earlier,
            scenarios=len(order.scenarios),
            finished=tally.finished,
            missing=dict(tally.missing),
            usd=None if ledger.unpriced > before.unpriced else ledger.usd - before.usd,
            tokens=ledger.tokens - before.tokens,
            calls=ledger.calls - before.calls,
            seconds=self._teller.seconds,
            stop=tally.stop(),
            warnings=tally.warnings(self._before.looked),
            estimates=tally.estimates(),
            sources=dict(self._sources),
        )
