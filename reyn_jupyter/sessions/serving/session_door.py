"""The life of a session that is served: it opens, offers more, and ends.

Invariants: it begins when the person says so, by a line or a method, and by nothing else: no setting, file or action
does. All of it are tasks of the session, and end with it. The token is known as a secret before anybody has it: no
record, answer or display shows it.
"""

from __future__ import annotations

import asyncio
import importlib
import secrets
from contextlib import suppress
from typing import Any, Protocol

from reyn_jupyter.backends.serving.address_file import AddressFile, OfferName
from reyn_jupyter.backends.serving.connected_clients import ConnectedClients
from reyn_jupyter.backends.serving.door import Door, ServedPaths
from reyn_jupyter.backends.serving.served_session import MCP_PATH, OFFERS, ServedSession
from reyn_jupyter.guard.state_folder import StateError, StateFolder
from reyn_jupyter.sessions.assembly import ENGINE, Parts
from reyn_jupyter.support.secrets import cover_in_displays

TASK = "door of this session"
# Where the class of each is: importing it imports its protocol's SDK.
_SERVICES: dict[OfferName, tuple[str, str]] = {
    "mcp": ("reyn_jupyter.sessions.serving.mcp_service", "McpService"),
    "a2a": ("reyn_jupyter.sessions.serving.agent_service", "AgentService"),
}


class Service(ServedPaths, Protocol):
    """What answers the clients of one protocol."""

    def look_soon(self) -> None:
        """Take note that a cell may have changed what there is. From any thread."""


class SessionDoor:
    """One session's door. It belongs on the engine's loop.

    Args:
        parts: the session's.
        wait: seconds that a client's question to the person stays open.

    Raises:
        OSError: no address is free.
    """

    def __init__(self, parts: Parts, wait: float) -> None:
        self._parts = parts
        self._wait = wait
        self._session = secrets.token_hex(4)
        self._file = AddressFile(StateFolder(parts.root))
        self._clients = ConnectedClients(parts.redactor.text)
        self._door = Door(self._clients)
        self._services: dict[OfferName, Service] = {}
        token = self._door.token
        parts.redactor.learn(token.name, token.reveal())
        cover_in_displays(token.name, token.reveal())
        self._door.listen()
        # In tasks of their own, with this one's context: what is asked of the notebook goes where the calls' parts go.
        self._task = parts.tasks.spawn(self._serve(), TASK)
        self._holding: list[asyncio.Task[Any]] = []

    async def add(self, what: OfferName) -> None:
        """Offer something more; nothing where it is offered already.

        Raises:
            StateError: it cannot be written down where the session is.
        """
        if what in self._services:
            return
        await self._parts.catalog.refresh()
        module, name = _SERVICES[what]
        make = getattr(importlib.import_module(module), name)
        service: Service = make(self._parts, self._clients, self._wait, self._door)
        ready = asyncio.Event()
        holding = self._parts.tasks.spawn(self._door.hold(service, ready), OFFERS[what])
        self._holding.append(holding)
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait([waiting, holding], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        self._services[what] = service
        url, notebook = self._door.origin + MCP_PATH, self._parts.notebook or ""
        self._file.add(self._session, url, self._door.token, notebook, tuple(self._services))

    async def end(self) -> None:
        """End it: the address is closed, and what is under way is cancelled."""
        for task in (self._task, *self._holding):
            task.cancel()
        await asyncio.wait([self._task, *self._holding])

    async def _serve(self) -> None:
        try:
            await self._door.serve()
        finally:
            for task in self._holding:
                if not task.cancelling():  # a second time would interrupt it while it ends what is under way
                    task.cancel()
            # First out of the file, so that nobody finds an address that another program may take.
            with suppress(StateError):
                self._file.remove(self._session)
            self._door.close()

    def served(self) -> ServedSession:
        """Return it as people hold it."""
        task = self._task

        def stop() -> None:
            if not task.done():
                ENGINE.run(self.end())

        def look() -> None:
            if not task.done():
                for service in tuple(self._services.values()):
                    service.look_soon()

        async def wait_for_end() -> None:
            await asyncio.wait([task])

        return ServedSession(
            self._session,
            self._door.origin,
            self._wait,
            self._file,
            self._clients,
            lambda: not task.done(),
            stop,
            lambda: ENGINE.run(wait_for_end()),
            look,
            self.add,
            lambda: tuple(self._services),
        )


async def open_door(parts: Parts, wait: float, what: OfferName) -> ServedSession:
    """Begin to serve a session.

    Raises:
        OSError: no address is free. StateError: it cannot be written down where it is.
    """
    door = SessionDoor(parts, wait)
    try:
        await door.add(what)
    except BaseException:
        await door.end()
        raise
    return door.served()
