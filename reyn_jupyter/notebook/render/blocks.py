"""The view of an object as plain data: blocks, charts and tones, before any host decides how they are drawn.

Invariants: a view is plain data (dataclasses.asdict gives JSON) and holds untrusted text, never markup. Every text is
bounded where it is made; a host escapes it where it is drawn. HTML, text and later hosts draw the same view, so they
show the same words. Every number of a chart is finite, and an axis has a length. Whatever is drawn is also said in
words, and no state is told by a tone alone.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from sys import float_info
from typing import Annotated, Any, Literal, Required

from pydantic import BeforeValidator, PlainSerializer
from typing_extensions import TypedDict  # pydantic reads the one of `typing` from Python 3.12 on

Tone = Literal["plain", "good", "bad", "warn", "info", "muted"]


def _finite(label: str, *numbers: float | None) -> None:
    """Refuse NaN and infinity: JSON has neither, so a view has none."""
    for number in numbers:
        if number is not None and not math.isfinite(number):
            raise ValueError(
                f"{label or 'a chart'}: {number} cannot be drawn; give None for what is not known"
            )


def _axis(name: str, axis: tuple[float, float], ticks: tuple[tuple[float, str], ...]) -> None:
    _finite(name, *axis, *(value for value, _ in ticks))
    if not axis[0] < axis[1]:
        raise ValueError(f"{name or 'a chart'}: an axis goes from a smaller to a larger value, not {axis}")


@dataclass(frozen=True, slots=True)
class Interval:
    """A row of an interval chart. `text` says in words what is drawn; `reference` is a value to compare it with.

    Without an estimate nothing is drawn, and the words say why.

    Raises:
        ValueError: a number is NaN or infinite.
    """

    label: str
    text: str
    estimate: float | None
    low: float | None = None
    high: float | None = None
    detail: str = ""
    reference: float | None = None
    tone: Tone = "plain"

    def __post_init__(self) -> None:
        _finite(self.label, self.estimate, self.low, self.high, self.reference)


@dataclass(frozen=True, slots=True)
class Intervals:
    """Estimates with their intervals on one axis.

    Rates are `bars` from the axis' beginning, differences have a line at `zero`. `axis` is (from, to); `ticks` are
    (value, text); `legend` says what a row's reference is.
    """

    caption: str
    rows: tuple[Interval, ...]
    axis: tuple[float, float]
    ticks: tuple[tuple[float, str], ...] = ()
    zero: float | None = None
    bars: bool = False
    legend: str = ""
    more: str = ""
    type: Literal["intervals"] = "intervals"

    def __post_init__(self) -> None:
        _axis(self.caption, self.axis, self.ticks)
        _finite(self.caption, self.zero)


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a scatter chart, with the bounds of its y value; `text` says in words what is drawn."""

    label: str
    text: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    tone: Tone = "plain"

    def __post_init__(self) -> None:
        _finite(self.label, self.x, self.y, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Scatter:
    """Points on two axes, each with a name, (from, to) and ticks.

    Its `figures` are listed with it, unless a table beside it has them.
    """

    caption: str
    points: tuple[Point, ...]
    x_name: str
    y_name: str
    x_axis: tuple[float, float]
    y_axis: tuple[float, float]
    x_ticks: tuple[tuple[float, str], ...] = ()
    y_ticks: tuple[tuple[float, str], ...] = ()
    figures: bool = True
    type: Literal["scatter"] = "scatter"

    def __post_init__(self) -> None:
        _axis(self.x_name, self.x_axis, self.x_ticks)
        _axis(self.y_name, self.y_axis, self.y_ticks)


Face = Literal["text", "code", "badge"]
Mark = Literal["strong", "emphasis", "strike", "code", "muted"]


@dataclass(frozen=True, slots=True)
class Badge:
    """A short state in words; the tone only repeats it in colour."""

    text: str
    tone: Tone = "muted"


@dataclass(frozen=True, slots=True)
class Span:
    """A run of inline text. `href` is an http(s) address; hosts show where it leads beside the text."""

    text: str
    marks: tuple[Mark, ...] = ()
    href: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    spans: tuple[Span, ...]
    type: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    spans: tuple[Span, ...]
    type: Literal["heading"] = "heading"


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list; `start` numbers an ordered one, None is a bulleted one."""

    items: tuple[tuple[Block, ...], ...]
    start: int | None = None
    type: Literal["bullets"] = "bullets"


@dataclass(frozen=True, slots=True)
class Quote:
    blocks: tuple[Block, ...]
    type: Literal["quote"] = "quote"


@dataclass(frozen=True, slots=True)
class Rule:
    type: Literal["rule"] = "rule"


@dataclass(frozen=True, slots=True)
class Code:
    """Text in a fixed-width face, wrapped where it is long. `more` says what was left out and how to see it."""

    text: str
    label: str = ""
    more: str = ""
    type: Literal["code"] = "code"


@dataclass(frozen=True, slots=True)
class Commands:
    """Ready lines for the next cell."""

    lines: tuple[str, ...]
    label: str = "Next"
    type: Literal["commands"] = "commands"


@dataclass(frozen=True, slots=True)
class Lines:
    """Numbered lines, the first one being number `first`."""

    first: int
    lines: tuple[str, ...]
    label: str = ""
    more: str = ""
    type: Literal["lines"] = "lines"


@dataclass(frozen=True, slots=True)
class Column:
    """`detail` is a second line in the header (a dtype); a `header` column names its row.

    `wide` holds sentences, which may wrap; `whole` holds what people copy, which is never narrowed.
    """

    name: str
    detail: str = ""
    right: bool = False
    header: bool = False
    wide: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table, and what its row is sorted by in this column.

    Attributes:
        text: what stands there.
        value: the number that the text stands for; see `number_cell`. A cell without one is sorted by its text.
        missing: there is nothing to show; the row comes last, whichever way the column is sorted.
    """

    text: str
    tone: Tone = "plain"
    face: Face = "text"
    value: float | None = None
    missing: bool = False


def number_cell(text: str, value: float, tone: Tone = "plain") -> Cell:
    """Return a cell that is sorted by a number: bytes, seconds, dollars, a share, a moment in seconds since 1970.

    A value that is no number makes the cell a missing one. What a float cannot hold is as large as a float gets, since
    JSON has no infinity; cells of the same value are told apart by their texts.
    """
    if value != value:
        return Cell(text, tone, missing=True)
    try:
        kept = min(max(float(value), -float_info.max), float_info.max)
    except OverflowError:
        kept = float_info.max if value > 0 else -float_info.max
    return Cell(text, tone, value=kept)


def missing_cell(text: str = "–") -> Cell:
    """Return the cell of a value that is not there."""
    return Cell(text, "muted", missing=True)


SortedText = str | tuple[str, float]
"""A plain cell as it travels: its text, with its value where it has one."""


class CellFields(TypedDict, total=False):
    """Any other cell as it travels: what is as usual is left out."""

    text: Required[str]
    tone: Tone
    face: Face
    value: float
    missing: bool


def pack_cell(cell: Cell) -> CellFields | SortedText:
    """Return a cell as it travels: in short, since a table has many."""
    if (cell.tone, cell.face, cell.missing) == ("plain", "text", False):
        return cell.text if cell.value is None else (cell.text, cell.value)
    packed = CellFields(text=cell.text)
    if cell.tone != "plain":
        packed["tone"] = cell.tone
    if cell.face != "text":
        packed["face"] = cell.face
    if cell.value is not None:
        packed["value"] = cell.value
    if cell.missing:
        packed["missing"] = True
    return packed


def _unpack_cell(cell: Any) -> Any:
    if isinstance(cell, str):
        return Cell(cell)
    return Cell(cell[0], value=cell[1]) if isinstance(cell, list | tuple) else cell


PackedCell = Annotated[
    Cell, PlainSerializer(pack_cell, return_type=CellFields | SortedText), BeforeValidator(_unpack_cell)
]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. Every row has as many cells as there are columns."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[PackedCell, ...], ...]
    more: str = ""
    type: Literal["grid"] = "grid"


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a JSON tree. `kind` is its JSON type, or "more" for a note about children left out."""

    key: str | None
    text: str
    kind: str
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """A JSON value. `levels` is how deep it stands open: a small one whole, so that nothing has to be pressed."""

    root: Node
    more: str = ""
    levels: int = 1
    type: Literal["tree"] = "tree"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`sign` is "+", "-", " " or "@" (where in the file)."""

    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff of one file."""

    path: str
    summary: str
    lines: tuple[DiffLine, ...]
    more: str = ""
    type: Literal["diff"] = "diff"


@dataclass(frozen=True, slots=True)
class Facts:
    """(label, value) pairs."""

    pairs: tuple[tuple[str, str], ...]
    type: Literal["facts"] = "facts"


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence that stands out: an error, a warning, a note. `hint` says what to do next."""

    text: str
    tone: Tone = "info"
    hint: str = ""
    type: Literal["notice"] = "notice"


DRAWN = ("image/png", "image/jpeg", "image/gif", "image/webp")
PLAYED = ("audio/wav", "audio/mpeg", "audio/ogg", "audio/flac", "audio/mp4")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True, slots=True)
class Media:
    """An image that is drawn, or a sound with controls.

    Attributes:
        mime: one of `DRAWN` or `PLAYED`: formats that hold no markup and no script.
        data: the content in base64. It counts for no bound of a view's size: whoever makes blocks bounds it.
        alt: the text that stands for it; `caption` is the line under it.
        width, height: pixels of an image, 0 for a sound.

    Raises:
        ValueError: the type is another one, or the data is no base64.
    """

    mime: str
    data: str
    alt: str
    caption: str = ""
    width: int = 0
    height: int = 0
    type: Literal["media"] = "media"

    def __post_init__(self) -> None:
        if self.mime not in (*DRAWN, *PLAYED) or _BASE64.fullmatch(self.data) is None:
            raise ValueError(f"{self.mime[:80]} is neither drawn nor played, or its data is no base64")

    @property
    def is_image(self) -> bool:
        return self.mime in DRAWN

    @property
    def words(self) -> str:
        """Return what stands for it where nothing is drawn."""
        said = self.caption if self.alt in self.caption else f"{self.alt} · {self.caption}"
        return f"[{'image' if self.is_image else 'sound'}: {said}]"


