"""The tools that were made at run time, for people: a table, one tool looked at, its files.

Invariant: a person's creation, run and deletion are calls of the same actions that a model makes, and stand in the
record; a call by hand is consent.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from reyn_jupyter.categories.dynamic_tool import OPERATION, TOOL
from reyn_jupyter.dynamic.analysis.safety import analyze_safety
from reyn_jupyter.dynamic.tool_error import DynamicToolError
from reyn_jupyter.dynamic.tool_export import export_tool
from reyn_jupyter.dynamic.tool_permissions import read_permissions
from reyn_jupyter.sessions.result_objects import Card, Result, Table
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.text import count, shorten
from reyn_jupyter.support.user_errors import UserError

if TYPE_CHECKING:
    from reyn_jupyter.dynamic.audit import AuditEntry
    from reyn_jupyter.dynamic.definition import DynamicTool
    from reyn_jupyter.dynamic.toolbox import Toolbox
    from reyn_jupyter.sessions.assembly import Parts
    from reyn_jupyter.sessions.async_session import AsyncSession

DAYS = 14  # of the line of uses
_BARS = "▁▂▃▄▅▆▇█"
_MOST_ENTRIES = 5_000  # of the audit, for the line of uses
_SHOWN_RUNS = 20


class ToolActionError(UserError):
    """Something of a tool failed; the message says why, `hint` what to do, `code` which error it is."""

    def __init__(self, message: str, hint: str = "", code: str | None = None) -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message, self.hint, self.code = message, hint, code


@dataclass(frozen=True)
class MadeTool:
    """A tool to call: ``session.tools["string_reverse"](text="Hello")`` gives its result.

    Attributes:
        definition: what is kept of it.
    """

    definition: DynamicTool
    _invoke: Callable[[str, Mapping[str, Any]], Result] = field(repr=False)

    def __call__(self, /, **parameters: Any) -> Any:
        """Run the tool and return its result. Raises ToolActionError."""
        return value_of(self._invoke(f"{TOOL}__{self.definition.name}", parameters))


@dataclass(frozen=True, repr=False)
class MadeTools(Table):
    """The tools of a workspace: a table that gives a tool by its name, to call it."""

    handles: Mapping[str, MadeTool] = field(default_factory=dict, repr=False)

    def __getitem__(self, index: int | str) -> Any:
        if isinstance(index, str):
            if index not in self.handles:
                known = ", ".join(self.handles) or "none"
                raise KeyError(f"There is no tool {index!r}. Known: {known}.")
            return self.handles[index]
        return super().__getitem__(index)


def toolbox(parts: Parts) -> Toolbox:
    """Return the tools of a session's workspace. Raises ToolActionError where nothing is kept."""
    found = parts.toolbox
    if found is None:
        raise ToolActionError("This session keeps no tools.")
    return found


def tools(parts: Parts, invoke: Callable[[str, Mapping[str, Any]], Result]) -> MadeTools:
    """Return one row a tool: scores, uses, failures, last use, a line of the uses of fourteen days, its state."""
    box = toolbox(parts)
    found, _ = box.store.all()
    uses = _uses(box)
    rows = tuple(_row(tool, uses.get(tool.id, Counter())) for tool in found)
    notes = box.problems
    if not rows and not notes:
        notes.append("Make one: %%reyn tool NAME above the code of execute(params)")
    handles = {tool.name: MadeTool(tool, invoke) for tool in found}
    return MadeTools("tools", rows, "Tools made at run time", "; ".join(notes), tuple(found), handles)


def _row(tool: DynamicTool, uses: Counter[str]) -> dict[str, Any]:
    return {
        "name": tool.name,
        "about": shorten(" ".join(tool.description.split()), 80),
        "safety": tool.safety_score,
        "quality": tool.quality_score,
        "confidence": tool.confidence_score,
        "verified": tool.verification_status,
        "uses": tool.usage_count,
        "failures": tool.failure_count,
        "last_used": tool.last_used_at,
        "days": _spark(uses),
        "permissions": ", ".join(tool.permissions),
    }


def _uses(box: Toolbox) -> dict[str, Counter[str]]:
    """Return how often each tool was run on each day, by its id."""
    found: dict[str, Counter[str]] = {}
    for entry in box.audit.entries(_MOST_ENTRIES).entries:
        if entry.action == "tool.run" and entry.tool_id is not None:
            found.setdefault(entry.tool_id, Counter())[entry.at[:10]] += 1
    return found


def _spark(uses: Counter[str]) -> str:
    """Return a bar for each of the last days, the newest last; "" where there was no use."""
    today = datetime.now(UTC).date()
    counts = [uses[(today - timedelta(days=back)).isoformat()] for back in range(DAYS - 1, -1, -1)]
    most = max(counts)
    if not most:
        return ""
    return "".join(_BARS[0] if not each else _BARS[max(1, round(each / most * 7))] for each in counts)


