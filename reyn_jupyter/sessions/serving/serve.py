"""The beginning of a session's life as a server, without what only that needs: the SDKs and their servers.

Invariant: nothing but a person's call of this begins it.
"""

from __future__ import annotations

import importlib
import math

from reyn_jupyter.backends.a2a.sdk import A2A_SDK
from reyn_jupyter.backends.mcp_sdk.sdk import MCP_SDK
from reyn_jupyter.backends.serving.address_file import OfferName
from reyn_jupyter.backends.serving.door import import_modules
from reyn_jupyter.backends.serving.served_session import ServedSession
from reyn_jupyter.guard.state_folder import StateError
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.support.user_errors import UserError

WAIT = 50.0  # seconds; most clients give a call up after a minute
LONGEST_WAIT = 600.0
_DOOR = "reyn_jupyter.sessions.serving.session_door"
_SDKS = {"mcp": MCP_SDK, "a2a": A2A_SDK}
_MODULES: dict[OfferName, tuple[str, ...]] = {
    "mcp": (
        "reyn_jupyter.backends.mcp_sdk.server",
        "mcp.server.streamable_http_manager",
        "uvicorn.protocols.http.h11_impl",
    ),
    "a2a": (
        "a2a.server.request_handlers",
        "a2a.server.routes.jsonrpc_dispatcher",
        "uvicorn.protocols.http.h11_impl",
    ),
}


class ServeError(UserError):
    """A session cannot be served; the message says why and what to do."""


async def serve_session(parts: Parts, what: OfferName, wait: float | None = None) -> ServedSession:
    """Serve a session as something; one that is served already goes on, and offers that too. See `Session.serve_mcp`.

    Args:
        wait: seconds that a client's question to the person stays open; None: as it is, or 50.
    """
    served = parts.served if parts.served is not None and parts.served.running else None
    if served is not None and what in served.offers:
        return served
    seconds = WAIT if wait is None else wait
    if not (math.isfinite(seconds) and 1 <= seconds <= LONGEST_WAIT):
        raise ServeError(f"A question stays open for 1 to {LONGEST_WAIT:g} seconds, not {seconds:g}.")
    if served is not None and wait not in (None, served.wait):
        raise ServeError(
            f"This session is served already, and its questions stay open for {served.wait:g} seconds."
        )
    if (missing := _SDKS[what].missing()) is not None:
        raise ServeError(missing)
    await import_modules(_MODULES[what])
    try:
        if served is not None:
            await served.add(what)
        else:
            parts.served = await importlib.import_module(_DOOR).open_door(parts, float(seconds), what)
    except (OSError, StateError) as error:
        raise ServeError(f"This session cannot be served: {error}.") from None
    assert parts.served is not None
    return parts.served
