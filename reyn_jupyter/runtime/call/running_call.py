"""A call whose handler runs: its limits, and what the handler may ask for on the way.

Invariants: what is asked for in the middle of a call goes through the same gate as the call, and is recorded under it;
nothing is granted once the call is over. A deadline runs from the start of the handler, and stands still while somebody
is asked. A call around this one does not keep it waiting for a place that itself holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from reyn_jupyter.catalog.effects import Effect
from reyn_jupyter.guard.workspace import FileDecision
from reyn_jupyter.runtime.action_error import PermissionDeniedError
from reyn_jupyter.runtime.call.call_places import CallPlaces
from reyn_jupyter.runtime.call.call_progress import CallProgress
from reyn_jupyter.runtime.call.call_scope import enter_call
from reyn_jupyter.runtime.call.effective_limits import CallCap, EffectiveLimits
from reyn_jupyter.runtime.call.inner_calls import InnerCalls
from reyn_jupyter.runtime.call.outcomes import denial
from reyn_jupyter.runtime.call.permission_gate import JudgedCall, PermissionGate
from reyn_jupyter.runtime.deadline import Deadline, DeadlineError
from reyn_jupyter.runtime.live_catalog.category_scope import enter_category
from reyn_jupyter.runtime.record.events import RunStatus
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.runtime.services import Source, ToolContext
from reyn_jupyter.support.import_path import import_as
from reyn_jupyter.support.text import count

OVER = "the call is over"


class RunningCall:
    """Runs the handler of a call that the gate has allowed.

    Args:
        places: of the calls that may not all run at once.
        progress: says that the call waits.
        gate: judges what is asked for in the middle of the call.
        call: what runs.
        effects: those that the call was allowed with.
        run: whose rules hold, and whose log keeps what was decided.

    Attributes:
        mark: tells the call from all others.
        lends: the places that it holds, and the keys under which it lends them, one at a time, to calls within it: they
            would wait for its end otherwise, and it for theirs.
    """

    def __init__(
        self,
        gate: PermissionGate,
        places: CallPlaces,
        progress: CallProgress,
        call: JudgedCall,
        effects: tuple[Effect, ...],
        run: Run,
    ) -> None:
        self._gate = gate
        self._call = call
        self._granted = effects
        self._run = run
        self.mark = object()
        self.lends: dict[Hashable, Hashable] = {}
        self._over = False
        self._waited = False
        self._places = places
        self._progress = progress
        category = run.snapshot.slices[call.action.name.category].category
        self._limits = EffectiveLimits.of(category, call.tool, run.settings)
        self._deadline = Deadline(self._limits.seconds)

    async def value(self, context: ToolContext, within: InnerCalls) -> object:
        """Run the handler once there is a place for it, and return what it gives.

        Args:
            within: makes the calls that the handler makes.

        Raises:
            CallTimeoutError: it took longer than a limit allows.
            CallDeadlockError: it would wait for itself. Whatever the handler raises.
        """
        self._context = context
        self._within = within
        self._verdict_of_files = context.file_verdict
        files = self._file_verdict if context.file_verdict is not None else None
        given = replace(context, ask=self.ask, file_verdict=files, invoke=within.invoke,
                        judge_again=within.judge_again, effects_of=within.effects_of)  # fmt: skip
        ended: RunStatus = "error"
        try:
            async with AsyncExitStack() as held:
                for cap in self._limits.caps:
                    await self._take_place(cap, held)
                if self._waited:
                    self._progress.say("")
                value = await self._deadline.within(lambda: self._handle(given))
                ended = "ok"
                return value
        except DeadlineError as error:
            raise self._limits.timeout(self._call.name, error.stopped) from None
        except asyncio.CancelledError:
            ended = "interrupted"
            raise
        finally:
            self._over = True
            await within.end(ended)

    async def _handle(self, context: ToolContext) -> object:
        # It runs in a task of its own, with which these end.
        enter_category(self._call.action.name.category)
        enter_call(self)
        handler = self._call.tool.handler
        import_as(handler)
        return await handler(self._call.arguments, context)

    # What services of the session ask of the call that they are used in; see `call_scope.ScopedCall`.

    @property
    def run(self) -> Run:
        """The run that the call is of."""
        return self._run

    async def permit(self, effect: Effect, reason: str) -> None:
        """Wait for consent to an effect, unless the call has it. Raises PermissionDeniedError."""
        if self._over or effect not in self._granted:
            await self.ask(effect, reason=reason)

    def begin_turn(self) -> Run:
        """Return the call's inner run, for a turn that is all of it. Raises PermissionDeniedError, ActionError."""
        return self._within.begin_turn()

    def carry(self, sources: Iterable[Source], origins: Iterable[str]) -> None:
        """Note whose content the result carries, and where strangers' texts in it come from."""
        for source in sources:
            self._context.used(source)
        for origin in origins:
            self._context.came_from(origin)

    def inner_step(self) -> tuple[Run, int]:
        """Return the call's inner run and the number of its next step. Raises PermissionDeniedError."""
        return self._within.next_step()

    async def _take_place(self, cap: CallCap, held: AsyncExitStack) -> None:
        """Wait for a place under a cap: one of its own, or the one that a call around this one holds."""
        key, callers = cap.key(self._call.arguments), self._run.callers
        lent = next((each.lends[key] for each in callers if key in each.lends), None)
        place, most = (key, cap.most) if lent is None else (lent, 1)
        lineage = (*(each.mark for each in reversed(callers)), self.mark)
        wait = partial(self._wait, cap)
        await held.enter_async_context(self._places.taken(place, most, wait, lineage))
        self.lends[key] = ("lent", key, self.mark)

    def _wait(self, cap: CallCap, before: int) -> None:
        self._waited = True
        self._progress.say(f"waiting for {count(before, 'other call')} of {cap.name}: {cap.why}")

    async def ask(self, *effects: Effect, reason: str = "") -> None:
        """Wait for consent to further effects, see `ToolContext.ask`.

        Raises:
            PermissionDeniedError: they are denied, or the call is over.
            ValueError: no effect is named.
        """
        if not effects:
            raise ValueError('name at least one effect: await context.ask(Effect.network("api.example.org"))')
        name = self._call.name
        if self._over:
            raise PermissionDeniedError(f"Denied: {name} may ask for nothing more ({OVER}).", "")
        run = self._run
        verdict = self._gate.judge_unrecorded(self._call, effects, run)
        with self._deadline.paused():
            verdict = await self._gate.settle(verdict, self._call, effects, self._context, run, str(reason))
        if verdict.decision != "allow":
            raise PermissionDeniedError(*denial(name, effects, verdict))
        self._granted = (*self._granted, *effects)
        self._verdict_of_files = self._gate.rules_of_files(self._call, self._granted, run)

    def _file_verdict(self, path: str) -> FileDecision:
        """Return the rules' word on a file, by what is granted now."""
        verdict = self._verdict_of_files
        return "allow" if verdict is None else verdict(path)
