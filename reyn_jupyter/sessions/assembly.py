"""The parts of a session, put together in one place.

Nothing here runs: `Parts` holds the pieces, `assemble` builds them. Heavy things (categories, models, DuckDB) are
made on first use, so that a session costs little before it does something.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from reyn_jupyter import categories as category_files
from reyn_jupyter.backends.mcp import McpConnections
from reyn_jupyter.backends.mcp.connection import ConnectionLinks
from reyn_jupyter.backends.mcp.server_programs import ServerPrograms
from reyn_jupyter.backends.mcp_servers.server_store import McpServerStore
from reyn_jupyter.backends.mcp_servers.sign_in_store import ServerSignIn
from reyn_jupyter.backends.serving.served_session import ServedSession
from reyn_jupyter.catalog.action import Category, Effect, Purity
from reyn_jupyter.categories.mcp import CALL_TOOL
from reyn_jupyter.config import Effective, ModelEntry, Settings, load
from reyn_jupyter.dynamic.toolbox import Toolbox
from reyn_jupyter.guard.approvals import Approvals
from reyn_jupyter.guard.own_memories import OwnMemories
from reyn_jupyter.guard.permissions import Policy, PolicyInForce
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.guard.trust import Trust, WorkspaceTrust
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.models.base import Model, Tier
from reyn_jupyter.models.call_log import VARIABLE, ModelCallLog, asked_for
from reyn_jupyter.models.model_registry import resolve_model
from reyn_jupyter.outputs.blobs.adapted_store import adapt_store
from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.content import BlobStore
from reyn_jupyter.router.context.conversation import Conversation
from reyn_jupyter.router.context.fit_context import ContextLengths
from reyn_jupyter.router.request.forced_choice import Known
from reyn_jupyter.router.request.router_options import RouterOptions
from reyn_jupyter.router.turn_budget import SessionSpend
from reyn_jupyter.runtime.access.live_notebook import LIVE_NOTEBOOK
from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerSource, left_out_tools
from reyn_jupyter.runtime.access.mcp_admin import NoMcpAdmin
from reyn_jupyter.runtime.access.session_tasks import SessionTasks
from reyn_jupyter.runtime.call.invoke import Invoker
from reyn_jupyter.runtime.call.session_secrets import SessionSecrets
from reyn_jupyter.runtime.call.wrappers import Wrappers
from reyn_jupyter.runtime.engine import Engine
from reyn_jupyter.runtime.live_catalog.catalog_cache import CatalogCache
from reyn_jupyter.runtime.live_catalog.category_lifecycle import CategoryLifecycle
from reyn_jupyter.runtime.namespace.functions import FunctionRegister, functions
from reyn_jupyter.runtime.namespace.variables import notebook_namespace
from reyn_jupyter.runtime.questions.approval_queue import ApprovalQueue
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.questions.text_prompt import ask_at_prompt
from reyn_jupyter.runtime.record.action_usage import ActionUsage
from reyn_jupyter.runtime.record.run_store import RunStore
from reyn_jupyter.runtime.run import new_run_id
from reyn_jupyter.runtime.services import Services
from reyn_jupyter.search.action_index import ActionEmbeddingIndex
from reyn_jupyter.search.database import NAME as INDEX_NAME
from reyn_jupyter.sessions.access.session_embedder import SessionEmbedder
from reyn_jupyter.sessions.access.session_history import SessionHistory
from reyn_jupyter.sessions.access.session_models import SessionModels
from reyn_jupyter.sessions.access.session_notebook import SessionNotebook
from reyn_jupyter.sessions.access.session_peers import SessionPeers
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.installed_places import keep_off
from reyn_jupyter.support.network.hosts import Host
from reyn_jupyter.support.programs.owned_program import OwnedPrograms
from reyn_jupyter.support.secrets import Redactor
from reyn_jupyter.telemetry.sender import RunSender
from reyn_jupyter.workflows.workflow_library import WorkflowLibrary

ENGINE = Engine()  # one thread and loop a process
STATE = ".reyn"
NOTEBOOK = "JPY_SESSION_NAME"  # in which a Jupyter server gives a kernel the path of its notebook

# Whose settings they are stands with them: an action of one session may use another, under that one's own rules.
_overrides: ContextVar[tuple[Parts, Settings] | None] = ContextVar("overrides", default=None)


@dataclass(eq=False)
class Parts:
    """The pieces of one session."""

    root: Path
    services: Services
    workspace: Workspace
    redactor: Redactor
    effective: Effective
    trust: Trust
    approvals: Approvals
    rules: PolicyInForce
    functions: FunctionRegister
    wrappers: Wrappers
    catalog: CatalogCache
    lifecycle: CategoryLifecycle
    tasks: SessionTasks
    runs: RunStore
    usage: ActionUsage
    search: ActionEmbeddingIndex
    conversation: Conversation
    model: Any = None
    search_problem: str | None = (
        None  # why the index of search is not on the disk though the session's state is
    )
    spent: SessionSpend = field(default_factory=SessionSpend)
    contexts: ContextLengths = field(default_factory=ContextLengths)
    # How a choice of a tool is forced on a model, by model and host.
    choice_forms: dict[str, Known] = field(default_factory=dict)
    # The place of a remote server's sign-in; None where nobody signs in.
    sign_in: Callable[[McpServer], ServerSignIn] | None = None
    questions: ApprovalQueue = field(default_factory=ApprovalQueue)
    # Answers questions of runs that are not in the background, in place of the user: for tests and programs.
    ask_person: Callable[[Question], Answer] | None = None
    config: str | Path | Mapping[str, Any] | None = None
    mcp_store: McpServerStore | None = None  # the files of MCP servers; None where a program gives them
    peers: SessionPeers | None = None  # other agents that may be asked; None in a trial, which has none
    sender: RunSender | None = None  # of runs to a collector; None in a trial, whose runs are in its study
    served: ServedSession | None = None  # to other programs, since the person last said so
    # Where the untrusted texts come from that MCP clients have read, since the session began.
    client_origins: dict[str, None] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    _router_options: dict[Tier, tuple[Settings, RouterOptions]] = field(default_factory=dict)

    def damaged_files(self) -> tuple[str, ...]:
        """Return a sentence for each file of the workspace's state that is not used, or not all of it, and why."""
        list(self.runs.orphans(self.runs.all()))  # reads them all, inner ones too
        found = (self.search_problem, self.usage.problem if self.usage.uses is not None else None)
        return (*self.runs.problems.values(), *(problem for problem in found if problem is not None))

    @property
    def notebook(self) -> str | None:
        """Return the notebook of this kernel, as its server names it: from the workspace on, or its file name."""
        named = self.environ.get(NOTEBOOK, "")
        if not named:
            return None
        path = Path(named)
        return self.redactor.text(
            str(path.relative_to(self.root) if path.is_relative_to(self.root) else path.name)
        )

    @property
    def notebook_file(self) -> str | None:
        """Return the file of this kernel's notebook, from the workspace on; None where it is unknown or elsewhere."""
        path = Path(self.environ.get(NOTEBOOK, ""))
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else None

    @property
    def settings(self) -> Settings:
        held = _overrides.get()
        return held[1] if held is not None and held[0] is self else self.effective.settings

    def override(self, settings: Settings) -> None:
        """Let these settings hold in the current task, for this session alone."""
        _overrides.set((self, settings))

    def router_options(self, settings: Settings, tier: Tier) -> RouterOptions:
        """Return the router's effective keys for a tier; the same object while the settings are."""
        kept = self._router_options.get(tier)
        if kept is None or kept[0] is not settings:
            kept = self._router_options[tier] = (settings, RouterOptions.of(settings, tier))
        return kept[1]

    def find_model(self, wanted: Any) -> Model:
        """Return the model that is meant: an object behind the seam as it is, a name through the settings.

        Raises:
            ModelError: it is not configured; says the missing line.
        """
        chosen = self.model if wanted is None else wanted
        if chosen is not None and not isinstance(chosen, str | ModelEntry):
            model: Model = chosen
            return model
        return resolve_model(self.settings, chosen, self.environ)

    @cached_property
    def toolbox(self) -> Toolbox | None:
        """Return the tools that were made at run time; None where nothing is kept."""
        return Toolbox.of(self.services)

    @cached_property
    def workflows(self) -> WorkflowLibrary:
        """Return the utilities, the workflows and the policy of the workspace."""
        return WorkflowLibrary(self.services)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is left out, stale or failed, and why, in sentences."""
        servers = () if self.mcp_store is None else self.mcp_store.problems_now()
        found = (
            *self.effective.problems,
            *servers,
            *(() if self.toolbox is None else self.toolbox.problems),
            *self.workflows.problems,
            *self.catalog.problems.values(),
            *left_out_tools(self.services.mcp.states()),
            *self.tasks.problems.values(),
            *(() if self.sender is None else self.sender.problems),
        )
        return tuple(self.redactor.text(problem) for problem in found)

    async def release(self) -> None:
        """Close the categories, then end the tasks and programs of the session; what is needed again begins anew.

        Runs that are still to be sent have a moment for it.
        """
        await self.lifecycle.close()
        await self.tasks.close()
        await self.services.programs.close()
        if self.sender is not None:
            await self.sender.flush()

    @property
    def is_idle(self) -> bool:
        """True if there is nothing that `release` would end."""
        works = not (self.lifecycle.is_idle and self.tasks.is_idle and self.services.programs.is_idle)
        return not works and (self.sender is None or self.sender.is_idle)

    @property
    def policy(self) -> Policy:
        """The permission rules now."""
        return self.rules.under(self.settings)

    async def ask(self, question: Question) -> Answer:
        """Ask the user who waits for a run or command: on a page that shows questions, else at a text prompt."""
        if (answer := self.ask_person) is not None:
            return await ENGINE.main_thread(lambda: answer(question))
        return await self.questions.ask(
            question,
            since=time.time(),
            at_prompt=lambda asked: ENGINE.main_thread(lambda: ask_at_prompt(asked.question, asked.settled)),
        )

    def denies_host(self, host: Host) -> bool:
        """Return whether a rule denies that an MCP server is spoken with by way of a host."""
        effects = (Effect.network(str(host)),)
        return self.policy.decide(CALL_TOOL, Purity.UNKNOWN, effects, "person").decision == "deny"


def assemble(
    root: str | Path,
    *,
    config: str | Path | Mapping[str, Any] | None,
    model: Any,
    store: str | BlobStore | None,
    categories: Sequence[Category] | None,
    namespace: Mapping[str, Any] | None,
    secrets: Mapping[str, str] | None,
    mcp_servers: McpServerSource | None,
) -> Parts:
    """Build a session's parts. Raises ValueError, ConfigError with what to do next."""
    folder = Path(root).expanduser().resolve()
    if not folder.is_dir():
        raise ValueError(f'the workspace {str(root)!r} is no folder. Give an existing one: Session(root="…")')
    state = StateFolder(folder)
    trust = Trust(state)
    keep_off(folder, trust.is_folder_trusted)
    effective = load(folder, override=config, trusted=trust.is_trusted)
    redactor = Redactor(os.environ)
    workspace = Workspace(folder)
    blobs = _blobs(store, folder)
    register = FunctionRegister(parent=functions)
    approvals = Approvals(state)
    rules = PolicyInForce(approvals.entries)
    mcp_store = McpServerStore(
        folder, trust, redactor, os.environ, state=state, forget=approvals.forget_server
    )
    names = (lambda: namespace) if namespace is not None else notebook_namespace

    def settings() -> Settings:
        return parts.settings

    on_disk = store is not None and store != "memory"
    state_files = PlainFolder(folder, STATE, "state") if on_disk else None
    kept, search_problem = _search_folder(state_files)
    search = ActionEmbeddingIndex(settings, kept, wait=ENGINE.wait, redact=redactor.text)
    runs = RunStore(PlainFolder(folder, STATE, "runs") if on_disk else None, blobs)
    tasks, lifecycle, programs = SessionTasks(), CategoryLifecycle(), OwnedPrograms()
    started = ServerPrograms(programs, folder, lambda: settings().sandbox)
    links = ConnectionLinks(
        started,
        tasks.spawn,
        redactor.text,
        lambda: parts.catalog.push("mcp"),
        mcp_store.sign_in,
        lambda host: parts.denies_host(host),
    )
    call_log = ModelCallLog(
        lambda: settings().llm_log or asked_for(os.environ.get(VARIABLE)), _print, redactor
    )
    services = Services(
        root=folder,
        workspace=workspace,
        namespace=names,
        functions=register.all,
        settings=settings,
        blobs=blobs,
        redactor=redactor,
        mcp_admin=mcp_store if mcp_servers is None else NoMcpAdmin(),
        main_thread=ENGINE.main_thread,
        search=search,
        spawn=tasks.spawn,
        changed=lambda category_name: parts.catalog.push(category_name),
        programs=programs,
        secrets=SessionSecrets(secrets or {}, os.environ, redactor, lambda: parts.policy),
        models=SessionModels(
            lambda wanted: parts.find_model(wanted), settings, redactor, lambda: parts.spent, call_log
        ),
        embedder=SessionEmbedder(lambda: search.embedder, os.environ),
        runs=SessionHistory(runs, redactor),
        catalog=lambda: parts.catalog.latest,
        last_use=lambda name: use.last if (use := parts.usage.uses.get(name)) is not None else None,
        trust=WorkspaceTrust(trust, OwnMemories(state)),
        mcp=McpConnections(mcp_store if mcp_servers is None else mcp_servers, links),
        peers=(peers := SessionPeers(lambda: parts)),
        own_folder=state.path,
        call_log=call_log,
        notebook=SessionNotebook(LIVE_NOTEBOOK, lambda: parts.notebook_file, workspace, ENGINE.main_thread),
    )

    def installed() -> tuple[Sequence[Category], Sequence[str]]:
        return (categories, ()) if categories is not None else category_files.load(services)

    invoker = Invoker(
        services,
        rules.under,
        lambda question: parts.ask(question),
        approvals.remember,
        runs=runs,
        refresh=lambda: parts.catalog.refresh(),
    )
    parts = Parts(
        root=folder,
        services=services,
        workspace=workspace,
        redactor=redactor,
        effective=effective,
        trust=trust,
        questions=ApprovalQueue(lambda: settings().permissions.question_seconds),
        sign_in=mcp_store.sign_in,
        mcp_store=mcp_store if mcp_servers is None else None,
        peers=peers,
        approvals=approvals,
        rules=rules,
        functions=register,
        wrappers=Wrappers(services, invoker),
        catalog=CatalogCache(installed, lifecycle=lifecycle),
        lifecycle=lifecycle,
        tasks=tasks,
        runs=runs,
        usage=ActionUsage(state_files),
        search=search,
        search_problem=search_problem,
        conversation=Conversation(new_run_id()),
        sender=RunSender(redactor.text, os.environ),
        model=model,
        config=config,
    )
    return parts


