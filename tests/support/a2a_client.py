"""The SDK's own client at a session that is served as an A2A agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from a2a.client import Client, ClientConfig, create_client
from a2a.helpers import get_artifact_text, get_message_text, new_text_message
from a2a.types import Role, SendMessageRequest, Task, TaskState

import reyn_jupyter as reyn
from reyn_jupyter.backends.serving.address_file import AddressFile
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.sessions.assembly import ENGINE


def token_of(session: reyn.Session) -> str:
    return AddressFile(StateFolder(session.root)).find().token.reveal()


@asynccontextmanager
async def connected(session: reyn.Session, name: str = "asker/7", **options: Any) -> AsyncIterator[Client]:
    assert session.served is not None
    headers = {"Authorization": f"Bearer {token_of(session)}", "User-Agent": name}
    async with httpx.AsyncClient(headers=headers, timeout=120) as http:
        yield await create_client(session.served.agent_address, ClientConfig(httpx_client=http, **options))


def by_agent(session: reyn.Session, work: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """Do what a client does, over HTTP, while this thread serves the notebook's part."""
    if session.served is None:
        session.serve_a2a()

    async def run() -> Any:
        async with connected(session, **options) as client:
            return await work(client)

    return ENGINE.run(run())


def message(words: str, **more: Any) -> SendMessageRequest:
    return SendMessageRequest(message=new_text_message(words, role=Role.ROLE_USER, **more))


class Heard:
    """What a client hears of one message: the words of each state, and the task as it is in the end."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.state = ""
        self.answer = ""
        self.task = ""
        self.context = ""

    async def hear(self, client: Client, request: SendMessageRequest) -> Heard:
        async for event in client.send_message(request):
            if event.HasField("task"):
                self.take(event.task)
            elif event.HasField("status_update"):
                self._state(event.status_update.status)
            elif event.HasField("artifact_update"):
                self.answer += get_artifact_text(event.artifact_update.artifact)
        return self

    def take(self, task: Task) -> Heard:
        self.task, self.context = task.id, task.context_id
        self._state(task.status)
        self.answer = "".join(map(get_artifact_text, task.artifacts)) or self.answer
        return self

    def _state(self, status: Any) -> None:
        self.state = TaskState.Name(status.state).removeprefix("TASK_STATE_")
        if status.HasField("message"):
            self.words.append(get_message_text(status.message))


async def asked(client: Client, words: str, **more: Any) -> Heard:
    return await Heard().hear(client, message(words, **more))
