"""The hub of all views of this kernel's session: their connections, what they share, and questions to the person.

Invariants: one hub a process; what it sends goes to every connection that said hello, and one that fails hurts no
other; nothing here makes a session before a view asks for something of it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Protocol

from reyn_jupyter.notebook.serving.answer_key import AnswerKey
from reyn_jupyter.notebook.serving.operation import WireMessage
from reyn_jupyter.notebook.serving.protocol import (
    ApprovalSettled,
    CatalogChanged,
    Event,
    Hello,
    RunChanged,
    ServersChanged,
    SessionChanged,
    ViewEvent,
)
from reyn_jupyter.notebook.serving.question_messages import approval_asked
from reyn_jupyter.runtime.access import mcp_access
from reyn_jupyter.runtime.access.mcp_access import McpAccess
from reyn_jupyter.runtime.live_catalog import catalog_cache
from reyn_jupyter.runtime.live_catalog.catalog_cache import CatalogCache
from reyn_jupyter.runtime.questions.approval_queue import PAGES, VIEWERS, OpenQuestion, all_pending
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.sessions.runs import background_run
from reyn_jupyter.sessions.session import Session

BETWEEN_LOOKS = 0.5  # seconds
DRAWING = frozenset({"jupyterlab", "notebook"})  # hosts that draw our MIME types


class Subscriber(Protocol):
    """A connection as the hub sees it.

    Attributes:
        hello: what the front end said of itself; None before it has.
        answer_key: what its answers to questions are known by.
        client: the front end's own name for itself in the messages of the kernel; "" where a channel does not say.
        hears_in_cell: whether its messages arrive while a cell runs.
        is_alive: whether it was heard not long ago, if it is a page that says regularly that it is there.
    """

    hello: Hello | None
    answer_key: AnswerKey
    client: str
    hears_in_cell: bool

    @property
    def is_alive(self) -> bool: ...

    def send(self, message: WireMessage) -> None:
        """Put a message on the channel, from any thread."""


class Hub:
    """Shared by all connections of a kernel.

    Args:
        session: gives the session that is served; it is made when first asked for.
    """

    def __init__(self, session: Callable[[], Session]) -> None:
        self.session = session
        self.connections: set[Subscriber] = set()
        self.caches: dict[str, Any] = {}
        self._catalog: str | None = None
        self._looking = False
        self._look_again = False
        self._servers_told = False
        self._servers_again = False

    @property
    def home(self) -> asyncio.AbstractEventLoop | None:
        """Return the loop of the thread where the notebook lives, which functions of the notebook run on."""
        return _kernel_loop()

    def drawn_by(self) -> frozenset[str]:
        """Return the front ends that draw our MIME types themselves, and so need no widget."""
        return DRAWING & {each.hello.host for each in list(self.connections) if each.hello is not None}

    def tell(self, event: Event) -> None:
        """Send an event to everybody who looks; from any thread."""
        message = ViewEvent(event=event)
        for connection in list(self.connections):
            with suppress(Exception):  # its channel is broken; the others hear all the same
                connection.send(message)

    async def ask(self, question: Question) -> Answer:
        """Put a question before the person; "nobody" where no connection can show it."""
        return await self.session().parts.questions.ask(question)

    def join(self, connection: Subscriber) -> None:
        if not self.connections:
            VIEWERS.append(self)
            background_run.WATCHERS.append(self._on_run_change)
            catalog_cache.WATCHERS.append(self._on_push)
            mcp_access.WATCHERS.append(self._on_server_move)
        self.connections.add(connection)
        if connection.hears_in_cell and connection.client:
            (PAGES.add if shows_questions(connection) else PAGES.discard)(connection.client)
        for waiting in all_pending() if shows_questions(connection) else ():
            connection.send(ViewEvent(event=approval_asked(waiting, connection.answer_key)))

    def leave(self, connection: Subscriber) -> None:
        if connection not in self.connections:
            return
        self.connections.discard(connection)
        if not self.connections:
            VIEWERS.remove(self)
            background_run.WATCHERS.remove(self._on_run_change)
            catalog_cache.WATCHERS.remove(self._on_push)
            mcp_access.WATCHERS.remove(self._on_server_move)
            self.caches.clear()
            self._catalog = None

    def look(self) -> None:
        """Tell whoever looks that a cell or a push has changed the session, and whether the catalog is another one.

        Costs nothing when nobody looks.
        """
        if not self.connections or not current.session_exists():
            return
        if self._looking:
            self._look_again = True
            return
        self._looking, self._look_again = True, False
        ENGINE.start(self._compare(self.session()), home=self.home)

    async def _compare(self, session: Session) -> None:
        try:
            snapshot = await session.parts.catalog.refresh()
            revision = await asyncio.to_thread(
                lambda: snapshot.hash
            )  # of thousands of actions it takes a while
            before, self._catalog = self._catalog, revision
            if before != revision:
                self.tell(CatalogChanged(revision=revision))
            self.tell(SessionChanged())
            if self._look_again:  # pushes that come in a storm are seen together
                await asyncio.sleep(BETWEEN_LOOKS)
        finally:
            self._looking = False
            if self._look_again:
                self.look()

    def _on_push(self, catalog: CatalogCache) -> None:
        if current.session_exists() and self.session().parts.catalog is catalog:
            self.look()

    def _on_server_move(self, servers: McpAccess) -> None:
        if not current.session_exists() or self.session().parts.services.mcp is not servers:
            return
        if self._servers_told:
            self._servers_again = True
            return
        self._servers_told, self._servers_again = True, False
        ENGINE.start(self._tell_servers(servers), home=self.home)

    async def _tell_servers(self, servers: McpAccess) -> None:
        """Tell whoever looks; what moves in a storm is told together."""
        try:
            self.tell(ServersChanged())
            await asyncio.sleep(BETWEEN_LOOKS)
        finally:
            self._servers_told = False
            if self._servers_again:
                self._on_server_move(servers)

    def shows(self, in_cell: bool) -> bool:
        """See `QuestionViewer.shows`."""
        return any(
            shows_questions(each) and each.is_alive and (each.hears_in_cell or not in_cell)
            for each in list(self.connections)
        )

    def question_asked(self, waiting: OpenQuestion) -> None:
        """See `QuestionViewer`."""
        for connection in filter(shows_questions, list(self.connections)):
            with suppress(Exception):  # its channel is broken; the others are asked all the same
                connection.send(ViewEvent(event=approval_asked(waiting, connection.answer_key)))

    def question_settled(self, waiting: OpenQuestion) -> None:
        """See `QuestionViewer`."""
        self.tell(ApprovalSettled(id=waiting.id, outcome=waiting.outcome))

    def _on_run_change(self, run: str, ended: bool) -> None:
        self.tell(RunChanged(run=run, ended=ended))


def shows_questions(connection: Subscriber) -> bool:
    """Return whether the front end of a connection puts questions before a person."""
    return connection.hello is not None and connection.hello.approves


@cache
def kernel_hub() -> Hub:
    """Return the hub of this process."""
    return Hub(current.session)


def _kernel_loop() -> asyncio.AbstractEventLoop | None:
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    kernel_loop = getattr(getattr(shell, "kernel", None), "io_loop", None)
    found = getattr(kernel_loop, "asyncio_loop", None)
    return found if isinstance(found, asyncio.AbstractEventLoop) else None
