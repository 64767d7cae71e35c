"""The services that a category may use, built once by `Session` and handed to every category file.

A frozen dataclass of small faces: no globals, no service locator. What would point up the house (asking the
person, a peer's router, invoking another action) is a callable here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
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


class ToolContext(Protocol):
    """The context of one call: the second argument of every handler.

    Attributes:
        services: what the category was built with.
        name: the resolved action.
        actor: who calls.
        run_id: the run that the call belongs to.
        variables: how much of a variable may be shown to this actor ("head" for the person).
        plan: what the tool planned for this call before its effects were asked; None where it plans nothing.
        report: say how far the call is, as often as it suits and from any thread: a sentence, and `done` of `total` in
            whatever is counted. `partial` is the result so far: if the call is interrupted, takes too long or fails,
            the last one is kept as its result, and marked as partial. What is left out stays as it was said.
    """

    services: Services
    name: ActionName
    actor: Actor
    run_id: str
    variables: VariablesPolicy
    plan: Any
    report: ProgressReport

    @property
    def workspace(self) -> Workspace:
        """Return the workspace as this call may see it: handlers open files here, and nowhere else."""

    def changed(self, change: FileChange) -> None:
        """Report a file change, for the run log and for undo, as soon as it is made."""

    def changing(self, change: FileChange) -> None:
        """Announce a file change that is about to be made, its previous content kept.

        So it can be undone even when the process dies before `changed`.
        """

    def used(self, source: Source) -> None:
        """Report whose content the result carries, for the card's "sent"."""

    def may_read(self, path: str) -> bool:
        """Return whether the caller may read a file without a question, whatever this call is about."""

    async def ask(self, *effects: Effect, reason: str = "") -> None:
        """Wait for consent to further effects, which `effects` could not name before the call ran.

        The rules, the question and the record are those of a call.

        Args:
            reason: says in a sentence what they are for, and is shown with the question.

        Raises:
            PermissionDeniedError: they are denied; a handler may catch it.
        """

    def came_from(self, origin: str) -> None:
        """Report where a stranger's text in the result, or in its error, comes from (a URL, a server's name).

        It is for tools with `untrusted_output`, which are named by their action otherwise.
        """

    def advise(self, advice: str) -> None:
        """Tell the person what to do about the result, a line to type or a program to install; no model reads it."""

    def quotes(self) -> bool:
        """Return whether the caller's own words hold such a line, so that one in the result may be theirs."""

    def origins(self) -> tuple[str, ...]:
        """Return where texts of others came from that the model has read in this conversation."""

    def whose(self, *paths: str, folder: bool = False) -> str | None:
        """Return why a file of the workspace may not be the person's own, in a few words; None where it is.

        Args:
            paths: of many, the first that may not be is told.
            folder: the files below a folder count.
        """

    def reversible(self, reversal: Reversal) -> None:
        """Keep the way back from what the call did to the notebook, for `%reyn undo`."""

    async def invoke(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, actor: InnerActor = "workflow"
    ) -> Any:
        """Call another action by its qualified name and wait for its value, as Python has it.

        The call asks for itself, stands in an inner run under this one, and ends with it.

        Raises:
            ActionError: it failed, with the action's own words and code.
            PermissionDeniedError: it was denied. A handler may catch both.
        """

    async def judge_again(
        self, name: str, arguments: Mapping[str, Any], *, effects: Collection[Effect] = ()
    ) -> FileDecision:
        """Return whether what an earlier call of another action gave may be given again, by the rules of now.

        Nothing runs and nobody is asked. It is "ask" where the call only reads, and needs consent by now.

        Args:
            effects: those that the call has besides what its action names before it runs.
        """

    async def effects_of(self, name: str, arguments: Mapping[str, Any]) -> tuple[Effect, ...] | None:
        """Return the effects that a call of another action would have; None if they cannot be known. Nothing runs."""

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
