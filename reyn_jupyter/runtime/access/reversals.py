"""What takes back a call that changed something of the notebook's: its names, its cells.

Invariant: it lives as long as the session's process, since what it takes back does. Only the newest `KEPT` calls keep
the objects that they need for it, so that the memory of old ones is free again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

KEPT = 20  # calls


@dataclass(frozen=True, eq=False)
class Reversal:
    """The way back from one change.

    Attributes:
        what: what it takes back, in a few words ("names of python__run").
        revert: takes it back, on the notebook's thread, and says in sentences what it did and what it could not.
    """

    what: str
    revert: Callable[[], tuple[str, ...]]


class Reversals:
    """The reversals of a session, by run and call.

    Example:
        >>> kept = Reversals()
        >>> kept.keep("run-1", "call-1", Reversal("names", lambda: ("x is removed",)))
        >>> [line for each in kept.take("run-1") for line in each.revert()], kept.take("run-1")
        (['x is removed'], ())
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[str, str, Reversal]] = []

    def keep(self, run: str, call: str, reversal: Reversal) -> None:
        """Keep the way back from what a call has done; from any thread."""
        with self._lock:
            self._kept.append((run, call, reversal))
            del self._kept[:-KEPT]

    def has(self, run: str, calls: Collection[str] | None = None) -> bool:
        """Return whether something of a run, or of these calls of it, can be taken back."""
        with self._lock:
            return any(each[0] == run and (calls is None or each[1] in calls) for each in self._kept)

    def take(self, run: str, calls: Collection[str] | None = None) -> tuple[Reversal, ...]:
        """Return the reversals of a run, the newest first, and forget them.

        Args:
            calls: only of these calls; of all when None.
        """
        with self._lock:
            taken = [each for each in self._kept if each[0] == run and (calls is None or each[1] in calls)]
            self._kept = [each for each in self._kept if each not in taken]
        return tuple(each[2] for each in reversed(taken))
