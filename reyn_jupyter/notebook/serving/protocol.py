"""The messages between a view and the kernel, the same over a comm and over a widget.

A view sends requests with numbers of its own; the kernel answers each once, in any order, with progress in between,
and sends events unasked. What is drawn travels as a `View` (texts, never markup), so that nothing that a tool or a
model wrote reaches a page as HTML. Integers that JavaScript cannot hold exactly travel as texts.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from reyn_jupyter.notebook.render.blocks import View
from reyn_jupyter.notebook.serving.operation import WireMessage
from reyn_jupyter.runtime.access.live_notebook import MOST_OUTPUT, MOST_SOURCE
from reyn_jupyter.runtime.questions.consent import PersonAnswer

PROTOCOL = 1


class LiveCatalog(WireMessage):
    """Open the catalog explorer with the words of a search."""

    type: Literal["catalog"] = "catalog"
    query: str = ""


class LiveBlob(WireMessage):
    """Open the inspector of a blob at a selector ("lines:20-50", "path:/a", "slice:0..20"), or at its start."""

    type: Literal["blob"] = "blob"
    blob: str
    selector: str | None = None


class LiveFrame(WireMessage):
    """Open the grid of a frame in memory, which the kernel holds for the view."""

    type: Literal["frame"] = "frame"
    frame: str


class LiveTrace(WireMessage):
    """Open the viewer of a run; `running` while a background run goes on, which can then be stopped."""

    type: Literal["trace"] = "trace"
    run: str
    running: bool = False


class LiveDiff(WireMessage):
    """Open two runs side by side."""

    type: Literal["diff"] = "diff"
    a: str
    b: str


Live = Annotated[LiveCatalog | LiveBlob | LiveFrame | LiveTrace | LiveDiff, Field(discriminator="type")]


class QuestionLine(WireMessage):
    """A line of a question: a target ("effect"), a sentence of ours ("note"), or content behind a bar.

    Attributes:
        continued: it goes on with the line above.
    """

    kind: Literal["effect", "note", "text", "added", "removed", "place"]
    text: str
    continued: bool


class Snapshot(WireMessage):
    """Hold what a display keeps: a view that needs no kernel, and the request for a live one.

    Attributes:
        protocol: the version that wrote it.
        session: the kernel session that the live part belongs to.
        view: drawn at once, and for good when the kernel is gone.
        live: the live view that may follow while that session lives; None for a small object.
        lost: of a run that goes on, what is drawn in place of `view` once the kernel that ran it is gone.
    """

    protocol: int = PROTOCOL
    session: str
    view: View
    live: Live | None = None
    lost: View | None = None


class Hello(WireMessage):
    """Open a connection: its first request.

    Attributes:
        host: "jupyterlab", "notebook", "widget".
        approves: whether questions about consent can be shown there.
    """

    protocol: int
    host: str
    version: str = ""
    approves: bool = False


class Welcome(WireMessage):
    """Answer `Hello`: name the kernel's session and versions."""

    protocol: int
    session: str
    version: str
    versions: dict[str, str] = Field(default_factory=dict)


class ViewRequest(WireMessage):
    """Ask for one operation; `id` is a number of the view's own."""

    type: Literal["request"] = "request"
    id: int
    op: str
    args: dict[str, Any] = Field(default_factory=dict)


class Cancel(WireMessage):
    """Stop working on a request; it is not answered any more."""

    type: Literal["cancel"] = "cancel"
    id: int


class SentOutput(WireMessage):
    """Carry the plain text of one output of a cell.

    Attributes:
        types: its MIME types beside plain text.
        cut: how many characters are left out.
    """

    kind: Literal["stream", "result", "display", "error"]
    text: Annotated[str, Field(max_length=MOST_OUTPUT)]
    types: tuple[Annotated[str, Field(max_length=100)], ...]
    cut: Annotated[int, Field(ge=0)]


class SentCell(WireMessage):
    """Carry one cell of a notebook.

    Attributes:
        count: the number of its last execution; None where it was not run.
        cut: how many characters of the source are left out.
        more: how many outputs are left out.
    """

    id: Annotated[str, Field(max_length=64)]
    kind: Literal["code", "markdown", "raw"]
    source: Annotated[str, Field(max_length=MOST_SOURCE)]
    count: int | None
    outputs: tuple[SentOutput, ...]
    cut: Annotated[int, Field(ge=0)]
    more: Annotated[int, Field(ge=0)]


