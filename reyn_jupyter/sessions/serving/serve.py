"""The beginning of a session's life as an MCP server, without what only that needs: the SDK and its server.

Invariant: nothing but a person's call of this begins it.
"""

from __future__ import annotations

import importlib
import math

from reyn_jupyter.backends.mcp.sdk import MCP_SDK
from reyn_jupyter.backends.mcp_serving.endpoint import import_server
from reyn_jupyter.backends.mcp_serving.served_session import ServedSession
from reyn_jupyter.guard.state_folder import StateError
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.support.user_errors import UserError

WAIT = 50.0  # seconds; most clients give a call up after a minute
LONGEST_WAIT = 600.0
_SERVICE = "reyn_jupyter.sessions.serving.mcp_service"


class ServeError(UserError):
    """A session cannot be served; the message says why and what to do."""


async def serve_session(parts: Parts, wait: float = WAIT) -> ServedSession:
    """Serve a session as an MCP server; the one that there is when it is served already. See `Session.serve_mcp`."""
    if parts.served is not None and parts.served.running:
        return parts.served
    if not (math.isfinite(wait) and 1 <= wait <= LONGEST_WAIT):
        raise ServeError(f"A question stays open for 1 to {LONGEST_WAIT:g} seconds, not {wait:g}.")
    if (missing := MCP_SDK.missing()) is not None:
        raise ServeError(missing)
    await import_server()
    try:
        parts.served = await importlib.import_module(_SERVICE).begin(parts, float(wait))
    except (OSError, StateError) as error:
        raise ServeError(f"This session cannot be served: {error}.") from None
    return parts.served
