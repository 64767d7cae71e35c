"""`%reyn export FILE.html [WHAT …]`: runs, blobs and tables as one page that needs no kernel, or runs as spans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from reyn_jupyter.guard.workspace import WorkspaceError
from reyn_jupyter.notebook import export
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional, Rest
from reyn_jupyter.notebook.magic_line.verb import Context, Suggestion, Verb
from reyn_jupyter.notebook.render.displayables import displayable
from reyn_jupyter.outputs.content import BlobNotFoundError
from reyn_jupyter.runtime.record.run_store import RunNotFoundError
from reyn_jupyter.sessions.result_objects import Card
from reyn_jupyter.sessions.session import Session

TABLES = ("list", "runs", "blobs")
_MOST = 40


class ExportOptions(Options):
    file: Annotated[str, Positional("FILE.html")]
    what: Annotated[tuple[str, ...], Rest("RUN|BLOB|VARIABLE|list|runs|blobs")] = ()
    force: Annotated[bool, Option(), Field(description="replace a file that is there")] = False
    title: Annotated[str | None, Option(takes="TEXT"), Field(description="the heading of the page")] = None
    content: Annotated[
        bool, Option(), Field(description="in .jsonl: prompts, answers, arguments and results, too")
    ] = False


def run(context: Context, options: ExportOptions) -> Card:
    session = context.session
    path = _target(session, options.file, options.force)
    words = options.what or ("last",)
    if len(words) > _MOST:
        raise ReynError(f"A page holds at most {_MOST} objects.", "Write several pages.")
    objects = [_named(session, word) for word in words]
    return export.export(path, *objects, title=options.title, content=options.content)


def _target(session: Session, file: str, force: bool) -> Path:
    if not file.endswith((".html", ".htm", ".md", ".jsonl")):
        raise ReynError(
            f"{file} is no name for a page.",
            "Name a file that ends in .html, in .md for Markdown, or in .jsonl for OpenTelemetry spans of runs.",
        )
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
    """Return what a word means: a table by its name, a run by its id or `last`, a blob by its id, else a variable."""
    if word == "list":
        return session.list_actions(limit=1000)
    if word in ("runs", "blobs"):
        return getattr(session, word)
    try:
        return session.trace(word)
    except RunNotFoundError as no_run:
        try:
            return session.blob(word)
        except BlobNotFoundError as no_blob:
            namespace = session.parts.services.namespace()
            held = namespace.get(word)
            if displayable(type(held)) is not None:
                return held
            reasons = [str(no_run), str(no_blob)]
            if word in namespace:
                reasons.append(f"the variable {word}, of type {type(held).__name__}, has no view")
            raise ReynError(
                f"{word} names neither one run, one blob nor a variable with a view: {'; '.join(reasons)}.",
                "%reyn runs and %reyn blobs list them; _ is what the last cell showed.",
            ) from no_run


def _completions(session: Session, before: list[str], word: str) -> list[str | Suggestion]:
    if not before:
        return []
    return [*TABLES, *completers.runs(session, before, word), *completers.blobs(session, before, word)]


VERB = Verb(
    "export",
    "runs, blobs and tables as one page that needs no kernel",
    run,
    ExportOptions,
    (
        "%reyn export run.html",
        "%reyn export report.html _",
        "%reyn export page.html last list runs",
        "%reyn export run.html --force",
        "%reyn export spans.jsonl last",
    ),
    completes=_completions,
    group="change",
)
