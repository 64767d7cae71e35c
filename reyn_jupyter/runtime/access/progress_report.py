"""The way in which a call, or a peer that it asks, says how far it is."""

from __future__ import annotations

from typing import Protocol


class ProgressReport(Protocol):
    """Takes how far a call is, and what it has so far."""

    def __call__(
        self,
        message: str = "",
        done: float | None = None,
        total: float | None = None,
        partial: object = None,
    ) -> None: ...
