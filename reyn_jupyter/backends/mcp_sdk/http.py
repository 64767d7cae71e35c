"""The HTTP library of the installed SDK: its transports and its sign-in take this library's objects and no other's.

Importing this module imports the library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reyn_jupyter.backends.mcp_sdk.sdk import IS_FIRST

if TYPE_CHECKING or not IS_FIRST:
    import httpx2 as httpx
else:
    import httpx

__all__ = ["httpx"]
