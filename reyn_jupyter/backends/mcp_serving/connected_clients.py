"""The MCP clients of a served session: who they say that they are, and how much of it is under way at once.

Invariants: what a client says of itself is untrusted text, cleaned and bounded before anybody reads it; there are never
more entries or calls than the bounds say, whatever is sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from reyn_jupyter.support.encoding import clean
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import shorten

MOST_CLIENTS = 32
MOST_CALLS = 8  # that run at once, of all clients together
MOST_WAITING = 32  # calls that wait for one of these to end
_LONGEST = 60  # characters of a name or a version
UNNAMED = "a client without a name"


class TooManyCallsError(Exception):
    """More calls are under way than are taken at once."""


@dataclass(frozen=True)
class ConnectedClient:
    """One client, as it was when somebody looked.

    Attributes:
        name: its name and version, as it says.
        since, last: when it came, and when it was last heard of, in seconds since the epoch.
        calls, errors: its tool calls, and how many of them failed.
        under_way: its calls that have not ended.
        left: it said that it is done, or its session has ended.
    """

    name: str
    since: float
    last: float
    calls: int = 0
    errors: int = 0
    under_way: int = 0
    left: bool = False


class ConnectedClients:
    """Who is connected. It is changed on the engine's loop alone, and read from any thread.

    Args:
        redact: takes secrets out of a text.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._clients: dict[str, ConnectedClient] = {}
        self._places = asyncio.Semaphore(MOST_CALLS)
        self._taken = 0

    def all(self) -> tuple[ConnectedClient, ...]:
        """Return the clients, the one heard of last first."""
        known = self._clients.copy()  # the loop may add one meanwhile
        return tuple(sorted(known.values(), key=lambda each: each.last, reverse=True))

    def label(self, name: object, version: object) -> str:
        """Return what a client says of itself as one bounded line that can deceive nobody.

        >>> ConnectedClients(str).label("Claude\\u202e", "1.0")
        'Claude⟨U+202E⟩ 1.0'
        """
        words = [self._cleaned(each) for each in (name, version)]
        return " ".join(word for word in words if word) or UNNAMED

    def heard(self, key: str, label: str) -> None:
        """Take note that a client was heard of.

        Args:
            key: tells it from others: the id of its session, or what it says of itself where it has none.
        """
        now = time.time()
        known = self._clients.get(key)
        if known is None:
            while len(self._clients) >= MOST_CLIENTS:
                oldest = min(
                    self._clients, key=lambda each: (not self._clients[each].left, self._clients[each].last)
                )
                del self._clients[oldest]
            known = ConnectedClient(label, now, now)
        self._clients[key] = replace(known, name=label, last=now, left=False)

    def knows(self, key: str) -> bool:
        """Return whether a client is among those that are remembered, and has not left."""
        return key in self._clients and not self._clients[key].left

    def leave(self, key: str) -> None:
        """Take note that a client is done."""
        if key in self._clients:
            self._clients[key] = replace(self._clients[key], left=True)

    @contextmanager
    def call(self, key: str) -> Iterator[Callable[[bool], None]]:
        """Count a call while this block runs; it gives a function that takes whether the call went well.

        Raises:
            TooManyCallsError: too many wait already.
        """
        if self._taken >= MOST_CALLS + MOST_WAITING:
            self._count(key, calls=1, errors=1)
            raise TooManyCallsError
        went_well = False

        def end(ok: bool) -> None:
            nonlocal went_well
            went_well = ok

        self._taken += 1
        self._count(key, calls=1, under_way=1)
        try:
            yield end
        finally:
            self._taken -= 1
            self._count(key, under_way=-1, errors=0 if went_well else 1)

    @property
    def places(self) -> asyncio.Semaphore:
        """The places for calls that run at once."""
        return self._places

    def _count(self, key: str, *, calls: int = 0, errors: int = 0, under_way: int = 0) -> None:
        known = self._clients.get(key)
        if known is not None:
            self._clients[key] = replace(
                known,
                calls=known.calls + calls,
                errors=known.errors + errors,
                under_way=max(0, known.under_way + under_way),
                last=time.time(),
            )

    def _cleaned(self, text: object) -> str:
        if not isinstance(text, str):
            return ""
        line = " ".join(self._redact(clean(text[:4096])).split())
        return shorten(printable(shorten(line, _LONGEST)), 2 * _LONGEST)
