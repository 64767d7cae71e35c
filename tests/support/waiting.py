"""Waiting for what another thread, process or page does: a test asks until it is so, and never sleeps and hopes.

The patience is for a machine that is slow and busy. Where a test passes, it costs nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 120.0  # seconds; no test of what works needs them
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


class LoopClock:
    """The clock of the running loop, which a test can put forward: a time limit is reached without waiting for it.

    It stays ahead as long as the loop lives.

    Attributes:
        ahead: seconds that it was put forward.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._time, self.ahead = loop.time, 0.0
        loop.time = self  # type: ignore[method-assign]

    def __call__(self) -> float:
        return self._time() + self.ahead

    def advance(self, seconds: float) -> None:
        self.ahead += seconds


@contextmanager
def clock_of(loop: asyncio.AbstractEventLoop) -> Iterator[Callable[[float], None]]:
    """Give a function that puts forward the clock of a loop in another thread, in seconds, and wakes it."""

    async def clock() -> LoopClock:
        return LoopClock()

    before = loop.time
    clock_there = asyncio.run_coroutine_threadsafe(clock(), loop).result()

    def advance(seconds: float) -> None:
        clock_there.advance(seconds)
        loop.call_soon_threadsafe(lambda: None)

    try:
        yield advance
    finally:
        loop.time = before  # type: ignore[method-assign]


async def awaited(reached: Callable[[], T], seconds: float = PATIENCE) -> T:
    """The same beside a running loop, which goes on meanwhile."""
    end = time.monotonic() + seconds
    while not (found := reached()):
        assert time.monotonic() < end, f"not so after {seconds:g} s; the last look gave {found!r}"
        await asyncio.sleep(_LOOK)
    return found
