"""The end of the sessions of a process, when its interpreter exits.

Invariant: the exit waits `SECONDS` at most, and a session that nobody refers to any more is not kept for it.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401 - it registers its own end, which has to come after ours
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from reyn_jupyter.sessions.assembly import ENGINE, Parts

SECONDS = 4.0  # of all sessions together; less than a Jupyter server waits before it kills a kernel

_sessions: weakref.WeakSet[Parts] = weakref.WeakSet()


def release_at_exit(parts: Parts) -> None:
    """Release the parts of a session when the interpreter exits, if they are still there."""
    _sessions.add(parts)


def _release_all() -> None:
    busy = [parts for parts in _sessions if not parts.is_idle]
    if not busy:
        return

    async def release() -> None:
        await asyncio.gather(*(parts.release() for parts in busy), return_exceptions=True)

    job = ENGINE.start(release())
    with suppress(BaseException):  # nobody is there any more who could do something about it
        job.future.result(SECONDS)


# What is registered last runs first: before the pools of threads are shut down, which a close may need. What `atexit`
# holds comes after that.
_register: Callable[[Callable[[], Any]], Any] = getattr(threading, "_register_atexit", atexit.register)
_register(_release_all)
