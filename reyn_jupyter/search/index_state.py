"""The state of the index of a session: what has a vector, how far a build is, and who else builds.

Invariant: figures are looked up when the state is made, nothing is worked out from them later; what cannot be told yet
(a rate, a time left) is absent, never zero.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reyn_jupyter.search.embedders.embedding_classes import ResolvedClass
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.search.embedders.embedder import EmbeddingUsage


@dataclass(frozen=True)
class BuildHolder:
    """Another process that builds: its id, and since when (seconds since the epoch); 0 where it does not say."""

    pid: int = 0
    since: float = 0.0

    def __str__(self) -> str:
        if not self.pid:
            return "another process"
        return f"process {self.pid}, since {time.strftime('%H:%M:%S', time.localtime(self.since))}"


@dataclass(frozen=True)
class BuildProgress:
    """The progress of a build.

    Attributes:
        seconds: since it began to embed.
        waiting_for: set while another process builds.
        doing: what goes on before anything is done, such as loading the model.
        noun: what is counted, in the singular.
    """

    done: int
    total: int
    seconds: float = 0.0
    waiting_for: BuildHolder | None = None
    doing: str = ""
    noun: str = "action"

    @property
    def rate(self) -> float | None:
        """Return how many are done a second; None before the first batch."""
        return self.done / self.seconds if self.done and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        return (self.total - self.done) / self.rate if self.rate else None

    def __str__(self) -> str:
        if self.waiting_for is not None:
            return f"waiting: {self.waiting_for} builds this index"
        counted = f"{self.done:,} of {count(self.total, self.noun)}"
        if not self.done:
            since = f", {self.seconds:,.0f} s so far" if self.seconds >= 1 else ""
            return f"{counted}{f': {self.doing}{since}' if self.doing else ''}"
        rate = f", {self.rate:,.{0 if self.rate >= 10 else 1}f} a second" if self.rate else ""
        left = f", about {_in_words(self.seconds_left)} left" if self.seconds_left else ""
        return f"{counted}{rate}{left}"


def _in_words(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 100 else f"{seconds / 60:,.0f} min"


class BusyError(Exception):
    """Another process builds this index; `holder` is who."""

    def __init__(self, holder: BuildHolder) -> None:
        super().__init__(f"{holder} builds this index")
        self.holder = holder


@dataclass(frozen=True)
class IndexState:
    """The state of the index, for people.

    Attributes:
        resolved: the class, or why there is none.
        served_by: who embeds now.
        is_remote: whether texts leave this machine to be embedded.
        vectors, actions: how many of the actions on offer have a vector.
        offered: whether models may search.
        place, size: where the vectors lie ("memory" or a path), and their bytes on disk.
        building: how far a build of this session is; None when there is none.
        holder: another process that builds.
        notes: what went wrong lately.
        spent: what a provider took in this session.
    """

    resolved: ResolvedClass
    served_by: str = ""
    is_remote: bool = False
    vectors: int = 0
    actions: int = 0
    offered: bool = False
    place: str = "memory"
    size: int = 0
    building: BuildProgress | None = None
    holder: BuildHolder | None = None
    notes: tuple[str, ...] = ()
    spent: EmbeddingUsage | None = None
