"""What a condition is, and the small questions that every kind of condition asks of a parse.

Invariant: every condition is a pair: its SQL, and the words in which the answer repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass

from reyn_jupyter.models.offline.parse_state import ParseState
from reyn_jupyter.models.offline.table_schema import ColumnSchema

SAID = {">": "is over", "<": "is under", ">=": "is at least", "<=": "is at most", "=": "is", "<>": "is not"}

OPPOSITE = {">": "<=", ">=": "<", "<": ">=", "<=": ">", "=": "<>", "<>": "="}


@dataclass(frozen=True)
class Condition:
    """One condition: SQL, and how the answer says it. `place` is the unit of the question that it came from, `column`
    the dates that it is about."""

    sql: str
    words: str
    place: int = 0
    column: ColumnSchema | None = None


def number_at(board: ParseState, index: int | None) -> int | float | None:
    """The number that stands at an index without a role yet."""
    return board.units[index].number if index is not None and board.free(index, "number") else None


def negated(board: ParseState, index: int) -> bool:
    """Return whether a `not` stands before a unit, with no more than filler words and columns between."""
    for step in range(index - 1, max(-1, index - 4), -1):
        if board.units[step].kind == "not" or board.units[step].value == "<>":
            board.give("not", step)
            return True
        if not board.is_filler(step) and step not in board.columns:
            return False
    return False
