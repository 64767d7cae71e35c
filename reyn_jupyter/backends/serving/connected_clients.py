"""The clients of a served session: who they say that they are, and how much of it is under way at once.

Invariants: what a client says of itself is untrusted text, cleaned and bounded before anybody reads it; there are never
more entries or calls than the bounds say, whatever is sent. A client that is gone counts as gone, also where it never
said so: its stream has closed, its process has ended, or nothing was heard of it for a long time.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from reyn_jupyter.backends.serving.client_connection import ClientConnection
from reyn_jupyter.support.encoding import clean
from reyn_jupyter.support.programs.process_identity import ProcessIdentity
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import shorten

MOST_CLIENTS = 32
MOST_CALLS = 8  # that run at once, of all clients together
MOST_WAITING = 32  # calls that wait for one of these to end
IDLE_SECONDS = 30 * 60.0  # without a request, after which a client is gone and its session forgotten
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
        requests: its requests that are open, among them a stream on which it waits for news.
        process: the number of its process, where the system says it; a bridge's, for a client behind pipes.
        left: it is gone: it said so, its stream closed, its process ended, or it was silent for half an hour.
    """

    name: str
    since: float
    last: float
    calls: int = 0
    errors: int = 0
    under_way: int = 0
    requests: int = 0
    process: int | None = None
    left: bool = False

    @property
    def is_connected(self) -> bool:
        """Return whether something of it is open now; of who is silent between two requests nobody knows."""
        return not self.left and bool(self.requests or self.under_way)


class ClientRequest:
    """One HTTP request of a client, from its head to the end of its answer.

    Args:
        clients: counts it, once it is known whose it is.
        connection: the connection that it came by.
    """

    def __init__(self, clients: ConnectedClients, connection: ClientConnection) -> None:
        self.connection = connection
        self.client = ("", "")  # by what it is known, and what it says of itself
        self._clients = clients
        self._key = ""
        self._is_stream = False

    def belongs_to(self, key: str) -> None:
        """Take note whose it is."""
        if not self._key:
            self._key = key
            self._clients.open(key)

    def becomes_stream(self) -> None:
        """Take note that it is the stream on which a session waits for news: the session lives, and ends with it."""
        self._is_stream = True
        self._clients.come_back(self._key)

    def end(self) -> None:
        """Take note that it has ended."""
        if self._key:
            self._clients.close(self._key)
            if self._is_stream:
                self._clients.leave(self._key)


class ConnectedClients:
    """Who is connected. It is changed on the engine's loop alone, and read from any thread.

    Args:
        redact: takes secrets out of a text.
        now: the time, in seconds since the epoch.
    """

    def __init__(self, redact: Callable[[str], str], now: Callable[[], float] = time.time) -> None:
        self._redact = redact
        self._now = now
        self._clients: dict[str, ConnectedClient] = {}
        self._processes: dict[str, ProcessIdentity] = {}
        self._open: Counter[str] = Counter()  # requests, of clients that are not known yet too
        self._places = asyncio.Semaphore(MOST_CALLS)
        self._taken = 0

    def all(self) -> tuple[ConnectedClient, ...]:
        """Return the clients, the one heard of last first."""
        return tuple(sorted(self.by_key().values(), key=lambda each: each.last, reverse=True))

    def by_key(self) -> dict[str, ConnectedClient]:
        """Return the clients under what tells each from others."""
        known = self._clients.copy()  # the loop may add one meanwhile
        now_open = {key: replace(each, requests=self._open[key]) for key, each in known.items()}
        return {
            key: replace(each, left=each.left or self._is_gone(key, each)) for key, each in now_open.items()
        }

    def _is_gone(self, key: str, client: ConnectedClient) -> bool:
        process = self._processes.get(key)
        if process is not None and not process.is_alive:
            return True
        return not client.is_connected and self._now() - client.last > IDLE_SECONDS

    def label(self, name: object, version: object) -> str:
        """Return what a client says of itself as one bounded line that can deceive nobody.

        >>> ConnectedClients(str).label("Claude\\u202e", "1.0")
        'Claude⟨U+202E⟩ 1.0'
        """
        words = [self._cleaned(each) for each in (name, version)]
        return " ".join(word for word in words if word) or UNNAMED

    def heard(self, key: str, label: str, process: ProcessIdentity | None = None) -> None:
        """Take note that a client was heard of.

        Args:
            key: tells it from others: the id of its session, or its process and what it says of itself.
        """
        now = self._now()
        known = self._clients.get(key)
        if known is None:
            while len(self._clients) >= MOST_CLIENTS:
                there = self.by_key()
                oldest = min(there, key=lambda each: (not there[each].left, there[each].last))
                del self._clients[oldest]
                self._processes.pop(oldest, None)
            known = ConnectedClient(label, now, now)
        self._clients[key] = replace(known, name=label, last=now, left=False)
        self.note_process(key, process)

    def knows(self, key: str) -> bool:
        """Return whether a client is among those that are remembered, and has not left."""
        return key in self._clients and not self._clients[key].left

    def note_process(self, key: str, process: ProcessIdentity | None) -> None:
        """Take note which process a client is, where the system says it; it may have left meanwhile."""
        if process is not None and key in self._clients:
            self._processes[key] = process
            self._clients[key] = replace(self._clients[key], process=process.pid)

    def knows_process(self, key: str) -> bool:
        """Return whether it is known which process a client is."""
        return key in self._processes

    def open(self, key: str) -> None:
        """Take note that a request of a client begins."""
        self._open[key] += 1

    def close(self, key: str) -> None:
        """Take note that a request of a client has ended."""
        self._open[key] -= 1
        if self._open[key] <= 0:
            del self._open[key]
        self._count(key)

    def come_back(self, key: str) -> None:
        """Take note that a client that seemed to be gone is there."""
        if key in self._clients:
            self._clients[key] = replace(self._clients[key], left=False, last=self._now())

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
        """Add to what is counted of a client, who was heard of by it; nothing where it is not known."""
        known = self._clients.get(key)
        if known is not None:
            self._clients[key] = replace(
                known,
                calls=known.calls + calls,
                errors=known.errors + errors,
                under_way=max(0, known.under_way + under_way),
                last=self._now(),
            )

    def _cleaned(self, text: object) -> str:
        if not isinstance(text, str):
            return ""
        line = " ".join(self._redact(clean(text[:4096])).split())
        return shorten(printable(shorten(line, _LONGEST)), 2 * _LONGEST)
