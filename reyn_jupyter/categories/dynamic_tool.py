"""Tools that are made at run time: making, running, listing, deleting them, and the question whether one would help.

Two categories over one toolbox: `dynamic_tool`, whose resources are the tools themselves, each with its own schema,
and `dynamic_tool_operation` with the five operations of the API reference. A tool's code is shown whole before it is
kept; it runs in the sandbox, and reaches what the person consented to. What was made once a model had read text of
others is marked so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from reyn_jupyter.backends.files.command_files import UndoRecord
from reyn_jupyter.catalog.action import (
    Arguments,
    CalledAction,
    Category,
    Effect,
    Entry,
    ErrorCodes,
    Operation,
    Purity,
    Resources,
    Tool,
)
from reyn_jupyter.catalog.call_limits import CallLimits
from reyn_jupyter.dynamic.definition import CAPABILITY, DynamicTool
from reyn_jupyter.dynamic.reflection import reflect
from reyn_jupyter.dynamic.tool_error import DynamicToolError
from reyn_jupyter.dynamic.tool_runner import ToolRun
from reyn_jupyter.dynamic.tool_text import (
    creation_text,
    deletion_text,
    listing_text,
    review_text,
    run_text,
    summary_of,
    verification_word,
)
from reyn_jupyter.dynamic.toolbox import TIMEOUT_MS, PreparedRun, Toolbox, ToolDraft
from reyn_jupyter.guard.sandbox import SandboxError
from reyn_jupyter.runtime.access.progress_report import last_line_reporter
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.brief_result import in_brief
from reyn_jupyter.runtime.services import Services, ToolContext
from reyn_jupyter.support.text import shorten

TOOL, OPERATION = "dynamic_tool", "dynamic_tool_operation"
MOST_MS = 600_000
PAST_RUNS = 20  # whose calls a person's reflection looks at
_CODES = ErrorCodes(missing_argument="E105", wrong_argument="E106", unknown_entry="E203")
_ID = {"type": "string", "description": "Id of the tool, dt_…"}
_NAME = {"type": "string", "description": "Name of the tool, in place of its id."}
_CREATE = {
    "type": "object",
    "properties": {
        "name": {
            "type": "string",
            "description": "Starts with a letter; letters, digits, _ and -, at most 64.",
        },
        "description": {"type": "string", "description": "What the tool does, for whoever looks for it."},
        "code": {
            "type": "string",
            "description": "Defines execute(params), plain or async: params is a dict, and what it returns as JSON is "
            "the result. Python (the standard library), or TypeScript.",
        },
        "parameters": {
            "type": "object",
            "description": 'Each parameter by name: {"text": {"type": "string", "required": true}}. '
            "A definition has type (string, number, boolean, object, array), description, default, enum, minimum, "
            "maximum, required. Left out: any object.",
        },
        "tags": {"type": "array", "items": {"type": "string"}, "description": "To find it by."},
        "generated_from": {"type": "string", "description": "The task that it is made for."},
        "mode": {
            "type": "string",
            "enum": ["python", "typescript"],
            "description": "Told from the code if left out.",
        },
        "permissions": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What it may reach, nothing by default: network:api.example.org, read:data, write:out.",
        },
        "output_schema": {
            "type": "object",
            "description": "JSON Schema of its result, which is held to it. Left out: anything.",
        },
        "capability": {
            "type": "string",
            "pattern": rf"^{CAPABILITY}$",
            "description": "What it can do as a step of a plan: domain.action, as a gap names it.",
        },
        "examples": {
            "type": "array",
            "items": {"type": "object"},
            "description": 'Calls that verify it: {"parameters": {…}, "result": …}.',
        },
    },
    "required": ["name", "description", "code"],
    "additionalProperties": False,
}
_RUN = {
    "type": "object",
    "properties": {
        "tool_id": _ID,
        "tool_name": _NAME,
        "parameters": {"type": "object", "description": "What the tool is given."},
        "timeout_ms": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": MOST_MS,
            "default": TIMEOUT_MS,
            "description": "The tool is ended after so many milliseconds.",
        },
    },
    "additionalProperties": False,
}
_LIST = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "A part of the name, in any case."},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Any of these."},
        "min_safety_score": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "The lowest safety score, from 0 to 1.",
        },
        "limit": {
            "type": "number",
            "minimum": 1,
            "maximum": 1000,
            "default": 20,
            "description": "How many are shown at most.",
        },
    },
    "additionalProperties": False,
}
_DELETE = {
    "type": "object",
    "properties": {
        "tool_id": _ID,
        "tool_name": _NAME,
        "confirm": {"type": "boolean", "description": "true, or nothing is deleted."},
    },
    "additionalProperties": False,
}
_REFLECT = {
    "type": "object",
    "properties": {
        "task_description": {"type": "string", "description": "The task under way."},
        "last_tool_result": {"type": "string", "description": "What the last action gave."},
        "failed_attempts": {
            "type": "number",
            "minimum": 0,
            "default": 0,
            "description": "How often it failed so far.",
        },
    },
    "required": ["task_description", "last_tool_result"],
    "additionalProperties": False,
}


def categories(services: Services) -> tuple[Category, ...]:
    """`dynamic_tool` and `dynamic_tool_operation`, where there is a place to keep tools."""
    toolbox = Toolbox.of(services)
    if toolbox is None:
        return ()
    made = _Actions(toolbox)
    return made.resources(), made.operations()


class _Actions:
    """The handlers of both categories over one toolbox."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    def resources(self) -> Category:
        return Category(
            TOOL,
            "Tools that were made at run time in this workspace, each with parameters of its own.",
            resources=Resources(
                Tool(
                    "run_made_tool",
                    self._run_directly,
                    Purity.EXEC,
                    _reaches,
                    plan=self._plan_entry,
                    plan_is_slow=True,
                    unasked="its code was consented to, and its sandbox reaches nothing",
                ),
                lambda entry, args: {"tool_name": entry, "parameters": args},
                "run the tool",
                self._entries,
                restricted_as=f"{OPERATION}__run",
            ),
            revision=lambda: self._toolbox.store.revision,
            limits=CallLimits(seconds=MOST_MS / 1000 + 60),
            error_codes=_CODES,
        )

    def operations(self) -> Category:
        return Category(
            OPERATION,
            "Make a tool of your own for an operation that repeats, run it, list and delete such tools, and reflect on "
            "whether one would help.",
            operations=(
                Operation(
                    "create",
                    "Make a tool from code that defines execute(params). The person reads the code first. The tool is "
                    f"then {TOOL}__<name>, in later conversations too.",
                    _CREATE,
                    Tool(
                        "create_tool",
                        self._create,
                        Purity.UNKNOWN,
                        _wishes,
                        preview=_review,
                        keeps=False,
                        plan=self._plan_creation,
                        plan_is_slow=True,
                    ),
                    alias="create_tool",
                ),
                Operation(
                    "run",
                    "Run a tool that was made, by its id or name, in a sandbox.",
                    _RUN,
                    Tool(
                        "run_dynamic_tool",
                        self._run,
                        Purity.EXEC,
                        _reaches,
                        plan=self._plan_run,
                        plan_is_slow=True,
                        unasked="its code was consented to, and its sandbox reaches nothing",
                    ),
                    calls=self._called,
                    judged_as_called=True,
                    alias="run_dynamic_tool",
                ),
                Operation(
                    "list",
                    "List the tools that were made, with their scores and uses.",
                    _LIST,
                    Tool("list_dynamic_tools", self._list, Purity.READ),
                    alias="list_dynamic_tools",
                ),
                Operation(
                    "delete",
                    "Delete a tool that was made; confirm must be true.",
                    _DELETE,
                    Tool("delete_dynamic_tool", self._delete, Purity.WRITE, plan=self._plan_deletion),
                    alias="delete_dynamic_tool",
                ),
                Operation(
                    "reflect",
                    "Say whether a tool of your own would help with a task, from what was called before, and how to "
                    "make it.",
                    _REFLECT,
                    Tool("tool_reflection", self._reflect, Purity.READ),
                    alias="tool_reflection",
                ),
            ),
            limits=CallLimits(seconds=MOST_MS / 1000 + 60),
            error_codes=_CODES,
        )

    async def _entries(self) -> Sequence[Entry]:
        tools, _ = self._toolbox.store.all()  # what did not change is not read again: no thread is worth it
        return [
            Entry(
                tool.name,
                _face(tool),
                tool.input_schema,
                open_schema=tool.parameters is None,
                version=tool.sha256,
                capability=tool.capability or "",
                output_schema=tool.output_schema,
            )
            for tool in tools
        ]

    def _called(self, args: Arguments) -> CalledAction | None:
        """Return the tool that a call of the operation is for; None where there is none of that id or name."""
        named_by = "tool_id" if args.get("tool_id") else "tool_name"
        found = (tool for tool in self._toolbox.store.all()[0] if args.get(named_by) in (tool.id, tool.name))
        tool = next(found, None)
        return None if tool is None else CalledAction(f"{TOOL}__{tool.name}", named_by, "parameters")

    def _plan_creation(self, args: Arguments, context: ToolContext) -> ToolDraft:
        with _told():
            return self._toolbox.draft(args, actor=context.actor, origins=context.origins())

    async def _create(self, args: Arguments, context: ToolContext) -> object:
        draft: ToolDraft = context.plan
        with _told():
            tool = await asyncio.to_thread(self._toolbox.keep, draft)
            context.services.changed(TOOL)
            if tool.examples:
                context.report("running its examples")
                tool = await self._toolbox.verify(tool, context.workspace, record=UndoRecord(context))
        value = {
            **tool.model_dump(
                mode="json", include={"name", "id", "safety_score", "quality_score", "verification_status"}
            ),
            "verification": verification_word(tool),
            "description": tool.description,
            "parameters": [each.model_dump(mode="json") for each in tool.parameters or ()],
            "usage": f"{TOOL}__{tool.name}",
            "safety": draft.safety.to_dict(),
            "quality": draft.quality.to_dict(),
            "text": creation_text(tool),
        }
        brief = (
            f'Created the tool "{tool.name}" ({tool.id}), {value["verification"]}, safety {tool.safety_score:g}, '
            f"quality {tool.quality_score:g}. It is the action {TOOL}__{tool.name} now."
        )
        return in_brief(value, brief, context)

    def _plan_entry(self, args: Arguments, context: ToolContext) -> PreparedRun:
        with _told():
            return self._toolbox.prepare(self._toolbox.find(args["tool_name"]), args["parameters"])

    def _plan_run(self, args: Arguments, context: ToolContext) -> PreparedRun:
        with _told():
            tool = self._toolbox.find(_wanted(args))
            return self._toolbox.prepare(
                tool, args.get("parameters") or {}, args.get("timeout_ms", TIMEOUT_MS)
            )

    async def _run_directly(self, args: Arguments, context: ToolContext) -> object:
        return (await self._ended(context)).value

    async def _run(self, args: Arguments, context: ToolContext) -> object:
        run, tool = await self._ended(context), context.plan.tool
        text = run_text(tool.name, run)
        value = {
            "name": tool.name,
            "id": tool.id,
            "ok": run.ok,
            "result": run.value,
            "seconds": round(run.seconds, 3),
            "isolation": run.isolation,
            "stdout": run.stdout,
            "stderr": run.stderr,
            "text": text,
        }
        return in_brief(value, text, context)

    async def _ended(self, context: ToolContext) -> ToolRun:
        """Return a run that gave a result. Raises ActionError for one that did not: E301, E302, E304."""
        call: PreparedRun = context.plan
        tool = call.tool
        for origin in tool.origins:
            context.came_from(f"the tool {tool.name}, made after {origin}")
        if call.permissions.hosts:
            context.came_from(
                f"output of {tool.name}, which may have asked {', '.join(call.permissions.hosts)}"
            )
        with _told():
            run = await self._toolbox.run(
                call, context.workspace, actor=context.actor, record=UndoRecord(context),
                on_output=last_line_reporter(context.report),
            )  # fmt: skip
        context.services.changed(TOOL)
        if run.ok or run.error_kind == "soft":
            return run
        code, hint = {
            "timeout": (
                "E302",
                f"It had {call.timeout_ms:g} ms: give it more (timeout_ms), or make its code do less.",
            ),
            "memory": ("E304", "Give it less at a time, or make its code need less."),
        }.get(run.error_kind or "", ("E301", f"Mend its code: delete {tool.name}, and make it anew."))
        trace = run.traceback.removeprefix(run.error or "").strip("\n")
        said = "\n".join(part for part in (run_text(tool.name, run), trace) if part)
        raise ActionError(said, hint, code=code)

    async def _list(self, args: Arguments, context: ToolContext) -> object:
        found = await asyncio.to_thread(
            self._toolbox.select,
            name=args.get("name"),
            tags=args.get("tags") or (),
            min_safety_score=args.get("min_safety_score"),
        )
        shown = found[: int(args.get("limit", 20))]
        wrong = self._toolbox.problems
        text = "\n".join((listing_text(shown, len(found)), *(f"\n! {each}" for each in wrong)))
        value = {
            "count": len(found),
            "tools": [summary_of(tool) for tool in shown],
            "problems": wrong,
            "text": text,
        }
        return in_brief(value, text, context)

    def _plan_deletion(self, args: Arguments, context: ToolContext) -> DynamicTool:
        with _told():
            wanted = _wanted(args)
            if args.get("confirm") is not True:
                raise DynamicToolError(
                    "Set confirm: true to delete a tool.",
                    f"Call again with confirm: true for {wanted}.",
                    "E205",
                )
            return self._toolbox.store.get(wanted)

    async def _delete(self, args: Arguments, context: ToolContext) -> dict[str, Any]:
        tool: DynamicTool = context.plan
        with _told():
            await asyncio.to_thread(self._toolbox.delete, tool.id, actor=context.actor)
        context.services.changed(TOOL)
        return {"name": tool.name, "id": tool.id, "deleted": True, "text": deletion_text(tool)}

    async def _reflect(self, args: Arguments, context: ToolContext) -> object:
        runs = await context.services.runs.recent(PAST_RUNS)
        # A person's own call is a run by itself; a model means the turn that it is in.
        if context.actor != "person":
            runs = tuple(run for run in runs if run.run == context.run_id)
        calls = [
            (call.action, call.arguments, call.ok is not False)
            for run in reversed(runs)
            for call in run.calls
            if not call.action.startswith(f"{OPERATION}__")
        ]
        found = reflect(
            args["task_description"], args["last_tool_result"], int(args.get("failed_attempts", 0)), calls
        )
        brief = f"{found.outcome} ({found.reason}): {found.explanation}."
        if found.skeleton is not None:
            brief += f" Arguments for {OPERATION}__create are at path:/skeleton."
        return in_brief({**found.to_dict(), "text": found.to_text()}, brief, context)


