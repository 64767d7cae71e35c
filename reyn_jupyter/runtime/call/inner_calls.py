"""The calls that a call makes in its turn, as a workflow or a peer: they stand in an inner run.

Invariants: they go through the one invoker, as themselves: nothing that the outer call was allowed is allowed to them.
They end with the call, have its budget and its deadline, and lead neither back to a call around them nor deeper than
`DEEPEST`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from reyn_jupyter.catalog.effects import Effect
from reyn_jupyter.guard.workspace import FileDecision
from reyn_jupyter.models.base import canonical
from reyn_jupyter.outputs.convert import to_json
from reyn_jupyter.runtime.action_error import ActionError, PermissionDeniedError
from reyn_jupyter.runtime.call.live_call import LiveCall
from reyn_jupyter.runtime.deadline import GRACE
from reyn_jupyter.runtime.questions.person_wait import PersonWait
from reyn_jupyter.runtime.record.events import (
    InnerRunOpened,
    ParentCall,
    PermissionDecided,
    RunEnded,
    RunStarted,
    RunStatus,
)
from reyn_jupyter.runtime.record.inner_runs import DEEPEST
from reyn_jupyter.runtime.record.run_store import RunStore
from reyn_jupyter.runtime.run import Caller, Outcome, Run, new_run_id
from reyn_jupyter.runtime.services import InnerActor, Source

Arguments = Mapping[str, Any]


class InnerCallError(ActionError):
    """An action that a handler called has failed; its words and its code are those of the action."""

    def __init__(self, message: str, hint: str, *, code: str | None, given: object) -> None:
        super().__init__(message, hint, code=code)
        self.given = given


class CallWithin(Protocol):
    """Makes one call of an inner run, by its id, its step, the action's name and its arguments."""

    def __call__(
        self, call: str, step: int, name: str, arguments: Any, run: Run, /
    ) -> Coroutine[Any, Any, Outcome]: ...


class JudgeWithin(Protocol):
    """Judges an earlier call by the action's name, its arguments and its further effects."""

    def __call__(
        self, name: str, arguments: Arguments, effects: Sequence[Effect], run: Run, /
    ) -> Coroutine[Any, Any, FileDecision]: ...


class EffectsWithin(Protocol):
    """Returns the effects of a call by the action's name and its arguments, or None if they cannot be known."""

    def __call__(
        self, name: str, arguments: Arguments, run: Run, /
    ) -> Coroutine[Any, Any, tuple[Effect, ...] | None]: ...


class NothingRecorded:
    """The record of an inner run in a replay: what only reads runs again, and anything else asks."""

    def runs_again(self, step: int, repeatable: bool) -> bool:
        return repeatable

    def take(self, name: str, arguments: Any) -> Outcome | None:
        return None


def check_circle(run: Run, action: str, arguments: Any) -> None:
    """Check that a call of an inner run is none of those around it.

    Raises:
        ActionError: it is.
    """
    callers = run.callers
    if callers and call_key(action, arguments) in (each.key for each in callers):
        raise ActionError(
            f"{action} was not called: it would call itself with the same arguments, without end.",
            f"The calls are {' → '.join([*(each.action for each in reversed(callers)), action])}.",
            code="call_circle",
        )


def call_key(action: str, arguments: Any) -> bytes:
    """Return the bytes that are equal for equal calls."""
    return canonical([action, to_json(arguments)])


