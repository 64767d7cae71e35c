"""`%reyn mcp [add|search|install|drop|log|restart|secret|login|…]`: the MCP servers, how they fare, their files."""

from __future__ import annotations

import getpass
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from IPython.core.error import StdinNotImplementedError
from pydantic import Field

from reyn_jupyter.backends.mcp_servers.server_entry import is_literal_secret
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional, Rest
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.sessions import sign_ins
from reyn_jupyter.sessions.overviews import server_overview
from reyn_jupyter.sessions.result_objects import Card, Table
from reyn_jupyter.sessions.session import Session
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.text import nearest_names

WORDS = (
    "list", "add", "search", "install", "drop", "log", "restart", "secret", "login", "logout", "import",
)  # fmt: skip
# What people type for a word that there is.
_MEANT = {
    **dict.fromkeys(("remove", "rm", "delete", "uninstall"), "drop"),
    **dict.fromkeys(("logs", "stderr"), "log"),
    **dict.fromkeys(("start", "reload", "reopen", "reconnect"), "restart"),
    **dict.fromkeys(("find",), "search"),
    **dict.fromkeys(("signin", "sign-in", "auth"), "login"),
    **dict.fromkeys(("ls", "status", "servers"), "list"),
}
_KINDS = ("npm", "pypi", "docker", "github")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_BEFORE_NAME = re.compile(r",(?=\s*[A-Za-z_][A-Za-z0-9_]*=)")
_BEFORE_HEADER = re.compile(r",(?=\s*[A-Za-z0-9-]+:)")


class McpOptions(Options):
    what: Annotated[str, Positional("|".join(WORDS))] = "list"
    name: Annotated[str | None, Positional("NAME, ID or PATH")] = None
    words: Annotated[tuple[str, ...], Rest("-- COMMAND")] = ()
    url: Annotated[
        str | None, Option(takes="URL"), Field(description="add: the address of a remote server")
    ] = None
    env: Annotated[
        str | None, Option(takes="NAME=VALUE,…"), Field(description="add: variables that its program gets")
    ] = None
    header: Annotated[
        str | None, Option(takes="NAME: VALUE,…"), Field(description="add: headers of each request")
    ] = None
    sandbox: Annotated[
        bool,
        Field(
            description="add: its program runs in a sandbox, with nothing but what --read and the like name"
        ),
    ] = False
    read: Annotated[
        str | None, Option(takes="PATH,…"), Field(description="add: what it may read in its sandbox")
    ] = None
    write: Annotated[
        str | None, Option(takes="PATH,…"), Field(description="add: what it may change in its sandbox")
    ] = None
    host: Annotated[
        str | None, Option(takes="HOST,…"), Field(description="add: what it may reach from its sandbox")
    ] = None
    scope: Annotated[
        Literal["user", "workspace"] | None,
        Field(description="whose file it stands in: yours, or the workspace's"),
    ] = None
    trust_hints: Annotated[
        bool, Field(description="add: believe the server which of its tools only read")
    ] = False
    paste: Annotated[
        bool, Field(description="login: paste the address that the browser comes to; for a kernel elsewhere")
    ] = False
    client_id: Annotated[
        str | None,
        Option(takes="ID"),
        Field(description="login: a client that you registered yourself; its secret is asked for"),
    ] = None
    take: Annotated[bool, Field(description="import: write what is shown without it")] = False


def run(context: Context, options: McpOptions) -> Table | Card:
    act = _ACTS.get(options.what)
    if act is None:
        raise _unknown(context.session, options)
    try:
        return act(context.session, options)
    except ActionError as error:
        raise ReynError(error.message, error.hint) from None


def _unknown(session: Session, options: McpOptions) -> ReynError:
    word = options.what
    rest = [each for each in (options.name, *options.words) if each]
    if word in {str(row["server"]) for row in session.mcp.rows}:
        return ReynError(f"{word} is a server; say what to do with it.", reyn_line("mcp log", word))
    if word in ("tools", "describe", "show"):
        return ReynError(
            "The tools of servers are actions like any other.",
            reyn_line("list", "mcp", filter=options.name or "WORD"),
        )
    meant = _MEANT.get(word) or next(iter(nearest_names(word, WORDS, 1)), None)
    return ReynError(
        f"{word!r} is not one of {', '.join(WORDS)}.",
        f"Did you mean {reyn_line(f'mcp {meant}', *rest)}?" if meant else "",
    )