def _wanted(args: Arguments) -> str:
    """Return the id or name that a call gives. Raises DynamicToolError E107."""
    wanted = args.get("tool_id") or args.get("tool_name")
    if not wanted:
        raise DynamicToolError(
            "Neither tool_id nor tool_name is given.", f"Give one; {OPERATION}__list names the tools.", "E107"
        )
    return str(wanted)


def _face(tool: DynamicTool) -> str:
    if tool.origins:  # a look at the catalog marks nothing as text of others: so it shows none
        return f"A tool made after text of others, {shorten(tool.origins[0], 60)}; list it to see what it is."
    return tool.description or f"The tool {tool.name}."


def _wishes(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    draft: ToolDraft = context.plan
    return draft.permissions.effects()


def _reaches(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    call: PreparedRun = context.plan
    own = tuple(Effect.exec([call.tool.name, each]) for each in call.permissions.operations)
    return (*call.permissions.effects(), *own)


def _review(args: Arguments, context: ToolContext) -> str:
    draft: ToolDraft = context.plan
    return review_text(draft.tool, draft.safety, draft.quality)


def _sentence(text: str) -> str:
    """Return a text as a sentence; one that begins with a name keeps its case."""
    first = text.partition(" ")[0]
    said = (
        text[:1].upper() + text[1:] if first in ("a", "an", "the", "there", "neither", "parameters") else text
    )
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except DynamicToolError as error:
        raise ActionError(_sentence(error.message), error.hint, code=error.code) from error
    except SandboxError as error:
        code = "tool_timeout" if error.began else "no_sandbox"
        said = "run to its end" if error.began else "run"
        raise ActionError(f"The tool did not {said}: {error}.", error.hint, code=code) from error
