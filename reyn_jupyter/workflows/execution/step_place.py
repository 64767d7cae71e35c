"""What the call of a step is given beside its arguments: its folder, and the time that is left of its run."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from reyn_jupyter.support.text import last_lines

KEPT = 4 << 10  # characters of a log
_current: ContextVar[StepPlace | None] = ContextVar("step_place", default=None)


class StepLog:
    """The end of what the program of a step logs."""

    def __init__(self) -> None:
        self._content = bytearray()

    def hear(self, piece: bytes) -> None:
        """Take what it wrote."""
        self._content += piece
        if len(self._content) > 4 * KEPT:
            del self._content[: -2 * KEPT]

    @property
    def text(self) -> str:
        """It, in whole lines."""
        return last_lines(self._content.decode("utf-8", "replace"), KEPT).strip()


@dataclass(frozen=True)
class StepPlace:
    """Where a step runs.

    Attributes:
        folder: its own, below the workspace's root; it need not be there.
        seconds: what is left of the time of its run.
        action: what it calls.
        again: whether it was called before in its run, by this start of it or by an earlier one.
        force: whether what was under way in it may be run again.
        log: takes what its program logs.
    """

    folder: Path
    seconds: float
    action: str = ""
    again: bool = False
    force: bool = False
    log: StepLog = field(default_factory=StepLog, compare=False)

    @property
    def inner_run_id(self) -> str:
        """The id of the run that a workflow has that is this step; the same for every call of the step."""
        return str(
            uuid.uuid5(uuid.NAMESPACE_OID, f"{self.folder.parent.name}/{self.folder.name}/{self.action}")
        )


@contextmanager
def step_place(place: StepPlace) -> Iterator[None]:
    """Let the calls of a block, in this task and those that it begins, be those of a step."""
    token = _current.set(place)
    try:
        yield
    finally:
        _current.reset(token)


def current_step() -> StepPlace | None:
    """Return where the step runs that the call is for; None for a call that is no step of a run."""
    return _current.get()
