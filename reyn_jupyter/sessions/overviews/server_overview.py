"""The MCP servers of a session as people see them: a table, a log, what another client's file would bring."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from reyn_jupyter.backends.mcp_servers.client_files import ForeignServer, known_files, read_client_file
from reyn_jupyter.backends.mcp_servers.server_entry import EntryError
from reyn_jupyter.backends.mcp_servers.server_file import ServerFileError
from reyn_jupyter.backends.mcp_servers.server_store import UNTRUSTED, McpServerStore, StoredServer
from reyn_jupyter.runtime.access.mcp_access import McpServerState, left_out_tools
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.sessions.assembly import ENGINE, Parts
from reyn_jupyter.sessions.async_session import AsyncSession
from reyn_jupyter.sessions.result_objects import Card, Table
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import count, meant_clause, shorten

LONGEST = 160  # characters of a cell
NONE_IN_PANEL = (
    "No MCP server yet: add one here, take those of another client by %reyn mcp import, or ask for one."
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=.*", re.DOTALL)
_OF_A_SHELL = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"})
NONE_YET = "Add one: %reyn mcp add NAME -- COMMAND, %reyn mcp import, or ask for one."
NOT_YET = (
    "A server that is not ready starts with the next listing, and is searched once it is: %reyn list mcp"
)


def file_store(parts: Parts) -> McpServerStore:
    """Return the files of servers of a session. Raises ActionError where a program gives the servers."""
    if parts.mcp_store is None:
        raise ActionError(
            "The servers of this session are given by the program that made it.",
            "Leave Session(mcp_servers=…) out to keep them in files.",
            code="not_available",
        )
    return parts.mcp_store


def server_table(parts: Parts) -> Table:
    """Return a row a server: state, tools, calls, what a call takes, errors, the last line of its log."""
    states = {state.name: state for state in parts.services.mcp.states()}
    stored = () if parts.mcp_store is None else parts.mcp_store.stored()
    used = {each.entry.name: each for each in reversed(stored)}
    names = (*used, *(name for name in states if name not in used))
    rows = [_row(parts, name, states.get(name), used.get(name)) for name in sorted(names)]
    is_late = any(row["state"] in ("idle", "starting") for row in rows)
    notes = (
        *(() if rows else (NONE_YET,)),
        *((NOT_YET,) if is_late else ()),
        *left_out_tools(states.values()),
        *server_remarks(parts),
    )
    return Table("mcp", tuple(rows), "MCP servers", parts.redactor.text(" · ".join(notes)))


def server_remarks(parts: Parts) -> tuple[str, ...]:
    """Return what is to be said of the files of servers, in sentences: what waits for trust, what cannot be used."""
    if parts.mcp_store is None:
        return ()
    waiting = len(parts.mcp_store.held_back())
    held = f"{count(waiting, 'server')} of .mcp.json held back: %reyn trust shows what would run, and asks"
    return (*((held,) if waiting else ()), *map(parts.redactor.text, parts.mcp_store.problems))


def server_state(parts: Parts, name: str) -> McpServerState:
    """Return how a server fares; one that is gone meanwhile is idle."""
    states = parts.services.mcp.states()
    return next((each for each in states if each.name == name), McpServerState(name, "idle"))


def next_step(parts: Parts, name: str) -> tuple[str, str]:
    """Return what the person is to do so that a server can be used: in two words, and the line that does it.

    Both are empty where there is nothing to do, or no line does it.
    """
    stored = () if parts.mcp_store is None else parts.mcp_store.stored()
    mine = next((each for each in stored if each.entry.name == name), None)
    if mine is not None and mine.blocked == UNTRUSTED:
        return "Trust …", "%reyn trust"
    kept = () if mine is None else [each.name for each in mine.entry.references if each.kind == "stored"]
    secret = next((each for each in kept if mine is not None and each in mine.needs), None)
    if secret is not None:
        return f"Give {secret} …", reyn_line("mcp secret", name, secret)
    if server_state(parts, name).phase == "needs sign-in":
        return "Sign in …", reyn_line("mcp login", name)
    return "", ""


def typed_entry(parts: Parts, text: str, *, sandbox: bool) -> dict[str, Any]:
    """Return the entry of a server that a person typed: a command line, or an address.

    Args:
        text: words are told apart as a shell does, and nothing else of a shell holds.
        sandbox: its program gets a sandbox in which it reads the workspace, and no network.

    Raises:
        EntryError: it is neither.
    """
    text = text.strip()
    if _ADDRESS.fullmatch(text):
        if sandbox:
            raise EntryError("a remote server runs elsewhere, so no sandbox holds it")
        return {"type": "http", "url": text}
    try:
        words = shlex.split(text)
    except ValueError:
        raise EntryError("the command line has a quote without its end") from None
    if not words:
        raise EntryError("there is no command and no address yet, for example uvx mcp-server-time")
    if (variable := _ASSIGNMENT.fullmatch(words[0])) is not None:
        raise EntryError(
            f"{variable[1]}= stands before a command in a shell alone: %reyn mcp add NAME --env {variable[1]}=… "
            "-- COMMAND adds a server with variables"
        )
    if (sign := next((each for each in words if each in _OF_A_SHELL), None)) is not None:
        raise EntryError(f"no shell reads the line, so {sign} would be a word of the command")
    command = words[0]
    if "/" in command:  # the entry holds in every workspace
        command = str(parts.root / Path(command).expanduser())
    given = {"sandbox": {"readable": [str(parts.root)]}} if sandbox else {}
    return {"command": command, "args": words[1:], **given}


def server_log(parts: Parts, name: str) -> Card:
    """Return the last lines of a server's log. Raises ActionError where there is no such server."""
    known = {state.name: state for state in parts.services.mcp.states()}
    if name not in known:
        raise ActionError(
            f"There is no server {visible(name)}{meant_clause(name, known) or '.'}",
            "%reyn mcp lists them.",
            code="server_unknown",
        )
    lines = tuple(visible(parts.redactor.text(line)) for line in parts.services.mcp.log(name))
    state = known[name]
    facts = (("state", state.phase), *((("why", state.reason),) if state.reason else ()))
    said = lines or ("It has written nothing yet.",)
    left_out = tuple(visible(parts.redactor.text(each)) for each in state.left_out)
    sections = ((("Tools that are left out", left_out),) if left_out else ()) + (
        ("Last lines, oldest first", said),
    )
    return Card("mcp", f"Log of {name}", facts, sections)


