"""A view in every representation that needs no kernel: our own MIME type, HTML free of script, and text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reyn_jupyter.notebook.render.blocks import View
from reyn_jupyter.notebook.render.displayables import Kind, displayable, view
from reyn_jupyter.notebook.render.hosts.html import to_html
from reyn_jupyter.notebook.render.hosts.plain_text import to_text
from reyn_jupyter.notebook.serving.protocol import Live
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.sessions.current import SESSION_ID

MIME = "application/vnd.reyn.{}+json"
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"


def mime_type(shown: object) -> str:
    """Return the MIME type of an object's display; that of a card where its type is not declared."""
    found = displayable(type(shown))
    return MIME.format(found.kind if found else "status")


def mimebundle(
    shown: object,
    *,
    tail: str | None = None,
    redact: Callable[[str], str] | None = None,
    stop: str | None = None,
) -> dict[str, Any]:
    """Return an object in every representation; arguments and errors as of `displayables.view`.

    Example:
        >>> from reyn_jupyter.sessions.result_objects import Card
        >>> mimebundle(Card("status", "Ready"))["text/plain"]
        'Ready'
    """
    return bundle(shown, view(shown, tail=tail, redact=redact, stop=stop))


def bundle(
    shown: object,
    made: View,
    live: Live | None = None,
    kind: Kind | None = None,
    lost: View | None = None,
) -> dict[str, Any]:
    """Return an object's view in every representation.

    Args:
        live: what a host goes on with; the object alone is shown when None.
        kind: of the display, where it is not that of the object: one that starts as a card and goes on as a run.
        lost: of a run that goes on, what is shown once its kernel is gone.
    """
    return {
        MIME.format(kind) if kind else mime_type(shown): to_snapshot(made, SESSION_ID, live, lost=lost),
        "text/html": to_html(made),
        "text/plain": to_text(made),
    }
