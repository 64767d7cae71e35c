"""The client of MCP servers: connections, what servers say of themselves, and what their tools answer."""

from __future__ import annotations

from reyn_jupyter.backends.mcp.connections import McpConnections as McpConnections