def restart_server(parts: Parts, name: str) -> None:
    """End a server that runs, and start it. Raises ActionError where it does not come."""
    ENGINE.run(parts.services.mcp.restart(name))


def registry_table(text: str, found: Mapping[str, Any]) -> Table:
    """Return what a search of the registry found, as `mcp__search_registry` gives it."""
    rows = tuple(
        {"server": row["server_id"], "version": row["version"], "offers": row["offers"],
         "what it does": row["description"]}
        for row in found["servers"]
    )  # fmt: skip
    source = f"{found['registry']}, as of {found['as_of']}"
    way_on = (
        "%reyn mcp install SERVER shows what would run, and asks" if rows else "Nothing has it in its name"
    )
    return Table("mcp", rows, f"Servers of the registry for “{visible(text)}”", f"{way_on} · {source}")


def install(parts: Parts, aio: AsyncSession, action: str, arguments: Mapping[str, Any]) -> Card:
    """Install a server by one of the actions that do, once the person saw what would run and said yes.

    Raises:
        ActionError: it cannot be installed, or the person said no.
    """
    result = ENGINE.run(aio.invoke_action(action, arguments, ask=parts.ask))
    if result.error is not None:
        payload = result.payload if isinstance(result.payload, dict) else {}
        raise ActionError(result.error, str(payload.get("hint", "")))
    found = result.value
    runs = "runs" if "runs" in found else "asks"
    facts = [(runs, str(found[runs])), ("written to", str(found["written_to"]))]
    facts += [("isolation", found["isolation"])] if "isolation" in found else []
    facts += [(f"needs {each['name']}", reyn_line("mcp secret", str(found["installed"]), str(each["name"])))
              for each in found.get("needs_secrets", ())]  # fmt: skip
    facts += [("note", str(each)) for each in (found.get("note"), *found.get("notes", ())) if each]
    return Card("mcp", f"{found['installed']} is installed", tuple(facts))


def foreign_servers(parts: Parts, path: str | None) -> tuple[tuple[str, tuple[ForeignServer, ...]], ...]:
    """Return what other clients' files would bring: (where from, servers). Raises ActionError."""
    store = file_store(parts)
    taken = {each.entry.name for each in store.stored()}
    places = ((path, Path(path).expanduser()),) if path else known_files(Path.home(), parts.environ)
    found: list[tuple[str, tuple[ForeignServer, ...]]] = []
    for client, file in places:
        try:
            servers = read_client_file(file, taken)
        except ServerFileError as error:
            if path:
                raise ActionError(str(error), code="server_file") from None
            found.append((f"{client}: {error}", ()))
            continue
        taken |= {each.entry.name for each in servers if each.entry}
        found.append((client, servers))
    return tuple(found)


