"""From an object to what is shown: one view, drawn as HTML and as text."""

from __future__ import annotations

import time
from collections.abc import Callable

from reyn_jupyter.notebook.render.actions import action_card, action_table
from reyn_jupyter.notebook.render.as_html import to_html
from reyn_jupyter.notebook.render.as_text import to_text
from reyn_jupyter.notebook.render.model import View
from reyn_jupyter.notebook.render.running import background_view, script_view
from reyn_jupyter.notebook.render.stored import blob_view, inspection_view, previous_bytes, result_view
from reyn_jupyter.notebook.render.tables import card, table
from reyn_jupyter.notebook.render.traces import STOP, trace_view
from reyn_jupyter.notebook.render.untrusted import Look
from reyn_jupyter.outputs.blob import Blob
from reyn_jupyter.runtime.results import ActionCard, ActionTable, Card, Inspection, Result, Table
from reyn_jupyter.runtime.script import Script
from reyn_jupyter.runtime.trace import Trace
from reyn_jupyter.sessions.background import BackgroundRun


def view(
    shown: object,
    *,
    tail: str | None = None,
    redact: Callable[[str], str] | None = None,
    now: float | None = None,
    stop: str = STOP,
) -> View:
    """The view of any object that the session returns.

    Args:
        tail: for a live trace, the text that streams in ("" when there is none yet); None for anything else.
        redact: takes secrets out of a text; every text passes it before it is cut to size.
        now: seconds since the epoch, for relative times.
        stop: for a live trace, how to stop it.

    Raises:
        TypeError: the object is none of the session's.
    """
    look = Look(time.time() if now is None else now, redact)
    match shown:
        case ActionTable():
            return action_table(shown, look)
        case ActionCard():
            return action_card(shown, look)
        case Result():
            return result_view(shown, look)
        case Inspection():
            return inspection_view(shown, look)
        case Blob():
            return blob_view(shown, look)
        case Trace():
            return trace_view(shown, look, tail, previous_bytes(shown), stop)
        case Table():
            return table(shown, look)
        case Card():
            return card(shown, look)
        case Script():
            return script_view(shown, look)
        case BackgroundRun():
            return background_view(shown, look)
        case _:
            raise TypeError(f"there is no view of {type(shown).__name__}")


def mimebundle(
    shown: object,
    *,
    tail: str | None = None,
    redact: Callable[[str], str] | None = None,
    stop: str = STOP,
) -> dict[str, str]:
    """The object as ``{"text/html", "text/plain"}``, both bounded and free of script.

    Example:
        >>> from reyn_jupyter.runtime.results import Card
        >>> mimebundle(Card("status", "Ready"))["text/plain"]
        'Ready'
    """
    made = view(shown, tail=tail, redact=redact, stop=stop)
    return {"text/html": to_html(made), "text/plain": to_text(made)}
