"""Columns that line up in a fixed-width face, for every script.

Widths follow the Unicode East Asian Width property: wide and full-width letters take two cells, combining marks and
format characters none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from reyn_jupyter.notebook.render.model import Column, Grid
from reyn_jupyter.notebook.render.untrusted import visible

LINE = 120
_CELL = 48
_NARROW = 20
_SENTENCE = 28
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


def text_table(grid: Grid) -> list[str]:
    """The lines of a table; columns that do not fit in 120 cells are left out, with a note."""
    columns = grid.columns
    head = [[visible(column.name) for column in columns]]
    if any(column.detail for column in columns):
        head.append([visible(column.detail) for column in columns])
    body = [[visible(cell.text) for cell in row] for row in grid.rows]
    widths = _widths([*head, *body], columns)
    shown = len(widths)
    lines = [_line(row[:shown], columns, widths) for row in head]
    lines.append("  ".join("─" * width for width in widths))
    lines += [_line(row[:shown], columns, widths) for row in body]
    if shown < len(columns):
        left = ", ".join(visible(column.name) for column in columns[shown : shown + 4])
        lines.append(clip_width(f"… {len(columns) - shown} more columns: {left}", LINE))
    lines += [visible(text) for text in (grid.caption, grid.more) if text]
    return lines


def _widths(rows: Sequence[Sequence[str]], columns: Sequence[Column]) -> list[int]:
    """A width for each column that is shown: the widest give way first, then the last columns go."""
    widths = [
        min(_CELL, max((text_width(row[place]) for row in rows if place < len(row)), default=1)) or 1
        for place in range(len(columns))
    ]
    least = [_CELL if column.whole else _SENTENCE if column.wide else _NARROW for column in columns]
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