def import_table(parts: Parts, path: str | None) -> Table:
    """Return what other clients' files would bring; nothing is taken."""
    found = foreign_servers(parts, path)
    rows = tuple(_foreign_row(parts, client, each) for client, servers in found for each in servers)
    able = sum(row["note"].startswith("left out") is False for row in rows)
    line = reyn_line("mcp import", *([path] if path else []), take=True)
    if not found:
        note = "No file of another client is in its usual place: %reyn mcp import PATH reads one."
    elif able:
        note = f"Nothing is taken yet: {line} takes {count(able, 'server')}; {line} NAME … some of them."
    else:
        note = "Nothing to take."
    broken = [client for client, servers in found if not servers and ":" in client]
    return Table("mcp", rows, "Servers of other clients", " · ".join((note, *broken)))


def take_servers(parts: Parts, path: str | None, names: Collection[str]) -> tuple[str, ...]:
    """Write the servers of other clients' files into the person's file; return their names.

    Args:
        names: which of them, as they are called here; all where it is empty.

    Raises:
        ActionError: a name that is not there, or a file that cannot be written.
    """
    store = file_store(parts)
    able = [each for _, servers in foreign_servers(parts, path) for each in servers if each.entry is not None]
    there = {each.entry.name for each in able if each.entry}
    unknown = sorted(set(names) - there)
    if unknown:
        raise ActionError(
            f"There is no server {visible(unknown[0])} to take.",
            f"There are: {', '.join(sorted(there)) or 'none'}.",
        )
    taken = []
    for each in able:
        if each.entry is None or (names and each.entry.name not in names):
            continue
        store.add(each.entry.name, each.entry.plain)
        for secret, value in each.secrets.items():
            store.set_secret(each.entry.name, secret, value)
        taken.append(each.entry.name)
    return tuple(taken)


def describe_server(stored: StoredServer) -> str:
    """Return what a server runs or asks, and what it gets, on one line for people."""
    entry, gets = stored.entry, what_it_gets(stored)
    said = f"{'runs' if entry.transport == 'stdio' else 'asks'} {entry.line}"
    said += f" in {visible(entry.cwd)}" if entry.cwd else ""
    plain = [name for name, value in entry.values.items() if "${" not in value]
    said += f"; sets {', '.join(plain)}" if plain else ""
    if entry.transport == "stdio":
        said += "; without a sandbox" if entry.sandbox is None else f"; {visible(str(entry.sandbox))}"
    return said + (f"; gets {gets}" if gets else "")


def what_it_gets(stored: StoredServer) -> str:
    """Return what a server gets of the person's environment and secrets, in a few words; "" for nothing."""
    found = stored.entry.references
    gets = [f"{each.name} of your environment" for each in found if each.kind == "environment"]
    return ", ".join((*gets, *(f"the secret {each.name}" for each in found if each.kind == "stored")))


def _row(
    parts: Parts, name: str, state: McpServerState | None, stored: StoredServer | None
) -> dict[str, str | int | float | None]:
    blocked = stored.blocked if stored is not None else None
    server = parts.services.mcp.servers().get(name)
    phase = state.phase if state is not None else "blocked" if blocked else "idle"
    why = (state.reason if state is not None else None) or blocked
    last = why or (state.last_line if state is not None else "")
    return {
        "server": name,
        "state": phase,
        "tools": state.tools if state is not None and state.phase == "ready" else None,
        "calls": state.calls if state is not None else 0,
        "p50 ms": round(state.median * 1000, 1) if state is not None and state.median is not None else None,
        "errors": state.errors if state is not None else 0,
        "last message": parts.redactor.text(visible(shorten(" ".join(last.split()), LONGEST))),
        "runs": "" if stored is None else parts.redactor.text(shorten(stored.entry.line, LONGEST)),
        "isolation": "" if server is None else visible(shorten(server.isolation, LONGEST)),
        "from": "" if stored is None else {"user": "you", "workspace": ".mcp.json"}[stored.scope],
    }


def _foreign_row(parts: Parts, client: str, server: ForeignServer) -> dict[str, str]:
    entry = server.entry
    values: Mapping[str, str] = {} if entry is None else entry.values
    return {
        "server": visible(server.given_name) if entry is None else entry.name,
        "from": client,
        "runs": "" if entry is None else parts.redactor.text(shorten(entry.line, LONGEST)),
        "variables": ", ".join(values),
        "note": visible(server.note),
    }
