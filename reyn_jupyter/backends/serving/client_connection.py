"""The connections of clients: bounded in number and time until they have shown the token, and whose process each is.

Invariants: who has not shown the token holds no place: of such connections there are never more than so many, the
oldest goes first, and what one begins, a request's head or a body that nobody wants, is whole within seconds or it is
closed. Whose process is at the other end is the system's word, and not the client's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from reyn_jupyter.support.programs.process_identity import ProcessIdentity, process_began

SILENCE = 5.0  # seconds in which a new connection says something, and in which what it begins is whole
MOST_STRANGERS = 64  # connections at once that have not shown the token
_LOOK_UP = 2.0  # seconds that the look-up of a process may take
Address = tuple[str, int]


class ClientConnection:
    """One connection of a client.

    Args:
        there, here: the addresses of its two ends.
        admit: told once it has shown the token.
    """

    def __init__(self, there: Address, here: Address, admit: Callable[[], None]) -> None:
        self._ends = there, here
        self._looking: asyncio.Task[ProcessIdentity | None] | None = None
        self.admit = admit

    async def process(self) -> ProcessIdentity | None:
        """Return the process at its other end; None where the system does not say it."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_up())
        return await asyncio.shield(self._looking)

    async def _look_up(self) -> ProcessIdentity | None:
        try:
            async with asyncio.timeout(_LOOK_UP):
                return await asyncio.to_thread(process_at, *self._ends)
        except TimeoutError:
            return None


def process_at(there: Address, here: Address) -> ProcessIdentity | None:
    """Return the process that holds the end `there` of a connection to `here`.

    None where the system does not say: the process is another user's, or the system tells nobody but root.
    """
    import psutil  # ipykernel brings it along

    try:
        found = next(
            (
                each.pid
                for each in psutil.net_connections("tcp4")
                if (each.laddr, each.raddr) == (there, here)
            ),
            None,
        )
    except (psutil.Error, OSError, NotImplementedError):
        return None
    began = None if found is None else process_began(found)
    return None if found is None or began is None else ProcessIdentity(found, began)


def bounded_protocol() -> type[Any]:
    """Return what speaks HTTP with one connection, within the bounds that this module says."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    strangers: dict[Any, None] = {}  # the oldest first

    class BoundedProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            there, here = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
            connection = ClientConnection(there, here, lambda: strangers.pop(self, None))
            self.app_state = {**self.app_state, "connection": connection}
            strangers[self] = None
            while len(strangers) > MOST_STRANGERS:
                oldest = next(iter(strangers))
                del strangers[oldest]
                oldest.transport.abort()
            # As between two requests: the first byte takes the timer away.
            self.timeout_keep_alive_task = self.loop.call_later(SILENCE, self.timeout_keep_alive_handler)

        def connection_lost(self, exc: Exception | None) -> None:
            strangers.pop(self, None)
            self._set_deadline(False)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._hold()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._hold()

        def _hold(self) -> None:
            """Hold a client to the end of what it has begun."""
            theirs = self.conn.their_state
            head = theirs is h11.IDLE and bool(self.conn.trailing_data[0])
            unwanted = theirs is h11.SEND_BODY and self.conn.our_state is h11.DONE
            self._set_deadline((head or unwanted) and not self.transport.is_closing())

        def _set_deadline(self, on: bool) -> None:
            if self._deadline is not None and not on:
                self._deadline.cancel()
                self._deadline = None
            elif self._deadline is None and on:
                self._deadline = self.loop.call_later(SILENCE, self.transport.abort)

    return BoundedProtocol