class SentCells(WireMessage):
    """Give the kernel a bounded copy of its notebook, unasked: before a cell runs, and when it rests after a change.

    It is not answered: while a cell runs the kernel reads no message, so it cannot ask for one.

    Attributes:
        more: how many cells are left out.
    """

    type: Literal["cells"] = "cells"
    cells: tuple[SentCell, ...]
    more: Annotated[int, Field(ge=0)]


class ViewAnswer(WireMessage):
    """Answer the request `id`."""

    type: Literal["answer"] = "answer"
    id: int
    value: dict[str, Any]


class ViewFailure(WireMessage):
    """Refuse a request. `code` is "unknown" (no such operation), "invalid" (arguments), "failed" or "protocol"
    (versions differ)."""

    type: Literal["error"] = "error"
    id: int
    code: str
    message: str
    hint: str = ""


class ViewProgress(WireMessage):
    """Report how far the request `id` is: `done` of `total`."""

    type: Literal["progress"] = "progress"
    id: int
    done: float
    total: float
    note: str = ""


class AnswerChoice(WireMessage):
    """An answer that a question offers, with its words.

    Attributes:
        label: on a button.
        hint: what the answer means.
        outcome: what is said once it was given.
        allows: whether the call may run; where several do not, the first of them is the safe one.
        secret: what an answer over this connection must carry; None until the question was shown whole.
    """

    answer: PersonAnswer
    label: str
    hint: str
    outcome: str
    allows: bool
    secret: str | None


class ApprovalAsked(WireMessage):
    """Ask for consent: a run or a call waits. Its words are shown as they are.

    Attributes:
        cell: the id of the cell that waits; None if none does, or it is unknown.
        heading: the question in a few words.
        title: the line above the detail.
        region: the detail's name, for who hears the page.
        lines: the first lines of the detail.
        total: how many there are; the operation approval.page gives the rest.
    """

    name: Literal["approval"] = "approval"
    id: str
    action: str
    heading: str
    title: str
    region: str
    lines: tuple[QuestionLine, ...]
    total: int
    choices: tuple[AnswerChoice, ...]
    run: str | None = None
    cell: str | None = None


class ApprovalSettled(WireMessage):
    """Withdraw a question: it is answered, here or elsewhere, or its run has ended.

    Attributes:
        outcome: what was answered, in a sentence; "" if its run ended.
    """

    name: Literal["settled"] = "settled"
    id: str
    outcome: str = ""


class CatalogChanged(WireMessage):
    """Announce that actions came or went; pages from before `revision` are stale."""

    name: Literal["catalog"] = "catalog"
    revision: str


class RunChanged(WireMessage):
    """Announce that a run has new events, or has ended."""

    name: Literal["run"] = "run"
    run: str
    ended: bool


class SessionChanged(WireMessage):
    """Announce that a cell has run: runs, stored results, the model or what was spent may be others."""

    name: Literal["session"] = "session"


class ServersChanged(WireMessage):
    """Announce that an MCP server came, went, changed its state or its tools, was called, or wrote something."""

    name: Literal["servers"] = "servers"


class CellProposed(WireMessage):
    """Propose a cell, which is inserted and never run: sent to the one front end that showed the notebook last.

    Attributes:
        cell: the id that it gets.
        below: ids of cells, of which it goes below the first that is there; below the active one where none is.
    """

    name: Literal["proposal"] = "proposal"
    cell: str
    kind: Literal["code", "markdown"]
    source: str
    below: tuple[str, ...]
    run: str


class CellWithdrawn(WireMessage):
    """Take a proposed cell out again, if it still holds this source and was not run."""

    name: Literal["withdrawal"] = "withdrawal"
    cell: str
    source: str


Event = Annotated[
    ApprovalAsked
    | ApprovalSettled
    | CatalogChanged
    | CellProposed
    | CellWithdrawn
    | RunChanged
    | ServersChanged
    | SessionChanged,
    Field(discriminator="name"),
]


class ViewEvent(WireMessage):
    """Carry an event that no request asked for."""

    type: Literal["event"] = "event"
    event: Event
