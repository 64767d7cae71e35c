"""The one way to a handler.

Invariant: the model, a person, a peer, a workflow and a direct tool all come through `Invoker`, and each call goes
through the same gates in the same order: parse → resolve → visible → decode and validate arguments → effects →
permission → references → handler → outputs → run log. `plan` does what needs no waiting and changes nothing;
`Planned.run` does the rest. Every call leaves one `ActionResolved` and one `ActionFinished`, whatever happens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, cast

import pydantic_core

from reyn_jupyter.catalog.action import Action, Effect, Tool
from reyn_jupyter.catalog.arguments import invalid_arguments, prepare
from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.catalog.resolve import UnknownActionError, find, resolve
from reyn_jupyter.config import Outputs
from reyn_jupyter.guard.permissions import Policy, Verdict, question, suggest_pattern
from reyn_jupyter.models.seam import canonical
from reyn_jupyter.outputs.content import Inline, Stored, Structured, Text
from reyn_jupyter.outputs.deliver import deliver
from reyn_jupyter.outputs.guides import bound_guide, deliver_error
from reyn_jupyter.outputs.policy import OutputPolicy
from reyn_jupyter.runtime.consent import Answer, Question
from reyn_jupyter.runtime.errors import ActionError
from reyn_jupyter.runtime.events import (
    ActionFinished,
    ActionResolved,
    BlobStored,
    Flag,
    PermissionDecided,
    Problem,
)
from reyn_jupyter.runtime.references import check, open_references
from reyn_jupyter.runtime.run import Outcome, Run
from reyn_jupyter.runtime.services import FileChange, Services, Source, ToolContext

NAME = 200  # characters of a wrapper's name that are recorded, whatever a model made up


@dataclass(frozen=True)
class ActionCall:
    """A call as it came: the wrapper and arguments as given, the name and inner arguments that they mean."""

    id: str
    name: str
    args: Any
    wrapper: str = "invoke_action"
    given: Any = None
    flags: tuple[Flag, ...] = ()
    step: int = 0


@dataclass(frozen=True)
class Planned:
    """A call that is ready to run.

    `repeatable` calls may run beside others; equal `key`s of one round run once, and `repeat` records the others.
    """

    run: Callable[[], Coroutine[Any, Any, Outcome]]
    repeatable: bool
    key: bytes = b""
    repeat: Callable[[Awaitable[Outcome]], Coroutine[Any, Any, Outcome]] | None = None


@dataclass(frozen=True)
class Answered:
    """A call that needs no handler: a catalog error, or a wrapper's own answer."""

    payload: dict[str, Any] | str
    problem: Problem | None = None
    name: str | None = None
    bounded: bool = True


@dataclass
class _Reports:
    changes: list[FileChange] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)