CHARTED = ("image/svg+xml", "image/png")


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its picture, the same in words, and its figures as a table.

    A picture is drawn as an image alone, in which no script runs and from which nothing is loaded, whatever it holds.

    Attributes:
        title: what it shows; `words` say what is to be seen, and stand for the picture.
        mime: one of `CHARTED`; "" where there is no picture, with empty `data`.
        data: the picture in base64. It counts for no bound of a view's size: whoever makes blocks bounds it.
        table: the figures.

    Raises:
        ValueError: the type is another one, or the data is no base64.
    """

    title: str
    words: str
    mime: str
    data: str
    table: Grid
    type: Literal["chart"] = "chart"

    def __post_init__(self) -> None:
        drawn = self.mime in CHARTED and _BASE64.fullmatch(self.data) is not None
        if not drawn and (self.mime or self.data):
            raise ValueError(f"{self.mime[:80]} is no picture of a chart, or its data is no base64")


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    blocks: tuple[Block, ...]
    type: Literal["section"] = "section"


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks behind a summary line.

    Text hosts show the blocks of an open fold, and of one that is `printed`: they cannot unfold anything.
    """

    title: tuple[Span, ...]
    badges: tuple[Badge, ...] = ()
    aside: str = ""
    blocks: tuple[Block, ...] = ()
    open: bool = False
    printed: bool = False
    type: Literal["fold"] = "fold"


