"""The progress of a client's call or turn, as MCP's notifications or A2A's status messages.

Invariants: the number of each notification is greater than the one before, as the protocol asks; of reports that come
faster than a client reads, the last one is sent. While the call waits or runs, the last message is sent again after
`AGAIN` seconds of silence, so that a client that counts silence keeps waiting.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from reyn_jupyter.runtime.record.events import ActionProgressed, InnerEvent

AGAIN = 5.0  # seconds of silence after which the last message is sent again
_FLUSH = 1.0  # seconds that the last word may take
Send = Callable[[float, float | None, str | None], Awaitable[None]]
_Report = tuple[float | None, float | None, str]  # done, total, message


class ClientProgress:
    """Sends the reports of one call. Made and used on the engine's loop.

    Args:
        send: sends number, total and message to the client.
        message: what is sent until something is reported.
    """

    def __init__(self, send: Send, message: str = "") -> None:
        self._send = send
        self._news = asyncio.Event()
        self._latest: _Report = (None, None, message)
        self._last = 0.0
        self._before: _Report = self._latest  # the report that `waits` replaced

    @property
    def message(self) -> str:
        """Return the last message."""
        return self._latest[2]

    def hear(self, event: Any) -> None:
        """Take an event of the call's run, or of a run within it."""
        event = event.event if isinstance(event, InnerEvent) else event
        if isinstance(event, ActionProgressed):
            self._latest = (event.done, event.total, event.message)
            self._news.set()

    def says(self, message: str) -> None:
        """Say something that has no number."""
        self._latest = (None, None, message)
        self._news.set()

    def waits(self, message: str) -> None:
        """Say what is waited for, until `goes_on`."""
        self._before, self._latest = self._latest, (None, None, message)
        self._news.set()

    def goes_on(self) -> None:
        """Go back to what was reported before the wait."""
        self._latest = self._before

    async def run(self) -> None:
        """Send what there is until this is cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN):
                    await self._news.wait()
            await self._send_latest()

    async def flush(self) -> None:
        """Send the last word, if it was not."""
        if self._news.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH):
                    await self._send_latest()

    async def _send_latest(self) -> None:
        self._news.clear()
        done, total, message = self._latest
        following = math.nextafter(self._last, math.inf)
        if done is None:
            number, total = max(math.floor(self._last) + 1.0, following), None
        else:
            number = max(done, following)
        self._last = number
        await self._send(number, total, message or None)
