"""One thread of linear algebra while texts are embedded.

Invariant: the number of threads that the person's own code had is back once the last block is left, whichever threads
entered blocks and in which order. On busy cores the threads of a small product wait for one another ten times as long
as one alone computes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_limits: list[Any] = []  # the limit in force, if any
_inside = 0


def alone(work: Callable[[], T]) -> T:
    """What `work` gives, computed with one thread of linear algebra.

    It runs in a thread of its own: OpenBLAS takes no limit in a thread that used it before (0.3.31, measured).
    """
    made: Future[T] = Future()

    def run() -> None:
        try:
            with one_thread():
                made.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
            made.set_exception(error)

    threading.Thread(target=run, name="reyn-embedding", daemon=True).start()
    return made.result()


@contextmanager
def one_thread() -> Iterator[None]:
    """A block in which numpy's products use one thread."""
    global _inside
    from threadpoolctl import threadpool_limits

    with _lock:
        if _inside == 0:
            _limits.append(threadpool_limits(1, user_api="blas"))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limits.pop().restore_original_limits()
