"""Values of megabytes: told from small ones without code of theirs, and worked on off the engine's loop.

Invariant: what looks through a whole value (redaction, validation, the text of a question) holds the loop for no longer
than a moment, so that an interrupt and every other run are heard meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

LARGE = 1 << 16  # characters and entries

T = TypeVar("T")


def is_large(value: object) -> bool:
    """Return whether looking through a value takes longer than a moment. No code of a person's object runs.

    >>> is_large({"path": "a.csv"}), is_large(["x" * 100_000])
    (False, True)
    """
    pending: list[object] = [value]
    room = LARGE
    while pending and room >= 0:
        value = pending.pop()
        if type(value) is str or type(value) is bytes:
            room -= len(value)
        elif type(value) is dict:
            room -= len(value)
            if room >= 0:
                pending += [*value, *value.values()]
        elif type(value) is list or type(value) is tuple:
            room -= len(value)
            if room >= 0:
                pending += value
    return room < 0


async def look_through(value: object, work: Callable[[], T]) -> T:
    """Return what `work` gives, which looks through `value`: in a thread where that is large.

    Args:
        value: what is looked through.
        work: changes nothing that a loop owns.
    """
    return await asyncio.to_thread(work) if is_large(value) else work()
