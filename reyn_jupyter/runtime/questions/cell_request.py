"""The request of the cell that runs: which front end sent it, and from which cell.

Invariant: it is noted on the notebook's thread as a cell begins, and can be read on any thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CellRequest:
    """Attributes:
    client: The front end's own name for itself in the messages of the kernel; "" if it gives none.
    cell: The id of the cell; None if the front end does not send it.
    """

    client: str = ""
    cell: str | None = None


_latest = CellRequest()


def note_request(shell: Any) -> None:
    """Remember the request that a shell works on; call it on the notebook's thread."""
    global _latest
    found: Any = getattr(shell, "get_parent", dict)()
    parent: dict[str, Any] = found if isinstance(found, dict) else {}
    client = (parent.get("header") or {}).get("session")
    cell = (parent.get("metadata") or {}).get("cellId")
    _latest = CellRequest(str(client or ""), str(cell) if cell else None)


def cell_request() -> CellRequest:
    """Return the request of the cell that runs, or that ran last."""
    return _latest
