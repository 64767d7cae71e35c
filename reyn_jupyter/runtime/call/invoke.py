"""The one way to a handler.

Invariant: the model, a person, a peer, a workflow and a direct tool all come through `Invoker`, and each call goes
through the same gates in the same order: parse → resolve → visible → decode and validate arguments → open references →
the tool's plan → effects → permission → budget → handler → outputs → run log. `Invoker.plan` does what needs no waiting
and changes nothing; `PlannedCall.run` does the rest. Every call leaves one `ActionResolved` and one `ActionFinished`,
whatever happens: nothing but a cancellation of the call's own task is ever raised from here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from reyn_jupyter.catalog.action import Action, Arguments, Arrival, CalledAction, Tool
from reyn_jupyter.catalog.arguments.preparation import invalid_arguments
from reyn_jupyter.catalog.call_by_name import arrival_of, called_action, prepare_call
from reyn_jupyter.catalog.call_purity import purity_before_opening, purity_of_call
from reyn_jupyter.catalog.effects import Effect, EffectKind
from reyn_jupyter.catalog.names import SEPARATOR, ActionName
from reyn_jupyter.catalog.resolve import UnknownActionError, bind, find
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.config import Settings
from reyn_jupyter.guard.permissions import Policy
from reyn_jupyter.guard.workspace import FileDecision, WorkspaceError
from reyn_jupyter.models.base import canonical
from reyn_jupyter.outputs.convert import to_json
from reyn_jupyter.runtime.action_error import DENIED, ActionError, CallTimeoutError, text_of
from reyn_jupyter.runtime.call.call_places import CallPlaces
from reyn_jupyter.runtime.call.call_plan import closing_plan, make_plan
from reyn_jupyter.runtime.call.call_progress import CallProgress
from reyn_jupyter.runtime.call.effective_limits import EffectiveLimits
from reyn_jupyter.runtime.call.inner_calls import InnerCalls, check_circle
from reyn_jupyter.runtime.call.live_call import LiveCall
from reyn_jupyter.runtime.call.origins import origin_line
from reyn_jupyter.runtime.call.outcomes import OutcomeBuilder, Reports, parted_answer, written
from reyn_jupyter.runtime.call.permission_gate import PermissionGate, Remember
from reyn_jupyter.runtime.call.reference_resolver import open_references
from reyn_jupyter.runtime.call.running_call import RunningCall
from reyn_jupyter.runtime.deadline import deadlines_paused
from reyn_jupyter.runtime.large_values import look_through
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.events import (
    ActionFinished,
    ActionResolved,
    BlobStored,
    Flag,
    Problem,
)
from reyn_jupyter.runtime.record.run_store import RunStore
from reyn_jupyter.runtime.record.runlog import RunLog
from reyn_jupyter.runtime.run import Outcome, Run
from reyn_jupyter.runtime.services import Services, Source, ToolContext

# What runs in place of a call's tool, and with which services; None where the call runs as it is. An evaluation gives a
# call that changes something its own copy of the workspace. What it raises is the call's own failure.
Enter = Callable[[LiveCall], Awaitable[tuple[Tool, Services] | None]]


# Values that live as long as one call are no frozen dataclasses: making one of those takes ten times as long.


@dataclass(slots=True)
class ActionCall:
    """A call as it came: the wrapper and arguments as given, the name and inner arguments that they mean."""

    id: str
    name: str
    args: Any
    wrapper: str = "invoke_action"
    given: Any = None
    flags: tuple[Flag, ...] = ()
    step: int = 0

    def meaning(self, name: str, args: Any = None, flags: tuple[Flag, ...] = ()) -> ActionCall:
        """Return the call with the action that it means, and what is told of it besides."""
        if self.flags:
            flags = tuple(dict.fromkeys((*self.flags, *flags)))
        return ActionCall(self.id, name, args, self.wrapper, self.given, flags, self.step)


@dataclass(slots=True)
class PlannedCall:
    """A call that is ready to run.

    `repeatable` calls may run beside others; of those with equal keys one runs, and `repeat` records the others. The
    key tells an action and its arguments; None where the call is answered without a handler, or not resolved yet. One
    that `stands_in` only answers for a call that is not run.
    """

    run: Callable[[], Coroutine[Any, Any, Outcome]]
    repeatable: bool
    key: Callable[[], bytes] | None = None
    repeat: Callable[[Awaitable[Outcome]], Coroutine[Any, Any, Outcome]] | None = None
    stands_in: bool = False


@dataclass(frozen=True)
class ImmediateAnswer:
    """A call that needs no handler: a catalog error, or a wrapper's own answer, whose content it carries, and what the
    person is told of it alone."""

    payload: dict[str, Any] | str
    problem: Problem | None = None
    name: str | None = None
    sources: tuple[Source, ...] = ()
    advice: str = ""


class Invoker:
    """Resolves and runs actions for one session.

    Args:
        services: what handlers get.
        policy, ask, remember: see `PermissionGate`.
        enter: asked last before a handler runs; None where every call runs where the session is.
        runs: keeps the record of inner runs; in memory alone where None.
        refresh: gives the catalog as it is once a call within another has changed something.
    """

    def __init__(
        self,
        services: Services,
        policy: Callable[[Settings], Policy],
        ask: Callable[[Question], Awaitable[Answer]],
        remember: Remember,
        enter: Enter | None = None,
        runs: RunStore | None = None,
        refresh: Callable[[], Awaitable[CatalogSnapshot]] | None = None,
    ) -> None:
        self._services = services
        self._runs = runs or RunStore(None, services.blobs)
        self._refresh = refresh
        self._gate = PermissionGate(policy, ask, remember)
        self._enter = enter
        self._outcomes = OutcomeBuilder(services)
        self._places = CallPlaces()

    def plan(self, call: ActionCall, action: Action, run: Run) -> PlannedCall:
        """Check the arguments of a call of an action on offer. Changes nothing; never raises.

        Args:
            call: as it came, with its name resolved to the action.
            action: of the run's snapshot now.
        """
        redactor = self._services.redactor
        ready = prepare_call(run.snapshot, action, call.args, forgive=run.settings.router.forgive)
        prepared = ready.prepared
        flags = (*call.flags, *cast("tuple[Flag, ...]", prepared.flags))
        if prepared.invalid:
            codes = run.snapshot.slices[ready.action.name.category].category.error_codes
            payload = invalid_arguments(ready.action, prepared.invalid, held_by=ready.held_by, codes=codes)
            return self.answer(
                replace(call, flags=flags), run, ImmediateAnswer(payload, "invalid", action.name.text)
            )
        purity = purity_before_opening(run.snapshot, action, prepared.args)
        given, inner = redactor.value((call.given, prepared.args))
        resolved = ActionResolved(
            call=call.id,
            step=call.step,
            at=time.time(),
            actor=run.actor,
            wrapper=call.wrapper,
            arguments=given,
            inner=inner,
            redactions=() if inner is prepared.args else redactor.redactions(prepared.args),
            name=action.name.text,
            target=action.target_tool_name,
            purity=purity.value,
            flags=flags,
        )
        repeatable = purity.repeatable
        return PlannedCall(
            partial(self._execute, resolved, action, prepared.args, run),
            repeatable,
            lambda: canonical([action.name.text, prepared.args]),
            lambda first: self._repeat(resolved, first, run),
        )

    def answer(self, call: ActionCall, run: Run, answered: ImmediateAnswer) -> PlannedCall:
        """Return a call that is answered from the catalog itself, and recorded like any other."""

        async def record() -> Outcome:
            began = time.perf_counter()
            given = await self._recordable(call)
            self._resolved(call, run, answered.name, answered.problem, given)
            return self._answer(call, run, answered, began)

        return PlannedCall(record, True)

    def planned_when_known(
        self, call: ActionCall, run: Run, plan: Callable[[ActionCall], PlannedCall]
    ) -> PlannedCall:
        """Plan a call now, or once it is known whether the action that it names is there.

        Args:
            call: as it came, with the name and the arguments that it means.
            plan: plans it over the run's snapshot.
        """
        forgive = run.settings.router.forgive
        arrival = (
            None if self._refresh is None else arrival_of(run.snapshot, call.name, call.args, forgive=forgive)
        )
        if arrival is None:
            return plan(call)

        async def wait() -> Outcome:
            began = time.perf_counter()
            given = await self._recordable(call)
            try:
                await self._arrived(arrival, call, run)
            except asyncio.CancelledError:
                self._resolved(call, run, None, None, given)
                self._finish(call, run, self._outcomes.interrupted(call.name, run, Reports()), began)
                raise
            except ActionError as error:
                self._resolved(call, run, None, None, given)
                outcome = await self._outcomes.failure(
                    call.name, error, run, Reports(given=[call.name, call.given])
                )
                return self._finish(call, run, outcome, began)
            planned = await look_through(call.args, lambda: plan(call))
            return await planned.run()

        return PlannedCall(wait, False)

    async def _arrived(self, arrival: Arrival, call: ActionCall, run: Run) -> None:
        """Wait for what a call names, as long as the call may take. Raises ActionError where it does not come."""
        category = run.snapshot.slices[call.name.partition(SEPARATOR)[0]].category
        assert category.resources is not None and self._refresh is not None
        limits = EffectiveLimits.of(category, category.resources.tool, run.settings)
        try:
            async with asyncio.timeout(limits.seconds):
                await arrival.wait()
        except TimeoutError:
            raise CallTimeoutError(arrival.late, arrival.hint) from None
        run.see(await self._refresh())

    def answering(
        self,
        call: ActionCall,
        run: Run,
        look: Callable[[], Awaitable[ImmediateAnswer]],
        problem: Problem | None = None,
    ) -> PlannedCall:
        """Return a call whose answer takes time (`inspect`).

        Args:
            look: returns the answer.
            problem: of the call, if it is known before the answer.
        """

        async def record() -> Outcome:
            began = time.perf_counter()
            self._resolved(call, run, None, problem, await self._recordable(call))
            try:
                answered = await look()
            except asyncio.CancelledError:
                self._finish(call, run, self._outcomes.interrupted(call.wrapper, run, Reports()), began)
                raise
            except Exception as error:  # noqa: BLE001 - a store may fail in ways of its own
                why = f"{call.wrapper} failed: {type(error).__name__}: {text_of(error)}"
                answered = ImmediateAnswer({"error": why, "hint": "Go on without it."})
            return self._answer(call, run, answered, began)

        return PlannedCall(record, True)

    def record(self, call: ActionCall, run: Run, answered: ImmediateAnswer) -> Outcome:
        """Answer a call now, and leave its two events."""
        began = time.perf_counter()
        given = self._services.redactor.value(call.given)
        self._resolved(call, run, answered.name, answered.problem, given)
        return self._answer(call, run, answered, began)

    async def _recordable(self, call: ActionCall) -> Any:
        """Return a call's arguments as they came, without secrets."""
        return await look_through(call.given, lambda: self._services.redactor.value(call.given))

    @staticmethod
    def _resolved(call: ActionCall, run: Run, name: str | None, problem: Problem | None, given: Any) -> None:
        run.log.append(
            ActionResolved(
                call=call.id,
                step=call.step,
                at=time.time(),
                actor=run.actor,
                wrapper=call.wrapper,
                arguments=given,
                name=name,
                problem=problem,
                flags=call.flags,
            )
        )

    def _answer(self, call: ActionCall, run: Run, answered: ImmediateAnswer, began: float) -> Outcome:
        payload: Any = answered.payload
        advice = answered.advice
        self._services.redactor.refresh()
        if isinstance(payload, dict):
            payload, typed = parted_answer(payload, run, [call.name, call.args, call.given])
            advice = f"{advice} {typed}".strip()
            payload = self._outcomes.bounded(payload, run)
            text = written(payload)
        else:
            text = payload = self._services.redactor.text(payload)
        error = str(payload["error"]) if isinstance(payload, dict) and "error" in payload else None
        origins = self._outcomes.origins(call.name, None, (), answered.sources, run)
        if origins:
            text = f"{text}\n{origin_line(origins)}"
        outcome = Outcome(
            text,
            error is None,
            payload,
            name=answered.name,
            error=error,
            code=payload.get("code") if isinstance(payload, dict) else None,
            size=len(text.encode()),
            sources=[source.recorded for source in answered.sources],
            origins=origins,
            advice=self._services.redactor.text(advice),
        )
        return self._finish(call, run, outcome, began)

    async def _call_within(self, call_id: str, step: int, name: str, args: Any, run: Run) -> Outcome:
        """Make a call of an inner run."""
        given = {"action_name": name, "args": await look_through(args, lambda: to_json(args))}
        call = ActionCall(call_id, name, args, given=given, step=step)
        planned = await look_through(
            args, lambda: self.planned_when_known(call, run, lambda known: self._planned(known, run))
        )
        outcome = await planned.run()
        action = run.snapshot.get(ActionName.parse(outcome.name)) if outcome.name is not None else None
        if self._refresh is not None and action is not None and not action.purity.repeatable:
            snapshot = await self._refresh()
            for caller in run.callers:
                caller.run.see(snapshot)
        return outcome

    def _planned(self, call: ActionCall, run: Run) -> PlannedCall:
        try:
            action = find(run.snapshot, call.name)
        except UnknownActionError as error:
            return self.answer(call, run, ImmediateAnswer(error.payload, error.problem))
        return self.plan(call, action, run)

    async def _repeat(self, resolved: ActionResolved, first: Awaitable[Outcome], run: Run) -> Outcome:
        """Answer an equal call of the same stretch with the first one's outcome, and record its own two events."""
        run.log.append(replace(resolved, at=time.time(), flags=(*resolved.flags, "merged")))
        began = time.perf_counter()
        call = ActionCall(resolved.call, resolved.name or "", None, resolved.wrapper, step=resolved.step)
        try:
            outcome = await first
        except asyncio.CancelledError:
            self._finish(call, run, self._outcomes.interrupted(call.name, run, Reports()), began)
            raise
        return self._finish(call, run, outcome, began)

    async def _execute(
        self, resolved: ActionResolved, action: Action, args: dict[str, Any], run: Run
    ) -> Outcome:
        began = time.perf_counter()
        asked = ActionCall(resolved.call, action.name.text, args, resolved.wrapper, step=resolved.step)
        call = self._call(resolved.call, resolved.step, action, args, run)
        task = _task()
        try:
            try:
                try:
                    resolved = await self._completed(call, resolved)
                finally:
                    run.log.append(resolved)
                outcome = await self._run(call, resolved.inner)
            except BaseException as error:
                call.progress.end()
                call.reports.partial = call.progress.partial
                if _ends(error, task):
                    raise
                outcome = self._kept(
                    call, await self._outcomes.failure(call.title, error, run, call.reports, call.tool)
                )
        except BaseException as error:
            self._finish(asked, run, await self._interrupted(call, error), began)
            raise
        call.progress.end()
        return self._finish(asked, run, outcome, began)

    def _call(
        self, call_id: str, step: int, action: Action, args: Arguments, run: Run, log: RunLog | None = None
    ) -> LiveCall:
        progress = CallProgress(call_id, run.log if log is None else log, self._services.redactor)
        readable = partial(self._gate.may_read, run=run)
        return LiveCall(self._services, run, call_id, step, action, args, progress, readable)

    async def _completed(self, call: LiveCall, resolved: ActionResolved) -> ActionResolved:
        """Let the action fill in a person's call; return its event with what was filled in."""
        if call.tool.complete is None or call.actor != "person":
            return resolved
        args = await call.tool.complete(call.given, call)
        if args == call.given:
            return resolved
        call.given = args
        redactor = self._services.redactor
        inner = redactor.value(args)
        redactions = () if inner is args else redactor.redactions(args)
        return replace(resolved, inner=inner, redactions=redactions)

    async def _interrupted(self, call: LiveCall, error: BaseException) -> Outcome:
        """Return the outcome of a call that was interrupted; a second interrupt does without its result so far."""
        if call.reports.partial is not None and isinstance(error, asyncio.CancelledError):
            with suppress(asyncio.CancelledError):
                return self._kept(call, await self._outcomes.cut_short(call.title, call.run, call.reports))
        return self._outcomes.interrupted(call.title, call.run, call.reports)

    async def _run(self, call: LiveCall, recorded_args: Any) -> Outcome:
        check_circle(call.run, call.title, call.given)
        await self._judged(call)
        with closing_plan(await make_plan(call.tool, call.arguments, call)) as call.plan:
            return await self._allowed(call, recorded_args)

    async def _judged(self, call: LiveCall) -> None:
        """Open the references of a call, and find what the gate judges it by."""
        run, action = call.run, call.action
        called = called_action(run.snapshot, action, call.given)
        opened = await self._opened(action, called, call.given, call, run)
        call.tool, call.arguments = bind(run.snapshot, action, opened)
        # What a person consents to: of a call by name, the description and schema of the one that is called.
        call.described = action if called is None else called[0]
        call.purity = purity_of_call(run.snapshot, action, call.arguments)
        call.judged_name = _judged_name(action, call.described, run.snapshot)
        call.restricting_names = _restricting_names(action, call.described, run.snapshot)

    async def _judge_again(
        self, name: str, args: Mapping[str, Any], effects: Sequence[Effect], run: Run
    ) -> FileDecision:
        """Return the rules' word on the result of an earlier call, see `ToolContext.judge_again`; no word is a no."""
        try:
            call = await self._unrun(name, args, run)
            if call is None:
                return "deny"
            try:
                plan = await make_plan(call.tool, call.arguments, call)
            except ActionError as error:
                if error.code == DENIED:
                    return "deny"
                # What it was about may be gone since, by the call itself perhaps; what it named is known.
                texts = (each for each in call.arguments.values() if isinstance(each, str))
                return self._gate.judge_again(
                    call, (*effects, *(Effect(EffectKind.READ, each) for each in texts))
                )
            with closing_plan(plan) as call.plan:
                own = call.tool.effects(call.arguments, call)
                return self._gate.judge_again(call, (*own, *effects))
        except Exception:  # noqa: BLE001 - a category's own code; what cannot be judged is not given
            return "deny"

    async def _effects_of(self, name: str, args: Mapping[str, Any], run: Run) -> tuple[Effect, ...] | None:
        """Return the effects of a call that does not run, see `ToolContext.effects_of`."""
        try:
            call = await self._unrun(name, args, run)
            if call is None:
                return None
            with closing_plan(await make_plan(call.tool, call.arguments, call)) as call.plan:
                return tuple(call.tool.effects(call.arguments, call))
        except Exception:  # noqa: BLE001 - a category's own code; then the effects are not known
            return None

    async def _unrun(self, name: str, args: Mapping[str, Any], run: Run) -> LiveCall | None:
        """Return a call that does not run, or None if its arguments do not fit."""
        action = find(run.snapshot, name)
        prepared = prepare_call(run.snapshot, action, args, forgive=run.settings.router.forgive).prepared
        if prepared.invalid:
            return None
        call = self._call("", 0, action, prepared.args, run, RunLog(None))
        await self._judged(call)
        return call

    def _check_workspace(self) -> None:
        """Check that the workspace is the folder that was judged, however long a question was open."""
        try:
            self._services.workspace.check()
        except WorkspaceError as error:
            hint = "Nothing was run. Put the folder back, or begin a new session in the new one."
            raise ActionError(f"{error}.", hint) from error

    async def _allowed(self, call: LiveCall, recorded_args: Any) -> Outcome:
        """Run a call that is planned, if the rules or the person allow it, or answer it from the record."""
        run = call.run
        call.effects = effects = tuple(call.tool.effects(call.arguments, call))
        verdict, rules = self._gate.judge(call, effects)
        call.judge_files(rules)
        replays = run.recorded
        if replays is not None and not replays.runs_again(call.step, call.purity.repeatable):
            if self._gate.may_be_recorded(call, effects, verdict):
                before = replays.take(call.title, recorded_args)
                if before is not None:
                    return before
            verdict = self._gate.judge_unrecorded(call, effects)
        with deadlines_paused():
            verdict = await self._gate.settle(verdict, call, effects)
        if verdict.decision != "allow":
            return self._outcomes.denied(call.title, run, effects, verdict)
        if effects:
            self._check_workspace()
        run.budget.check()
        entered = None if self._enter is None else await self._enter(call)
        if entered is None:
            return await self._handled(call)
        # It is another world, in which another plan holds.
        call.enter(*entered)
        with closing_plan(await make_plan(call.tool, call.arguments, call)) as call.plan:
            return await self._handled(call)

    async def _handled(self, call: LiveCall) -> Outcome:
        """Run the handler of a call that is allowed."""
        inner = InnerCalls(call, self._call_within, self._judge_again, self._effects_of, self._runs)
        value = await RunningCall(self._gate, self._places, call, inner).value()
        return self._kept(
            call, await self._outcomes.value(call.title, call.tool, value, call.run, call.reports)
        )

    @staticmethod
    async def _opened(
        action: Action,
        called: tuple[Action, CalledAction] | None,
        args: Arguments,
        context: ToolContext,
        run: Run,
    ) -> Arguments:
        """Return a call's arguments with references opened, those for an action called by name by its schema."""
        tool = run.snapshot.tools[action.target_tool_name]
        opening = partial(open_references, remote=tool.remote, discloses=tool.discloses or tool.remote)
        held = args.get(called[1].held_by) if called is not None else None
        if called is None or not isinstance(held, dict):
            return await opening(action.input_schema, args, context)
        target, place = called[0], called[1].held_by
        own = {name: value for name, value in args.items() if name != place}
        opened = await opening(action.input_schema, own, context)
        inner = await opening(target.input_schema, held, context)
        return {name: inner if name == place else opened[name] for name in args}

    @staticmethod
    def _kept(call: LiveCall, outcome: Outcome) -> Outcome:
        """Record that a result was stored, if it was."""
        if outcome.blob is not None:
            call.run.log.append(
                BlobStored(
                    call=call.id,
                    at=time.time(),
                    blob=outcome.blob,
                    content_kind=outcome.content_kind,
                    size=outcome.size,
                    name=outcome.name,
                )
            )
        return outcome

    def _finish(self, call: ActionCall, run: Run, outcome: Outcome, began: float) -> Outcome:
        """Record the end of a call, and return its outcome in the run's words."""
        if run.reword is not None:
            outcome = run.reword(outcome)
        waited = run.waits.seconds(call.id)
        run.note_origins(outcome.origins)
        run.log.append(
            ActionFinished(
                call=call.id,
                step=call.step,
                at=time.time(),
                wrapper=call.wrapper,
                name=outcome.name,
                ok=outcome.ok,
                output=outcome.text,
                error=outcome.error,
                code=outcome.code,
                partial=outcome.partial,
                blob=outcome.blob,
                content_kind=outcome.content_kind,
                size=outcome.size,
                seconds=max(0.0, time.perf_counter() - began - waited),
                waited=waited,
                changes=self._redacted(outcome.changes),
                sources=self._redacted(outcome.sources),
                frame=None if outcome.frame is None else self._services.redactor.value(dict(outcome.frame)),
                note=outcome.note,
                origins=outcome.origins,
                advice=outcome.advice,
            )
        )
        return outcome

    def _redacted(self, reported: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
        if not reported:
            return ()
        redacted: tuple[dict[str, Any], ...] = self._services.redactor.value(tuple(map(dict, reported)))
        return redacted


def _judged_name(action: Action, described: Action, snapshot: CatalogSnapshot) -> str:
    """Return the action whose rules hold for a call: of an entry that an operation serves by name, that operation.

    Of an operation that is judged as what it calls, that action.
    """
    part = snapshot.slices[action.name.category].category
    if described is not action and any(
        each.judged_as_called for each in part.operations if each.entry == action.name.entry
    ):
        return described.name.text
    resources = part.resources
    if action.canonical_default is None or resources is None or resources.judged_as is None:
        return action.name.text
    judged = resources.judged_as
    return judged if SEPARATOR in judged else f"{action.name.category}{SEPARATOR}{judged}"


def _restricting_names(action: Action, described: Action, snapshot: CatalogSnapshot) -> tuple[str, ...]:
    """Return the actions whose rules restrict a call too, whatever it is judged as."""
    resources = snapshot.slices[action.name.category].category.resources
    also = None if action.canonical_default is None or resources is None else resources.restricted_as
    names = (action.name.text, described.name.text, *(() if also is None else (also,)))
    return tuple(dict.fromkeys(names))


def _task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _ends(error: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """Return whether the call's own task ends: it was cancelled, or its coroutine is being closed.

    A handler may raise the same exceptions by itself; that is its failure, and no end of the turn.
    """
    if isinstance(error, asyncio.CancelledError):
        return task is None or task.cancelling() > 0
    return isinstance(error, GeneratorExit) and _task() is not task
