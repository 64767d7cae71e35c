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

PROTOCOL = 1


class LiveCatalog(WireMessage):
    """The catalog explorer, opened with the words of a search."""

    type: Literal["catalog"] = "catalog"
    query: str = ""


class LiveBlob(WireMessage):
    """The inspector of one blob, opened at a selector ("lines:20-50", "path:/a", "slice:0..20") or at its start."""

    type: Literal["blob"] = "blob"
    blob: str
    selector: str | None = None


class LiveTrace(WireMessage):
    """The viewer of one run; `running` while a background run goes on, which can then be stopped."""

    type: Literal["trace"] = "trace"
    run: str
    running: bool = False


class LiveDiff(WireMessage):
    """Two runs side by side."""

    type: Literal["diff"] = "diff"
    a: str
    b: str


Live = Annotated[LiveCatalog | LiveBlob | LiveTrace | LiveDiff, Field(discriminator="type")]


class Snapshot(WireMessage):
    """What a display holds: enough to show without a kernel, and what to ask for with one.

    Attributes:
        protocol: the version that wrote it.
        session: the kernel session that the live part belongs to.
        view: what is shown at once, and for good when the kernel is gone.
        live: what a view may go on with while that session lives; None for a small object.
    """

    protocol: int = PROTOCOL
    session: str
    view: View
    live: Live | None = None


class Hello(WireMessage):
    """The first request over a new connection.

    Attributes:
        host: "jupyterlab", "notebook", "widget".
        approves: whether questions about consent can be shown there.
    """

    protocol: int
    host: str
    version: str = ""
    approves: bool = False


class Welcome(WireMessage):
    """Its answer: who speaks."""

    protocol: int
    session: str
    version: str
    versions: dict[str, str] = Field(default_factory=dict)


class Request(WireMessage):
    type: Literal["request"] = "request"
    id: int
    op: str
    args: dict[str, Any] = Field(default_factory=dict)


class Cancel(WireMessage):
    """Stop working on a request; it is not answered any more."""

    type: Literal["cancel"] = "cancel"
    id: int


class Answered(WireMessage):
    type: Literal["answer"] = "answer"
    id: int
    value: dict[str, Any]


class Failed(WireMessage):
    """`code` is "unknown" (no such operation), "invalid" (arguments), "failed" or "protocol" (versions differ)."""

    type: Literal["error"] = "error"
    id: int
    code: str
    message: str
    hint: str = ""


class Progressed(WireMessage):
    type: Literal["progress"] = "progress"
    id: int
    done: float
    total: float
    note: str = ""


class ApprovalAsked(WireMessage):
    """A background run or a call from a panel waits for consent. `text` holds targets and a bounded diff."""

    name: Literal["approval"] = "approval"
    id: str
    action: str
    text: str
    pattern: str | None
    run: str | None = None


class ApprovalSettled(WireMessage):
    """A question is answered, here or elsewhere, or its run has ended."""

    name: Literal["settled"] = "settled"
    id: str


class CatalogChanged(WireMessage):
    """Actions came or went; what was fetched before `revision` is stale."""

    name: Literal["catalog"] = "catalog"
    revision: str


class RunChanged(WireMessage):
    """A run has new events, or has ended."""

    name: Literal["run"] = "run"
    run: str
    ended: bool


Event = Annotated[ApprovalAsked | ApprovalSettled | CatalogChanged | RunChanged, Field(discriminator="name")]


class Happened(WireMessage):
    type: Literal["event"] = "event"
    event: Event