async def _print(text: str) -> None:
    """Print a text below the cell whose call is under way, or right here where no cell waits."""
    try:
        await ENGINE.main_thread(lambda: print(text, flush=True))  # noqa: T201 - what was asked to be shown
    except RuntimeError:
        print(text, flush=True)  # noqa: T201 - the same, where no cell waits


def _search_folder(state: PlainFolder | None) -> tuple[PlainFolder | None, str | None]:
    """Return where the index of search is kept, and why it is kept in memory though there is a folder."""
    if state is None:
        return None, None
    try:
        state.check()
    except OSError as error:
        return None, f"{STATE}/state: {error.strerror}"
    for name in state.entries()[1]:
        if name.startswith(INDEX_NAME.partition(".")[0]):
            return None, f"{STATE}/state/{name} is no regular file, so the index of search is not kept there"
    return state, None


def _blobs(store: str | BlobStore | None, folder: Path) -> BlobStore | None:
    if store is None:
        return None
    if store == "files":
        return FsBlobStore(folder / STATE / "blobs", inside=folder)
    if store == "memory":
        return MemoryBlobStore()
    if isinstance(store, str):
        raise ValueError(
            f'store={store!r} is not known: use "files", "memory", a BlobStore, or None for no blobs'
        )
    return adapt_store(store)


def keep_out_of_git(folder: Path) -> None:
    """Give the state folder a .gitignore of its own, once it exists."""
    state = os.path.join(folder, STATE)  # noqa: PTH118 - asked after every run
    if os.path.lexists(f"{state}{os.sep}.gitignore") or not os.path.lexists(state):
        return
    with suppress(OSError):
        descriptor = PlainFolder(folder, STATE).open(
            ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644
        )
        try:
            os.write(descriptor, b"*\n")
        finally:
            os.close(descriptor)
