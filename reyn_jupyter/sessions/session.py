"""`Session`: the catalog, the router and the runs of one workspace, for ordinary code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from reyn_jupyter.backends.serving.served_session import ServedSession
from reyn_jupyter.catalog.action import Category
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.outputs.blob import Blob
from reyn_jupyter.outputs.content import BlobStore
from reyn_jupyter.router.context.conversation import Conversation
from reyn_jupyter.runtime.access.mcp_access import McpServerSource
from reyn_jupyter.runtime.namespace.functions import RegisteredFunction
from reyn_jupyter.runtime.record.compare import RunDiff, compare
from reyn_jupyter.runtime.record.script import Script, script_of
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.runtime.run import new_run_id
from reyn_jupyter.sessions import trusting
from reyn_jupyter.sessions.assembly import ENGINE, assemble
from reyn_jupyter.sessions.async_session import AsyncSession, Categories, OnEvent
from reyn_jupyter.sessions.blob_lookup import blob_named
from reyn_jupyter.sessions.exit import release_at_exit
from reyn_jupyter.sessions.overviews import (
    corpora_overview,
    index_overview,
    memory_overview,
    peer_overview,
    session_overview,
    tool_overview,
)
from reyn_jupyter.sessions.overviews.server_overview import server_table
from reyn_jupyter.sessions.result_objects import (
    ActionCard,
    ActionTable,
    Card,
    CatalogExplorer,
    Inspection,
    Result,
    Table,
)
from reyn_jupyter.sessions.runs import undo as restoring
from reyn_jupyter.sessions.runs.background_run import KEPT, BackgroundRun
from reyn_jupyter.sessions.runs.run_lifecycle import turn
from reyn_jupyter.sessions.runs.turn_options import TurnOptions, check_question
from reyn_jupyter.sessions.serving.serve import serve_session
from reyn_jupyter.sessions.workflows.session_workflows import Workflows

T = TypeVar("T")


class Session:
    """One workspace: its catalog, its conversation, its runs and its blobs.

    Args:
        root: the workspace folder; actions on files stay inside it, and state lies in its ``.reyn`` folder.
        config: a path to a YAML file or a dict, laid over ``reyn.yaml``.
        model: a tier ("light", "standard", "strong"), "offline", a LiteLLM model string, or an object behind the
            model seam. None takes what is configured, else the offline model.
        store: "files", "memory", an object with `store`, `load` and `exists` (see `BlobStore`), or None for a session
            that keeps no blobs.
        categories: replaces the installed categories.
        namespace: the variables that actions may see; the notebook's own when None.
        secrets: values by name that actions may ask for, each with consent, before the environment's of the same name;
            they are taken out of every text.
        mcp_servers: where MCP servers come from, in place of the person's file and the workspace's ``.mcp.json``.

    Raises:
        ValueError: the folder does not exist, or `store` is not known or lacks a method.

    Example:
        >>> session = Session(root=".")                                            # doctest: +SKIP
        >>> session.list_actions("file").df                                        # doctest: +SKIP
        >>> session.invoke_action("file__read", {"path": "README.md"}).value       # doctest: +SKIP
        >>> session.ask("how many orders are in orders.csv?").answer               # doctest: +SKIP
    """

    def __init__(
        self,
        root: str | Path = ".",
        *,
        config: str | Path | Mapping[str, Any] | None = None,
        model: Any = None,
        store: str | BlobStore | None = "files",
        categories: Sequence[Category] | None = None,
        namespace: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        mcp_servers: McpServerSource | None = None,
    ) -> None:
        self.parts = assemble(
            root,
            config=config,
            model=model,
            store=store,
            categories=categories,
            namespace=namespace,
            secrets=secrets,
            mcp_servers=mcp_servers,
        )
        self.aio = AsyncSession(self.parts)
        self._background: dict[str, BackgroundRun] = {}
        self._workflows = Workflows(self.parts, self.aio)
        release_at_exit(self.parts)

    def __repr__(self) -> str:
        return f"Session(root={str(self.root)!r}, turns={len(self.parts.conversation.turns)})"

    @property
    def root(self) -> Path:
        return self.parts.root

    def close(self) -> None:
        """Close the categories, and end the tasks and the processes that work for this session.

        The interpreter's exit does it too. What is needed again afterwards is started again.
        """
        self._workflows.executor = None
        if not self.parts.is_idle:
            ENGINE.run(self.parts.release())
        self.parts.services.children.close()

    @property
    def problems(self) -> tuple[str, ...]:
        """What is left out, stale or failed, and why, in sentences; `%reyn doctor` shows them."""
        return self.parts.problems

    # The catalog

    def list_actions(
        self,
        category: Categories = None,
        filter: str | None = None,  # noqa: A002 - the wrapper's own argument name
        offset: int = 0,
        limit: int = 20,
    ) -> ActionTable:
        """List the actions of the catalog, alphabetically.

        Args:
            category: one name or several; all when left out.
            filter: a case-insensitive part of name or short description.
            offset, limit: the page, in actions.

        Returns:
            An `ActionTable`: `.payload` is what the model gets, `.df` a DataFrame, `.error` set for a wrong category.
        """
        return _run(self.aio.list_actions(category, filter, offset, limit))

    def describe_action(self, name: str) -> ActionCard:
        """Return one action with its input schema; `.error` is set, with suggestions, when no action has the name."""
        return _run(self.aio.describe_action(name))

    def search_actions(self, query: str, category: Categories = None, limit: int = 10) -> ActionTable:
        """Return actions ranked by what they do, best first: by words and, once the index is built, by meaning.

        Returns:
            An `ActionTable`; `.payload["ranking"]` is "hybrid" or "lexical", `.payload["weak"]` set where nothing fits.
        """
        return _run(self.aio.search_actions(query, category, limit))

    @property
    def embeddings(self) -> Card:
        """The index by which actions are searched by meaning: class, who embeds, how many actions have a vector."""
        return _run(index_overview.status(self.parts))

    def build_embeddings(self, on_event: OnEvent = None) -> Card:
        """Give every action a vector. A provider's class is built, and paid for, by this call alone.

        Args:
            on_event: gets a `search.index_state.BuildProgress` after every batch.

        Raises:
            EmbeddingClassError: the class is switched off or wrong; says what to do.
            IndexStoreError: the vectors could not be kept. ModelError: the provider failed. What was built is kept.
        """
        return ENGINE.run(index_overview.build(self.parts), on_event)

    def clear_embeddings(self) -> Card:
        """Drop every vector, of every class. Raises IndexStoreError."""
        return _run(index_overview.clear(self.parts))

    # Documents

    @property
    def corpora(self) -> Table:
        """The indexed corpora: documents, passages, vectors, size, when each was brought up to date, what changed."""
        return corpora_overview.corpora(self.parts)

    def corpus_passages(self, name: str) -> Table:
        """Return the passages of a corpus, by document and place. Raises CorpusActionError."""
        return corpora_overview.passages(self.parts, name)

    def recall(
        self,
        query: str,
        sources: Sequence[str] | None = None,
        top_k: int = 5,
        filters: Mapping[str, Any] | None = None,
    ) -> Table:
        """Return the passages that fit a query best, each with its document, place, headings and score.

        Args:
            query: words or a question.
            sources: names of corpora; all when None.
            top_k: passages at most, 1 to 50.
            filters: conditions on what is known of passages, such as ``{"type": "pdf", "page": {"max": 9}}``.

        Returns:
            A `Table`; iterating gives the whole hits, with their texts.

        Raises:
            CorpusActionError: there is no such corpus, or the filter makes no sense; says what there is.
        """
        return _run(corpora_overview.recall(self.aio, self.parts, query, sources, top_k, filters))

    def index_corpus(
        self,
        name: str,
        paths: Sequence[str] | None = None,
        *,
        frames: Sequence[str] | None = None,
        about: str | None = None,
        on_event: OnEvent = None,
    ) -> Card:
        """Index documents under a name, or bring a corpus up to date; only what is new or changed is read.

        Args:
            name: of the corpus: lower-case letters and digits, with - or _ between them.
            paths: files, folders and patterns of the workspace; None for those of before.
            frames: names of variables that hold data frames; None leaves those that the corpus has.
            about: what it holds, for whoever looks for it.
            on_event: gets the events of the run, `ActionProgressed` among them.

        Raises:
            CorpusActionError: it cannot be indexed; says why. Interrupted: what was indexed is kept.
        """
        work = corpora_overview.index(self.aio, self.parts, name, paths, frames, about)
        return ENGINE.run(work, on_event)

    def drop_corpus(self, name: str) -> Card:
        """Remove a corpus, not its documents. Raises CorpusActionError."""
        return _run(corpora_overview.drop(self.aio, name))

    # Tools made at run time

    @property
    def tools(self) -> tool_overview.MadeTools:
        """The tools that were made at run time: a table; ``session.tools["string_reverse"](text="Hello")`` runs one."""
        return tool_overview.tools(self.parts, self.invoke_action)

    def create_tool(self, name: str, code: str, description: str = "", **others: Any) -> Card:
        """Make a tool from code that defines ``execute(params)``; it runs in a sandbox, never in this process.

        Args:
            name: starts with a letter; letters, digits, _ and -, at most 64.
            code: Python, or TypeScript where Deno is installed.
            description: what it does, for whoever looks for it.
            others: ``parameters``, ``tags``, ``permissions``, ``examples``, ``mode``, ``generated_from``, as the action
                dynamic_tool_operation__create has them. Only a person's permissions may have ``allow:``.

        Raises:
            ToolActionError: it cannot be made; its `code` is that of the list of errors.

        Example:
            >>> session.create_tool("shout", "def execute(params): return params['text'].upper()")  # doctest: +SKIP
            >>> session.tools["shout"](text="hello")                                                # doctest: +SKIP
            'HELLO'
        """
        given = {"name": name, "code": code, "description": description, **others}
        return _run(tool_overview.create(self.aio, given))

    def describe_tool(self, name: str) -> Card:
        """Return one tool: what it takes and reaches, what was found in its code, its runs. Raises ToolActionError."""
        return tool_overview.describe(self.parts, name)

    def delete_tool(self, name: str) -> Card:
        """Remove a tool. Raises ToolActionError."""
        return _run(tool_overview.delete(self.aio, name))

    def deprecate_tool(self, name: str) -> Card:
        """Mark a tool as one that should not be used any more; it stays, and runs. Raises ToolActionError."""
        return _run(tool_overview.deprecate(self.parts, name))

    def export_tool(self, name: str, folder: str = ".") -> Card:
        """Write a tool into the workspace as a module with tests; `undo` takes it back. Raises ToolActionError."""
        return _run(tool_overview.export(self.aio, self.parts, name, folder))

    # Utilities, plans and workflows

    @property
    def workflows(self) -> Workflows:
        """The utilities, plans and workflows: ``session.workflows.dispatch("convert all webm files to mp4")``."""
        return self._workflows

    # Other agents

    @property
    def peers(self) -> Table:
        """The peers: model, host, categories, limits, what was asked of each and what that used, its state."""
        return peer_overview.peers(self.parts)

    def forget_peer(self, name: str) -> Card:
        """Let a peer forget what it was asked. Raises PeerNotFoundError."""
        return peer_overview.forget(self.parts, name)

    def memories(self, which: Literal["all", "stale", "held"] = "all") -> Table:
        """Return what is remembered here: one row a memory, with its size, age, last use, and what speaks against it.

        Args:
            which: "stale" for those that may be of no use any more; "held" for those that came with the folder or were
                changed outside of a session, which no model sees until `trust`.
        """
        return memory_overview.memories(self.parts, which)

    def search_memories(self, query: str, top_k: int = 5) -> Table:
        """Return the memories that fit a request best, by words and meaning. Raises MemoryActionError."""
        return _run(memory_overview.search(self.aio, query, top_k))

    def import_memories(
        self,
        path: str,
        layer: Literal["shared", "agent"] = "shared",
        *,
        write: bool = False,
        replace_changed: bool = False,
    ) -> Table:
        """Take notes in as memories, one a Markdown file: ``CLAUDE.md``, ``AGENTS.md``, a folder, an Obsidian vault.

        Done again, it takes over what changed in the files. No other memory is written over.

        Args:
            path: of the file or folder; a path of the workspace, an absolute one, or one that begins with ``~``.
            layer: "shared" for every agent of this workspace, "agent" for its own.
            write: False only says what would be done.
            replace_changed: whether memories that were changed here since are written over, too.

        Returns:
            One row a memory, with its file and what becomes of it; files that are left out, with why.

        Raises:
            MemoryActionError: nothing can be read there, or written here.
        """
        return _run(memory_overview.take_notes(self.aio, path, layer, write, replace_changed))

    # Calling actions

    def explore(self, query: str = "") -> CatalogExplorer:
        """Return the catalog to look through: search, sort, open an action, fill in its form, run it.

        Args:
            query: words that it opens with; an action fits that has all of them in name or short description.
        """
        return _run(self.aio.explore(query))

    def invoke_action(self, name: str, args: Mapping[str, Any] | None = None) -> Result:
        """Run one action by hand, which is consent: what would ask is allowed, what is denied stays denied.

        Args:
            name: the qualified name.
            args: arguments that fit its schema; ``{"$var": name}`` and ``{"$blob": id}`` pass objects by reference.

        Returns:
            A `Result`: `.value` what the handler gave, `.blob` where it was stored, `.error` when it failed.
        """
        return _run(self.aio.invoke_action(name, args))

    def inspect(self, blob_id: str, selector: str | None = None) -> Inspection:
        """Read a part of a blob: None, ``lines:20-50``, ``slice:3..8``, ``key:name``, ``path:/a/0``, ``grep:…``."""
        return _run(self.aio.inspect(blob_id, selector))

    @property
    def catalog(self) -> CatalogSnapshot:
        """The catalog now, as an immutable snapshot."""
        return _run(ENGINE.awaited(self.parts.catalog.refresh()))

    def action(self, function: Callable[..., Any] | None = None, **options: Any) -> Any:
        """Register a function as an action of this session alone; options as for `reyn_jupyter.action`."""
        return self.parts.functions.action(function, **options)

    @property
    def functions(self) -> Mapping[str, RegisteredFunction]:
        return self.parts.functions.all()

    # The router

    def ask(self, prompt: str, *, on_event: OnEvent = None, **options: Any) -> Trace:
        """Run one turn: the model finds and invokes actions, and answers.

        Args:
            prompt: literal text.
            on_event: gets the run's events as they happen.
            options: those of `TurnOptions`: model, surface, discovery, max_steps, effort, budget, approve, new.

        Returns:
            The `Trace`: `.answer`, `.result`, `.df` (its table), `.steps`, `.cost`; `.error` where it failed, with the
            partial run kept.

        Raises:
            ValueError: the prompt is blank or no text.
            Interrupted: the person interrupted; its `result` is the partial trace.
        """
        return ENGINE.run(turn(self.parts, check_question(prompt), TurnOptions(**options)), on_event)

    def start(
        self,
        prompt: str,
        *,
        on_event: OnEvent = None,
        waits: bool = False,
        home: asyncio.AbstractEventLoop | None = None,
        **options: Any,
    ) -> BackgroundRun:
        """Run one turn in the background, as `ask` does: `.cancel()` stops it, `.trace` is set once it is done.

        Args:
            home: the loop that serves events and notebook functions; the caller's when None, a kernel's in a notebook.
            waits: code will answer its questions about consent (`.pending`, `.answer`), so they stay open. Otherwise
                they are shown by a connected front end, and without one what would ask is denied.
        """
        chosen = TurnOptions(attended=False, **options)
        run = BackgroundRun.begin(self.parts, check_question(prompt), chosen, on_event, waits, home)
        ended = [key for key, other in self._background.items() if other.done]
        for key in ended[: max(0, len(ended) + 1 - KEPT)]:
            del self._background[key]
        self._background[run.run_id] = run
        return run

    @property
    def background(self) -> Mapping[str, BackgroundRun]:
        """The background runs of this session by run id: those under way, and the last ones that ended."""
        return MappingProxyType(self._background)

    def dry(self, prompt: str, **options: Any) -> Card:
        """Estimate what `ask` would offer, send and cost at most; no model is called. Options as for `ask`."""
        from reyn_jupyter.sessions.runs.cost_estimate import dry

        return ENGINE.run(dry(self.parts, check_question(prompt), TurnOptions(**options)))

    def replay(
        self,
        run: str | int | None = None,
        *,
        model: Any = None,
        from_step: int | None = None,
        approve: str = "ask",
        on_event: OnEvent = None,
    ) -> Trace:
        """Replay a run with the action results from its record; see `%reyn help replay`."""
        from reyn_jupyter.sessions.runs.replay import replay

        return ENGINE.run(replay(self.parts, run, model, from_step, approve), on_event)

    # The record

    @property
    def runs(self) -> Table:
        """The runs of this workspace, newest first."""
        return session_overview.runs(self.parts)

    @property
    def blobs(self) -> Table:
        """The stored blobs, newest first."""
        return session_overview.blobs(self.parts)

    def blob(self, wanted: str) -> Blob:
        """Return a stored blob, by its id or any unique part of it; ``[blob:…]`` and "last" are taken too.

        Raises:
            BlobNotFoundError: none, or more than one, is meant; says what there is.
        """
        return blob_named(self.parts, wanted)

    def collect_blobs(
        self,
        max_age_days: float | None = None,
        max_bytes: int | None = None,
        keep: Collection[str] | None = None,
    ) -> Card:
        """Remove blobs that nothing needs any more.

        Args:
            max_age_days: only what is older goes.
            max_bytes: only as much goes, the oldest first, as makes the rest fit.
            keep: ids of runs and blobs that stay; None for those of every run that is kept.

        Returns:
            A `Card` that says what went and how many bytes. Without a limit only the blobs of runs that are gone go.

        Raises:
            ValueError: a limit that is no number from 0 on, or a single text as `keep`.
        """
        from reyn_jupyter.sessions.blob_gc import collect

        return collect(self.parts, max_age_days, max_bytes, keep)

    @property
    def events(self) -> Table:
        """The events of the last run."""
        return self.events_of(None)

    def events_of(self, run: str | int | None = None) -> Table:
        return session_overview.events(self.parts, run)

    def trace(self, run: str | int | None = None) -> Trace:
        """Return a run by any unique part of its id, or the last one. Raises RunNotFoundError."""
        return self.parts.runs.load(run)

    def diff(self, a: str | int, b: str | int) -> RunDiff:
        """Compare two runs: `.rows`, `.df`, `.pairs`, and both traces. Raises RunNotFoundError."""
        return compare(self.trace(a), self.trace(b))

    def script(self, run: str | int | None = None) -> Script:
        """Return a run as ordinary code that needs no model."""
        return script_of(self.trace(run))

    def undo(self, target: str | int | None = None) -> Card:
        """Restore what a run wrote, edited or deleted; refused, with the difference, where a file changed since.

        Args:
            target: a run, ``RUN:STEP``, or the name of a notebook; the last run of this session that changed a file
                when None. A run of another session of the workspace asks first.

        Raises:
            NothingToUndoError, UndoRefusedError, UndoDeclinedError: nothing was undone; says why.
        """
        return _run(ENGINE.awaited(restoring.undo(self.parts, target)))

    # The conversation

    @property
    def history(self) -> Table:
        """The turns of the conversation."""
        return session_overview.history(self.parts)

    def drop(self, number: int) -> Table:
        """Take turn `number` (1-based) out of the conversation."""
        self.parts.conversation.drop(number)
        return self.history

    def fork(self, number: int) -> Table:
        """Go on from turn `number` (1-based), in a conversation of its own."""
        self.parts.conversation = self.parts.conversation.fork(number, new_run_id())
        return self.history

    def reset(self) -> Card:
        """Start the conversation afresh, peers' too, and close what categories have open; runs and blobs stay."""
        self.close()
        turns = len(self.parts.conversation.turns)
        self.parts.conversation = Conversation(new_run_id())
        if self.parts.peers is not None:
            self.parts.peers.forget()
        return Card("reset", "A fresh conversation", (("turns left behind", str(turns)),))

    # Others who work with it

    def serve_mcp(self, *, wait: float | None = None) -> ServedSession:
        """Let the MCP clients of this machine work with this session, under its rules; again gives what there is.

        Args:
            wait: seconds that a client's call waits for your answer to a question, at most 600; it is denied then. 50
                where it is left out.

        Returns:
            A `ServedSession`: `.address`, `.connections`, `.stop()`. It ends with the session, too.

        Raises:
            ServeError: it cannot be served; says why.
        """
        return ENGINE.run(serve_session(self.parts, "mcp", wait))

    def serve_a2a(self, *, wait: float | None = None) -> ServedSession:
        """Let the A2A clients of this machine ask this session's agent, under its rules; again gives what there is.

        Args:
            wait: as for `serve_mcp`.

        Returns:
            A `ServedSession`: `.agent_address`, `.connections`, `.stop()`. It ends with the session, too.

        Raises:
            ServeError: it cannot be served; says why.
        """
        return ENGINE.run(serve_session(self.parts, "a2a", wait))

    @property
    def served(self) -> ServedSession | None:
        """This session as an MCP server or an A2A agent; None while it is neither."""
        served = self.parts.served
        return served if served is not None and served.running else None

    # The configuration

    @property
    def config(self) -> Table:
        """The effective settings and where each came from."""
        return session_overview.config(self.parts)

    def configure(self, key: str, value: Any) -> Table:
        """Change one setting for this session. Raises ConfigError with the nearest key."""
        self.parts.effective = self.parts.effective.with_value(key, value)
        return self.config

    @property
    def models(self) -> Table:
        """The models that are configured, their tier, where requests go, and whether their key is set."""
        return session_overview.models(self.parts)

    def find_models(self, *addresses: str, quick: bool = False) -> Table:
        """Find servers of models on this machine, and try what their models can do with tiny requests.

        No other machine is asked, and no key is sent.

        Args:
            addresses: as "127.0.0.1:8080" or "8080"; the usual ports of Ollama, llama.cpp, LM Studio and vLLM when
                there are none.
            quick: list the models, and try nothing.

        Returns:
            A row a model, with the line that configures it; an address that was given and has no model says why.

        Raises:
            ModelError: an address is none, or one of another machine.
        """
        return _run(session_overview.found_models(addresses, quick))

    @property
    def approvals(self) -> Table:
        """The open questions, the patterns that are always allowed, and the rules of the configuration."""
        return session_overview.approvals(self.parts)

    @property
    def mcp(self) -> Table:
        """The MCP servers: state, tools, calls and errors of each, what it runs, and the last line of its log."""
        return server_table(self.parts)

    def trust(self, name: str | None = None, *, sha256: str | None = None) -> Card:
        """Show what this workspace brought, and ask about each thing; trust the bytes that were shown.

        Args:
            name: one thing (``.mcp.json``), or a folder with several (``tools``); everything that waits if None.
            sha256: its hash, as the program sha256sum prints it for a file. It is then trusted without a question,
                for a run where nobody can be asked.

        Returns:
            What is trusted now, and what is not and why; ``data["hashes"]`` has the hash of each thing that is not.

        Raises:
            TrustError: nothing of this name waits for trust, or a hash has no name.
            StateError: the trust cannot be kept.
        """
        return trusting.trust(self.parts, name, sha256)

    def python(self, switch: Literal["on", "off"] | None = None) -> Card:
        """Let models propose Python code for this kernel, or no more; only say which it is when None.

        Each piece of code is still shown whole and asked about. It holds for this session, until its kernel ends.
        """
        if switch not in ("on", "off", None):
            raise ValueError(f'python is switched "on" or "off", not {switch!r}')
        return session_overview.python(self.parts, switch)

    def surface(self) -> Table:
        """Return the tokens that each surface costs for this catalog."""
        return session_overview.surface(self.parts, self.catalog)

    @property
    def status(self) -> Card:
        """The state of the session: workspace, model, catalog, conversation, and what to try next."""
        return session_overview.status(self.parts, self.catalog)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Serve the notebook's side of a coroutine until it is done."""
    return ENGINE.run(work)
