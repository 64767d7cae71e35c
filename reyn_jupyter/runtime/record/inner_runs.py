"""The inner runs of a run, as its trace finds them.

Invariants: an inner run belongs to a call only where both records say so, the call's and its own; whatever else files
from elsewhere claim (a circle, a run that is missing, a parent that never heard of it) is left out and said. No more
than so many levels and runs are followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from reyn_jupyter.runtime.record.events import ParentCall
from reyn_jupyter.runtime.record.runlog import RunLogError
from reyn_jupyter.runtime.record.trace import InnerRuns, Trace, out_of_reach

DEEPEST = 8  # levels of inner runs, in a record and while one is made
MOST = 1000  # inner runs of one run that are read, those of inner runs among them
_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")


class InnerRunReader(Protocol):
    """Reads the trace of an inner run by its whole id. Raises RunLogError."""

    def __call__(self, run: str, /) -> Trace: ...


@dataclass
class _Room:
    """The number of inner runs that may still be read."""

    left: int = MOST


@dataclass(frozen=True)
class InnerRunFinder:
    """Finds the inner runs of one run and of those inside it.

    Attributes:
        read: reads one.
        above: the ids of the runs around this one, the outermost first.
    """

    read: InnerRunReader
    above: tuple[str, ...] = ()
    room: _Room = field(default_factory=_Room)

    def __call__(self, trace: Trace) -> InnerRuns:
        """Return the inner runs that a trace names."""
        found = InnerRuns()
        for call, run in trace.opened.items():
            try:
                found.traces[call] = self._checked(trace, call, run)
            except RunLogError as error:
                found.problems[call] = str(error)
        return found

    def __reduce__(self) -> tuple[Callable[[], Callable[[Trace], InnerRuns]], tuple[()]]:
        """Let a copy of a trace in another process do without: the files are this session's."""
        return _nothing_at_hand, ()

    def _checked(self, trace: Trace, call: str, run: str) -> Trace:
        """Return the inner run of a call. Raises RunLogError."""
        if not _RUN_ID.fullmatch(run):
            raise RunLogError("its inner run has no id that a run can have, so it is not looked for")
        name = f"its inner run {run[-12:]}"
        above = (*self.above, trace.run)
        if run in above:
            raise RunLogError(f"{name} is said to be around itself, so it is not followed")
        if len(above) > DEEPEST:
            raise RunLogError(f"{name} lies more than {DEEPEST} runs deep, so it is not followed")
        if self.room.left <= 0:
            raise RunLogError(f"{name} is not read: the run has more than {MOST:,} inner runs")
        self.room.left -= 1
        inner = self.read(run)
        if inner.started.run != run or inner.started.parent != ParentCall(trace.run, call):
            raise RunLogError(f"{name} says that it belongs to another call, so it is left out")
        return replace(inner, find_inner=replace(self, above=above))


def _nothing_at_hand() -> Callable[[Trace], InnerRuns]:
    return out_of_reach
