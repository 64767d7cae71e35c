"""The services that a category may use, built once by `Session` and handed to every category file.

A frozen dataclass of small faces: no globals, no service locator. What would point up the house (asking the
person, a peer's router, invoking another action) is a callable here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from reyn_jupyter.catalog.action import Effect
from reyn_jupyter.catalog.discovery.search_results import SEARCH_LIMIT, Found
from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.config import Settings
from reyn_jupyter.guard.workspace import FileDecision, Workspace
from reyn_jupyter.models.call_log import ModelCallLog
from reyn_jupyter.outputs.content import BlobStore
from reyn_jupyter.runtime.access.mcp_access import McpAccess, NoMcpServers
from reyn_jupyter.runtime.access.mcp_admin import McpAdmin, NoMcpAdmin
from reyn_jupyter.runtime.access.peer_access import NoPeers, PeerAccess
from reyn_jupyter.runtime.access.progress_report import ProgressReport
from reyn_jupyter.runtime.access.python_switch import PythonSwitch
from reyn_jupyter.runtime.access.reversals import Reversal, Reversals
from reyn_jupyter.runtime.access.session_access import (
    EmbedderAccess,
    HistoryAccess,
    ModelAccess,
    NoAccess,
    NotebookAccess,
    SecretAccess,
    TrustAccess,
)
from reyn_jupyter.runtime.access.session_tasks import SessionTasks
from reyn_jupyter.runtime.action_error import PermissionDeniedError
from reyn_jupyter.support.programs.child_process import ChildProcesses
from reyn_jupyter.support.programs.owned_program import OwnedPrograms
from reyn_jupyter.support.secrets import Redactor
from reyn_jupyter.support.text import split_advice

T = TypeVar("T")
InnerActor = Literal["peer", "workflow"]
Actor = Literal["model", "person", InnerActor]
VariablesPolicy = Literal["off", "schema", "head"]


class MainThread(Protocol):
    """Runs a function on the notebook's main thread and waits for it without blocking the engine."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]: ...