@dataclass(frozen=True, slots=True)
class ToolbarItem:
    """A button that opens blocks below it.

    Attributes:
        blob: the id of a blob whose live view takes the place of the blocks, where the kernel answers.
        inserts: the first of the blocks is code, which goes into a new cell where the host has cells.
        chart: the kernel draws what it opens once it is pressed; a host without a kernel leaves the button out.
    """

    label: str
    blocks: tuple[Block, ...] = ()
    blob: str = ""
    inserts: bool = False
    chart: bool = False
    type: Literal["item"] = "item"


@dataclass(frozen=True, slots=True)
class Toolbar:
    """What can be done with an answer: a row of buttons. Text hosts show `words` in its place."""

    blocks: tuple[ToolbarItem, ...]
    words: str = ""
    type: Literal["toolbar"] = "toolbar"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two views side by side, each under its heading."""

    left: str
    right: str
    left_blocks: tuple[Block, ...]
    right_blocks: tuple[Block, ...]
    type: Literal["pair"] = "pair"


Block = (
    Paragraph
    | Heading
    | Bullets
    | Quote
    | Rule
    | Code
    | Commands
    | Lines
    | Grid
    | Tree
    | Diff
    | Facts
    | Notice
    | Media
    | Chart
    | Section
    | Fold
    | Toolbar
    | ToolbarItem
    | Intervals
    | Scatter
    | Pair
)


@dataclass(frozen=True, slots=True)
class View:
    """One object as people see it.

    Attributes:
        kind: "actions", "action", "result", "blob", "inspection", "trace", or a table's or card's own kind.
        title: the heading; `badges` and `facts` stand beside and under it.
        knob: what gives all of it, named wherever a host has to leave something out.
    """

    kind: str
    title: str
    badges: tuple[Badge, ...] = ()
    facts: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    knob: str = ""
