"""One thread of linear algebra while texts are embedded.

Invariant: the number of threads that the person's own code had is back once the last block is left, whichever threads
entered blocks and in which order. On busy cores the threads of a small product wait for one another ten times as long
as one alone computes.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_limits: list[Any] = []  # the limit in force, if any
_inside = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """A block in which numpy's products use one thread."""
    global _inside
    with _lock:
        if _inside == 0:
            _limits.append(_libraries().limit(limits=1, user_api="blas"))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limits.pop().restore_original_limits()


@functools.cache
def _libraries() -> Any:
    """The libraries of this process, looked for once: that takes 0.3 ms, and 1.6 ms beside torch."""
    import numpy  # noqa: F401 - only what is loaded is found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
