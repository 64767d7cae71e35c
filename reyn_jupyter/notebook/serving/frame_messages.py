"""The messages of the data grid: texts that are made to be shown; a column is meant by its position."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from reyn_jupyter.notebook.serving.operation import Message

ROWS = 200
COLUMNS = 40


class SortKey(Message):
    """A column by its position."""

    column: int = Field(ge=0)
    descending: bool = False


class FilterKey(Message):
    """`most` and `least` are at most and at least; `value` is a text, read as the column's values are."""

    column: int = Field(ge=0)
    op: Literal["contains", "equals", "differs", "less", "most", "greater", "least", "missing", "present"]
    value: str = Field(default="", max_length=1000)


class OpenFrame(Message):
    blob: str


class FrameColumn(Message):
    """`position` counts all columns, those that name the rows first; these have `header` set."""

    position: int
    name: str
    dtype: str
    right: bool
    header: bool


class FrameOpened(Message):
    """Attributes:
    columns: those that name the rows, and the first of the others.
    width: how many columns there are; `revision` moves when rows were met that have further ones.
    headers: how many of the columns name the rows.
    inferred: no description of the columns is stored; they are those of the rows met so far.
    """

    rows: int
    width: int
    headers: int
    revision: int
    inferred: bool
    columns: list[FrameColumn]


class AskRows(Message):
    """`first_column` and `column_count` choose among the columns that do not name the rows."""

    blob: str
    start: int = Field(default=0, ge=0)
    count: int = Field(default=ROWS, ge=1, le=ROWS)
    first_column: int = Field(default=0, ge=0)
    column_count: int = Field(default=COLUMNS, ge=1, le=COLUMNS)
    sort: list[SortKey] = Field(default_factory=list)
    filter: list[FilterKey] = Field(default_factory=list)


class FrameRows(Message):
    """Attributes:
    total: how many rows match.
    labels: what names each row where no column does; else empty.
    cells: for each row a text for each of `columns`.
    muted: for each row the places of the cells that say that nothing is there.
    """

    start: int
    total: int
    width: int
    revision: int
    columns: list[FrameColumn]
    labels: list[str]
    cells: list[list[str]]
    muted: list[list[int]]


class AskColumn(Message):
    blob: str
    column: int = Field(ge=0)
    filter: list[FilterKey] = Field(default_factory=list)


class FrameFigures(Message):
    """The figures of a column over the rows that match.

    Attributes:
        facts: (label, value) pairs.
        top: the most frequent values, as (value, how often, share of the widest bar).
        bins: how high each bar of the histogram is, between 0 and 1; `low` and `high` are its ends.
    """

    name: str
    dtype: str
    facts: list[tuple[str, str]]
    top: list[tuple[str, str, float]]
    bins: list[float]
    low: str
    high: str


class AskCell(Message):
    """`row` counts the rows that match, in their order."""

    blob: str
    row: int = Field(ge=0)
    column: int = Field(ge=0)
    sort: list[SortKey] = Field(default_factory=list)
    filter: list[FilterKey] = Field(default_factory=list)


class FrameCell(Message):
    """A whole cell; `cut` when even this much is not all of it."""

    text: str
    cut: bool


class AskCode(Message):
    blob: str
    sort: list[SortKey] = Field(default_factory=list)
    filter: list[FilterKey] = Field(default_factory=list)


class FrameCode(Message):
    code: str
