"""The wait after a failure, which doubles with every further one.

Invariant: nothing sleeps here; who tries asks first whether it is time.
"""

from __future__ import annotations

import random

FIRST = 1.0  # seconds after the first failure
LONGEST = 300.0  # seconds


class Backoff:
    """Failures in a row, and when the next try is due.

    Example:
        >>> backoff = Backoff()
        >>> backoff.is_waiting(now=5.0)
        False
        >>> 0.75 <= backoff.fail(now=5.0) <= 1.25, backoff.is_waiting(now=5.5)
        (True, True)
    """

    def __init__(self) -> None:
        self._failures = 0
        self._due = 0.0

    def fail(self, now: float) -> float:
        """Count a failure; return the seconds until the next try, with jitter of a quarter."""
        wait = min(LONGEST, FIRST * 2.0 ** min(self._failures, 30))
        wait *= random.uniform(0.75, 1.25)  # noqa: S311 - to spread tries, nothing secret
        self._failures += 1
        self._due = now + wait
        return wait

    def is_waiting(self, now: float) -> bool:
        return self._failures > 0 and now < self._due

    def clear(self) -> None:
        """Forget the failures: the next try is due at once."""
        self._failures, self._due = 0, 0.0