class InnerCalls:
    """What one call calls; its inner run is opened with the first of them.

    Args:
        call: the outer call, whose result may carry what the results of its calls do.
        make: makes a call, through the invoker.
        judge: judges an earlier one there.
        effects: Returns the effects of one there.
        runs: keeps the record.
    """

    def __init__(
        self, call: LiveCall, make: CallWithin, judge: JudgeWithin, effects: EffectsWithin, runs: RunStore
    ) -> None:
        self._outer = call
        self._run = call.run
        self._action = call.title
        self._make = make
        self._judge = judge
        self._effects = effects
        self._runs = runs
        self._inner: Run | None = None
        self._steps = 0
        self._tasks: set[asyncio.Task[Outcome]] = set()
        self._over = False

    async def invoke(
        self, name: str, arguments: Arguments | None = None, *, actor: InnerActor = "workflow"
    ) -> Any:
        """Call another action, see `ToolContext.invoke`.

        Raises:
            InnerCallError: it failed. PermissionDeniedError: it was denied, or the outer call is over.
        """
        inner, step = self.next_step()
        run = replace(inner, actor=actor)
        run.see(self._run.whole)
        call = str(step)
        given = {} if arguments is None else dict(arguments)
        task = asyncio.get_running_loop().create_task(self._make(call, step, name, given, run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        outcome = await task
        for source in outcome.sources:
            self._outer.used(Source(**source))
        for origin in outcome.origins:
            self._outer.came_from(origin)
        if outcome.ok:
            if outcome.advice:
                self._outer.advise(outcome.advice)
            return outcome.value
        said = outcome.payload if isinstance(outcome.payload, dict) else {}
        # The person may read the outer call's error, and a model is told no advice of it either.
        words = str(outcome.error), f"{said.get('hint') or ''} {outcome.advice}".strip()
        if _was_denied(run, call):
            raise PermissionDeniedError(*words)
        raise InnerCallError(*words, code=outcome.code, given=[name, given])

    async def judge_again(
        self, name: str, arguments: Arguments, *, effects: Collection[Effect] = ()
    ) -> FileDecision:
        """Judge an earlier call, see `ToolContext.judge_again`."""
        run = replace(self._run, actor="workflow")
        run.see(self._run.whole)
        return await self._judge(name, dict(arguments), tuple(effects), run)

    async def effects_of(self, name: str, arguments: Arguments) -> tuple[Effect, ...] | None:
        """Return the effects of a call, see `ToolContext.effects_of`."""
        run = replace(self._run, actor="workflow")
        run.see(self._run.whole)
        return await self._effects(name, dict(arguments), run)

    def next_step(self) -> tuple[Run, int]:
        """Return the inner run, opened now where it is not yet, and the number of its next step.

        Raises:
            PermissionDeniedError: the outer call is over. ActionError: too many calls are around it.
        """
        self._check_open()
        if self._inner is None:
            self._inner = self._open()
            self._begin_record(self._inner)
        self._steps += 1
        return self._inner, self._steps

    def begin_turn(self) -> Run:
        """Return the inner run, for a turn that is all of it: what runs the turn records its first and last events.

        Raises:
            PermissionDeniedError: the outer call is over. ActionError: too many calls are around it, or it called
                something already.
        """
        self._check_open()
        if self._inner is not None:
            raise ActionError(f"{self._action} has called something already, so it can begin no turn.")
        self._inner = self._open()
        return self._inner

    def _check_open(self) -> None:
        if self._over:
            raise PermissionDeniedError(
                f"Denied: {self._action} may call nothing more (the call is over).", ""
            )

    def _open(self) -> Run:
        depth = len(self._run.callers) + 1
        if depth > DEEPEST:
            raise ActionError(
                f"{self._action} may call nothing: {depth} calls would be within one another, and {DEEPEST} may be.",
                "Call fewer actions from within actions.",
                code="call_too_deep",
            )
        outer, run = self._run, new_run_id()
        outer.log.append(InnerRunOpened(call=self._outer.id, at=time.time(), run=run))
        outermost = outer.outermost
        log = self._runs.open_inner(run, outermost.id, outermost.log)
        key = call_key(self._action, self._outer.given)
        return replace(
            outer,
            id=run,
            actor="workflow",
            log=log,
            recorded=None if outer.recorded is None else NothingRecorded(),
            started=time.time(),
            clock=time.perf_counter(),
            waits=PersonWait(),
            caller=Caller(outer, self._outer.id, self._action, key, self._outer.lends, self._outer),
        )

    def _begin_record(self, inner: Run) -> None:
        outer = self._run
        began = outer.log.events[0]
        assert isinstance(began, RunStarted)
        inner.log.append(
            RunStarted(
                run=inner.id,
                at=inner.started,
                run_kind="inner",
                session=began.session,
                prompt=f"called by {self._action}",
                catalog=outer.snapshot.hash,
                parent=ParentCall(outer.id, self._outer.id),
                versions=began.versions,
            )
        )

    async def end(self, status: RunStatus) -> None:
        """End what still runs of it, and its record."""
        self._over = True
        try:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(set(self._tasks), timeout=GRACE)
        finally:
            self._end_record(status)

    def _end_record(self, status: RunStatus) -> None:
        run = self._inner
        if run is None:
            return
        if run.log.events and isinstance(run.log.events[-1], RunEnded):  # a turn records its end by itself
            run.log.close()
            return
        notes = (run.log.problem,) if run.log.problem else ()
        run.log.append(
            RunEnded(
                run=run.id,
                at=time.time(),
                status=status,
                notes=notes,
                seconds=run.seconds,
                waited=run.waits.seconds(),
            )
        )
        run.log.close()


def _was_denied(run: Run, call: str) -> bool:
    decided = [
        event for event in run.log.events if isinstance(event, PermissionDecided) and event.call == call
    ]
    return bool(decided) and decided[-1].decision == "denied"
