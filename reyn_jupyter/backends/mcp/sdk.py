"""The protocol's SDK."""

from __future__ import annotations

from reyn_jupyter.backends.protocol_sdk import ProtocolSdk

MCP_SDK = ProtocolSdk(
    "MCP",
    "mcp",
    "2",
    "mcp",
    ("mcp.client.client", "mcp.client.streamable_http", "httpx2"),
    ("mcp", "client"),
    secretive=("mcp.client.auth",),  # what it logs of a sign-in could hold a token
)
