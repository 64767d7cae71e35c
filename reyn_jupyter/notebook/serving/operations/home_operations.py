"""What the side panel shows of a session beside its catalog: model and money, recent runs, stored results, a question.

Invariants: a look reads the newest runs alone, and each finished one once; a question that is asked here is a
background run of the session, with the same consent, record and limits as ``%%reyn --bg``.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import Field

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.holes import escape_holes
from reyn_jupyter.notebook.magic_line.interpolation import interpolate
from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import Badge
from reyn_jupyter.notebook.render.displayables import view
from reyn_jupyter.notebook.render.hosts.html import to_html
from reyn_jupyter.notebook.render.hosts.plain_text import to_text
from reyn_jupyter.notebook.render.trace.card import run_badges, run_title
from reyn_jupyter.notebook.serving.operation import (
    OperationContext,
    OperationError,
    ServedOperation,
    WireMessage,
)
from reyn_jupyter.notebook.serving.protocol import LiveTrace
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.outputs.blob import Blob
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.record.run_store import RunNotFoundError
from reyn_jupyter.runtime.record.runlog import RunLogError
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.runtime.run import new_run_id
from reyn_jupyter.sessions.current import SESSION_ID
from reyn_jupyter.sessions.overviews import session_overview
from reyn_jupyter.sessions.runs.background_run import WATCHERS
from reyn_jupyter.support.text import count

RUN_MIME = "application/vnd.reyn.trace+json"  # that of a run's card in a cell
MOST = 200  # rows of one list
QUESTION = 100_000  # characters
_TITLE = 160
_KEPT = 2 * MOST  # rows of finished runs that stay read


class ReadHome(WireMessage):
    """Ask for the newest runs and stored results, so many of each."""

    runs: int = Field(6, ge=0, le=MOST)
    blobs: int = Field(6, ge=0, le=MOST)


class HomeRun(WireMessage):
    """Offer a run: its prompt or call as `title`, `at` in seconds since the epoch; `running` while it goes on."""

    run: str
    title: str
    facts: str
    at: float
    state: Badge
    running: bool


class HomeBlob(WireMessage):
    """Offer a stored result: the action that gave it as `title`, kind and size as `facts`."""

    blob: str
    title: str
    facts: str
    at: float


class HomePage(WireMessage):
    """Show where a session stands.

    Attributes:
        model: its label; `about` says where requests go, or why there is no model.
        usable: whether a question can be asked of it.
        spent: tokens and money of this session.
        runs, blobs: the newest ones, newest first; all_runs and all_blobs count what there is.
    """

    model: str
    about: str
    usable: bool
    spent: str
    runs: tuple[HomeRun, ...]
    all_runs: int
    blobs: tuple[HomeBlob, ...]
    all_blobs: int


class AskQuestion(WireMessage):
    """Ask the model in the background; ``{{name}}`` in the text is filled with a variable, as under ``%%reyn``."""

    prompt: Annotated[str, Field(max_length=QUESTION)]


class QuestionRun(WireMessage):
    """Name the run that a question began."""

    run: str


class ReadCell(WireMessage):
    run: Annotated[str, Field(max_length=200)]


class RunCell(WireMessage):
    """Carry a finished run as a cell: the source that asks the same again, and its card in every representation."""

    source: str
    output: dict[str, Any]


async def read_home(context: OperationContext, arguments: ReadHome) -> HomePage:
    return await asyncio.to_thread(_page, context, arguments)


def _page(context: OperationContext, arguments: ReadHome) -> HomePage:
    parts, look = context.session.parts, context.look
    label = session_overview.model_label(parts)
    usable = not label.startswith("none (")
    ids = parts.runs.latest_first()
    blobs = context.session.blobs.items
    return HomePage(
        model=look.line(label, 80) if usable else "no model",
        about=look.text(session_overview.model_fact(parts), 400),
        usable=usable,
        spent=f"{count(parts.spent.tokens, 'token')} · {formatting.money(parts.spent.cost)}",
        runs=_runs(context, ids, arguments.runs),
        all_runs=len(ids),
        blobs=tuple(_blob(blob, context) for blob in blobs[: arguments.blobs]),
        all_blobs=len(blobs),
    )


def _runs(context: OperationContext, ids: list[str], most: int) -> tuple[HomeRun, ...]:
    """Return the newest runs that can be read."""
    kept: dict[str, HomeRun] = context.caches.setdefault("home.runs", {})
    rows: list[HomeRun] = []
    for run in ids:
        if len(rows) >= most:
            break
        row = kept.get(run)
        if row is None:
            try:
                trace = context.session.parts.runs.load(run)
            except (RunLogError, RunNotFoundError, OSError, ValueError):
                continue  # `%reyn runs` says which ones cannot be read
            row = _run(trace, context)
            if trace.ended is not None:
                kept[run] = row
        rows.append(row)
    for run in list(kept)[: max(0, len(kept) - _KEPT)]:
        kept.pop(run, None)
    return tuple(rows)


def _run(trace: Trace, context: OperationContext) -> HomeRun:
    look = context.look
    facts = [run_title(trace, look), count(len(trace.calls), "call"), formatting.seconds(trace.seconds)]
    return HomeRun(
        run=trace.run,
        title=look.line(trace.prompt or trace.run[-12:], _TITLE),
        facts=" · ".join(facts),
        at=trace.started.at,
        state=run_badges(trace, trace.grows)[0],
        running=trace.grows,
    )


def _blob(blob: Blob, context: OperationContext) -> HomeBlob:
    entries = "" if blob.entries is None else f" · {blob.entries:,} entries"
    return HomeBlob(
        blob=blob.id,
        title=context.look.line(blob.action or blob.id[-12:], _TITLE),
        facts=f"{blob.kind.replace('_', ' ')}{entries} · {formatting.size(blob.size)}",
        at=blob.created.timestamp(),
    )


async def ask(context: OperationContext, arguments: AskQuestion) -> QuestionRun:
    """Begin a background run, and name it once its record has begun, so that a view can open it."""
    if not arguments.prompt.strip():
        raise OperationError("There is no question yet.", "Type one, for example: what files are here?")
    run = new_run_id()
    begun = asyncio.Event()

    def hear(changed: str, ended: bool) -> None:
        if changed == run:
            begun.set()

    WATCHERS.append(hear)
    try:
        await asyncio.to_thread(_begin, context, arguments.prompt.strip("\n"), run)
        await begun.wait()
    finally:
        WATCHERS.remove(hear)
    return QuestionRun(run=run)


def _begin(context: OperationContext, text: str, run: str) -> None:
    session = context.session
    parts = session.parts
    try:
        prompt, sent = interpolate(text, (), parts.services.namespace(), parts.redactor)
    except ReynError as error:
        raise OperationError(error.message, error.hint) from None
    session.start(prompt, home=context.home, sent=tuple(sent), run=run)


async def read_cell(context: OperationContext, arguments: ReadCell) -> RunCell:
    return await asyncio.to_thread(_cell, context, arguments.run)


def _cell(context: OperationContext, run: str) -> RunCell:
    parts = context.session.parts
    try:
        trace = parts.runs.load(run)
    except RunNotFoundError as error:
        raise OperationError(
            context.look.text(str(error.args[0]), 400), "%reyn runs lists the runs."
        ) from None
    except (RunLogError, OSError, ValueError) as error:
        raise OperationError(context.look.text(str(error), 400), "%reyn runs lists the others.") from None
    if trace.ended is None:
        raise OperationError("The run goes on.", "Put it into the notebook once it has ended.")
    parts.redactor.refresh()  # the environment may hold new secrets since the run
    try:
        made = view(trace, redact=parts.redactor.text)
        live = LiveTrace(run=trace.run)
        output = {
            RUN_MIME: to_snapshot(made, SESSION_ID, live),
            "text/html": to_html(made),
            "text/plain": to_text(made),
        }
        return RunCell(source=parts.redactor.text(_source(trace)), output=output)
    except BlobStoreError as error:
        raise OperationError(
            context.look.text(str(error), 400), f"%reyn trace {trace.run[-12:]} shows it."
        ) from None


def _source(trace: Trace) -> str:
    """Return the cell that asks the same again; where variables were filled in, or nothing was asked, the run is
    shown."""
    filled = any(each.get("kind") == "variable" for each in trace.started.sent)
    if filled or trace.started.run_kind != "turn":
        return f"%reyn trace {trace.run[-12:]}"
    return f"%%reyn\n{escape_holes(trace.prompt)}"


OPERATIONS = (
    ServedOperation("home.open", ReadHome, HomePage, read_home),
    ServedOperation("home.ask", AskQuestion, QuestionRun, ask),
    ServedOperation("home.cell", ReadCell, RunCell, read_cell),
)
