"""Results as Markdown that holds nothing but them: tables for records, code blocks for text.

Invariant: a number is written as the result has it, at most rounded; text from a result stays inside a table
cell or a code block, with every mark that would end it escaped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from reyn_jupyter.support.text import shorten

CELL = 80  # characters of a table cell
ROWS = 50  # rows of a table
TEXT = 6_000  # characters of a code block

_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2})(\.\d+)?Z?")
_MIDNIGHT = re.compile(r"\A(\d{4}-\d{2}-\d{2})[T ]00:00:00(?:\.0+)?Z?\Z")


def number(value: float) -> str:
    """A number with about six digits, never fewer than its whole part and two decimals.

    >>> number(101.83509090909091), number(1234567.891), number(220)
    ('101.835', '1234567.89', '220')
    """
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value) or abs(value) >= 1e15 or 0 < abs(value) < 1e-4:
        return repr(value)
    decimals = max(2, 6 - len(str(int(abs(value)))))
    text = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return text if text not in ("-0", "") else "0"


def value(given: Any) -> str:
    """Any JSON value, on one line."""
    if given is None:
        return "none"
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, (int, float)):
        return number(given)
    if isinstance(given, str):
        return _MIDNIGHT.sub(r"\1", given)
    if isinstance(given, Mapping) and set(given) == {"$number"}:
        return str(given["$number"])
    return json.dumps(given, ensure_ascii=False)


def cell(given: Any) -> str:
    """A value for a table cell: one line, clipped, its marks escaped."""
    text = " ".join((given if isinstance(given, str) else value(given)).split())
    text = shorten(text, CELL)
    return re.sub(r"([\\|`*_\[\]<>~])", r"\\\1", text) if not isinstance(given, (int, float)) else text


def _numeric(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Return whether a column holds numbers, so that they stand under each other."""
    kinds = {type(row.get(name)) for row in rows[:ROWS]} - {type(None)}
    return bool(kinds) and kinds <= {int, float}


def _in_one_format(cells: list[Any]) -> list[Any]:
    """The cells of a column; its moments all as days, or all with a time and equally many decimals."""
    found = [_MOMENT.fullmatch(text) for text in cells if isinstance(text, str)]
    if None in found:
        return cells
    decimals = max((len((m[2] or "").rstrip("0").rstrip(".")) for m in found if m), default=0)
    days = all(m[1].endswith("00:00:00") for m in found if m) and not decimals
    forms = iter(
        [m[1][:10] if days else m[1] + (m[2] or ".").ljust(decimals, "0")[:decimals] for m in found if m]
    )
    return [next(forms) if isinstance(given, str) else given for given in cells]


def table(rows: Sequence[Mapping[str, Any]], total: int | None = None, *, cut: bool = False) -> str:
    """Records as a Markdown table; rows past 50 are counted, and those of `total`; there are more where it is `cut`."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return "(no rows)"
    rules = ["---:" if _numeric(rows, name) else "---" for name in names]
    lines = ["| " + " | ".join(cell(str(name)) for name in names) + " |", "| " + " | ".join(rules) + " |"]
    columns = [_in_one_format([row.get(name) for row in rows[:ROWS]]) for name in names]
    lines += ["| " + " | ".join(map(cell, cells)) + " |" for cells in zip(*columns, strict=True)]
    left = max(len(rows), total or 0) - min(len(rows), ROWS)
    if left:
        lines.append(f"\n… and {'at least ' if cut else ''}{left} more rows")
    return "\n".join(lines)


def block(text: str, limit: int = TEXT) -> str:
    """Text as a code block whose fence is longer than any run of backticks in it."""
    shown = text if len(text) <= limit else text[:limit]
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    note = f"\n\n… cut after {limit} characters" if len(text) > limit else ""
    return f"{fence}\n{shown.rstrip()}\n{fence}{note}"


def code(text: str) -> str:
    """A short piece of text as inline code."""
    plain = " ".join(text.split()).replace("`", "'")
    return f"`{shorten(plain, 200)}`"


def plain(text: str, limit: int = 160) -> str:
    """A description's first paragraph on one line, its marks escaped."""
    line = " ".join(text.partition("\n\n")[0].split())
    return re.sub(r"([\\|`*_\[\]<>])", r"\\\1", shorten(line, limit))