def _list(session: Session, options: McpOptions) -> Table:
    return session.mcp


def _add(session: Session, options: McpOptions) -> Table:
    name = _named(options, "%reyn mcp add time -- uvx mcp-server-time")
    if _ADDRESS.fullmatch(name):
        raise ReynError(
            "A server has a name of its own beside its address.", reyn_line("mcp add", "NAME", url=name)
        )
    if options.url is None and len(options.words) == 1 and _ADDRESS.fullmatch(options.words[0]):
        options = options.model_copy(update={"url": options.words[0], "words": ()})
    if bool(options.words) == (options.url is not None):
        raise ReynError(
            "Say what the server is: either a command after --, or --url.",
            f"{reyn_line('mcp add', name)} -- uvx mcp-server-time",
        )
    entry: dict[str, Any]
    if options.url is not None:
        entry = {"type": "http", "url": options.url, "headers": _pairs(options.header, _BEFORE_HEADER, ":")}
        values = entry["headers"]
    else:
        values = _pairs(options.env, _BEFORE_NAME, "=")
        command = options.words[0]
        if "/" in command and options.scope != "workspace":  # the entry holds in every workspace
            command = str(Path(command).expanduser().absolute())
        entry = {"command": command, "args": list(options.words[1:]), "env": values}
    secret = next((each for each, value in values.items() if is_literal_secret(each, value)), None)
    if secret is not None:
        raise ReynError(
            f"{secret} is named like a secret, and a line of a notebook is saved.",
            f"Add the server without it, then: {reyn_line('mcp secret', name, secret.replace('-', '_'))}"
            if options.url is None
            else f'Write --header "{secret}: Bearer ${{input:API_KEY}}", '
            f"then: {reyn_line('mcp secret', name, 'API_KEY')}",
        )
    given = {
        key: [each.strip() for each in text.split(",") if each.strip()]
        for key, text in (("readable", options.read), ("writable", options.write), ("hosts", options.host))
        if text
    }
    if options.sandbox or given:
        if options.url is not None:
            raise ReynError("A remote server runs elsewhere, so no sandbox holds it.", "Leave --sandbox out.")
        entry["sandbox"] = given
    if options.trust_hints:
        entry["trustHints"] = True
    server_overview.file_store(session.parts).add(name, entry, options.scope or "user")
    return session.mcp


def _drop(session: Session, options: McpOptions) -> Table:
    server_overview.file_store(session.parts).drop(_named(options, "%reyn mcp drop time"), options.scope)
    return session.mcp


def _search(session: Session, options: McpOptions) -> Table:
    text = " ".join(each for each in (options.name, *options.words) if each)
    if not text:
        raise ReynError("Search for what?", "%reyn mcp search weather")
    result = session.invoke_action("mcp__search_registry", {"text": text})
    if not isinstance(result.payload, str):
        raise ReynError.of(result.payload)
    return server_overview.registry_table(text, result.value)


def _install(session: Session, options: McpOptions) -> Card:
    given = _named(options, "%reyn mcp install io.github.user/weather")
    kind, _, rest = given.partition(":")
    if kind in _KINDS and rest:
        at = rest.rfind("@", 1)  # a name of npm may begin with one
        version = {"version": rest[at + 1 :]} if at > 0 else {}
        name = "mcp__install_package"
        args = {"kind": kind, "identifier": rest[:at] if at > 0 else rest, **version}
    else:
        name, args = "mcp__install_registry", {"server_id": given}
    return server_overview.install(session.parts, session.aio, name, args)


def _log(session: Session, options: McpOptions) -> Card:
    return server_overview.server_log(session.parts, _named(options, "%reyn mcp log time"))


def _restart(session: Session, options: McpOptions) -> Table:
    server_overview.restart_server(session.parts, _named(options, "%reyn mcp restart time"))
    return session.mcp


