"""What a display in a kernel holds beside its static parts: what it goes on with, and a widget for hosts that need one.

Invariant: a widget is made only where a kernel answers it, a person looks, and no front end of ours draws the MIME type
itself: every widget carries its module, and a page that is made without a person would load foreign code to show one.
"""

from __future__ import annotations

import logging
from typing import Any

from reyn_jupyter.notebook.render.display import MIME, WIDGET_MIME, bundle, kind_of
from reyn_jupyter.notebook.render.model import View
from reyn_jupyter.notebook.serving.lives import live_of
from reyn_jupyter.runtime.consent import front_end_there

_log = logging.getLogger(__name__)


def shown_bundle(shell: Any, shown: object, made: View) -> dict[str, Any]:
    """A view in every representation that its host can use."""
    if getattr(shell, "kernel", None) is None:
        return bundle(shown, made)
    live = live_of(shown)
    found = bundle(shown, made, live)
    if live is not None:
        found |= widget_view(found[MIME.format(kind_of(shown, made))])
    return found


def widget_view(snapshot: dict[str, Any]) -> dict[str, Any]:
    """The widget's part of a display, {} where none is needed or can be made."""
    from reyn_jupyter.notebook.serving.hub import kernel_hub

    if not front_end_there() or kernel_hub().drawn_by():
        return {}
    try:
        from reyn_jupyter.notebook.widget import LiveWidget

        made = LiveWidget(snapshot)
    except (ImportError, OSError):  # the HTML is there; `%reyn doctor` says what is missing
        _log.debug("no widget could be made", exc_info=True)
        return {}
    return {WIDGET_MIME: {"version_major": 2, "version_minor": 0, "model_id": made.model_id}}


def update_widget(part: dict[str, Any], snapshot: dict[str, Any]) -> None:
    """Give a widget that was made before another snapshot."""
    from reyn_jupyter.notebook.widget import opened

    made = opened(part[WIDGET_MIME]["model_id"])
    if made is not None:
        made.snapshot = snapshot
