"""What a client of the protocol needs of the SDK.

Importing this module imports the SDK.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.mcp_sdk.http import httpx
from reyn_jupyter.backends.mcp_sdk.sdk import IS_FIRST

if TYPE_CHECKING or not IS_FIRST:
    from mcp import Client, MCPError
    from mcp.client.streamable_http import streamable_http_client
    from mcp.server.stdio import stdio_server
else:
    from reyn_jupyter.backends.mcp_sdk.first_client import Client, stdio_server
    from reyn_jupyter.backends.mcp_sdk.first_errors import MCPError
    from reyn_jupyter.backends.mcp_sdk.first_http import streamable_http_client

__all__ = ["Client", "MCPError", "stdio_server", "streamable_http"]


def streamable_http(url: str, client: httpx.AsyncClient, largest: int) -> AbstractAsyncContextManager[Any]:
    """Return a connection over streamable HTTP: the streams in and out.

    Args:
        url: the address of the server.
        client: sends the requests.
        largest: bytes of one event.
    """
    return streamable_http_client(url, http_client=client, max_sse_event_size=largest)
