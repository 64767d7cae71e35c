"""Write what the notebook shows to a file for somebody without it: a page, Markdown, a table, or spans of runs.

Invariant: a page holds what was recorded when it was written, redacted as every display is, in a few megabytes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.result_objects import Card
from reyn_jupyter.support.files.replacement import replacement

if TYPE_CHECKING:
    from reyn_jupyter.notebook.errors import ReynError
    from reyn_jupyter.notebook.render.hosts.page import PageEntry

ENDINGS = (".html", ".htm", ".md", ".parquet", ".jsonl")

WHOLE_BYTES = (
    512 * 1024
)  # of one object in a page, where no kernel and no recording could give the rest of it


def export(path: str | Path, *objects: object, title: str | None = None, content: bool = False) -> Card:
    """Write some objects of the session, each as it shows in the notebook; a file that is there is replaced.

    Args:
        path: of the file. ``.html`` and ``.htm`` give a page, ``.md`` Markdown, ``.parquet`` the `.df` of one object,
            ``.jsonl`` runs as OpenTelemetry spans: one line a run, as OTLP JSON.
        objects: runs, blobs, results, tables, reports: whatever the session or a study returns.
        title: the heading; else what the first object is called.
        content: whether spans hold what was said: prompts, answers, arguments and results.

    Returns:
        A card that names the file, its size and what it holds, and says where secrets in it are not covered.

    Raises:
        TypeError: one of the objects is none of the session's.
        ReynError: another ending, no table or run to write, a file that cannot be written there, an installation
            without the renderer or the extra `otel`; what was there stays as it was.

    Example::

        trace = reyn.session().ask("how many orders are in orders.csv?")
        reyn.export("orders.html", trace, reyn.session().blobs, title="Orders")
    """
    from reyn_jupyter.notebook.errors import ReynError
    from reyn_jupyter.notebook.render.hosts.page import to_page
    from reyn_jupyter.notebook.serving.connection import package_version
    from reyn_jupyter.runtime.record.result_frame import ResultFrame

    if not objects:
        raise TypeError("export() needs at least one object: a run, a blob, a table, a report")
    if not isinstance(path, str | Path):
        raise TypeError(
            f'export() begins with a file\'s name: export("report.html", …), not {type(path).__name__}'
        )
    file = Path(path).expanduser().absolute()
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise ReynError(
            f"{file.name} names no format that can be written.", f"Let it end in {', '.join(ENDINGS)}."
        )
    if file.is_dir():
        raise ReynError(f"{file} is a folder.", "Name a file in it.")
    if not file.parent.is_dir():
        raise ReynError(f"There is no folder {file.parent}.", "Make it first, or name another file.")
    if ending == ".parquet":
        return _parquet(file, objects)
    objects = tuple(each.trace if isinstance(each, ResultFrame) else each for each in objects)
    if ending == ".jsonl":
        return _spans(file, objects, content)
    if ending == ".md":
        return _markdown(file, objects)
    entries, shown = _entries(objects, title)
    written = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    note = f"Written by reyn-jupyter {package_version()} on {written}. It loads nothing from anywhere."
    try:
        page = to_page(title or shown[0], entries, note).encode("utf-8", "replace")
    except FileNotFoundError as error:
        hint = "Install reyn-jupyter again; in a checkout, build the views first."
        raise ReynError("This installation lacks the renderer of exported pages.", hint) from error
    has_media = any(_has_media((entry.snapshot, entry.answers)) for entry in entries)
    notes = [("pictures and sounds", "as they are: secrets cannot be covered in them")] if has_media else []
    return _write(file, page, shown, notes)


def _has_media(value: Any) -> bool:
    """Return whether pictures or sounds are among the blocks of a view, or in what it may ask for."""
    if isinstance(value, dict):
        return value.get("type") == "media" or any(map(_has_media, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_media, value))


def _markdown(file: Path, objects: tuple[object, ...]) -> Card:
    from reyn_jupyter.notebook.render.displayables import view
    from reyn_jupyter.notebook.render.hosts.markdown_writer import to_markdown
    from reyn_jupyter.support.secrets import environment_redaction

    views = [view(each, redact=environment_redaction()) for each in objects]
    content = "\n".join(to_markdown(each) for each in views).encode("utf-8", "replace")
    return _write(file, content, [each.title for each in views])


def _spans(file: Path, objects: tuple[object, ...], content: bool) -> Card:
    from reyn_jupyter.notebook.errors import ReynError
    from reyn_jupyter.support.secrets import environment_redaction

    runs = [each for each in objects if isinstance(each, Trace)]
    if len(runs) < len(objects):
        raise ReynError("A .jsonl file holds runs, as OpenTelemetry spans.", "Give runs, or write a page.")
    try:
        from reyn_jupyter.telemetry.spans import otlp_line, spans_of
    except ModuleNotFoundError as error:
        raise ReynError(f"{error}.") from error
    redact = environment_redaction()
    lines = [otlp_line(spans_of(run, content=content, redact=redact)) for run in runs]
    return _write(file, b"".join(lines), [f"spans of the run {run.run[-12:]}" for run in runs])


def _parquet(file: Path, objects: tuple[object, ...]) -> Card:
    from reyn_jupyter.notebook.errors import ReynError
    from reyn_jupyter.outputs.frames.parquet import write_parquet

    try:
        table: Any = getattr(objects[0], "df", None) if len(objects) == 1 else None
    except TypeError as error:
        said = str(error)
        raise ReynError(f"{said[:1].upper()}{said[1:]}.", "Write a page.") from error
    if table is None:
        raise ReynError(
            "A Parquet file holds the table of one object.", "Give one that has a .df, or write a page."
        )
    try:
        with replacement(file) as part:
            # As the user's own files have it: a stored frame is for the user alone.
            mode = part.stat().st_mode
            if not write_parquet(table, part):
                lacking = (
                    "pip install 'reyn-jupyter[sql]', or write" if find_spec("duckdb") is None else "Write"
                )
                raise ReynError("The table could not be written as Parquet.", f"{lacking} a page.")
            part.chmod(mode)
    except OSError as error:
        raise _unwritable(file, error) from error
    notes = [("secrets", "not covered: the table is written as it is")]
    return _card(file, file.stat().st_size, [f"{len(table):,} rows"], notes)


def _write(file: Path, content: bytes, shown: list[str], notes: Sequence[tuple[str, str]] = ()) -> Card:
    from reyn_jupyter.guard.workspace import Workspace, WorkspaceError

    try:
        Workspace(file.parent).write_atomic(file.name, content)  # what was there stays if this does not fit
    except (OSError, WorkspaceError) as error:
        raise _unwritable(file, error) from error
    return _card(file, len(content), shown, notes)


def _unwritable(file: Path, error: Exception) -> ReynError:
    from reyn_jupyter.notebook.errors import ReynError

    why = getattr(error, "strerror", None) or str(error)
    return ReynError(f"{file} cannot be written: {why.rstrip('.')}.", "Name another file.")


def _card(file: Path, size: int, shown: list[str], notes: Sequence[tuple[str, str]] = ()) -> Card:
    from reyn_jupyter.notebook.render import formatting

    facts = (
        ("file", _relative_path(file)),
        ("size", formatting.size(size)),
        ("holds", "\n".join(shown)),
        *notes,
    )
    return Card("export", "Exported", facts, data={"path": str(file), "bytes": size})


def _entries(objects: tuple[object, ...], title: str | None) -> tuple[list[PageEntry], list[str]]:
    """Return the objects as a page holds them, and what each is called."""
    from reyn_jupyter.notebook.displays.mimebundle import live_of
    from reyn_jupyter.notebook.render.displayables import view
    from reyn_jupyter.notebook.render.hosts.html import to_html
    from reyn_jupyter.notebook.render.hosts.page import PageEntry
    from reyn_jupyter.notebook.serving.prefetch import MOST_BYTES, record_answers
    from reyn_jupyter.notebook.serving.view_json import SNAPSHOT_BYTES, to_snapshot
    from reyn_jupyter.sessions import current
    from reyn_jupyter.sessions.assembly import ENGINE
    from reyn_jupyter.support.secrets import environment_redaction

    entries: list[PageEntry] = []
    shown: list[str] = []
    room = MOST_BYTES
    for each in objects:
        live = live_of(each)
        made = view(each, redact=environment_redaction())
        answers = ENGINE.run(record_answers(current.session(), live, room))
        room -= len(json.dumps(answers, ensure_ascii=False))
        limit = WHOLE_BYTES if live is None else SNAPSHOT_BYTES
        snapshot = to_snapshot(made, current.SESSION_ID, live if answers else None, limit)
        question = _title(each)
        page_heading = title or next(iter(shown), question)
        heading = question if question != page_heading else ""
        entries.append(PageEntry(snapshot, to_html(made), answers, heading))
        shown.append(question or made.title)
    return entries, shown


def _relative_path(file: Path) -> str:
    """Return the file as it is named from the workspace, where it lies in it."""
    from reyn_jupyter.sessions import current

    root = current.session().parts.services.workspace.root
    whole = file.resolve()
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else str(file)


def _title(shown: object) -> str:
    """Return the question of a run, by which it is called; "" for any other object."""
    from reyn_jupyter.notebook.render.value_text import Look
    from reyn_jupyter.support.secrets import environment_redaction

    return (
        Look(redact=environment_redaction()).line(shown.prompt or "", 90) if isinstance(shown, Trace) else ""
    )
