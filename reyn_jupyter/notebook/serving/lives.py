"""What a display goes on with: which operation serves the object, if this kernel's session can.

Invariant: a display is live only for what the session of the kernel itself can give again; an object of another
session, or one that is kept nowhere, stays a snapshot.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from reyn_jupyter.notebook.serving.protocol import Live, LiveBlob, LiveCatalog, LiveDiff, LiveTrace
from reyn_jupyter.outputs.blob import Blob, open_blob
from reyn_jupyter.runtime.compare import RunDiff
from reyn_jupyter.runtime.results import CatalogExplorer, Inspection, Result
from reyn_jupyter.runtime.trace import Trace
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.background import BackgroundRun
from reyn_jupyter.sessions.face import Session


def live_of(shown: object) -> Live | None:
    """What the object's display goes on with; None where it is all there is."""
    if not current.made():
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
