"""Agents on loopback that speak A2A: the SDK's sample, one with every kind of answer, and applications by hand."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from a2a.helpers import new_data_part, new_raw_part, new_text_message, new_text_part, new_url_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette

App = Callable[[dict[str, Any], Any, Any], Any]


class HelloWorldExecutor(AgentExecutor):
    """The sample of the SDK: it answers every message with one of its own."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(new_text_message("Hello, World!", context_id=context.context_id))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


class EveryAnswer(AgentExecutor):
    """Answers as the first word of a message says; `heard` are the messages, `cancelled` the tasks that were."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.contexts: list[str] = []
        self.cancelled: list[str] = []
        self.begun = threading.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id and context.context_id
        said = context.get_user_input()
        self.heard.append(said)
        self.contexts.append(context.context_id)
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(
                Task(id=context.task_id, context_id=context.context_id, status=status)
            )
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await getattr(self, f"_{said.split()[0]}")(updater)

    async def _work(self, updater: TaskUpdater) -> None:
        for words in ("looking at the first half", "looking at the second half"):
            await updater.start_work(updater.new_agent_message([new_text_part(words)]))
        for at, text in enumerate(("The answer ", "is ", "forty-two.")):
            await updater.add_artifact(
                [new_text_part(text)], artifact_id="a", append=at > 0, last_chunk=at == 2
            )
        await updater.complete()

    async def _parts(self, updater: TaskUpdater) -> None:
        parts = [
            new_text_part("The figures:"),
            new_data_part({"rows": [1, 2]}),
            new_raw_part(b"a,b\n1,2\n", filename="figures.csv", media_type="text/csv"),
            new_url_part("https://example.org/more"),
        ]
        await updater.add_artifact(parts)
        await updater.complete()

    async def _ask(self, updater: TaskUpdater) -> None:
        await updater.requires_input(updater.new_agent_message([new_text_part("For which year?")]))

    async def _year(self, updater: TaskUpdater) -> None:
        await updater.complete(updater.new_agent_message([new_text_part("In that year: 7.")]))

    async def _auth(self, updater: TaskUpdater) -> None:
        await updater.requires_auth(updater.new_agent_message([new_text_part("Please sign in.")]))

    async def _fail(self, updater: TaskUpdater) -> None:
        await updater.failed(updater.new_agent_message([new_text_part("The disk\x1b[2K is full.")]))

    async def _reject(self, updater: TaskUpdater) -> None:
        await updater.reject(updater.new_agent_message([new_text_part("Not my subject.")]))

    async def _forever(self, updater: TaskUpdater) -> None:
        await updater.start_work(updater.new_agent_message([new_text_part("still busy")]))
        self.begun.set()
        await asyncio.Event().wait()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id and context.context_id
        self.cancelled.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def agent_card(
    url: str, *, streaming: bool = True, binding: str = "JSONRPC", version: str = "1.0"
) -> AgentCard:
    skill = AgentSkill(id="hello", name="Hello", description="Says hello.", tags=["hello"])
    return AgentCard(
        name="Test agent",
        description="Answers tests.",
        version="1",
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(streaming=streaming),
        supported_interfaces=[AgentInterface(url=url, protocol_binding=binding, protocol_version=version)],
        skills=[skill],
    )


@dataclass
class Loopback:
    """A running application.

    Attributes:
        requests: method, path and headers of those that came.
    """

    port: int
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def served(make: Callable[[str], App]) -> Iterator[Loopback]:
    """Serve what `make` gives for the URL that it is served at."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)  # who comes before the server runs waits for it
    site = Loopback(listener.getsockname()[1])
    app = make(site.url)

    async def noting(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            site.requests.append((scope["method"], scope["path"], headers))
        await app(scope, receive, send)

    config = uvicorn.Config(noting, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()


@contextmanager
def agent(executor: AgentExecutor, **card: Any) -> Iterator[Loopback]:
    """Serve an agent on the SDK's own server."""

    def make(url: str) -> App:
        described = agent_card(url, **card)
        handler = DefaultRequestHandler(
            agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=described
        )
        rest = create_rest_routes(handler) if card.get("binding") == "HTTP+JSON" else []
        rpc = create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True)
        return Starlette(routes=[*create_agent_card_routes(described), *rpc, *rest])

    with served(make) as site:
        yield site


def card_json(url: str, **more: Any) -> dict[str, Any]:
    """Return a card as JSON, for applications by hand."""
    from google.protobuf.json_format import MessageToDict

    return {**MessageToDict(agent_card(url)), **more}