class Spawn(Protocol):
    """Begins a task that outlives the call, see `SessionTasks.spawn`."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], name: str, /) -> asyncio.Task[T]: ...


def _nobody_looks(category_name: str) -> None:
    """Ignore a push: no front end looks."""


def _no_use(action: str) -> None:
    """Know of no use: nobody counts."""


def _no_catalog() -> CatalogSnapshot | None:
    """Have no catalog: there is no session."""
    return None


class ActionSearch(Protocol):
    """Finds actions by what they do."""

    @property
    def offered(self) -> bool:
        """Return whether models may search: a matter of settings and of what is installed or built, never of speed."""

    @property
    def hint(self) -> dict[str, str] | None:
        """Return the reason why models may not search, for a listing; None when they may."""

    async def ready(self, snapshot: CatalogSnapshot) -> None:
        """Wait, within bounds, until a search of this snapshot ranks by meaning."""

    async def find(
        self,
        snapshot: CatalogSnapshot,
        query: str,
        limit: int = SEARCH_LIMIT,
        categories: Collection[str] | None = None,
        *,
        by_words: bool = False,
    ) -> Found: ...


@dataclass(frozen=True)
class Services:
    """Everything a category file may reach.

    Attributes:
        root: the resolved workspace folder.
        workspace: paths inside the root, and nothing else.
        namespace: the notebook's variables (the live mapping; read only).
        functions: the registered functions by name (`@reyn.action` and `@session.action`).
        settings: the effective settings now.
        blobs: the blob store, or None when the session keeps none.
        redactor: takes secrets out of text at the borders.
        main_thread: runs a callable on the notebook's main thread.
        search: finds actions by what they do; None where nothing does.
        spawn: begins a long-lived task of the session: it keeps nothing of the turn, and ends with the session.
        changed: says that the entries of a category moved; front ends and the next model request see it. From any
            thread, by the category's name.
        programs: starts programs, which end with the session, or with a kernel that was killed.
        children: the processes that work for this session (SQL's); they end with it.
        secrets: gives named values for headers and programs, with consent.
        models: asks the language model of the session; a call's use of it counts in its turn.
        embedder: embeds texts as the session's search does.
        runs: the runs of the workspace, to be read, without secrets.
        trust: whether the person trusts the workspace.
        mcp: the MCP servers of the session.
        mcp_admin: the files that name them.
        notebook: the cells of the person's notebook, to be read, and proposals of new ones.
        peers: asks other agents, for the call under way.
        python: whether Python may run in the kernel; off unless the person switched it on.
        reversals: what takes back what calls did to the notebook.
        call_log: shows each call of a language model where the person asked for that; None where nobody looks.
        own_folder: where the person's own files about this workspace lie, outside of it, so that nothing that was
            cloned is among them; None where nothing is kept.
        catalog: the catalog as it was last read; None where a category is used without a session.
        last_use: when an action of this name last worked, in seconds since the epoch; None where no use is known.
    """

    root: Path
    workspace: Workspace
    namespace: Callable[[], Mapping[str, Any]]
    functions: Callable[[], Mapping[str, Any]]
    settings: Callable[[], Settings]
    blobs: BlobStore | None
    redactor: Redactor
    main_thread: MainThread
    search: ActionSearch | None = None
    spawn: Spawn = field(default_factory=lambda: SessionTasks().spawn)
    changed: Callable[[str], None] = _nobody_looks
    programs: OwnedPrograms = field(default_factory=OwnedPrograms)
    children: ChildProcesses = field(default_factory=ChildProcesses)
    secrets: SecretAccess = field(default_factory=NoAccess)
    models: ModelAccess = field(default_factory=NoAccess)
    embedder: EmbedderAccess = field(default_factory=NoAccess)
    runs: HistoryAccess = field(default_factory=NoAccess)
    trust: TrustAccess = field(default_factory=NoAccess)
    mcp: McpAccess = field(default_factory=NoMcpServers)
    mcp_admin: McpAdmin = field(default_factory=NoMcpAdmin)
    notebook: NotebookAccess = field(default_factory=NoAccess)
    peers: PeerAccess = field(default_factory=NoPeers)
    python: PythonSwitch = field(default_factory=PythonSwitch)
    reversals: Reversals = field(default_factory=Reversals)
    catalog: Callable[[], CatalogSnapshot | None] = _no_catalog
    last_use: Callable[[str], float | None] = _no_use
    own_folder: Path | None = None
    call_log: ModelCallLog | None = None


@dataclass(frozen=True)
class FileChange:
    """One change of a workspace file. `previous_blob` is None when the file did not exist before;
    `sha256` is that of the new content, None when the file was deleted; `mode` the permission bits before."""

    path: str
    previous_blob: str | None
    sha256: str | None
    mode: int | None = None


@dataclass(frozen=True)
class Source:
    """Something of the person's whose content a result carries.

    Attributes:
        kind: "variable", "file" or "blob".
        rows: how many a table has, where that is known.
    """

    kind: str
    name: str
    rows: int | None = None

    @property
    def recorded(self) -> dict[str, Any]:
        """Return it as the run log keeps it."""
        known = {} if self.rows is None else {"rows": self.rows}
        return {"kind": self.kind, "name": self.name, **known}


class MidCallConsent(Protocol):
    """Asks for what a call turns out to need once it runs: another host, a server's tool, a further file."""

    async def __call__(self, *effects: Effect, reason: str = "") -> None: ...


def _unreported(
    message: str = "", done: float | None = None, total: float | None = None, partial: object = None
) -> None:
    """Ignore a report: nobody looks, and no run is recorded."""


def _readable(path: str) -> bool:
    """Allow every file: no rules are in force."""
    return True


def _unheard(change: FileChange) -> None:
    """Ignore a file change: no run is recorded that could name it."""


class WhoseFile(Protocol):
    """Says why files, or some below folders, may not be the person's own; many are asked about in one question."""

    def __call__(self, *paths: str, folder: bool = False) -> str | None:
        """Return it in a few words for the first that may not be; None where all are the person's own."""


def _own(*paths: str, folder: bool = False) -> None:
    """Say of no file that it may be a stranger's: no run has settings that name some."""


def _unmarked(origin: str) -> None:
    """Ignore where a text came from: no run is recorded that could say so."""


def _unadvised(advice: str) -> None:
    """Drop what a person could do: no run is recorded that could tell it."""


def _unkept(reversal: Reversal) -> None:
    """Keep nothing: no run is recorded that could be undone."""


async def _denied(*effects: Effect, reason: str = "") -> None:
    """Deny every further effect: there is no run whose rules could allow one."""
    raise PermissionDeniedError("Denied: the call belongs to no run.", "Call the action through a session.")


class Invoke(Protocol):
    """Calls another action from within a call."""

    async def __call__(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, actor: InnerActor = "workflow"
    ) -> Any: ...


async def _uncalled(
    name: str, arguments: Mapping[str, Any] | None = None, *, actor: InnerActor = "workflow"
) -> Any:
    """Call nothing: there is no run that the call could be part of."""
    raise PermissionDeniedError("Denied: the call belongs to no run.", "Call the action through a session.")


class JudgeAgain(Protocol):
    """Says what the rules of now say of an earlier call of an action, whose result is still there."""

    async def __call__(
        self, name: str, arguments: Mapping[str, Any], *, effects: Collection[Effect] = ()
    ) -> FileDecision: ...


async def _unjudged(
    name: str, arguments: Mapping[str, Any], *, effects: Collection[Effect] = ()
) -> FileDecision:
    """Deny every earlier result: there is no run whose rules could allow one."""
    return "deny"


class EffectsOf(Protocol):
    """Returns the effects that a call of an action would have, or None if they cannot be known."""

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> tuple[Effect, ...] | None: ...


async def _unknown_effects(name: str, arguments: Mapping[str, Any]) -> tuple[Effect, ...] | None:
    """Return None: There is no run whose actions could be called."""
    return None


@dataclass(frozen=True)
class ToolContext:
    """One call's surroundings, the second argument of every handler.

    Attributes:
        services: what the category was built with.
        name: the resolved action.
        actor: who calls.
        run_id: the run that the call belongs to.
        variables: how much of a variable may be shown to this actor ("head" for the person).
        changed: report a file change (for the run log and for undo); call it as soon as the change is made.
        used: report whose content the result carries (for the card's "sent").
        changing: announce a file change that is about to be made, its previous content kept, so that it can be
            undone even when the process dies before `changed`.
        file_verdict: the rules' word on a file that the call opens, by its path; None where no rule has a say.
        may_read: whether the caller may read a file without a question, whatever this call is about.
        ask: wait for consent to further effects, which `effects` could not name before the call ran. The rules, the
            question and the record are those of a call; `reason` says in a sentence what they are for, and is shown
            with the question. Raises PermissionDeniedError, which a handler may catch.
        report: say how far the call is, as often as it suits and from any thread: a sentence, and `done` of `total` in
            whatever is counted. `partial` is the result so far: where the call is interrupted, takes too long or fails,
            the last one is kept as its result, and marked as partial. What is left out stays as it was said before.
        plan: what the tool planned for this call before its effects were asked; None where it plans nothing.
        came_from: report where a stranger's text in the result, or in its error, comes from (a URL, a server's name);
            for tools with `untrusted_output`, which are named by their action otherwise.
        advise: tell the person what to do about the result, a line to type or a program to install; no model reads it.
        quotes: say whether the caller's own words hold such a line, so that one in the result may be theirs.
        origins: give where texts of others came from that the model has read in this conversation.
        whose: say why a file of the workspace may not be the person's own, in a few words; None where it is. Of many,
            the first that may not be. With ``folder=True`` the files below a folder count.
        reversible: keep the way back from what the call did to the notebook, for `%reyn undo`.
        invoke: call another action by its qualified name and wait for its value, as Python has it. The call asks for
            itself, stands in an inner run under this one, and ends with it. A failure raises an ActionError with the
            action's own words and code, a denial PermissionDeniedError; a handler may catch both.
        judge_again: say whether what an earlier call of another action gave may be given again, by the rules of now;
            nothing runs and nobody is asked. "ask" where the call only reads, and needs consent by now. `effects` are
            those that the call has besides what its action names before it runs.
        effects_of: Return the effects that a call of another action would have, or None if they cannot be known;
            nothing runs.
    """

    services: Services
    name: ActionName
    actor: Actor
    run_id: str
    variables: VariablesPolicy
    changed: Callable[[FileChange], None]
    used: Callable[[Source], None]
    changing: Callable[[FileChange], None] = _unheard
    file_verdict: Callable[[str], FileDecision] | None = None
    may_read: Callable[[str], bool] = _readable
    ask: MidCallConsent = _denied
    report: ProgressReport = _unreported
    invoke: Invoke = _uncalled
    judge_again: JudgeAgain = _unjudged
    effects_of: EffectsOf = _unknown_effects
    came_from: Callable[[str], None] = _unmarked
    advise: Callable[[str], None] = _unadvised
    quotes: Callable[[], bool] = bool
    origins: Callable[[], tuple[str, ...]] = tuple
    whose: WhoseFile = _own
    reversible: Callable[[Reversal], None] = _unkept
    plan: Any = None

    def without_advice(self, said: str) -> str:
        """Return words of ours as the result holds them: for a model without what a person types, which `advise` gets.

        >>> context.without_advice("Nothing embeds here; %reyn embeddings says more.")      # doctest: +SKIP
        'Nothing embeds here.'
        """
        if self.actor == "person":
            return said
        told, typed = split_advice(said)
        if not typed or self.quotes():
            return said
        self.advise(typed)
        return told

    @cached_property
    def workspace(self) -> Workspace:
        """The workspace as this call may see it: handlers open files here, and nowhere else."""
        workspace = self.services.workspace
        return workspace if self.file_verdict is None else workspace.judged(self.file_verdict)
