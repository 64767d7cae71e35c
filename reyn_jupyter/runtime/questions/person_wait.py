"""The time for which a run, and each of its calls, waits for the person: it is not run time.

Invariant: questions that are open at once count once; what is waited for within a call counts for each call around it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class PersonWait:
    """The clocks of one run and its calls; used on the engine alone.

    Example:
        >>> waits = PersonWait()
        >>> with waits.of("call-1"):
        ...     pass
        >>> waits.seconds() >= waits.seconds("call-1") >= 0.0
        True
    """

    def __init__(self) -> None:
        self._open: Counter[str | None] = Counter()
        self._since: dict[str | None, float] = {}
        self._total: dict[str | None, float] = {}

    @contextmanager
    def of(self, call: str) -> Iterator[None]:
        """Count the time of this block as waiting, for the call of an id and for the run."""
        for key in (None, call):
            self._begin(key)
        try:
            yield
        finally:
            for key in (call, None):
                self._end(key)

    def seconds(self, call: str | None = None) -> float:
        """Return the seconds waited until now, of one call or of the run."""
        since = self._since.get(call)
        return self._total.get(call, 0.0) + (0.0 if since is None else time.perf_counter() - since)

    def _begin(self, key: str | None) -> None:
        if not self._open[key]:
            self._since[key] = time.perf_counter()
        self._open[key] += 1

    def _end(self, key: str | None) -> None:
        self._open[key] -= 1
        if not self._open[key]:
            self._total[key] = self._total.get(key, 0.0) + time.perf_counter() - self._since.pop(key)
