"""The compliance marks of a run as a row with a cell a step.

Invariant: nothing is judged here; a verdict is drawn with ✓ or ✗, an observation without a sign.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Cell,
    Column,
    Fold,
    Grid,
    Section,
    Span,
    Tone,
    number_cell,
)
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.runtime.record.compliance import ComplianceMark, compliance_marks

if TYPE_CHECKING:
    from reyn_jupyter.runtime.record.trace import Trace

_STEPS = 12
_ROWS = 16
_WORST: tuple[Tone, ...] = ("good", "plain", "muted", "info", "warn", "bad")
_SIGNS = {True: "✓ ", False: "✗ ", None: ""}


def compliance_blocks(trace: Trace, look: Look) -> list[Block]:
    """Return the marks as a row with a cell a step; behind it the reasons, beside it the mandates in force."""
    marks = compliance_marks(trace)
    if not marks:
        return []
    steps = list(dict.fromkeys(mark.step for mark in marks))
    drawn = steps[:_STEPS]
    more = f"… {len(steps) - _STEPS:,} more steps have marks" if len(steps) > _STEPS else ""
    columns = tuple(Column(f"step {step}") for step in drawn)
    row = tuple(_cell([mark for mark in marks if mark.step == step]) for step in drawn)
    mandates = ", ".join(look.line(name, 60) for name in trace.started.mandates[:12]) or "none"
    line = Grid("", columns, (row,), more)
    aside = look.line(f"mandates in force: {mandates}", 160)
    why = Fold((Span("Why"),), (_count_badge(marks),), aside, (_reasons(marks, look),))
    return [Section("What the rules of the catalog say of this run", (line, why))]


def mark_text(mark: ComplianceMark) -> str:
    """Return a mark in words, with ✓ or ✗ before a verdict."""
    return f"{_SIGNS[mark.kept]}{mark.text}"


def _cell(marks: list[ComplianceMark]) -> Cell:
    texts = Counter(map(mark_text, marks))
    text = " · ".join(f"{count:,} × {text}" if count > 1 else text for text, count in texts.items())
    return Cell(text, max((mark.tone for mark in marks), key=_WORST.index), "badge")


def _count_badge(marks: tuple[ComplianceMark, ...]) -> Badge:
    broken = [mark.tone for mark in marks if mark.kept is False]
    kept = sum(mark.kept is True for mark in marks)
    tone: Tone = max(broken, key=_WORST.index, default="good" if kept else "muted")
    return Badge(f"{kept} ✓, {len(broken)} ✗", tone)


def _reasons(marks: tuple[ComplianceMark, ...], look: Look) -> Grid:
    """Return each mark with its reason; what is said again of later steps is counted with the first."""
    first = {(mark_text(mark), mark.explanation): mark for mark in reversed(marks)}
    times = Counter((mark_text(mark), mark.explanation) for mark in marks)
    rows = []
    for key, count in list(times.items())[:_ROWS]:
        mark, words = first[key], key[0]
        text = f"{count:,} × {words}" if count > 1 else words
        step, why = number_cell(str(mark.step), mark.step), Cell(look.text(mark.explanation, 200))
        rows.append((step, Cell(text, mark.tone, "badge"), why))
    columns = (Column("step", right=True, header=True), Column("mark"), Column("why", wide=True))
    left = len(times) - len(rows)
    more = f"… {left:,} more marks; what they are about: trace.call_log" if left else ""
    return Grid("", columns, tuple(rows), more)
