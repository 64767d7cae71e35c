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
        return re.sub(r"\A(\d{4}-\d{2}-\d{2})[T ]00:00:00(?:\.0+)?Z?\Z", r"\1", given)
    if isinstance(given, Mapping) and set(given) == {"$number"}:
        return str(given["$number"])
    return json.dumps(given, ensure_ascii=False)


def cell(given: Any) -> str:
    """A value for a table cell: one line, clipped, its marks escaped."""
    text = " ".join(value(given).split())
    text = shorten(text, CELL)
    return re.sub(r"([\\|`*_\[\]<>~])", r"\\\1", text) if not isinstance(given, (int, float)) else text


def _numeric(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Return whether a column holds numbers, so that they stand under each other."""
    kinds = {type(row.get(name)) for row in rows[:ROWS]} - {type(None)}
    return bool(kinds) and kinds <= {int, float}


def table(rows: Sequence[Mapping[str, Any]], total: int | None = None, *, cut: bool = False) -> str:
    """Records as a Markdown table; rows past 50 are counted, and those of `total`; there are more where it is `cut`."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return "(no rows)"
    rules = ["---:" if _numeric(rows, name) else "---" for name in names]
    lines = ["| " + " | ".join(cell(str(name)) for name in names) + " |", "| " + " | ".join(rules) + " |"]
    lines += ["| " + " | ".join(cell(row.get(name)) for name in names) + " |" for row in rows[:ROWS]]
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
