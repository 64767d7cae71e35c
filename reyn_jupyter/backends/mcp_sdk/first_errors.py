"""The error of the protocol, for the first major version of the SDK.

Importing this module imports the SDK.
"""

from __future__ import annotations

import importlib
import logging
from typing import Any

_types: Any = importlib.import_module("mcp.types")
_exceptions: Any = importlib.import_module("mcp.shared.exceptions")

_session: Any = importlib.import_module("mcp.shared.session")
# It logs by the root logger, which gives that a handler that writes onto the page below a cell.
_session.logging = logging.getLogger("mcp.shared.session")


class MCPError(_exceptions.McpError):  # type: ignore[misc]
    """An error of the protocol; the SDK's server sends it, too."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(_types.ErrorData(code=code, message=message, data=data))
        self.code = code
        self.message = message
        self.data = data
