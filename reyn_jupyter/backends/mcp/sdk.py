"""The protocol's SDK, imported on first use and in a thread: it takes about a second.

Invariant: importing this module imports nothing of the SDK. Its log goes where a program sends it, and to no page.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from functools import cache
from importlib.metadata import PackageNotFoundError, version

INSTALL = "pip install 'reyn-jupyter[mcp]'"
_MODULES = ("mcp.client.client", "mcp.client.streamable_http", "httpx2")
_LOGGERS = ("mcp", "client")


@cache
def missing_sdk() -> str | None:
    """Return why no MCP server can be spoken with, in a sentence; None where one can."""
    try:
        found = version("mcp")
    except PackageNotFoundError:
        return f"The SDK of MCP is not installed: {INSTALL}."
    if found.partition(".")[0] != "2":
        return f"The SDK of MCP has version {found}, and 2 is needed: {INSTALL}."
    return None


@cache
def _imported() -> None:
    for name in _LOGGERS:
        # Without a handler, Python writes its warnings onto the page below a cell.
        logging.getLogger(name).addHandler(logging.NullHandler())
    # What it logs of a sign-in could hold a token.
    logging.getLogger("mcp.client.auth").propagate = False
    logging.getLogger("mcp.client.auth").addHandler(logging.NullHandler())
    for name in _MODULES:
        importlib.import_module(name)


async def load_sdk() -> None:
    """Import the SDK, in a thread the first time."""
    if _imported.cache_info().currsize == 0:
        await asyncio.to_thread(_imported)
