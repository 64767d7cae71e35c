"""Count what leaves: each request body that is handed to an open connection, by host, while a meter is in force.

Invariants: a body counts from the moment its first byte may be on its way, so that a refused connection, a missing key
and a recorded answer count nothing, and a call that is interrupted afterwards counts whole. Where a server sends a
request on to another host, it counts at each. Nothing of a body is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from reyn_jupyter.models.base import Model, Request, canonical
from reyn_jupyter.models.providers.provider_facts import host_of
from reyn_jupyter.models.providers.raw_stream import note_body

if TYPE_CHECKING:
    import httpx

Listener = Callable[[str, int, bool], None]
_TRACE = "trace"  # the extension by which httpx says what happens to a request


class WireMeter:
    """Tells a listener of what leaves: the host, the bytes of the body, and whether they were counted on the wire.

    Attributes:
        watched: whether the model that was called counts by itself what it sends.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.watched = False
        self.requests = 0

    def add(self, host: str, size: int, *, counted: bool = True) -> None:
        """Count one request."""
        self.requests += 1
        self._listener(host, size, counted)


_meter: ContextVar[WireMeter | None] = ContextVar("wire_meter", default=None)


@contextmanager
def metering(listener: Listener) -> Iterator[WireMeter]:
    """Let a listener hear of every request body that leaves in the current task, and in those that it begins.

    Example:
        >>> with metering(lambda host, size, counted: None) as meter:
        ...     meter.requests
        0
    """
    meter = WireMeter(listener)
    before = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(before)


@contextmanager
def metering_call(model: Model, request: Request, listener: Listener) -> Iterator[None]:
    """Let a listener hear of what one call of a model sends, however it ends.

    A model that goes to a host and does not count for itself is taken at its word: the request as JSON, not counted.
    """
    with metering(listener) as meter:
        try:
            yield
        finally:
            if model.host is not None and not meter.watched and not meter.requests:
                meter.add(model.host, len(canonical(request.wire)), counted=False)


def watch() -> WireMeter | None:
    """Say that the model which is called counts for itself what it sends; return the meter in force."""
    meter = _meter.get()
    if meter is not None:
        meter.watched = True
    return meter


def count_client(client: httpx.AsyncClient) -> None:
    """Count what an HTTP client sends from now on. Doing it again changes nothing."""
    hooks = client.event_hooks
    if _count not in hooks["request"]:
        client.event_hooks = {
            "request": [*hooks["request"], _count],
            "response": [*hooks["response"], note_body],
        }


async def _count(request: httpx.Request) -> None:
    """Count a request, once its connection stands; httpx calls this before each, those after a redirect among them."""
    meter = _meter.get()
    if meter is None:
        return
    before = request.extensions.get(_TRACE)
    if isinstance(before, _BodyTrace):  # a redirect takes the extensions along
        before = before.before
    trace = _BodyTrace(meter, host_of(str(request.url)) or request.url.host, _size(request), before)
    request.extensions = {**request.extensions, _TRACE: trace}


class _BodyTrace:
    """Hears from httpx when the body of one request begins to leave."""

    def __init__(self, meter: WireMeter, host: str, size: int, before: Any) -> None:
        self.before = before
        self._meter, self._host, self._size = meter, host, size

    async def __call__(self, event: str, info: dict[str, Any]) -> None:
        # A proxy is first asked for a tunnel, in a request of its own that is told here too and carries no body.
        if event.endswith("send_request_body.started") and info["request"].method != b"CONNECT":
            self._meter.add(self._host, self._size)
        if self.before is not None:
            await self.before(event, info)


def _size(request: httpx.Request) -> int:
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() else len(request.content)
