"""What a question is about: how many rows, which expression, grouped by what, which column is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from reyn_jupyter.models.offline.board import Board, Ungrounded
from reyn_jupyter.models.offline.query import Output, of_column, period
from reyn_jupyter.models.offline.table import Column


@dataclass
class Subjects:
    """What was found of a question's subjects.

    Attributes:
        groups: what to group by.
        target: the thing asked for by `which …` or `top 5 …`: a column or a period.
        measures: columns or expressions to compute with.
        limit: how many rows are wanted, and from which end.
    """

    groups: list[Output] = field(default_factory=list)
    target: Output | None = None
    measures: list[Output] = field(default_factory=list)
    limit: int | None = None
    descending: bool = True


def subjects(board: Board) -> Subjects:
    """Find the number of rows and the expression; groups and target follow after the conditions."""
    found = Subjects()
    _top(board, found)
    _expression(board, found)
    return found


def functions(board: Board) -> list[str]:
    """The aggregate functions that are asked for, in order; `count` beside another one is a column's word."""
    asked = [board.units[index].value for index in board.of_kind("aggregate") if index not in board.columns]
    found = list(dict.fromkeys(asked))
    if len(found) > 1 and "count" in found:
        found.remove("count")
    return found


def _top(board: Board, found: Subjects) -> None:
    for index in board.of_kind("top", "extreme"):
        for step in (index + 1, index - 1):
            number = board.units[step].tokens[0].number if board.free(step, "number") else None
            if isinstance(number, int) and 0 < number <= 1000 and found.limit is None:
                found.limit = number
                found.descending = board.units[index].kind != "top" or board.units[index].value == "desc"
                board.give("top", step, *([index] if board.units[index].kind == "top" else []))


def _expression(board: Board, found: Subjects) -> None:
    """`quantity * unit_price`, with or without a name before it."""
    for index in board.of_kind("times"):
        left, right = board.before(index, within=2), board.after(index, within=2)
        if left is None or right is None or left not in board.columns or right not in board.columns:
            continue
        first, second = board.columns[left], board.columns[right]
        operator = board.units[index].value
        label = f"{first.name} {operator} {second.name}"
        board.give("expression", left, index, right)
        name = left - 1
        while name >= 0 and (
            board.units[name].kind == "symbol" or board.units[name].value in ("=", "is", "as")
        ):
            board.give("expression", name)
            name -= 1
        if 0 <= name < left - 1 and board.free(name, "word") and not board.is_filler(name):
            label = board.units[name].text
            board.give("expression", *(i for i, unit in enumerate(board.units) if unit.text == label))
        found.measures.append(Output(f"{first.sql} {operator} {second.sql}", label))


def find_groups(board: Board, found: Subjects) -> None:
    """`by clinic and doctor`, `per month of visit_date`."""
    for marker in board.of_kind("group"):
        step = board.after(marker)
        while step is not None:
            output, used = _group_at(board, found, step)
            if output is None:
                break
            board.give("group", marker, step, *used)
            found.groups.append(output)
            step = joined(board, max([step, *used]))


def joined(board: Board, index: int) -> int | None:
    """The unit after an `and` or a comma."""
    following = index + 1
    while following < len(board.units) and board.roles.get(following) == "unit":
        following += 1
    if following < len(board.units) and board.units[following].value in ("and", ",", "&"):
        step = board.after(following)
        return step if step in board.columns or board.free(-1 if step is None else step, "period") else None
    return None


def _group_at(board: Board, found: Subjects, step: int) -> tuple[Output | None, list[int]]:
    column = board.columns.get(step)
    if column is not None and board.roles.get(step) == "column":
        if found.limit is not None and column.kind == "number" and not functions(board):
            found.measures.append(of_column(column))
            board.give("measure", step)
            return None, []
        return of_column(column), []
    if board.free(step, "period"):
        chosen, used = _date_column(board, step)
        return period(board.units[step].value, chosen), used
    return None, []


def _date_column(board: Board, step: int) -> tuple[Column, list[int]]:
    named = [index for index in board.open_columns() if board.columns[index].kind == "date"]
    chosen = [board.columns[index] for index in named] or list(board.table.of_kind("date"))
    if not chosen:
        raise Ungrounded(f"{board.table.label} has no date column", (board.units[step].text,))
    return chosen[0], named[:1]


def find_target(board: Board, found: Subjects) -> None:
    """`which building …`, `the site with the highest …`, `top 5 products by …`, `busiest month`."""
    if not (found.limit or board.of_kind("extreme")) or found.groups:
        return
    for index in board.of_kind("period"):
        if board.free(index) and (_asked(board, index) or _after_extreme(board, index)):
            column, used = _date_column(board, index)
            board.give("target", index, *used)
            found.target = period(board.units[index].value, column)
            return
    for index in board.open_columns():
        before = board.before(index, within=3)
        opens = before is None or board.roles.get(before) in ("top", "source")
        if (opens or _asked(board, index)) and board.columns[index].kind != "number":
            board.give("target", index)
            found.target = of_column(board.columns[index])
            return
    for index in board.open_columns():  # "the cheapest tariff band", "the longest title"
        before = board.before(index, within=3)
        kind = board.units[before].kind if before is not None else ""
        if board.columns[index].kind == "text" and kind in ("extreme", "word"):
            board.give("target", index)
            found.target = of_column(board.columns[index])
            return


def _asked(board: Board, index: int) -> bool:
    words = [unit.value for unit in board.units[max(0, index - 2) : index]]
    return any(word in ("which", "what", "whose", "who") for word in words)


def _after_extreme(board: Board, index: int) -> bool:
    before = board.before(index, within=2)
    return before is not None and board.units[before].kind == "extreme"
