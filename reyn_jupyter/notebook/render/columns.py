"""Columns that line up in a fixed-width face, for every script.

Widths follow the Unicode East Asian Width property: wide and full-width letters take two cells, combining marks and
format characters none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import zip_longest

from reyn_jupyter.notebook.render.model import Column, Grid
from reyn_jupyter.support.sanitize import visible

LINE = 120
_CELL = 48
_NARROW = 20
_SENTENCE = 28
_WRAPPED = 24
_GAP = 2


def text_width(text: str) -> int:
    """The cells that a text takes in a terminal.

    >>> text_width("漢字"), text_width("e\\u0301")
    (4, 1)
    """
    return len(text) if text.isascii() else sum(map(_letter_width, text))


def _letter_width(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def clip_width(text: str, width: int) -> str:
    """Text within a width; a cut ends with "…"."""
    if text_width(text) <= width:
        return text
    used = 0
    for place, letter in enumerate(text):
        used += _letter_width(letter)
        if used > width - 1:
            return text[:place] + "…"
    return text


def padded(text: str, width: int, right: bool = False) -> str:
    space = " " * (width - text_width(text))
    return space + text if right else text + space


def text_table(grid: Grid, *, whole: bool = False) -> list[str]:
    """The lines of a table.

    Columns that do not fit in 120 cells are left out, with a note. A table that is shown `whole` goes on with them
    below, under the same first column, and wraps sentences where it would cut them.
    """
    columns = grid.columns
    head = [[visible(column.name) for column in columns]]
    if any(column.detail for column in columns):
        head.append([visible(column.detail) for column in columns])
    body = [[visible(cell.text) for cell in row] for row in grid.rows]
    if whole and columns:
        lines = _panels(head, body, columns)
    else:
        lines, shown = _panel(head, body, columns, whole=False)
        if shown < len(columns):
            left = ", ".join(visible(column.name) for column in columns[shown : shown + 4])
            more = f"{len(columns) - shown} more column{'s' if len(columns) - shown > 1 else ''}"
            lines.append(clip_width(f"… {more}: {left}", LINE))
    return [*lines, *(visible(text) for text in (grid.caption, grid.more) if text)]


_Rows = Sequence[Sequence[str]]


def _panels(head: _Rows, body: _Rows, columns: Sequence[Column]) -> list[str]:
    """All columns, as many as fit at a time, each time beside the first one."""
    lines: list[str] = []
    rest = list(range(1, len(columns)))
    while rest or not lines:
        places = [0, *rest]

        def part(rows: _Rows, places: Sequence[int] = places) -> list[list[str]]:
            return [[row[place] if place < len(row) else "" for place in places] for row in rows]

        panel, shown = _panel(part(head), part(body), [columns[place] for place in places], whole=True)
        lines += ["", *panel] if lines else panel
        rest = rest[max(1, shown - 1) :]
    return lines


def _panel(head: _Rows, body: _Rows, columns: Sequence[Column], *, whole: bool) -> tuple[list[str], int]:
    """A table of the first columns that fit side by side, and how many those are."""
    widths = _widths([*head, *body], columns, whole)
    lines = [_line(row, columns, widths) for row in head]
    lines.append("  ".join("─" * width for width in widths))
    for row in body:
        cells = [
            wrapped(text, width) if whole and column.wide else [text]
            for text, width, column in zip(row, widths, columns, strict=False)
        ]
        lines += [_line(each, columns, widths) for each in zip_longest(*cells, fillvalue="")] or [""]
    return lines, len(widths)


def wrapped(text: str, width: int) -> list[str]:
    """A text as lines of at most a width, broken between words.

    >>> wrapped("it is a long way", 8)
    ['it is a', 'long way']
    """
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and text_width(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [clip_width(line, width) for line in lines]


def _widths(rows: _Rows, columns: Sequence[Column], whole: bool) -> list[int]:
    """A width for each column that is shown: the widest give way first, then the last columns go."""
    widths = [
        min(_CELL, max((text_width(row[place]) for row in rows if place < len(row)), default=1)) or 1
        for place in range(len(columns))
    ]
    usual, sentence = (_CELL, _WRAPPED) if whole else (_NARROW, _SENTENCE)
    least = [_CELL if column.whole else sentence if column.wide else usual for column in columns]
    while widths and (over := sum(widths) + _GAP * (len(widths) - 1) - LINE) > 0:
        widest = max(range(len(widths)), key=lambda place: widths[place] - least[place])
        if widths[widest] <= least[widest]:
            widths.pop()
        else:
            widths[widest] = max(least[widest], widths[widest] - over)
    return widths


def _line(row: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    cells = [
        padded(clip_width(text, width), width, column.right)
        for text, width, column in zip(row, widths, columns, strict=False)
    ]
    return "  ".join(cells).rstrip()