class Invoker:
    """Resolves and runs actions for one session.

    Args:
        services: what handlers get.
        policy: the permission rules now.
        ask: asks the person; None when nobody can be asked.
        remember: keeps an "always" pattern.
    """

    def __init__(
        self,
        services: Services,
        policy: Callable[[], Policy],
        ask: Callable[[Question], Awaitable[Answer]],
        remember: Callable[[str], None],
    ) -> None:
        self._services = services
        self._policy = policy
        self._ask = ask
        self._remember = remember

    def plan(self, call: ActionCall, run: Run) -> Planned:
        """Parse, resolve, check visibility and arguments. Changes nothing; never raises."""
        try:
            action = find(run.snapshot, call.name)
        except UnknownActionError as error:
            return self.answer(call, run, Answered(error.payload, error.problem))
        prepared = prepare(action.input_schema, call.args, forgive=self._services.settings().router.forgive)
        flags = (*call.flags, *cast("tuple[Flag, ...]", prepared.flags))
        if prepared.invalid:
            payload = invalid_arguments(action, prepared.invalid)
            return self.answer(
                replace(call, flags=flags), run, Answered(payload, "invalid", str(action.name))
            )
        resolved = ActionResolved(
            call=call.id,
            step=call.step,
            at=time.time(),
            actor=run.actor,
            wrapper=call.wrapper,
            arguments=self._services.redactor.value(call.given),
            inner=self._services.redactor.value(prepared.args),
            name=str(action.name),
            target=action.target_tool_name,
            purity=action.purity.value,
            flags=flags,
        )
        repeatable = action.purity.repeatable
        return Planned(
            lambda: self._execute(resolved, action, prepared.args, run),
            repeatable,
            canonical([str(action.name), prepared.args]) if repeatable else b"",
            lambda first: self._repeat(resolved, first, run),
        )

    def answer(self, call: ActionCall, run: Run, answered: Answered) -> Planned:
        """A call answered from the catalog itself, recorded like any other."""

        async def record() -> Outcome:
            return self.record(call, run, answered)

        return Planned(record, True)

    def answering(
        self, call: ActionCall, run: Run, look: Callable[[], Awaitable[dict[str, Any] | str]]
    ) -> Planned:
        """A call answered by a wrapper that has to wait for its answer (`inspect`)."""

        async def record() -> Outcome:
            return self.record(call, run, Answered(await look(), bounded=False))

        return Planned(record, True)

    def record(self, call: ActionCall, run: Run, answered: Answered) -> Outcome:
        """Answer a call now, and leave its two events."""
        redactor = self._services.redactor
        run.log.append(
            ActionResolved(
                call=call.id,
                step=call.step,
                at=time.time(),
                actor=run.actor,
                wrapper=call.wrapper[:NAME],
                arguments=redactor.value(call.given),
                name=answered.name,
                problem=answered.problem,
                flags=call.flags,
            )
        )
        payload = answered.payload
        if isinstance(payload, dict) and answered.bounded:
            payload = bound_guide(payload)
        payload = redactor.value(payload)
        text = _compact(payload)
        error = str(payload["error"]) if isinstance(payload, dict) and "error" in payload else None
        outcome = Outcome(
            text, error is None, payload, name=answered.name, error=error, size=len(text.encode())
        )
        self._finish(call, run, outcome, time.perf_counter())
        return outcome

    async def _repeat(self, resolved: ActionResolved, first: Awaitable[Outcome], run: Run) -> Outcome:
        """An equal call of the same stretch: it gets the first one's outcome, and its own two events."""
        run.log.append(replace(resolved, at=time.time(), flags=(*resolved.flags, "merged")))
        began = time.perf_counter()
        outcome = await first
        call = ActionCall(resolved.call, resolved.name or "", None, resolved.wrapper, step=resolved.step)
        self._finish(call, run, outcome, began)
        return outcome

    async def _execute(
        self, resolved: ActionResolved, action: Action, args: dict[str, Any], run: Run
    ) -> Outcome:
        began = time.perf_counter()
        run.log.append(resolved)
        call = ActionCall(resolved.call, str(action.name), args, resolved.wrapper, step=resolved.step)
        reports = _Reports()
        try:
            outcome = await self._run(call, action, args, run, reports)
        except asyncio.CancelledError:
            self._finish(call, run, _interrupted(action.name, reports), began)
            raise
        self._finish(call, run, outcome, began)
        return outcome

    async def _run(
        self, call: ActionCall, action: Action, args: dict[str, Any], run: Run, reports: _Reports
    ) -> Outcome:
        name = str(action.name)
        target = resolve(run.snapshot, action.name, args)
        tool, target_args = run.snapshot.tools[target.target_tool_name], dict(target.target_args)
        context = ToolContext(
            self._services,
            action.name,
            run.actor,
            run.id,
            run.variables,
            reports.changes.append,
            reports.sources.append,
        )
        try:
            check(target_args, context)
            effects = tool.effects(target_args, context)
            verdict = self._policy().decide(name, action.purity, effects, run.actor, run.approve)
            if run.recorded is not None and not run.recorded.runs_again(call.step, action.purity.repeatable):
                before = run.recorded.take(name, self._services.redactor.value(args))
                if before is not None:
                    return before
                if verdict.decision == "allow" and not action.purity.repeatable and run.approve != "all":
                    verdict = Verdict("ask", "replay", "it is not in the replayed run")
            verdict = await self._consent(verdict, name, effects, tool, target_args, context, run)
            run.log.append(_decided(call.id, name, effects, verdict))
            if verdict.decision != "allow":
                return self._denied(name, effects, verdict)
            opened = await open_references(target_args, context)
            value = await tool.handler(opened, context)
            return await self._deliver(call, name, tool, value, run, reports)
        except ActionError as error:
            return await self._failed(call, name, error, error.hint, run, reports)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is an answer, never the loop's end
            return await self._failed(call, name, error, "", run, reports)

    async def _consent(
        self,
        verdict: Verdict,
        name: str,
        effects: Sequence[Effect],
        tool: Tool,
        args: dict[str, Any],
        context: ToolContext,
        run: Run,
    ) -> Verdict:
        if verdict.decision != "ask":
            return verdict
        if not run.attended:
            return Verdict("deny", "nobody", "nobody is there to ask: the run is in the background")
        preview = tool.preview(args, context) if tool.preview else None
        pattern = suggest_pattern(name, effects)
        text = self._services.redactor.text(question(name, effects, preview))
        answer = await self._ask(Question(name, text, pattern))
        if answer == "always" and pattern is not None:
            self._remember(pattern)
            return Verdict("allow", "person", "always allowed by the person", pattern)
        if answer == "once":
            return Verdict("allow", "person", "allowed once by the person")
        if answer == "nobody":
            return Verdict("deny", "nobody", "nobody is there to ask; --approve all allows it for one run")
        return Verdict("deny", "person", "the person said no")

    def _denied(self, name: str, effects: Sequence[Effect], verdict: Verdict) -> Outcome:
        what = ", ".join(str(effect) for effect in effects) or "run it"
        payload: dict[str, Any] = {
            "error": f"Denied: {name} may not {what} ({verdict.reason}).",
            "hint": "Do not retry it. Go on without it, or tell the person what you would have done.",
        }
        payload = {key: self._services.redactor.text(text) for key, text in payload.items()}
        return Outcome(_compact(payload), False, payload, name=name, error=payload["error"])

    async def _deliver(
        self, call: ActionCall, name: str, tool: Tool, value: object, run: Run, reports: _Reports
    ) -> Outcome:
        redactor = self._services.redactor
        if tool.guides and isinstance(value, dict):
            text = redactor.text(_compact(bound_guide(value)))
            return Outcome(text, True, text, value, size=len(text.encode()), name=name)
        policy = output_policy(self._services.settings().outputs)
        delivered = await deliver(value, store=self._services.blobs, policy=policy, action=name, run=run.id)
        if delivered.blob is not None:
            self._stored(call, run, name, delivered.blob, delivered.content_kind, delivered.size)
        text = redactor.text(delivered.text)
        return Outcome(
            text,
            True,
            text,
            plain(value),
            delivered.blob,
            delivered.content_kind,
            delivered.size,
            name,
            None,
            [asdict(change) for change in reports.changes],
            [asdict(source) for source in reports.sources],
        )

    async def _failed(
        self, call: ActionCall, name: str, error: Exception, hint: str, run: Run, reports: _Reports
    ) -> Outcome:
        redactor = self._services.redactor
        delivered = await deliver_error(
            redactor.text(text_of(error)),
            kind=None if isinstance(error, ActionError) else type(error).__name__,
            hint=redactor.text(hint),
            store=self._services.blobs,
            policy=output_policy(self._services.settings().outputs),
            action=name,
            run=run.id,
        )
        if delivered.blob is not None:
            self._stored(call, run, name, delivered.blob, "text", delivered.size)
        payload = pydantic_core.from_json(delivered.text)
        return Outcome(
            delivered.text,
            False,
            payload,
            error,
            delivered.blob,
            "text",
            delivered.size,
            name,
            str(payload.get("error")),
            [asdict(change) for change in reports.changes],
            [asdict(source) for source in reports.sources],
        )

    @staticmethod
    def _stored(call: ActionCall, run: Run, name: str, blob: str, kind: str, size: int) -> None:
        run.log.append(
            BlobStored(call=call.id, at=time.time(), blob=blob, content_kind=kind, size=size, name=name)
        )

    @staticmethod
    def _finish(call: ActionCall, run: Run, outcome: Outcome, began: float) -> None:
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
                blob=outcome.blob,
                content_kind=outcome.content_kind,
                size=outcome.size,
                seconds=time.perf_counter() - began,
                changes=tuple(dict(change) for change in outcome.changes),
                sources=tuple(dict(source) for source in outcome.sources),
            )
        )


