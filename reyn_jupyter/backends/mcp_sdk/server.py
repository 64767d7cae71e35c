"""What a server of the protocol needs of the SDK.

Importing this module imports the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reyn_jupyter.backends.mcp_sdk.sdk import IS_FIRST

if TYPE_CHECKING or not IS_FIRST:
    from mcp.server.lowlevel.server import NotificationOptions, Server
    from mcp.server.subscriptions import (
        InMemorySubscriptionBus,
        ListenHandler,
        ResourcesListChanged,
        ResourceUpdated,
        ToolsListChanged,
    )
    from mcp.shared.exceptions import MCPError
else:
    from reyn_jupyter.backends.mcp_sdk.first_errors import MCPError
    from reyn_jupyter.backends.mcp_sdk.first_server import (
        InMemorySubscriptionBus,
        ListenHandler,
        NotificationOptions,
        ResourcesListChanged,
        ResourceUpdated,
        Server,
        ToolsListChanged,
    )

__all__ = [
    "InMemorySubscriptionBus",
    "ListenHandler",
    "MCPError",
    "NotificationOptions",
    "ResourceUpdated",
    "ResourcesListChanged",
    "Server",
    "ToolsListChanged",
]
