"""What the side panel shows of the MCP servers of a session, and what a person does with them there.

Invariants: nothing is written before the person said yes to a question that shows the whole command line; what a
server says of itself is redacted, bounded and shown as text; what wants a prompt (a sign-in, a secret) is a line for a
cell, which the person runs.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from pydantic import Field

from reyn_jupyter.backends.mcp_servers.manifest import InstallPlan
from reyn_jupyter.backends.mcp_servers.server_entry import EntryError, read_entry
from reyn_jupyter.catalog.effects import Effect, EffectKind
from reyn_jupyter.categories.mcp_management import Installation, missing_runner
from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import Badge
from reyn_jupyter.notebook.render.session_tables import state_tone
from reyn_jupyter.notebook.serving.operation import (
    OperationContext,
    OperationError,
    ServedOperation,
    WireMessage,
)
from reyn_jupyter.runtime.access.mcp_admin import McpScope
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.questions.consent import Question
from reyn_jupyter.runtime.questions.question_detail import question_detail
from reyn_jupyter.sessions.overviews import server_overview
from reyn_jupyter.support.encoding import clean
from reyn_jupyter.support.text import count

MOST = 200  # servers
NAME = 200  # characters
LINE = 8_000  # characters of a command line or an address
_SAID = 400
_LOG = 500  # characters of a line of a log


class ReadServers(WireMessage):
    pass


class PanelServer(WireMessage):
    """Show how one server fares.

    Attributes:
        facts: tools, calls, what a call takes, errors.
        why: the reason why it is not ready; "" where it is, or was not asked for yet.
        last_line: the last line of its log.
        runs: the command line or the address; origin whose file it stands in.
        gets: what it has of the person's environment and secrets; isolation how it is kept apart.
        label: names what is to be done next, `line` does it in a cell; "" where there is nothing.
        dropped_from: the file that it can be taken out of; "" where a program gave it.
        may_start: whether it can be started.
    """

    name: str
    state: Badge
    facts: str
    why: str
    last_line: str
    runs: str
    gets: str
    isolation: str
    origin: str
    label: str
    line: str
    dropped_from: str
    may_start: bool


class ServersPage(WireMessage):
    """Show the servers of a session.

    Attributes:
        total: how many there are, also beyond those that are shown.
        remarks: what cannot be used in their files, and what waits for the person's trust, in sentences.
        can_add: whether servers can be added here.
        empty: what to do where there is none; "" where there are some.
    """

    servers: tuple[PanelServer, ...]
    total: int
    remarks: tuple[str, ...]
    can_add: bool
    empty: str


class NameServer(WireMessage):
    name: str = Field(max_length=NAME)


class AddServer(WireMessage):
    """Add a server: a command line, read into words without a shell, or an address."""

    name: str = Field(max_length=NAME)
    runs: str = Field(max_length=LINE)
    sandbox: bool = False


class ServerAnswer(WireMessage):
    """Say in a sentence what was done."""

    said: str


class ServerLogLines(WireMessage):
    """Show what a server wrote, oldest line first."""

    lines: tuple[str, ...]


async def read_servers(context: OperationContext, arguments: ReadServers) -> ServersPage:
    return await asyncio.to_thread(_page, context)


def _page(context: OperationContext) -> ServersPage:
    parts, look = context.session.parts, context.look
    table = server_overview.server_table(parts)
    can_add = parts.mcp_store is not None
    return ServersPage(
        servers=tuple(_server(context, row) for row in table.rows[:MOST]),
        total=len(table.rows),
        remarks=tuple(clean(look.text(each, _SAID)) for each in server_overview.server_remarks(parts)),
        can_add=can_add,
        empty="" if table.rows else server_overview.NONE_IN_PANEL if can_add else "This session has none.",
    )


def _server(context: OperationContext, row: dict[str, Any]) -> PanelServer:
    look, parts = context.look, context.session.parts
    name = str(row["server"])
    state = server_overview.server_state(parts, name)
    step = server_overview.next_step(parts, name)
    stored = () if parts.mcp_store is None else parts.mcp_store.stored()
    mine = next((each for each in stored if each.entry.name == name), None)
    scopes = () if parts.mcp_store is None else parts.mcp_store.scopes(name)
    facts = [
        None if row["tools"] is None else count(int(row["tools"]), "tool"),
        count(int(row["calls"]), "call") if row["calls"] or state.phase == "ready" else None,
        None if row["p50 ms"] is None else f"p50 {formatting.seconds(row['p50 ms'] / 1000)}",
        count(int(row["errors"]), "error") if row["errors"] else None,
    ]

    def shown(text: object) -> str:
        return clean(look.line(text, _SAID))

    return PanelServer(
        name=shown(name),
        state=Badge(str(row["state"]), state_tone(str(row["state"]))),
        facts=" · ".join(each for each in facts if each),
        why=shown(_sentence(state.reason) if state.reason else ""),
        # Its end is in the log too, in our own words.
        last_line="" if state.last_line.startswith("[reyn] ") else shown(state.last_line),
        runs=shown(row["runs"]),
        gets=shown(server_overview.what_it_gets(mine)) if mine is not None else "",
        isolation=shown(row["isolation"]),
        origin=shown(row["from"]),
        label=shown(step[0]),
        line=shown(step[1]),
        dropped_from=shown(parts.mcp_store.place(scopes[0])) if scopes and parts.mcp_store else "",
        may_start=state.phase != "blocked",
    )


async def read_log(context: OperationContext, arguments: NameServer) -> ServerLogLines:
    lines = context.session.parts.services.mcp.log(arguments.name)
    return ServerLogLines(lines=tuple(map(clean, context.look.lines(lines, _LOG))))


async def restart(context: OperationContext, arguments: NameServer) -> ServerAnswer:
    """Restart a server, and answer once it is there."""
    try:
        await context.session.parts.services.mcp.restart(arguments.name)
    except ActionError as error:
        raise OperationError(error.message, error.hint) from None
    return ServerAnswer(said=f"{arguments.name} runs.")


async def add(context: OperationContext, arguments: AddServer) -> ServerAnswer:
    """Show what would run, and write it once the person said yes."""
    parts = context.session.parts
    try:
        store = server_overview.file_store(parts)
        given = server_overview.typed_entry(parts, arguments.runs, sandbox=arguments.sandbox)
        entry = read_entry(arguments.name.strip(), given)
        installation = Installation(store, InstallPlan(entry, notes=missing_runner(entry)))
        if taken := store.scopes(entry.name):
            raise ActionError(
                f"There is a server {entry.name} already, in {store.place(taken[0])}.",
                "Take another name, or drop it first.",
            )
    except EntryError as error:
        raise OperationError(_sentence(str(error))) from None
    except ActionError as error:
        raise OperationError(error.message, error.hint) from None
    detail = question_detail(installation.effects, installation.text, {}, parts.redactor)
    await _consent(context, Question(f"%reyn mcp add {entry.name}", detail, ()))
    try:
        answer = await asyncio.to_thread(installation.write)
    except ActionError as error:
        raise OperationError(error.message, error.hint) from None
    return ServerAnswer(said=f"{entry.name} is added to {answer['written_to']}.")


async def drop(context: OperationContext, arguments: NameServer) -> ServerAnswer:
    """Take a server out of its file once the person said yes."""
    parts, name = context.session.parts, arguments.name
    try:
        store = server_overview.file_store(parts)
        scope: McpScope | None = next(iter(store.scopes(name)), None)
        if scope is None:
            raise ActionError(
                f"There is no server {name} in a file{store.meant(name)}", "%reyn mcp lists them."
            )
        text = (
            f"drop        {name}\nfrom        {store.place(scope)}\n"
            "and forget its secrets, and each “always” for its tools"
        )
        detail = question_detail((Effect(EffectKind.MCP, name),), text, {}, parts.redactor)
        await _consent(context, Question(f"%reyn mcp drop {name}", detail, ()))
        dropped = await asyncio.to_thread(store.drop, name, scope)
    except ActionError as error:
        raise OperationError(error.message, error.hint) from None
    return ServerAnswer(said=f"{dropped.name} is dropped from {Path(dropped.path).name}.")


async def _consent(context: OperationContext, question: Question) -> None:
    """Wait for the person's yes. Raises OperationError where there is none."""
    answer = await context.ask(question)
    if answer != "once":
        raise OperationError(
            "Nothing was changed: you said no."
            if answer == "deny"
            else "Nothing was changed: the question was not answered.",
            "",
        )


def _sentence(said: str) -> str:
    return f"{said[:1].upper()}{said[1:].rstrip('.')}."


OPERATIONS = (
    ServedOperation("servers.list", ReadServers, ServersPage, read_servers),
    ServedOperation("servers.log", NameServer, ServerLogLines, read_log),
    ServedOperation("servers.restart", NameServer, ServerAnswer, restart),
    ServedOperation("servers.add", AddServer, ServerAnswer, add),
    ServedOperation("servers.drop", NameServer, ServerAnswer, drop),
)