def describe(parts: Parts, name: str) -> Card:
    """Return one tool: its facts, what was found in its code, the code, its last runs. Raises ToolActionError."""
    box = toolbox(parts)
    try:
        tool = box.store.get(name)
    except DynamicToolError as error:
        raise ToolActionError(error.message, error.hint, error.code) from None
    granted = read_permissions(tool.permissions).granted
    safety = analyze_safety(tool.code, mode=tool.mode, granted=granted)
    facts = (
        ("about", tool.description),
        ("takes", "; ".join(each.summary for each in tool.parameters or ()) or _nothing(tool)),
        ("may reach", ", ".join(tool.permissions) or "nothing outside of its sandbox"),
        ("safety", _score(tool.safety_score)),
        ("quality", _score(tool.quality_score)),
        ("confidence", _score(tool.confidence_score)),
        ("verification", tool.verification_status if tool.is_intact else "changed on disk since it was made"),
        ("uses", f"{count(tool.usage_count, 'run')}, {count(tool.failure_count, 'failed one')}"),
        ("made", f"{_moment(tool.created_at)} by {tool.created_by}, id {tool.id}"),
    )  # fmt: skip
    findings = tuple(
        f"line {each.line}: {each.severity}: {each.description}. {each.suggestion}".strip()
        for each in safety.issues
    )
    runs = tuple(map(_told, box.audit.entries(_SHOWN_RUNS, tool=tool.id).entries))
    sections = [
        ("Findings", findings or ("none",)),
        ("Code", tuple(tool.code.splitlines())),
        ("Runs", runs),
    ]
    tries = (reyn_line("invoke", f"{TOOL}__{tool.name}"), reyn_line("tools export", tool.name))
    return Card("tool", tool.name, facts, tuple(each for each in sections if each[1]), tries)


def _score(value: float) -> str:
    return f"{value:.2f} of 1"


def _moment(at: str) -> str:
    """Return a moment of the store, which is in UTC, as people read it."""
    return f"{at[:19].replace('T', ' ')} UTC"


def _nothing(tool: DynamicTool) -> str:
    return "any object" if tool.parameters is None else "nothing"


def _told(entry: AuditEntry) -> str:
    how = "ok" if entry.success else f"failed: {shorten(entry.error or '', 120)}"
    return f"{_moment(entry.at)} {entry.action} by {entry.actor}: {how}"


async def create(session: AsyncSession, given: Mapping[str, Any]) -> Card:
    """Make a tool, as the person. Raises ToolActionError."""
    value = value_of(await session.invoke_action(f"{OPERATION}__create", given))
    facts = (
        ("id", value["id"]),
        ("safety", _score(value["safety_score"])),
        ("quality", _score(value["quality_score"])),
        ("verification", value["verification_status"]),
    )
    findings = tuple(
        f"line {each['line']}: {each['severity']}: {each['description']}"
        for each in value["safety"]["issues"]
    )
    tries = (reyn_line("invoke", value["usage"]), reyn_line("tools", value["name"]))
    sections = (("Findings", findings),) if findings else ()
    return Card("tool", f"{value['name']} is made", facts, sections, tries, dict(value))


async def delete(session: AsyncSession, name: str) -> Card:
    """Remove a tool. Raises ToolActionError."""
    value = value_of(
        await session.invoke_action(f"{OPERATION}__delete", {"tool_name": name, "confirm": True})
    )
    return Card("tool", f"{value['name']} is deleted", (("id", value["id"]),))


async def deprecate(parts: Parts, name: str) -> Card:
    """Mark a tool as one that should not be used any more. Raises ToolActionError."""
    try:
        tool = await asyncio.to_thread(toolbox(parts).deprecate, name)
    except DynamicToolError as error:
        raise ToolActionError(error.message, error.hint, error.code) from None
    parts.services.changed(TOOL)
    return Card("tool", f"{tool.name} is deprecated", (("id", tool.id), ("uses", str(tool.usage_count))))


async def export(session: AsyncSession, parts: Parts, name: str, folder: str = ".") -> Card:
    """Write a tool as a module with tests into the workspace; `undo` takes it back. Raises ToolActionError."""
    try:
        files = export_tool(toolbox(parts).find(name))
    except DynamicToolError as error:
        raise ToolActionError(error.message, error.hint, error.code) from None
    written = []
    for file, text in ((files.module, files.code), (files.tests, files.test_code)):
        if file is not None:
            path = f"{folder.rstrip('/')}/{file}" if folder not in ("", ".") else file
            value_of(await session.invoke_action("file__write", {"path": path, "content": text}))
            written.append(path)
    return Card("tool", f"{name} is exported", tuple(("file", path) for path in written))


def value_of(result: Result) -> Any:
    """Return the value of a call. Raises ToolActionError for one that failed."""
    if result.error is not None:
        payload = result.payload if isinstance(result.payload, dict) else {}
        wrong: Sequence[Mapping[str, Any]] = payload.get("invalid", ())
        said = "; ".join(f"{each['path'].lstrip('/')} {each['message']}".strip() for each in wrong)
        raise ToolActionError(said or result.error, str(payload.get("hint") or ""), result.code)
    return result.value
