"""Messages of the protocol between `mcp-types` and the first major version of the SDK.

Invariant: a message is wrapped anew and not checked again: who made it has done so.

Importing this module imports the SDK.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import mcp_types

_types: Any = importlib.import_module("mcp.types")
_message: Any = importlib.import_module("mcp.shared.message")
_FIELDS = ("jsonrpc", "id", "method", "params", "result")


def _copied(message: Any, to: Any) -> Any:
    """Return a message as the class of its name in another module."""
    told = {name: getattr(message, name) for name in _FIELDS if hasattr(message, name)}
    if told.get("params", ...) is None:
        del told["params"]
    if hasattr(message, "error"):
        error = message.error
        told["error"] = to.ErrorData(code=error.code, message=error.message, data=error.data)
    return getattr(to, type(message).__name__).model_construct(**told)


def to_first(item: Any) -> Any:
    """Return a message for the SDK; an exception as it is."""
    if isinstance(item, Exception):
        return item
    root = _copied(item.message, _types)
    return _message.SessionMessage(_types.JSONRPCMessage.model_construct(root=root), item.metadata)


def from_first(item: Any) -> Any:
    """Return a message of the SDK's in the classes of `mcp-types`; an exception as it is."""
    if isinstance(item, Exception):
        return item
    return _message.SessionMessage(_copied(item.message.root, mcp_types), item.metadata)


class _Stream:
    """One direction of a transport, with each message changed on its way."""

    def __init__(self, stream: Any, change: Callable[[Any], Any]) -> None:
        self._stream = stream
        self._change = change

    async def send(self, item: Any) -> None:
        await self._stream.send(self._change(item))

    async def receive(self) -> Any:
        return self._change(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> _Stream:
        return self

    async def __anext__(self) -> Any:
        return self._change(await self._stream.__anext__())

    async def __aenter__(self) -> _Stream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)


@asynccontextmanager
async def changed(
    transport: AbstractAsyncContextManager[Any],
    incoming: Callable[[Any], Any],
    outgoing: Callable[[Any], Any],
) -> AsyncIterator[tuple[Any, Any]]:
    """Yield the streams of a transport, with the messages of either changed."""
    async with transport as streams:
        yield _Stream(streams[0], incoming), _Stream(streams[1], outgoing)
