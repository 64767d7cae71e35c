"""`python -P -m reyn_jupyter.mcp_bridge`: joins an MCP client's pipes to a notebook's session that is served.

Invariants: the address and the token come from the person's state folder, and stand in no argument, variable or output
(but of `--token`, which is for that). Each request first looks whether that very session is still served: another
program that takes its port gets neither token nor message. Messages pass as they are, the client's own name too. Where
no session can be reached, it says which, why, and what to do, and ends with 1.

Example:
    python -P -m reyn_jupyter.mcp_bridge --workspace ~/project
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from reyn_jupyter.backends.mcp_sdk.sdk import IS_FIRST
from reyn_jupyter.backends.serving.address_file import AddressFile, NotServedError, ServedAddress
from reyn_jupyter.guard.state_folder import StateFolder

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from mcp.shared.message import SessionMessage

LARGEST_MESSAGE = 32 << 20
CONNECT_SECONDS = 10.0
_LAST_WORD = 0.1  # seconds in which the client's last answer is written
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -P -m reyn_jupyter.mcp_bridge", description=__doc__)
    parser.add_argument("--workspace", default=".", help="the folder of the notebook's session")
    parser.add_argument("--session", help="one of several served sessions; the newest where it is left out")
    parser.add_argument("--token", action="store_true", help="print the token and end")
    options = parser.parse_args(words)
    file = AddressFile(StateFolder(options.workspace))
    try:
        address = file.find(options.session, None if options.token else "mcp")
    except NotServedError as error:
        sys.stderr.write(f"reyn: {error}\n")
        return 1
    if options.token:
        sys.stdout.write(address.token.reveal() + "\n")
        return 0
    import anyio

    anyio.run(_join, file, address)
    return 0


def _gone(address: ServedAddress) -> str:
    what = "is not served any more" if address.is_live else "is gone with its kernel"
    return (
        f"Session {address.label} {what}. Run %reyn serve mcp in the notebook, then start this server again."
    )


def _leave(address: ServedAddress) -> NoReturn:
    """Say that the session is lost, and end at once: a thread still waits for the client's next line."""
    sys.stderr.write(f"reyn: {_gone(address)}\n")
    sys.stderr.flush()
    os._exit(1)


async def _join(file: AddressFile, address: ServedAddress) -> None:
    """Pass messages both ways until the client is done; end this process where the session is lost."""
    import anyio

    from reyn_jupyter.backends.mcp_sdk.client import stdio_server, streamable_http
    from reyn_jupyter.backends.mcp_sdk.http import httpx

    headers = {"Authorization": f"Bearer {address.token.reveal()}", "accept-encoding": "identity"}
    limits = httpx.Limits(max_connections=None)
    timeout = httpx.Timeout(CONNECT_SECONDS, read=None)
    passed = _Passed(file, address)
    hooks = {"request": [passed.refuse_where_gone]}
    async with stdio_server() as (from_client, to_client):

        async def outward(to_session: Any, group: TaskGroup) -> None:
            async for item in from_client:
                if not isinstance(item, Exception):
                    await to_session.send(passed.stamped(item))
            group.cancel_scope.cancel()

        async def inward(from_session: Any, group: TaskGroup) -> None:
            async for item in from_session:
                if not isinstance(item, Exception):
                    await to_client.send(passed.explained(item))
                    if passed.lost:
                        break
            group.cancel_scope.cancel()

        try:
            async with (
                # No proxy of the environment stands between two programs of one machine.
                httpx.AsyncClient(
                    headers=headers, timeout=timeout, limits=limits, trust_env=False, event_hooks=hooks
                ) as http,
                streamable_http(address.url, http, LARGEST_MESSAGE) as streams,
                anyio.create_task_group() as group,
            ):
                group.start_soon(outward, streams[1], group)
                group.start_soon(inward, streams[0], group)
        except Exception:  # noqa: BLE001 - whatever the transport raises when its other end goes
            passed.lost = True
        if passed.lost:
            await anyio.sleep(_LAST_WORD)
            _leave(address)


class _Passed:
    """Knows what the HTTP side needs of the messages that pass: the protocol's version and, from 2026 on, routing."""

    def __init__(self, file: AddressFile, address: ServedAddress) -> None:
        self._file = file
        self._address = address
        self._version: str | None = None
        self._opening: Any = None  # the id of the request that opens a session
        self.lost = False

    def stamped(self, item: SessionMessage) -> SessionMessage:
        """Return a message of the client's with the headers that it needs."""
        if IS_FIRST:  # its transport keeps the version by itself, and knows none that needs more
            return item
        from mcp.shared.inbound import (
            MCP_METHOD_HEADER,
            MCP_NAME_HEADER,
            MCP_PROTOCOL_VERSION_HEADER,
            encode_header_value,
        )
        from mcp.shared.message import ClientMessageMetadata, SessionMessage

        message = item.message
        method, params = getattr(message, "method", None), getattr(message, "params", None) or {}
        if method == "initialize":
            self._opening, self._version = getattr(message, "id", None), None
        version = (params.get("_meta") or {}).get(_VERSION_KEY)
        headers: dict[str, str] = {}
        if isinstance(version, str):
            headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: str(method)}
            name = params.get("uri" if method == "resources/read" else "name")
            if isinstance(name, str):
                headers[MCP_NAME_HEADER] = encode_header_value(name)
        elif self._version is not None:
            headers = {MCP_PROTOCOL_VERSION_HEADER: self._version}
        return SessionMessage(message, metadata=ClientMessageMetadata(headers=headers))

    def explained(self, item: SessionMessage) -> SessionMessage:
        """Return a message of the session's; a failure because the session is gone says so."""
        from mcp.shared.message import SessionMessage
        from mcp_types import CONNECTION_CLOSED, ErrorData, JSONRPCError, JSONRPCResponse

        message = item.message
        if isinstance(message, JSONRPCResponse) and message.id == self._opening:
            self._version, self._opening = str(message.result.get("protocolVersion", "")) or None, None
        if isinstance(message, JSONRPCError) and message.id is not None and not self._is_there():
            self.lost = True
            error = ErrorData(code=CONNECTION_CLOSED, message=_gone(self._address))
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
        return item

    async def refuse_where_gone(self, request: Any) -> None:
        """Raise what an address raises at which nobody is, where the session is not served any more."""
        from reyn_jupyter.backends.mcp_sdk.http import httpx

        if not self._is_there():
            raise httpx.ConnectError(_gone(self._address))

    def _is_there(self) -> bool:
        """Return whether this very session is served: its kernel is there, and the person's file names it."""
        try:
            found = self._file.find(self._address.session)
        except (NotServedError, OSError):
            return False
        return (found.url, found.pid) == (self._address.url, self._address.pid)


if __name__ == "__main__":
    sys.exit(main())
