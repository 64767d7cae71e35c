"""Where the index of a session stands, for whoever shows it.

Invariant: figures are looked up when the state is made, and nothing is worked out from them here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reyn_jupyter.search.build_progress import BuildProgress, Holder
from reyn_jupyter.search.embedders.embedding_classes import Resolved

if TYPE_CHECKING:
    from reyn_jupyter.search.embedders.hosted import EmbeddingUsage


@dataclass(frozen=True)
class IndexState:
    """Where the index stands, for people.

    Attributes:
        resolved: the class, or why there is none.
        served_by: who embeds now.
        vectors, actions: how many of the actions on offer have a vector.
        offered: whether models may search.
        place, size: where the vectors lie ("memory" or a path), and their bytes on disk.
        building: how far a build of this session is; None when there is none.
        holder: another process that builds.
        notes: what went wrong lately.
        spent: what a provider took in this session.
    """

    resolved: Resolved
    served_by: str = ""
    vectors: int = 0
    actions: int = 0
    offered: bool = False
    place: str = "memory"
    size: int = 0
    building: BuildProgress | None = None
    holder: Holder | None = None
    notes: tuple[str, ...] = ()
    spent: EmbeddingUsage | None = None
