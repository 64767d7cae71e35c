"""The way in which a call, or a peer that it asks, says how far it is."""

from __future__ import annotations

from collections.abc import Callable
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


def last_line_reporter(report: ProgressReport) -> Callable[[str, bytes], None]:
    """Return what hears the output of a program, by stream and piece, and reports the last line of each piece."""

    def hear(stream: str, piece: bytes) -> None:
        lines = piece[-2000:].decode("utf-8", "replace").strip().splitlines()
        if lines:
            report(lines[-1])

    return hear
