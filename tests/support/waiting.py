"""Waiting for what another thread, process or page does: a test asks until it is so, and never sleeps and hopes.

The patience is for a machine that is slow and busy. Where a test passes, it costs nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0  # seconds; no test of what works needs them
_LOOK = 0.01  # seconds between two looks


def until(reached: Callable[[], T], seconds: float = PATIENCE) -> T:
    """Ask again and again until the answer is true in Python's sense, and give it.

    Raises:
        AssertionError: it was not so within `seconds`.

    Example:
        >>> until(lambda: "there")
        'there'
    """
    end = time.monotonic() + seconds
    while not (found := reached()):
        assert time.monotonic() < end, f"not so after {seconds:g} s; the last look gave {found!r}"
        time.sleep(_LOOK)
    return found


async def awaited(reached: Callable[[], T], seconds: float = PATIENCE) -> T:
    """The same beside a running loop, which goes on meanwhile."""
    end = time.monotonic() + seconds
    while not (found := reached()):
        assert time.monotonic() < end, f"not so after {seconds:g} s; the last look gave {found!r}"
        await asyncio.sleep(_LOOK)
    return found