def _secret(session: Session, options: McpOptions) -> Card:
    name = _named(options, "%reyn mcp secret git GITHUB_TOKEN")
    store = server_overview.file_store(session.parts)
    if len(options.words) > 1:
        raise ReynError(
            "A secret is not written into a line, which is saved.", "Leave it out: you are asked for it."
        )
    missing = store.missing_secrets(name)
    secret = options.words[0] if options.words else missing[0] if len(missing) == 1 else None
    if secret is None:
        known = f" It needs {', '.join(missing)}." if missing else ""
        raise ReynError(
            f"Which secret of {name}?{known}", reyn_line("mcp secret", name, (*missing, "API_KEY")[0])
        )
    if not store.scopes(name):
        raise ReynError(f"There is no server {name!r}{store.meant(name)}", "%reyn mcp lists them.")
    try:
        value = getpass.getpass(f"{secret} for the MCP server {name}: ")
    except (EOFError, StdinNotImplementedError):
        raise ReynError(
            "Nobody can be asked for the secret here.",
            f"Run this line in a notebook with a front end, or set {secret} in the environment of the kernel and refer "
            f"to it as ${{{secret}}}.",
        ) from None
    where = store.set_secret(name, secret, value)
    kept = "the keyring of this system" if where == "keyring" else "a file that only you can read"
    return Card("mcp", f"{secret} is kept for {name}", (("where", kept), ("handed to", f"{name} alone")))


def _login(session: Session, options: McpOptions) -> Card:
    name = _named(options, "%reyn mcp login docs")
    client: dict[str, str] | None = None
    if options.client_id is not None:
        client = {"client_id": options.client_id}
        if not options.client_id.startswith("https://") and (
            secret := _hidden(f"Secret of the client {options.client_id} (empty: it has none): ")
        ):
            session.parts.redactor.learn("client secret", secret)
            client["client_secret"] = secret
    return sign_ins.sign_in(session.parts, name, paste=options.paste, client=client)


def _logout(session: Session, options: McpOptions) -> Card:
    return sign_ins.sign_out(session.parts, _named(options, "%reyn mcp logout docs"))


def _hidden(prompt: str) -> str:
    try:
        return getpass.getpass(prompt).strip()
    except (EOFError, StdinNotImplementedError):
        raise ReynError(
            "Nobody can be asked here.", "Run this line in a notebook with a front end."
        ) from None


def _import(session: Session, options: McpOptions) -> Table:
    if not options.take:
        if options.words:
            raise ReynError(
                f"Nothing takes {options.words[0]!r} here.", "Say --take to take servers by name."
            )
        return server_overview.import_table(session.parts, options.name)
    path = options.name
    server_overview.take_servers(session.parts, path, options.words)
    return session.mcp


_ACTS: dict[str, Callable[[Session, McpOptions], Table | Card]] = {
    "list": _list,
    "add": _add,
    "search": _search,
    "install": _install,
    "drop": _drop,
    "log": _log,
    "restart": _restart,
    "secret": _secret,
    "login": _login,
    "logout": _logout,
    "import": _import,
}


def _named(options: McpOptions, example: str) -> str:
    if options.name is None:
        raise ReynError(f"{options.what.capitalize()} which server?", example)
    return options.name


def _pairs(text: str | None, between: re.Pattern[str], sign: str) -> dict[str, str]:
    pairs = {}
    for each in between.split(text) if text else ():
        name, found, value = each.partition(sign)
        if not found:
            raise ReynError(f"{each!r} has no {sign!r}.", f"Write NAME{sign}VALUE.")
        pairs[name.strip()] = value.strip() if sign == ":" else value
    return pairs


def _complete(session: Session, before: list[str], word: str) -> list[str]:
    if not before:
        return list(WORDS[1:])
    store = session.parts.mcp_store
    if len(before) == 1 and before[0] in ("drop", "log", "restart", "secret", "login", "logout"):
        return [str(row["server"]) for row in session.mcp.rows]
    if len(before) == 2 and before[0] == "secret" and store is not None:
        return list(store.missing_secrets(before[1]))
    return []


VERB = Verb(
    "mcp",
    "the MCP servers: how each fares, add, search, install, drop, log, restart, secret, login, import",
    run,
    McpOptions,
    (
        "%reyn mcp",
        "%reyn mcp add time -- uvx mcp-server-time",
        "%reyn mcp add files --sandbox --read data -- mcp-server-filesystem data",
        "%reyn mcp add docs --url https://mcp.example.org/mcp",
        "%reyn mcp secret git GITHUB_TOKEN",
        "%reyn mcp login docs",
        "%reyn mcp search weather",
        "%reyn mcp install io.github.user/weather",
        "%reyn mcp install npm:@modelcontextprotocol/server-everything",
        "%reyn mcp import",
        "%reyn mcp log time",
        "%reyn mcp restart time",
    ),
    completes=_complete,
    group="set up",
)
