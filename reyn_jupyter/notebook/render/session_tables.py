"""Tables and cards of every other kind: blobs, runs, events, models, status, help …

How a column looks follows from its name and values: bytes and times in words, figures to the right, ids in a
fixed-width face, states as badges.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blob_view import KINDS
from reyn_jupyter.notebook.render.blocks import (
    Block,
    Cell,
    Code,
    Column,
    Commands,
    Facts,
    Grid,
    Notice,
    Section,
    Tone,
    View,
    missing_cell,
    number_cell,
)
from reyn_jupyter.notebook.render.file_changes_view import LINES, diff_block
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.sessions.result_objects import Card, Table

ROWS = 50
_COLUMNS = 14
_COMMAND = 4000  # characters of a ready line, which is no use when it is cut
_BYTES = {"bytes", "size"}
_TIMES = {"at", "created", "started", "ended", "modified", "time", "when", "last_used", "updated"}
_SECONDS = {"seconds", "duration", "latency"}
_MONEY = {"cost", "price", "dollars"}
_CODES = {
    "id",
    "blob",
    "run",
    "call",
    "name",
    "action",
    "pattern",
    "key",
    "path",
    "model",
    "sha256",
    "command",
}
_SCORES = {"score", "safety", "quality", "confidence"}  # 0 to 1
_SELDOM = {"inner", "priority"}  # columns that are left out where nothing but 0 stands in them
_COPIED = {"id", "blob", "run", "name", "action"}
_IDS = {"id", "blob", "run"}
_STATES: dict[str, Tone] = {
    "ok": "good", "allowed": "good", "allow": "good", "set": "good", "yes": "plain", "ready": "good", "found": "good",
    "error": "bad", "failed": "bad", "denied": "bad", "deny": "bad", "lost": "bad",
    "missing": "warn", "interrupted": "warn", "limit": "warn", "cancelled": "warn", "ask": "warn",
    "asks": "warn", "held back": "warn", "needs sign-in": "warn", "waiting": "warn", "blocked": "warn",
    "running": "info", "starting": "info", "idle": "plain",
}  # fmt: skip
_READY, _MOST_READY = (
    "to use it",
    6,
)  # a column of lines for the next cell, which stand below the table, to be copied
_STATE_COLUMNS = {"status", "state", "decision", "ok", "permission"}


def state_tone(state: str) -> Tone:
    """Return the tone of a state's badge."""
    return _STATES.get(state, "plain")


def table(given: Table, look: Look) -> View:
    """Return rows of one kind."""
    title = look.line(given.title or given.kind.capitalize(), 120)
    names = (
        [name for name in given.rows[0] if name != _READY and _says_something(name, given)]
        if given.rows
        else []
    )
    blocks: list[Block] = []
    if not given.rows:
        blocks.append(Notice("Nothing here yet.", "muted"))
    else:
        blocks.append(_grid(given, names, look))
        ready = [str(row[_READY]) for row in given.rows if row.get(_READY)][:_MOST_READY]
        if ready:
            blocks.append(Commands(tuple(look.text(line, 400) for line in ready), "To use one"))
    if given.note:
        blocks.append(Notice(look.text(given.note, 600), "muted"))
    facts = (count(len(given.rows), "row"),) if given.rows else ()
    return View(given.kind, title, (), facts, tuple(blocks), ".df")


def _says_something(name: str, given: Table) -> bool:
    return name not in _SELDOM or any(row.get(name) for row in given.rows)


def _grid(given: Table, names: list[str], look: Look) -> Grid:
    shown = names[:_COLUMNS]
    columns = tuple(
        _column(name, [row.get(name) for row in given.rows[:ROWS]], place, look)
        for place, name in enumerate(shown)
    )
    rows = tuple(tuple(_cell(name, row.get(name), look) for name in shown) for row in given.rows[:ROWS])
    parts = []
    if len(given.rows) > ROWS:
        parts.append(f"the first {ROWS} of {len(given.rows):,} rows")
    if len(names) > _COLUMNS:
        parts.append(f"the first {_COLUMNS} of {len(names):,} columns")
    more = f"These are {' and '.join(parts)}; .df holds all of it" if parts else ""
    return Grid("", columns, rows, more)


def _column(name: str, values: list[Any], place: int, look: Look) -> Column:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    right = bool(numbers) and name not in _TIMES and all(not isinstance(value, str) for value in values)
    wide = any(isinstance(value, str) and len(value) > 48 for value in values)
    label = look.line(str(name).replace("_", " "), 40)
    return Column(label, right=right, header=place == 0, wide=wide, whole=name in _COPIED | _TIMES)


def _cell(name: str, value: object, look: Look) -> Cell:
    if value is None or value == "":
        return missing_cell()
    if isinstance(value, bool):
        state = "yes" if value else "no"
        if name == "ok":
            return Cell("✓ ok" if value else "✗ failed", "good" if value else "bad", "badge")
        return Cell(state, "plain" if value else "muted")
    if isinstance(value, int | float):
        return number_cell(_figure(name, value, look), value)
    text = look.line(value, 200)
    if name in _IDS:
        return Cell(formatting.tail(text), face="code")
    if name == "kind" and text in KINDS:
        return Cell(KINDS[text])
    if name in _TIMES:
        return _time_cell(text, look)
    if name in _STATE_COLUMNS and text in _STATES:
        return Cell(text, _STATES[text], "badge")
    return Cell(text, face="code" if name in _CODES and " " not in text else "text")


def _time_cell(text: str, look: Look) -> Cell:
    """Return a time given as ISO text, as every other view gives it."""
    try:
        epoch = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return Cell(text)
    return number_cell(formatting.moment(epoch), epoch)


def _figure(name: str, value: int | float, look: Look) -> str:
    """Return a number by the meaning of its column; a name may say it first or last (``size``, ``total_bytes``)."""
    meaning = {name, name.rpartition("_")[2]}
    if value != value:
        return "NaN"
    if meaning & _BYTES:
        return formatting.size(value)
    if meaning & _SECONDS:
        return formatting.seconds(value)
    if meaning & _MONEY:
        return formatting.money(value)
    if name in _SCORES:
        return f"{value:.2f}"
    if meaning & _TIMES and value > 1e8:
        return formatting.moment(value)
    return f"{value:,}" if isinstance(value, int) and abs(value) < 10**60 else look.text(value, 80)


def card(given: Card, look: Look) -> View:
    """Return a small card of facts, sections of plain lines or of a diff, and lines to try."""
    blocks: list[Block] = []
    if given.facts:
        pairs = tuple((look.line(label, 60), look.text(value, 400)) for label, value in given.facts[:60])
        blocks.append(Facts(pairs))
    for heading, lines in given.sections[:20]:
        if lines and lines[0].startswith("--- "):
            how = dict(given.facts).get(heading, "")
            blocks.append(diff_block(look.line(heading, 200), how, list(lines[:LINES]), look))
            continue
        shown = "\n".join(look.line(line, 240) for line in lines[:120])
        left = len(lines) - 120
        more = f"… {left:,} more lines; .sections holds all of them" if left > 0 else ""
        blocks.append(Section(look.line(heading, 120), (Code(shown, more=more),)))
    if given.tries:
        blocks.append(Commands(tuple(look.line(line, _COMMAND) for line in given.tries[:12]), "Try"))
    return View(given.kind, look.line(given.title, 160), (), (), tuple(blocks), ".payload")
