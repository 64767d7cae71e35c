"""The MCP servers of a session: the person's own file, and the workspace's ``.mcp.json`` once it is trusted.

Invariants: no server of a workspace may be started before the person trusted the very bytes of its file, and none of
them takes the place of one of the person's. A broken file or entry is named and hides no other server. A secret is
looked up for the one server that refers to it, and is known to the redactor before anybody has it. As long as nothing
moved, the same objects are given, so that a client sees a changed server by comparing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.mcp_servers.secret_store import FILE as SECRETS
from reyn_jupyter.backends.mcp_servers.secret_store import SecretTooShortError, ServerSecrets
from reyn_jupyter.backends.mcp_servers.server_entry import (
    PLACES,
    EntryError,
    EntryReference,
    ServerEntry,
    check_secret_name,
    is_literal_secret,
    read_entry,
    replace_references,
    stored_reference,
)
from reyn_jupyter.backends.mcp_servers.server_file import (
    ServerDocument,
    ServerFileError,
    name_shown,
    read_servers,
    with_entry,
    without_entry,
    write_file,
)
from reyn_jupyter.backends.mcp_servers.sign_in_store import ServerSignIn
from reyn_jupyter.backends.mcp_servers.workspace_code import code_of_workspace, relative_path_problem
from reyn_jupyter.config import PROJECT_FILE, user_path
from reyn_jupyter.guard.state_folder import StateError, StateFolder
from reyn_jupyter.guard.trust import FILE as TRUSTED
from reyn_jupyter.guard.trust import SERVERS_FILE as WORKSPACE_FILE
from reyn_jupyter.guard.trust import Trust
from reyn_jupyter.runtime.access.mcp_access import McpServer
from reyn_jupyter.runtime.access.mcp_admin import DroppedServer, McpScope
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.files.locks import open_lock_file, release, wait_for_lock
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.support.secret_names import secret_variable
from reyn_jupyter.support.text import enumerate_words, meant_clause

if TYPE_CHECKING:
    from reyn_jupyter.support.secrets import Redactor

USER_FILE = "mcp.json"
SCOPES: tuple[McpScope, ...] = ("user", "workspace")
UNTRUSTED = f"{WORKSPACE_FILE} is not trusted: %reyn trust shows what it would run, and asks."
_SHADOWED = "A server of your own has this name, and goes before."


@dataclass(frozen=True)
class StoredServer:
    """A server in one of the files.

    Attributes:
        entry: what the file says.
        scope: "user" (the person's file) or "workspace".
        blocked: why it may not be started, a sentence; None where it may.
        needs: the names of secrets and variables that it refers to and that are not there.
    """

    entry: ServerEntry
    scope: McpScope
    blocked: str | None = None
    needs: tuple[str, ...] = ()


class McpServerStore:
    """Reads and changes both files; a source of servers for a client, see `McpServerSource`, and `McpAdmin`.

    Args:
        root: the workspace.
        trust: of the workspace.
        redactor: learns each secret that an entry holds or refers to.
        environ: the environment, for references to variables.
        user_folder: in place of the folder of the user's configuration.
        state: of the workspace, for secrets.
        forget: forgets what was allowed to a server of a name, before another one may have it.
    """

    def __init__(
        self,
        root: Path,
        trust: Trust,
        redactor: Redactor,
        environ: Mapping[str, str],
        *,
        state: StateFolder,
        user_folder: Path | None = None,
        forget: Callable[[str], None] = lambda name: None,
    ) -> None:
        self.root = root
        self._trust = trust
        self._redactor = redactor
        self._forget = forget
        self._environ = environ
        folder = user_path().parent if user_folder is None else user_folder
        self._paths: Mapping[McpScope, Path] = {
            "user": folder / USER_FILE,
            "workspace": root / WORKSPACE_FILE,
        }
        self._sources: Mapping[McpScope, str] = {
            "user": str(self._paths["user"]),
            "workspace": WORKSPACE_FILE,
        }
        user_state = StateFolder(folder)
        self._folders: Mapping[McpScope, StateFolder] = {"user": user_state, "workspace": state}
        self._secrets: Mapping[McpScope, ServerSecrets] = {
            scope: ServerSecrets(each, redactor.learn) for scope, each in self._folders.items()
        }
        self._lock = threading.RLock()
        self._listeners: list[Callable[[], None]] = []
        self._key: Hashable = None
        self._stored: tuple[StoredServer, ...] = ()
        self._servers: Mapping[str, McpServer] = MappingProxyType({})
        self.problems: tuple[str, ...] = ()

    # A source of servers

    def servers(self) -> Mapping[str, McpServer]:
        """Return the servers now, by name; see `McpServerSource`."""
        with self._lock:
            moved = self._refresh()
            servers = self._servers
        if moved:
            self._tell()
        return servers

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a listener whenever the servers moved; return what ends that."""
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock, suppress(ValueError):
                self._listeners.remove(listener)

        return end

    def stored(self) -> tuple[StoredServer, ...]:
        """Return every server of both files, those that may not be started too; the person's own first."""
        self.servers()
        return self._stored

    def held_back(self) -> tuple[StoredServer, ...]:
        """Return the servers that wait for the person's trust in the workspace."""
        return tuple(each for each in self.stored() if each.blocked == UNTRUSTED)

    def problems_now(self) -> tuple[str, ...]:
        """Return what cannot be used in the files as they are now, a sentence each."""
        self.servers()
        return self.problems

    # Changes; whoever makes them has asked first

    def place(self, scope: McpScope) -> str:
        """Return the path of the file of a scope."""
        return str(self._paths[scope])

    def scopes(self, name: str) -> tuple[McpScope, ...]:
        """Return the scopes whose file has a server of this name, also one that cannot be used."""
        return tuple(scope for scope in SCOPES if name in self._names(scope))

    def add(self, name: str, entry: Mapping[str, Any], scope: McpScope = "user") -> str:
        """Write an entry; return the path of the file. A workspace's file that was trusted stays so.

        Raises:
            ActionError: the entry or the file cannot be used, or the name is taken.
        """
        try:
            checked = read_entry(name, dict(entry))
        except EntryError as error:
            raise ActionError(f"{name_shown(name)}: {error}.", code="server_refused") from None
        if scope == "user" and (problem := self._relative_path_problem(checked)) is not None:
            raise ActionError(f"{name_shown(name)}: {problem}.", code="server_refused")
        taken = self.scopes(name)
        if taken:
            raise ActionError(
                f"There is a server {name} already, in {self.place(taken[0])}.",
                f"Take another name, or drop it first: {reyn_line('mcp drop', name)}",
                code="server_exists",
            )
        self._forget_approvals(name)
        self._change(scope, lambda before: with_entry(before, self._sources[scope], checked))
        return self.place(scope)

    def drop(self, name: str, scope: McpScope | None = None) -> DroppedServer:
        """Take a server out of its file and forget its secrets; of two, the person's own goes first.

        Raises:
            ActionError: there is none of this name, or the file cannot be changed.
        """
        there = self.scopes(name)
        if not there or (scope is not None and scope not in there):
            known = enumerate_words(sorted({name_shown(each) for each in self._all_names()})) or "none"
            raise ActionError(
                f"There is no server {name_shown(name)}{f' in the {scope} file.' if scope else self.meant(name)}",
                f"There are: {known}.",
                code="server_unknown",
            )
        chosen: McpScope = there[0] if scope is None else scope
        self._forget_approvals(name)
        self._change(chosen, lambda before: without_entry(before, self._sources[chosen], name))
        try:
            forgotten = self._secrets[chosen].forget(name)
            self._sign_in_at(chosen, name, "").forget()
        except StateError as error:
            raise ActionError(f"The secrets of {name} could not be forgotten: {error}.") from None
        self.servers()
        return DroppedServer(name, chosen, self.place(chosen), forgotten)

    def meant(self, name: str) -> str:
        """Return the end of a sentence that offers the server with the nearest name, or only the period."""
        return meant_clause(name, [each.entry.name for each in self.stored()]) or "."

    def set_secret(self, name: str, secret: str, value: str) -> str:
        """Keep a secret for a server, and refer to it in its entry where nothing does; return where it is kept.

        Raises:
            ActionError: there is no such server, the name is none, or the value cannot be kept.
        """
        stored = next(
            (each for each in self.stored() if each.entry.name == name and each.blocked != _SHADOWED), None
        )
        if stored is None:
            raise ActionError(
                f"There is no server {name_shown(name)}{self.meant(name)}",
                "%reyn mcp lists them.",
                code="server_unknown",
            )
        entry, scope = stored.entry, stored.scope
        refers = EntryReference("stored", secret) in entry.references
        try:
            check_secret_name(secret)
            if not refers and entry.transport == "http":
                raise EntryError(
                    f"{name} has no header that takes {secret}; write one into {self.place(scope)}: "
                    f'"headers": {{"Authorization": "Bearer {stored_reference(secret)}"}}'
                )
            where = self._secrets[scope].set(name, secret, value)
            if not refers:
                read_entry(name, {**entry.plain, "env": {secret: ""}})  # it becomes the name of a variable
                known = replace(entry, env={**entry.env, secret: stored_reference(secret)})
                self._change(
                    scope, lambda before: with_entry(before, self._sources[scope], known, replace=True)
                )
        except (EntryError, SecretTooShortError, StateError) as error:
            raise ActionError(f"{error}".rstrip(".") + ".", code="secret_refused") from None
        self.servers()
        return where

    def sign_in(self, server: McpServer) -> ServerSignIn:
        """Return the place of a server's sign-in: with the person's own servers, or with those of the workspace."""
        with self._lock:
            mine = any(each.entry.name == server.name and each.scope == "user" for each in self._stored)
        return self._sign_in_at("user" if mine else "workspace", server.name, server.url)

    def _sign_in_at(self, scope: McpScope, name: str, url: str) -> ServerSignIn:
        return ServerSignIn(self._folders[scope], self._redactor.learn, name, url)

    def missing_secrets(self, name: str) -> tuple[str, ...]:
        """Return the secrets and variables that a server refers to and that are not there."""
        return next((each.needs for each in self.stored() if each.entry.name == name), ())

    def trust_workspace(self, content: bytes) -> None:
        """Trust the workspace's file with exactly these bytes. Raises StateError."""
        self._trust.trust(content, WORKSPACE_FILE)
        self.servers()

    def workspace_document(self) -> ServerDocument:
        """Return what the workspace's file says, trusted or not. Raises ServerFileError."""
        return read_servers(self._paths["workspace"], WORKSPACE_FILE)

    def _forget_approvals(self, name: str) -> None:
        try:
            self._forget(name)
        except StateError as error:
            raise ActionError(f"What was allowed to {name} could not be forgotten: {error}.") from None

    def _names(self, scope: McpScope) -> tuple[str, ...]:
        try:
            found = read_servers(self._paths[scope], self._sources[scope]).values.get("mcpServers")
        except ServerFileError:
            return ()
        return tuple(found) if isinstance(found, dict) else ()

    def _all_names(self) -> tuple[str, ...]:
        return tuple(name for scope in SCOPES for name in self._names(scope))

    def _change(self, scope: McpScope, change: Callable[[ServerDocument], bytes]) -> None:
        """Replace a file, alone; trust in what was there is carried over to what is there then. Raises ActionError."""
        path, folder = self._paths[scope], self._folders[scope].path
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = open_lock_file(folder / ".mcp-lock")
        except OSError as error:
            raise ActionError(f"{folder} cannot be written: {error.strerror}.") from None
        try:
            wait_for_lock(descriptor)
            before = read_servers(path, self._sources[scope])
            after = change(before)
            write_file(path, after)
            if scope == "workspace" and before.content is None:
                self._trust.trust(after, WORKSPACE_FILE)  # ours, from the first byte on
            elif scope == "workspace" and before.content is not None:
                self._trust.retrust(before.content, after, WORKSPACE_FILE)
        except (ServerFileError, StateError) as error:
            raise ActionError(f"{error}".rstrip(".") + ".", code="server_file") from None
        finally:
            release(descriptor)
        self.servers()

    # What the files say now

    def _refresh(self) -> bool:
        """Read what moved; return whether the servers did."""
        key = (
            tuple(_stamp(path) for path in (*self._paths.values(), self.root / PROJECT_FILE)),
            tuple(folder.stamp(name) for folder in self._folders.values() for name in (TRUSTED, SECRETS)),
            tuple(self._environ.get(name) for name in self._variables()),
        )
        if key == self._key:
            return False
        first = self._key is None
        documents, self.problems = self._documents()
        self._stored, self._servers = self._built(documents)
        # A variable that is referred to only now stands in no key yet: the next look builds once more.
        self._key = (*key[:2], tuple(self._environ.get(name) for name in self._variables()))
        return not first

    def _documents(self) -> tuple[Mapping[McpScope, ServerDocument], tuple[str, ...]]:
        documents: dict[McpScope, ServerDocument] = {}
        problems: list[str] = []
        for scope in SCOPES:
            try:
                documents[scope] = read_servers(self._paths[scope], self._sources[scope])
            except ServerFileError as error:
                documents[scope] = ServerDocument()
                problems.append(str(error))
            problems += documents[scope].problems
        return documents, tuple(problems)

    def _built(
        self, documents: Mapping[McpScope, ServerDocument]
    ) -> tuple[tuple[StoredServer, ...], Mapping[str, McpServer]]:
        stored: list[StoredServer] = []
        servers: dict[str, McpServer] = {}
        for scope, document in documents.items():
            trusted = scope == "user" or (
                document.content is not None and self._trust.is_trusted(document.content, WORKSPACE_FILE)
            )
            for entry in document.entries.values():
                if entry.name in servers:
                    stored.append(StoredServer(entry, scope, _SHADOWED))
                    continue
                if not trusted:
                    stored.append(StoredServer(entry, scope, UNTRUSTED))
                    servers[entry.name] = self._server(entry, scope, {}, UNTRUSTED)
                    continue
                found, needs = self._looked_up(entry, scope)
                blocked = _blocked(entry, needs) or (self._refusal(entry) if scope == "user" else None)
                stored.append(StoredServer(entry, scope, blocked, needs))
                servers[entry.name] = self._server(entry, scope, {} if blocked else found, blocked)
        return tuple(stored), MappingProxyType(servers)

    def _refusal(self, entry: ServerEntry) -> str | None:
        """Return why a server of the user's own file may not start in this workspace, as a sentence, or None."""
        problem = self._relative_path_problem(entry)
        if problem is not None:
            return f"{problem[:1].upper()}{problem[1:]}."
        code = code_of_workspace(entry)
        if code is None or self._trust.is_folder_trusted():
            return None
        return (
            f"It runs what lies in the workspace ({code}), which is not trusted: %reyn trust, or write the entry into "
            f"the workspace's own file ({reyn_line('mcp add', entry.name, scope='workspace')} -- …)."
        )

    def _relative_path_problem(self, entry: ServerEntry) -> str | None:
        cwd = None if entry.cwd is None else Path(self._with_places(entry.cwd))
        args = [self._with_places(each) for each in entry.args]
        return relative_path_problem(self._with_places(entry.command), args, cwd)

    def _looked_up(
        self, entry: ServerEntry, scope: McpScope
    ) -> tuple[dict[EntryReference, str], tuple[str, ...]]:
        """Return the values of an entry's references, and the names of those that are not there."""
        found: dict[EntryReference, str] = {}
        needs: list[str] = []
        for reference in entry.references:
            value = self._value(reference, entry.name, scope)
            if value is None:
                needs.append(reference.name)
            else:
                found[reference] = value
        return found, tuple(needs)

    def _value(self, reference: EntryReference, server: str, scope: McpScope) -> str | None:
        match reference.kind:
            case "place":
                return self._folder(reference.name)
            case "stored":
                secret = self._secrets[scope].get(server, reference.name)
                return None if secret is None else secret.reveal()
            case "environment":
                return self._environ.get(reference.name) or reference.default

    def _folder(self, place: str) -> str:
        return str(self.root) if place == "workspaceFolder" else os.path.expanduser("~")  # noqa: PTH111 - as text

    def _with_places(self, text: str) -> str:
        """Return a word of an entry with its folders written out."""
        return replace_references(
            text, {EntryReference("place", name): self._folder(name) for name in PLACES}
        )

    def _server(
        self, entry: ServerEntry, scope: McpScope, found: Mapping[EntryReference, str], blocked: str | None
    ) -> McpServer:
        word = self._with_places
        values: Mapping[str, str | Secret] = (
            {}
            if blocked
            else {name: self._handed(entry, name, text, found) for name, text in entry.values.items()}
        )
        program = entry.transport == "stdio"
        cwd = None if entry.cwd is None else Path(word(entry.cwd))
        if program and scope == "workspace":  # its file was trusted for this folder
            cwd = self.root / (cwd or "")
        return McpServer(
            entry.name,
            entry.transport,
            command=word(entry.command),
            args=tuple(map(word, entry.args)),
            env=values if program else {},
            cwd=cwd,
            url=entry.url,
            headers={} if program else values,
            # A workspace may not say that its own servers are to be believed.
            trusted_hints=entry.trusts_hints and scope == "user",
            blocked=blocked,
            sandbox=None
            if entry.sandbox is None
            else replace(
                entry.sandbox,
                readable=tuple(map(word, entry.sandbox.readable)),
                writable=tuple(map(word, entry.sandbox.writable)),
            ),
        )

    def _handed(
        self, entry: ServerEntry, name: str, text: str, found: Mapping[EntryReference, str]
    ) -> str | Secret:
        """Return a value as the server gets it: a secret where it holds one."""
        value = replace_references(text, found)
        secret = is_literal_secret(name, text) or any(
            reference.kind == "stored" or (reference.kind == "environment" and _is_secret(name, reference))
            for reference in entry.references
            if reference.name in text
        )
        if not secret:
            return value
        self._redactor.learn(name, value)
        return Secret(name, value)

    def _variables(self) -> tuple[str, ...]:
        """Return the variables of the environment that servers which may be looked up refer to."""
        return tuple(
            sorted(
                {
                    reference.name
                    for each in self._stored
                    if each.blocked not in (UNTRUSTED, _SHADOWED)
                    for reference in each.entry.references
                    if reference.kind == "environment"
                }
            )
        )

    def _tell(self) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener()


def _is_secret(name: str, reference: EntryReference) -> bool:
    return secret_variable(name) or secret_variable(reference.name)


def _blocked(entry: ServerEntry, needs: tuple[str, ...]) -> str | None:
    if entry.disabled:
        return 'It is switched off: its entry says "disabled".'
    if not needs:
        return None
    stored = {each.name for each in entry.references if each.kind == "stored"}
    first = next((name for name in needs if name in stored), None)
    if first is None:
        return f"It needs {enumerate_words(needs)} in the environment of the kernel: %env {needs[0]}=…"
    return f"It needs {enumerate_words(needs)}: {reyn_line('mcp secret', entry.name, first)}"


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
