"""Long texts of one part of a run, and the expressions that give all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reyn_jupyter.notebook.render.fit import byte_size, fair
from reyn_jupyter.notebook.render.model import Code
from reyn_jupyter.notebook.render.untrusted import Look

if TYPE_CHECKING:
    from reyn_jupyter.runtime.trace import Trace

PART = 24 * 1024  # bytes of one side of a line, about


def run_expression(trace: Trace) -> str:
    return f'session.trace("{trace.run[-12:]}")'


class Texts:
    """Long texts of one part, which share its bytes fairly."""

    def __init__(self, texts: Sequence[str], limit: int = PART) -> None:
        self._shares = fair([byte_size(text) for text in texts], limit)

    def code(self, place: int, text: str, look: Look, label: str, knob: str) -> Code:
        share, size = self._shares[place], byte_size(text)
        room = len(text) if size <= share else max(80, len(text) * share // size)
        left = len(text) - room
        more = f"… {left:,} more characters; all of it: {knob}" if left > 0 else ""
        return Code(look.text(text, room) or "(empty)", label, more)
