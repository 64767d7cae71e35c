"""`%reyn export FILE.html [WHAT …]`: runs, blobs and tables as one page that needs no kernel."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from pydantic import Field

from reyn_jupyter.guard.workspace import WorkspaceError
from reyn_jupyter.notebook import complete
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.options import Option, Options, Positional, Rest
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.outputs.content import BlobNotFoundError
from reyn_jupyter.runtime.results import Card
from reyn_jupyter.runtime.store import RunNotFoundError
from reyn_jupyter.runtime.trace import Trace
from reyn_jupyter.sessions.face import Session

TABLES = ("list", "runs", "blobs")
_MOST = 40


class ExportOptions(Options):
    file: Annotated[str, Positional("FILE.html")]
    what: Annotated[tuple[str, ...], Rest("RUN|BLOB|list|runs|blobs")] = ()
    force: Annotated[bool, Option(), Field(description="replace a file that is there")] = False
    title: Annotated[str | None, Option(takes="TEXT"), Field(description="the heading of the page")] = None


def run(context: Context, options: ExportOptions) -> Card:
    session = context.session
    path = _target(session, options.file, options.force)
    words = options.what or ("last",)
    if len(words) > _MOST:
        raise ReynError(f"A page holds at most {_MOST} objects.", "Write several pages.")
    return write(session, path, [_named(session, word) for word in words], options.title)


def write(session: Session, path: Path, objects: list[object], title: str | None = None) -> Card:
    """Write a page of some objects of the session, each as it shows in the notebook."""
    from reyn_jupyter.notebook.render import figures
    from reyn_jupyter.notebook.render.as_html import to_html
    from reyn_jupyter.notebook.render.as_snapshot import to_snapshot
    from reyn_jupyter.notebook.render.display import view
    from reyn_jupyter.notebook.render.formatters import environment
    from reyn_jupyter.notebook.render.page import Entry, to_page
    from reyn_jupyter.notebook.serving.hub import SESSION_ID
    from reyn_jupyter.notebook.serving.lives import live_of
    from reyn_jupyter.notebook.serving.recording import recorded
    from reyn_jupyter.notebook.serving.versions import version
    from reyn_jupyter.sessions.wiring import ENGINE

    entries = []
    shown = []
    for each in objects:
        live = live_of(each)
        made = view(each, redact=environment())
        answers = ENGINE.run(recorded(session, live))
        entries.append(
            Entry(to_snapshot(made, SESSION_ID, live if answers else None), to_html(made), answers)
        )
        shown.append(_title(each) or made.title)
    written = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    note = f"Written by reyn-jupyter {version()} on {written}. It loads nothing from anywhere."
    try:
        page = to_page(title or shown[0], entries, note).encode("utf-8", "replace")
    except FileNotFoundError as error:
        hint = "Install reyn-jupyter again; in a checkout, build the views first."
        raise ReynError("This installation lacks the renderer of exported pages.", hint) from error
    path.write_bytes(page)
    relative = path.relative_to(session.parts.services.workspace.root).as_posix()
    facts = (("file", relative), ("size", figures.size(len(page))), ("holds", "\n".join(shown)))
    return Card("export", "Exported", facts, data={"path": str(path), "bytes": len(page)})


def _title(shown: object) -> str:
    """A run is called by its question."""
    from reyn_jupyter.notebook.render.formatters import environment
    from reyn_jupyter.notebook.render.untrusted import Look

    return Look(redact=environment()).line(shown.prompt or "", 90) if isinstance(shown, Trace) else ""


def _target(session: Session, file: str, force: bool) -> Path:
    if not file.endswith((".html", ".htm")):
        raise ReynError(f"{file} is no name for a page.", "Name a file that ends in .html.")
    try:
        path = session.parts.services.workspace.resolve(file, for_write=True)
    except WorkspaceError as error:
        raise ReynError(f"{str(error).rstrip('.')}.", "Name a file inside the workspace.") from error
    if path.is_dir() or not path.parent.is_dir():
        missing = path.name if path.is_dir() else path.parent.name
        reason = "is a folder" if path.is_dir() else "is no folder that exists"
        raise ReynError(f"{missing} {reason}.", "Name a file in a folder that exists.")
    if path.exists() and not force:
        raise ReynError(f"{file} is there already.", "Take another name, or add --force to replace it.")
    return path


def _named(session: Session, word: str) -> object:
    """What a word means: a table by its name, a run by its id or `last`, a blob by its id."""
    if word == "list":
        return session.list_actions(limit=1000)
    if word in ("runs", "blobs"):
        return getattr(session, word)
    try:
        return session.trace(word)
    except RunNotFoundError as no_run:
        try:
            return session.blob(word)
        except BlobNotFoundError:
            raise ReynError(
                f"{word} names neither a run nor a blob: {no_run}", "%reyn runs and %reyn blobs list them."
            ) from no_run


def _completions(session: Session, before: list[str], word: str) -> list[str]:
    if not before:
        return []
    return [*TABLES, *complete.runs(session, before, word), *complete.blobs(session, before, word)]


VERB = Verb(
    "export",
    "runs, blobs and tables as one page that needs no kernel",
    run,
    ExportOptions,
    ("%reyn export run.html", "%reyn export page.html last list runs", "%reyn export run.html --force"),
    completes=_completions,
)
