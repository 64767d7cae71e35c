"""The MIME bundle of a display in a kernel: its static parts, its live part, and a widget for hosts that need one.

Invariants: a display is live only for what the session of the kernel itself can give again; an object of another
session, or one that is kept nowhere, stays a snapshot. A widget is made only where a kernel answers it, a person looks,
and no front end of ours draws the MIME type itself: every widget carries its module, and a page that is made without a
person would load foreign code to show one.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from reyn_jupyter.notebook.displays.mime import WIDGET_MIME, bundle, mime_type
from reyn_jupyter.notebook.render.blocks import View
from reyn_jupyter.notebook.serving.protocol import Live, LiveBlob, LiveCatalog, LiveDiff, LiveFrame, LiveTrace
from reyn_jupyter.notebook.serving.viewed_frames import VIEWED
from reyn_jupyter.outputs.blob import Blob, open_blob
from reyn_jupyter.runtime.questions.text_prompt import front_end_there
from reyn_jupyter.runtime.record.compare import RunDiff
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.result_objects import CatalogExplorer, FrameView, Inspection, Result
from reyn_jupyter.sessions.runs.background_run import BackgroundRun
from reyn_jupyter.sessions.session import Session

_log = logging.getLogger(__name__)


def display_bundle(shell: Any, shown: object, made: View) -> dict[str, Any]:
    """Return a view in every representation that its host can use."""
    if getattr(shell, "kernel", None) is None:
        return bundle(shown, made)
    live = live_of(shown)
    found = bundle(shown, made, live)
    if live is not None:
        found |= widget_view(found[mime_type(shown)])
    return found


def widget_view(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return the widget's part of a display, {} where none is needed or can be made."""
    from reyn_jupyter.notebook.serving.hub import kernel_hub

    if not front_end_there() or kernel_hub().drawn_by():
        return {}
    try:
        from reyn_jupyter.notebook.displays.widget import LiveWidget

        made = LiveWidget(snapshot)
    except (ImportError, OSError):  # the HTML is there; `%reyn doctor` says what is missing
        _log.debug("no widget could be made", exc_info=True)
        return {}
    return {WIDGET_MIME: {"version_major": 2, "version_minor": 0, "model_id": made.model_id}}


def update_widget(part: dict[str, Any], snapshot: dict[str, Any]) -> None:
    """Give a widget that was made before another snapshot."""
    from reyn_jupyter.notebook.displays.widget import find_widget

    made = find_widget(part[WIDGET_MIME]["model_id"])
    if made is not None:
        made.snapshot = snapshot


def live_of(shown: object) -> Live | None:
    """Return what serves an object's display live; None where its snapshot is all there is."""
    if not current.session_exists():
        return None
    session = current.session()
    match shown:
        case CatalogExplorer():
            return LiveCatalog(query=shown.query)
        case Blob():
            return _blob(session, shown, None)
        case Inspection(blob=Blob() as blob) if shown.error is None:
            return _blob(session, blob, shown.selector)
        case Result(blob=Blob() as blob):
            return _blob(session, blob, None)
        case FrameView():
            return LiveFrame(frame=VIEWED.hold(shown))
        case Trace() if shown.ended is not None and session.parts.runs.holds(shown.run):
            return LiveTrace(run=shown.run)
        case BackgroundRun() if session.background.get(shown.run_id) is shown:
            return LiveTrace(run=shown.run_id, running=not shown.done)
        case RunDiff() if all(session.parts.runs.holds(run) for run in (shown.a.run, shown.b.run)):
            return LiveDiff(a=shown.a.run, b=shown.b.run)
        case _:
            return None


def _blob(session: Session, blob: Blob, selector: str | None) -> Live | None:
    store: Any = session.parts.services.blobs
    with suppress(Exception):  # a store that cannot be asked now gives nothing to go on with
        if store is not None and open_blob(store, blob.id).sha256 == blob.sha256:
            return LiveBlob(blob=blob.id, selector=selector)
    return None