@cache
def output_policy(outputs: Outputs) -> OutputPolicy:
    """The bounds of results, as the settings have them."""
    return OutputPolicy(**outputs.model_dump())


def plain(value: object) -> object:
    """A handler's value for ordinary code: what a marker of the outputs room wraps."""
    if isinstance(value, Stored):
        value = value.content
    if isinstance(value, Text | Inline):
        return value.text
    return value.value if isinstance(value, Structured) else value


def text_of(error: BaseException) -> str:
    """An error's own words; an exception may have a `__str__` that fails."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001
        return "the error has no readable text"


def _compact(payload: Mapping[str, Any] | str) -> str:
    return payload if isinstance(payload, str) else pydantic_core.to_json(payload).decode()


def _decided(call: str, name: str, effects: Sequence[Effect], verdict: Verdict) -> PermissionDecided:
    return PermissionDecided(
        call=call,
        at=time.time(),
        name=name,
        effects=tuple(str(effect) for effect in effects),
        decision="allowed" if verdict.decision == "allow" else "denied",
        by=verdict.by,
        pattern=verdict.pattern,
    )


def _interrupted(name: ActionName, reports: _Reports) -> Outcome:
    done = "; ".join(f"{change.path} was already changed" for change in reports.changes)
    error = f"interrupted by the person while {name} ran" + (f"; {done}" if done else "")
    payload = {"error": error, "hint": "It may not have finished."}
    return Outcome(
        _compact(payload),
        False,
        payload,
        name=str(name),
        error=error,
        changes=[asdict(change) for change in reports.changes],
    )
