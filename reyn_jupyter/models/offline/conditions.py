"""Conditions of a question: comparisons, ranges, dates, yes-or-no columns and values, as SQL.

Every condition is a pair: its SQL, and the words in which the answer repeats it.
"""

from __future__ import annotations

from reyn_jupyter.models.offline.board import Board, Ungrounded, Values
from reyn_jupyter.models.offline.dates import Condition, date_conditions, number_at
from reyn_jupyter.models.offline.table import Column, is_flag, literal


def conditions(board: Board, values: Values) -> list[Condition]:
    """All conditions of a question; gives roles to what they are made of."""
    found = [*date_conditions(board), *_ranges(board), *_comparisons(board), *_equalities(board)]
    found.extend(_values(board, values))
    found.extend(_flags(board))
    return found


# -- numbers --------------------------------------------------------------------------------------------------------


def _ranges(board: Board) -> list[Condition]:
    found = []
    for index in (step for step in board.of_kind("between") if board.free(step)):
        low = board.after(index)
        high = board.after(low) if low is not None else None
        first, second = number_at(board, low), number_at(board, high)
        if first is None or second is None or low is None or high is None:
            raise Ungrounded("“between” needs two numbers", ("between",))
        column = _compared(board, index, high)
        board.give("between", index, low, high)
        bounds = sorted((first, second))
        found.append(
            Condition(
                f"{column.sql} BETWEEN {literal(bounds[0])} AND {literal(bounds[1])}",
                f"{column.name} between {bounds[0]} and {bounds[1]}",
            )
        )
    return found


def _comparisons(board: Board) -> list[Condition]:
    found = []
    for index in board.of_kind("compare"):
        if not board.free(index):
            continue
        operator = board.units[index].value
        target = board.after(index)
        number = number_at(board, target)
        if number is None or target is None:
            continue
        column = _compared(board, index, target)
        board.give("compare", index, target)
        found.append(
            Condition(f"{column.sql} {operator} {literal(number)}", f"{column.name} {operator} {number}")
        )
    return found


def _compared(board: Board, index: int, last: int) -> Column:
    """The column that a comparison is about: the one before it, the one after its number, or the only one."""
    before, after = board.before(index), board.after(last, within=2)
    for step in (before, after):
        if step is not None and step in board.columns and board.columns[step].kind in ("number", "other"):
            if board.roles.get(step) == "column" and not _measured(board, step):
                board.give("compared", step)
            return board.columns[step]
    adjective = board.units[index].tokens[0].text
    concepts = {"longer": "length", "shorter": "length", "heavier": "mass", "lighter": "mass", "older": "age",
                "younger": "age", "cheaper": "price", "costlier": "price", "taller": "height"}  # fmt: skip
    if adjective.lower() in concepts:
        column = board.table.column((concepts[adjective.lower()],), loosely=True)
        if column is not None and column.kind == "number":
            return column
    numbers = board.table.of_kind("number")
    if len(numbers) == 1:
        return numbers[0]
    raise Ungrounded(
        f"I cannot tell which column “{board.units[index].text}” is about", (board.units[index].text,)
    )


def _measured(board: Board, index: int) -> bool:
    """Whether a column is what is aggregated, as in `average fee over 20`."""
    before = board.before(index)
    return before is not None and board.units[before].kind in ("aggregate", "extreme")


def _equalities(board: Board) -> list[Condition]:
    """`floor 3`, `year = 1994`: a number beside its column."""
    found = []
    for index, column in list(board.columns.items()):
        following = index + 1
        while following in board.roles and board.roles[following] == "unit":
            following += 1
        if following < len(board.units) and board.units[following].value in ("is", "was", "="):
            board.give("compare", following)
            following += 1
        number = number_at(board, following)
        if number is None or column.kind != "number" or board.roles.get(index) != "column":
            continue
        board.give("compared", index, following)
        found.append(Condition(f"{column.sql} = {literal(number)}", f"{column.name} = {number}"))
    return found


# -- values ---------------------------------------------------------------------------------------------------------


def _negated(board: Board, index: int) -> bool:
    for step in range(index - 1, max(-1, index - 4), -1):
        if board.units[step].kind == "not" or board.units[step].value == "<>":
            board.give("not", step)
            return True
        if not board.is_filler(step) and step not in board.columns:
            return False
    return False


def _values(board: Board, values: Values) -> list[Condition]:
    by_column: dict[tuple[str, bool], list[str]] = {}
    for held, value, index in board.take_values(values):
        chosen = by_column.setdefault((held, _negated(board, index)), [])
        if value not in chosen:
            chosen.append(value)
    found = []
    for (name, negated), chosen in by_column.items():
        column = next(column for column in board.table.columns if column.name == name)
        if len(chosen) == 1:
            operator = "<>" if negated else "="
            found.append(
                Condition(f"{column.sql} {operator} {literal(chosen[0])}", f"{name} {operator} {chosen[0]}")
            )
        else:
            listed = ", ".join(literal(value) for value in chosen)
            word = "NOT IN" if negated else "IN"
            found.append(
                Condition(f"{column.sql} {word} ({listed})", f"{name} {word.lower()} {', '.join(chosen)}")
            )
    return found


def _flags(board: Board) -> list[Condition]:
    found = []
    for index in board.open_columns():
        column = board.columns[index]
        before = board.before(index, within=2)
        grouped = before is not None and board.units[before].kind in ("group", "distinct")
        if not is_flag(column) or grouped:
            continue
        negated = _negated(board, index)
        board.give("flag", index)
        word = "not " if negated else ""
        if column.kind == "flag":
            found.append(Condition(f"{'NOT ' if negated else ''}{column.sql}", f"{word}{column.name}"))
        else:
            listed = "('no', 'n', 'false')" if negated else "('yes', 'y', 'true')"
            found.append(
                Condition(f"lower(CAST({column.sql} AS VARCHAR)) IN {listed}", f"{word}{column.name}")
            )
    return found
