"""A process of this machine, known by its number and by when it began, since numbers are used again."""

from __future__ import annotations

from dataclasses import dataclass

_APART = 2.0  # seconds by which two readings of a process's beginning may differ


@dataclass(frozen=True)
class ProcessIdentity:
    """One process, whatever becomes of its number.

    Attributes:
        pid: its number.
        began: when it began, in seconds since the epoch; 0 where that is not known.
    """

    pid: int
    began: float

    @property
    def is_alive(self) -> bool:
        """Return whether this very process runs."""
        began = process_began(self.pid)
        return began is not None and abs(began - self.began) < _APART


def process_began(pid: int) -> float | None:
    """Return when a process began, in seconds since the epoch; None where none of this number runs."""
    import psutil  # ipykernel brings it along

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.Error:
        return None
