"""Run a study: try what is missing, and store each trial at once.

Invariants: a trial counts once it is stored; whatever ends a run (the end, evidence, budget, an interrupt, a full disk,
a model that cannot be had), what was stored stays, nothing starts any more, and the next run of the same plan tries
exactly what is missing. Trials begin in the planned order at each provider, and no more of them than run at a time and
`_AHEAD` more before what is done is stored and looked at. Whatever trials used is booked, those among them that did not
come to an end. Until one trial of a variant has come to an end, its canary, no other of it runs; once one met an error
that every other one would meet too (the key, the model's name, the account), none of that variant starts any more in
this run.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from reyn_jupyter.evaluation.plan.conditions import conditions_of
from reyn_jupyter.evaluation.plan.scenario import Scenario, Source
from reyn_jupyter.evaluation.run.budget import Ledger
from reyn_jupyter.evaluation.run.concurrency import Concurrency, ProviderClosedError
from reyn_jupyter.evaluation.run.lock import running_alone
from reyn_jupyter.evaluation.run.planning import remaining_trials
from reyn_jupyter.evaluation.run.progress import Ended, Progress, RunSummary
from reyn_jupyter.evaluation.run.run_state import ProgressReporter, RunPlan, RunState
from reyn_jupyter.evaluation.run.sent_trials import SentTrials
from reyn_jupyter.evaluation.run.trial_writer import Writer, run_record
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.evaluation.store.study_file import DiskFullError, StoreError
from reyn_jupyter.evaluation.trial.facts import NOT_THE_VARIANT
from reyn_jupyter.evaluation.trial.trial import Trial, TrialUsage
from reyn_jupyter.evaluation.trial.trial_model import UsageMeter
from reyn_jupyter.evaluation.trial.trial_runner import TrialPlan, TrialRunner
from reyn_jupyter.executors.bounded import WINDOW, run_bounded
from reyn_jupyter.executors.executor import WorkerLostError
from reyn_jupyter.models.base import LASTING
from reyn_jupyter.runtime.record.events import Event, ModelReplied, ModelRequested, RunEnded
from reyn_jupyter.runtime.run import new_run_id

Result = tuple[TrialPlan, Trial, tuple[Event, ...]]
INTERRUPTED = "Interrupted; run it again and it goes on where it stopped."
_AHEAD = 2  # trials that may be done and not stored yet
_TICK = 1.0  # seconds between two words of progress while no trial ends


class _Halted(Exception):  # noqa: N818 - ends the run in good order
    """Nothing more can be stored."""


class StudyRunner:
    """Runs one order.

    Args:
        store, trial_runner: the study's.
        suite: every scenario that the study knows, in its order.
        run_plan: what to do.
        pace: how many trials run at a time.
        listener: hears of progress, on the loop.
        sent_trials: where trials of models in this process run; here when None.
    """

    def __init__(
        self,
        store: Store,
        trial_runner: TrialRunner,
        suite: tuple[Scenario, ...],
        run_plan: RunPlan,
        pace: Concurrency,
        listener: Callable[[Progress], None] | None = None,
        sent_trials: SentTrials | None = None,
    ) -> None:
        self._store, self._trial_runner, self._suite, self._run_plan = store, trial_runner, suite, run_plan
        self._pace, self._sent_trials = pace, sent_trials
        trial_runner.models.on_model_error = pace.on_model_error
        self.run_id = new_run_id()
        self._sources: dict[str, Source] = {
            each.name: trial_runner.models.source(each) for each in run_plan.variants
        }
        self._slots = {each.name: trial_runner.models.slots(each) for each in run_plan.variants}
        self._providers = {each.name: trial_runner.models.provider(each) for each in run_plan.variants}
        self._run_state = RunState(run_plan)
        self._reporter = ProgressReporter(self._run_state, listener, self._sources)
        self._admission = Canary()
        self._meters: set[UsageMeter] = set()  # of the trials that go on
        self._begun = 0  # trials that used something, whether or not they came to an end
        self._unsaved = asyncio.Semaphore(_AHEAD)
        self._places = itertools.count()  # plans are begun in their order
        self._positions = {each.id: position for position, each in enumerate(run_plan.scenarios)}

    async def run(self) -> RunSummary:
        """Try what is missing.

        Returns:
            What was done; interrupted or not, everything in it is stored.

        Raises:
            StudyBusyError: another run of the same study is under way.
            StoreError: the file cannot serve.
        """
        self._task = asyncio.current_task()
        alone = running_alone(self._store.path, self._store.alone)
        with alone, Writer(self._store, self.run_id, self._run_plan) as self._writer:
            self._before = await self._writer.begin(self._record(), self._suite, self._trial_runner.code)
            self._ledger = Ledger(self._run_plan.budget, self._before.spent, self._before.dearest)
            self._take_earlier()
            self._pace.afresh()
            ticking = asyncio.create_task(self._ticking())
            try:
                self._tell(force=True)
                if not self._interrupted:
                    await self._until_ended()
            except asyncio.CancelledError:
                self._run_state.end("interrupted", INTERRUPTED)
            except BaseException as fault:
                with suppress(StoreError):
                    await self._note({"ended_by": f"failed: {type(fault).__name__}: {fault}"})
                raise
            finally:
                ticking.cancel()
                await self._release()
            self._run_state.end(*self._ending())
            summary = self._summary()
            done = {"ended_by": summary.ended, "reason": summary.reason, "done": summary.done}
            with suppress(StoreError):  # a full disk: the trials count, not the note about them
                await self._note(done, last=True)
        self._tell(force=True)
        return summary

    async def _release(self) -> None:
        """Let go of what the trials used, which has limits of its own, however often somebody asks this run to stop."""
        releasing = asyncio.ensure_future(self._trial_runner.release())
        while not releasing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([releasing])
        releasing.result()

    @property
    def _interrupted(self) -> bool:
        """True if somebody asked this run to stop, also before it began."""
        return self._task is not None and self._task.cancelling() > 0

    @property
    def _over(self) -> bool:
        """True if nothing starts any more."""
        return self._interrupted or self._run_state.ended is not None

    def _ending(self) -> tuple[Ended, str]:
        """Return why a run ended that nothing else had ended."""
        if self._interrupted:
            return "interrupted", INTERRUPTED
        if self._admission.faults:
            return "errors", f"Stopped: {self._faults}"
        return "complete", "Everything that was planned is there."

    @property
    def _faults(self) -> str:
        """The message about the variants that cannot be tried."""
        named = ((each.name, each.behaviour_digest) for each in self._run_plan.variants)
        return describe_faults(self._admission.faults, named)

    # Before the first trial

    def _record(self) -> dict[str, Any]:
        return run_record(self._run_plan, self._sources, self._run_state.stop())

    async def _note(self, done: Mapping[str, Any], *, last: bool = False) -> None:
        data = {
            **self._record(),
            **done,
            "looked": self._run_state.looked,
            "warnings": self._run_state.warnings(self._before.looked),
            "unfinished": self._unfinished_usage,
            "faults": self._faults if self._admission.faults else "",
        }
        await self._writer.note(data, last=last)

    def _take_earlier(self) -> None:
        """Sort what is there already from what is to be tried."""
        run_plan, before = self._run_plan, self._before
        for variant in run_plan.variants:
            place = (variant.behaviour_digest, self._sources[variant.name])
            self._run_state.note_fingerprints(variant.name, before.fingerprints.get(place, ()))
        self._left = remaining_trials(
            run_plan, self._trial_runner, before.done, self._conditions, self._run_state
        )

    def _conditions(self, plan: TrialPlan) -> str:
        return conditions_of(self._catalog(plan.scenario), self._run_plan.stamps.get(plan.variant.model, ""))

    def _catalog(self, scenario: Scenario) -> str:
        return self._trial_runner.catalog_hashes[scenario.catalog]

    # Trials

    async def _until_ended(self) -> None:
        waiting = iter(self._left.plans)
        plans = iter(lambda: None if self._over else next(waiting, None), None)
        with suppress(_Halted):
            window = WINDOW if self._sent_trials is None else max(WINDOW, 2 * self._sent_trials.most)
            async with aclosing(run_bounded(plans, self._one, window=window)) as results:
                async for result in results:
                    if result is not None:
                        await self._keep(*result)

    async def _one(self, plan: TrialPlan) -> Result | None:
        """Run one trial when its provider and the budget have room; None once the run is ending."""
        try:
            return await self._in_turn(plan)
        except ProviderClosedError as closed:
            self._run_state.end("errors", f"Stopped: {closed}. Run it again then, with retry=True.")
            return None

    async def _in_turn(self, plan: TrialPlan) -> Result | None:
        variant, behaviour = plan.variant.name, plan.variant.behaviour_digest
        local, sent_trials = self._sources[variant] != "real", self._sent_trials
        most = sent_trials.most if sent_trials is not None and local else self._slots[variant]
        place = next(self._places)
        async with (
            self._ledger.turn(self._positions[plan.scenario.id]) as start,
            self._admission.turn(behaviour),
            self._pace.slot(self._providers[variant], local=local, most=most, place=place),
        ):
            if behaviour in self._admission.faults:
                return None
            need = None if self._over else await self._ledger.reserve(behaviour)
            if need is None:
                if self._ledger.exhausted:
                    self._run_state.end("budget", f"Stopped: {self._ledger.exhausted}.")
                return None
            if self._over:  # while it waited
                self._ledger.settle(need, behaviour, None)
                return None
            start()
            trial, meter = None, UsageMeter()
            self._meters.add(meter)
            try:
                trial, events = await self._try_trial(plan, meter)
            finally:
                self._meters.discard(meter)
                self._begun += trial is not None or meter.use.trials
                self._ledger.settle(need, behaviour, trial, meter.use)
            fault = lasting_fault(trial, events)
            self._admission.ended(behaviour, fault)
            if fault is not None:
                self._give_up()
                return None
            with suppress(asyncio.CancelledError):  # the trial is done, so it is kept
                await asyncio.sleep(0)  # those whom a canary let in queue up before its slot is given on
                # A model that answers at once must not run far ahead of what is stored and looked at.
                await self._unsaved.acquire()
        return plan, trial, events

    def _give_up(self) -> None:
        """End the run where nothing is gained by going on without the variants that cannot be tried."""
        left = {each.behaviour_digest for each in self._run_plan.variants} - self._admission.faults.keys()
        if not left or self._run_plan.stop == "evalue":
            self._run_state.end("errors", f"Stopped: {self._faults}")

    async def _try_trial(self, plan: TrialPlan, meter: UsageMeter) -> tuple[Trial, tuple[Event, ...]]:
        if self._sent_trials is None or self._sources[plan.variant.name] == "real":
            return await self._trial_runner.run(plan, meter=meter)
        try:
            return await self._sent_trials.run(plan, self._catalog(plan.scenario))
        except WorkerLostError as lost:
            return self._trial_runner.lost(plan, str(lost), time.time()), ()

    async def _keep(self, plan: TrialPlan, trial: Trial, events: tuple[Event, ...]) -> None:
        """Grade and store a trial, then count it."""
        try:
            value = await self._writer.keep(plan, trial, events, self._conditions(plan))
            self._unsaved.release()
        except DiskFullError as full:
            self._run_state.end("disk", f"Stopped: {full}")
            raise _Halted from full
        for variant in self._left.names(plan, trial.source):
            self._run_state.count(variant, plan.scenario.id, plan.repeat, trial.outcome, value)
        self._run_state.watch(plan.variant.name, trial)
        self._tell()

    # What is told

    async def _ticking(self) -> None:
        """Tell that the run lives while its trials take long."""
        while True:
            await asyncio.sleep(_TICK)
            self._tell()

    def _tell(self, *, force: bool = False) -> None:
        loading = dict.fromkeys(map(self._trial_runner.models.loading, self._run_plan.variants))
        self._reporter.tell(
            len(self._meters),
            self._ledger,
            self._pace.limits,
            self._pace.waits,
            loading=tuple(filter(None, loading)),
            force=force,
        )

    @property
    def _usage(self) -> TrialUsage:
        """The usage of this run so far, including that of the trials that still go on."""
        ledger, before = self._ledger, self._before.spent
        since = TrialUsage(0, ledger.calls, ledger.tokens, ledger.usd, ledger.unpriced) - replace(
            before, trials=0
        )
        return sum((meter.use for meter in self._meters), replace(since, trials=self._begun))

    @property
    def _unfinished_usage(self) -> TrialUsage:
        """The usage of trials that are not stored."""
        return self._usage - self._writer.kept

    def _summary(self) -> RunSummary:
        run_plan, run_state, used = self._run_plan, self._run_state, self._usage
        return RunSummary(
            run=self.run_id,
            variants=tuple(each.name for each in run_plan.variants),
            check=run_plan.check.name,
            ended=run_state.ended or "complete",
            reason=run_state.reason,
            planned=run_plan.size,
            done=run_state.done,
            earlier=run_state.earlier,
            scenarios=len(run_plan.scenarios),
            finished=run_state.finished,
            missing=dict(run_state.missing),
            usd=None if used.unpriced else used.usd,
            tokens=used.tokens,
            calls=used.calls,
            unfinished=self._unfinished_usage,
            seconds=self._reporter.seconds,
            stop=run_state.stop(),
            warnings=run_state.warnings(self._before.looked),
            estimates=run_state.estimates(),
            sources=dict(self._sources),
        )


_WITHOUT = "Take the variant out, or another discovery."


@dataclass(frozen=True)
class VariantFault:
    """The reason why a variant cannot be tried, and what to do about it, a sentence each."""

    why: str
    hint: str = ""


def lasting_fault(trial: Trial, events: Sequence[Event]) -> VariantFault | None:
    """Return what no retry and no other scenario would cure, where that ended a trial.

    Args:
        trial: what came of it. One that is replayed met what was recorded for it, and nothing follows for others.
        events: its run's.
    """
    if trial.outcome != "error" or trial.source == "replayed":
        return None
    if any(isinstance(event, ModelRequested) and event.not_forced for event in events):
        return VariantFault(f"{NOT_THE_VARIANT}.", _WITHOUT)
    last = next((event for event in reversed(events) if isinstance(event, ModelReplied)), None)
    if last is None or last.error is None or last.error_kind not in LASTING:
        return None
    ended = next((event for event in reversed(events) if isinstance(event, RunEnded)), None)
    return VariantFault(last.error, (ended.hint if ended is not None else None) or "")


class Canary:
    """Lets trials in, by the digest of their variant's behaviour.

    Attributes:
        faults: the behaviours of which nothing starts any more, and why.

    Example:
        >>> async def trial(canary: Canary) -> bool:
        ...     async with canary.turn("a variant"):
        ...         if "a variant" in canary.faults:
        ...             return False
        ...         canary.ended("a variant", VariantFault("There is no such model."))
        ...         return True
        >>> async def two() -> list[bool]:
        ...     canary = Canary()
        ...     return list(await asyncio.gather(trial(canary), trial(canary)))
        >>> asyncio.run(two())
        [True, False]
    """

    def __init__(self) -> None:
        self.faults: dict[str, VariantFault] = {}
        self._tried: set[str] = set()
        self._canaries: dict[str, asyncio.Event] = {}  # under way; each is set at its end

    @asynccontextmanager
    async def turn(self, behaviour: str) -> AsyncIterator[None]:
        """Wait until a trial may run: alone, as long as none of its variant has ended, then all at once."""
        while behaviour not in self._tried and (canary := self._canaries.get(behaviour)) is not None:
            await canary.wait()
        if behaviour in self._tried:
            yield
            return
        self._canaries[behaviour] = asyncio.Event()
        try:
            yield
        finally:
            self._canaries.pop(behaviour).set()

    def ended(self, behaviour: str, fault: VariantFault | None) -> None:
        """Note that a trial came to its end, and let in those who wait for it."""
        self._tried.add(behaviour)
        if fault is not None:
            self.faults.setdefault(behaviour, fault)
        if (canary := self._canaries.get(behaviour)) is not None:
            canary.set()


def describe_faults(faults: Mapping[str, VariantFault], named: Iterable[tuple[str, str]]) -> str:
    """Return what is to be said of variants that cannot be tried.

    Args:
        faults: by the digest of a behaviour.
        named: (name, digest of its behaviour) of each variant.

    Example:
        >>> fault = VariantFault("There is no key.", "Set OPENAI_API_KEY.")
        >>> describe_faults({"d": fault}, [("base", "d"), ("best", "d")])
        'base and best cannot be tried: There is no key. Set OPENAI_API_KEY. Then run it again, and they are tried.'
    """
    found = [(name, faults[behaviour]) for name, behaviour in named if behaviour in faults]
    names: dict[VariantFault, list[str]] = {}
    for name, fault in found:
        names.setdefault(fault, []).append(name)
    said = [
        f"{' and '.join(each)} cannot be tried: {fault.why.rstrip('.')}. {fault.hint}".strip()
        for fault, each in names.items()
    ]
    return " ".join((*said, f"Then run it again, and {'it is' if len(found) == 1 else 'they are'} tried."))
