"""What answers at the door by the A2A protocol: the agent's card, and its JSON-RPC.

Invariants: the card is read by who has the token, as all else is; bodies are bounded, and so are the tasks that are
remembered. A task belongs to the program that began it: to any other it is as if it were not there.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from a2a.auth.user import User
from a2a.server.agent_execution import AgentExecutor
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCard, Task, TaskState
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse

from reyn_jupyter.backends.serving.connected_clients import ClientRequest, ConnectedClients
from reyn_jupyter.backends.serving.served_session import AGENT_PATH, CARD_PATH

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

MOST_BODY = 1 << 20  # bytes of one request
MOST_TASKS = 200  # that are remembered, of all clients together
_ENDED = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_REJECTED,
    }
)


class AgentEndpoint:
    """Answers for one agent.

    Args:
        executor: does what is asked.
        card: returns the card as it is now.
        clients: told who is heard of.
    """

    paths = frozenset({AGENT_PATH, CARD_PATH})

    def __init__(
        self, executor: AgentExecutor, card: Callable[[], AgentCard], clients: ConnectedClients
    ) -> None:
        # Without a handler, Python writes its warnings onto the page below a cell.
        logging.getLogger("a2a").addHandler(logging.NullHandler())
        self._card = card
        self._clients = clients
        self._handler = DefaultRequestHandler(
            agent_executor=executor, task_store=_BoundedTasks(), agent_card=card()
        )
        self._rpc = JsonRpcDispatcher(self._handler, _ClientContexts(), enable_v0_3_compat=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """End what is under way with it."""
        try:
            yield
        finally:
            await self._handler.aclose()

    async def answer(self, scope: Scope, receive: Receive, send: Send, known: ClientRequest) -> None:
        """Answer a request of who has shown the token."""
        request = Request(scope, receive)
        await self._note(request, known)
        wanted = "GET" if scope["path"] == CARD_PATH else "POST"
        if request.method != wanted:
            refused = PlainTextResponse(f"{wanted} is answered here.\n", 405, {"Allow": wanted})
            await refused(scope, receive, send)
            return
        if scope["path"] == CARD_PATH:
            await JSONResponse(agent_card_to_dict(self._card()))(scope, receive, send)
            return
        try:
            body = await _body(request)
        except ClientDisconnect:
            return
        if body is None:
            too_large = PlainTextResponse(
                f"A request has at most {MOST_BODY >> 20} MiB.\n", 413, {"Connection": "close"}
            )
            await too_large(scope, receive, send)
            return
        response = await self._rpc.handle_requests(Request(scope, _replay(body, receive)))
        await response(scope, receive, send)

    async def _note(self, request: Request, known: ClientRequest) -> None:
        """Take note which program asks: the system says which process it is, and the program what it is called."""
        label = self._clients.label(request.headers.get("user-agent"), None)
        process = await known.connection.process()
        key = f"a2a {label}" if process is None else f"a2a {process.pid} {process.began} {label}"
        self._clients.heard(key, label, process)
        known.client = (key, label)
        known.belongs_to(key)


async def _body(request: Request) -> bytes | None:
    """Return the body of a request; None where it has more than is taken. Raises ClientDisconnect."""
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > MOST_BODY:
            return None
    return bytes(found)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read, and then what comes after it."""
    rest: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return rest.pop() if rest else await receive()

    return again


class _Client(User):
    """A program that has shown the token."""

    def __init__(self, key: str) -> None:
        self._key = key

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def user_name(self) -> str:
        return self._key


class _ClientContexts(DefaultServerCallContextBuilder):
    """Tells the handlers which program asks."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        # The SDK logs what stands here: the token does not.
        headers = context.state["headers"]
        context.state["headers"] = {
            name: headers[name] for name in headers if name.lower() != "authorization"
        }
        context.state["client"] = _known(request).client
        return context

    def build_user(self, request: Request) -> User:
        return _Client(_known(request).client[0])


def _known(request: Request) -> ClientRequest:
    found: ClientRequest = request.scope["state"]["request"]
    return found


class _BoundedTasks(InMemoryTaskStore):
    """Remembers so many tasks; of more the oldest that have ended go."""

    def __init__(self) -> None:
        super().__init__()
        self._order: dict[
            str, tuple[bool, ServerCallContext]
        ] = {}  # by id: whether it has ended, and whose it is

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Remember a task as it is now."""
        before = self._order.get(task.id)
        self._order[task.id] = (task.status.state in _ENDED, context if before is None else before[1])
        await super().save(task, context)
        for key in [key for key, (ended, _) in self._order.items() if ended][: len(self._order) - MOST_TASKS]:
            await self.delete(key, self._order.pop(key)[1])
