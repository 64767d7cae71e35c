"""How far a build of the index is, and who else builds it.

Invariant: figures are those of one build; what cannot be told yet (a rate, a time left) is absent, never zero.
"""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Holder:
    """Another process that builds: its id, and since when (seconds since the epoch); 0 where it does not say."""

    pid: int = 0
    since: float = 0.0

    def __str__(self) -> str:
        if not self.pid:
            return "another process"
        return f"process {self.pid}, since {time.strftime('%H:%M:%S', time.localtime(self.since))}"


@dataclass(frozen=True)
class BuildProgress:
    """How far a build is. `waiting_for` is set while another process builds."""

    done: int
    total: int
    seconds: float = 0.0
    waiting_for: Holder | None = None

    @property
    def rate(self) -> float | None:
        """Actions a second; None before the first batch."""
        return self.done / self.seconds if self.done and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        return (self.total - self.done) / self.rate if self.rate else None

    def __str__(self) -> str:
        if self.waiting_for is not None:
            return f"waiting: {self.waiting_for} builds this index"
        left = f", about {self.seconds_left:,.0f} s left" if self.seconds_left is not None else ""
        rate = f", {self.rate:,.0f} a second" if self.rate else ""
        return f"{self.done:,} of {self.total:,} actions{rate}{left}"


class BusyError(Exception):
    """Another process builds this index; `holder` is who."""

    def __init__(self, holder: Holder) -> None:
        super().__init__(f"{holder} builds this index")
        self.holder = holder
