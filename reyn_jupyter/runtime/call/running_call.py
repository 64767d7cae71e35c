"""A call whose handler runs: its limits, and what the handler may ask for on the way.

Invariants: what is asked for in the middle of a call goes through the same gate as the call, and is recorded under it;
nothing is granted once the call is over. A deadline runs from the start of the handler, and stands still while somebody
is asked. A call around this one does not keep it waiting for a place that itself holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial

from reyn_jupyter.catalog.effects import Effect
from reyn_jupyter.runtime.action_error import PermissionDeniedError
from reyn_jupyter.runtime.call.call_places import CallPlaces
from reyn_jupyter.runtime.call.call_scope import enter_call
from reyn_jupyter.runtime.call.effective_limits import CallCap, EffectiveLimits
from reyn_jupyter.runtime.call.inner_calls import InnerCalls
from reyn_jupyter.runtime.call.live_call import LiveCall
from reyn_jupyter.runtime.call.outcomes import denial
from reyn_jupyter.runtime.call.permission_gate import PermissionGate
from reyn_jupyter.runtime.deadline import Deadline, DeadlineError
from reyn_jupyter.runtime.live_catalog.category_scope import enter_category
from reyn_jupyter.runtime.record.events import RunStatus
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.runtime.services import Source
from reyn_jupyter.support.import_path import import_as
from reyn_jupyter.support.text import count

OVER = "the call is over"


class RunningCall:
    """Runs the handler of a call that the gate has allowed.

    Args:
        gate: judges what is asked for in the middle of the call.
        places: of the calls that may not all run at once.
        call: what runs.
        inner: makes the calls that the handler makes.
    """

    def __init__(self, gate: PermissionGate, places: CallPlaces, call: LiveCall, inner: InnerCalls) -> None:
        self._gate = gate
        self._places = places
        self._call = call
        self._inner = inner
        self._granted = call.effects
        self._over = False
        self._waited = False
        category = call.run.snapshot.slices[call.name.category].category
        self._limits = EffectiveLimits.of(category, call.tool, call.run.settings)
        self._deadline = Deadline(self._limits.seconds)
        self.invoke, self.judge_again, self.effects_of = inner.invoke, inner.judge_again, inner.effects_of

    async def value(self) -> object:
        """Run the handler once there is a place for it, and return what it gives.

        Raises:
            CallTimeoutError: it took longer than a limit allows.
            CallDeadlockError: it would wait for itself. Whatever the handler raises.
        """
        self._call.within = self
        ended: RunStatus = "error"
        try:
            async with AsyncExitStack() as held:
                for cap in self._limits.caps:
                    await self._take_place(cap, held)
                if self._waited:
                    self._call.progress.say("")
                value = await self._deadline.within(self._handle)
                ended = "ok"
                return value
        except DeadlineError as error:
            raise self._limits.timeout(self._call.title, error.stopped) from None
        except asyncio.CancelledError:
            ended = "interrupted"
            raise
        finally:
            self._over = True
            await self._inner.end(ended)

    async def _handle(self) -> object:
        # It runs in a task of its own, with which these end.
        enter_category(self._call.name.category)
        enter_call(self)
        handler = self._call.tool.handler
        import_as(handler)
        return await handler(self._call.arguments, self._call)

    # What services of the session ask of the call that they are used in; see `call_scope.ScopedCall`.

    @property
    def run(self) -> Run:
        """The run that the call is of."""
        return self._call.run

    async def permit(self, effect: Effect, reason: str) -> None:
        """Wait for consent to an effect, unless the call has it. Raises PermissionDeniedError."""
        if self._over or effect not in self._granted:
            await self.ask(effect, reason=reason)

    def begin_turn(self) -> Run:
        """Return the call's inner run, for a turn that is all of it. Raises PermissionDeniedError, ActionError."""
        return self._inner.begin_turn()

    def carry(self, sources: Iterable[Source], origins: Iterable[str]) -> None:
        """Note whose content the result carries, and where strangers' texts in it come from."""
        for source in sources:
            self._call.used(source)
        for origin in origins:
            self._call.came_from(origin)

    def inner_step(self) -> tuple[Run, int]:
        """Return the call's inner run and the number of its next step. Raises PermissionDeniedError."""
        return self._inner.next_step()

    async def _take_place(self, cap: CallCap, held: AsyncExitStack) -> None:
        """Wait for a place under a cap: one of its own, or the one that a call around this one holds."""
        call = self._call
        key, callers = cap.key(call.arguments), call.run.callers
        lent = next((each.lends[key] for each in callers if key in each.lends), None)
        place, most = (key, cap.most) if lent is None else (lent, 1)
        lineage = (*(each.mark for each in reversed(callers)), call)
        wait = partial(self._wait, cap)
        await held.enter_async_context(self._places.taken(place, most, wait, lineage))
        call.lends[key] = ("lent", key, call)

    def _wait(self, cap: CallCap, before: int) -> None:
        self._waited = True
        self._call.progress.say(f"waiting for {count(before, 'other call')} of {cap.name}: {cap.why}")

    async def ask(self, *effects: Effect, reason: str = "") -> None:
        """Wait for consent to further effects, see `ToolContext.ask`.

        Raises:
            PermissionDeniedError: they are denied, or the call is over.
            ValueError: no effect is named.
        """
        if not effects:
            raise ValueError('name at least one effect: await context.ask(Effect.network("api.example.org"))')
        call = self._call
        if self._over:
            raise PermissionDeniedError(f"Denied: {call.title} may ask for nothing more ({OVER}).", "")
        verdict = self._gate.judge_unrecorded(call, effects)
        with self._deadline.paused():
            verdict = await self._gate.settle(verdict, call, effects, str(reason))
        if verdict.decision != "allow":
            raise PermissionDeniedError(*denial(call.title, effects, verdict))
        self._granted = (*self._granted, *effects)
        call.file_rules = self._gate.rules_of_files(call, self._granted)
