"""The protocol's SDK, as it is installed."""

from __future__ import annotations

from reyn_jupyter.backends.protocol_sdk import ProtocolSdk
from reyn_jupyter.support.versions import version_of

# 1.30 is the first of its line that bounds sessions and bodies of a served notebook; 2.3 the first that LiteLLM takes.
MCP_SDK = ProtocolSdk(
    "MCP",
    "mcp",
    {1: 30, 2: 3},
    None,
    ("reyn_jupyter.backends.mcp_sdk.client",),
    ("mcp", "client"),
    secretive=("mcp.client.auth",),  # its log of a sign-in can contain a token
    beside="mcp-types",
)
IS_FIRST = (version_of("mcp") or "").startswith("1.")  # other packages of an environment may pin it
