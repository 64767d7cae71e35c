"""Days, months and years in a question, as conditions on a date column or on a column of years."""

from __future__ import annotations

from dataclasses import dataclass

from reyn_jupyter.models.offline.board import Board, Ungrounded
from reyn_jupyter.models.offline.table import Column, literal
from reyn_jupyter.models.offline.words import alike, parts, same_concept

_MONTHS = "January February March April May June July August September October November December"
MONTH_NAMES = _MONTHS.split()


@dataclass(frozen=True)
class Condition:
    """One condition: SQL, and how the answer says it."""

    sql: str
    words: str


def date_conditions(board: Board) -> list[Condition]:
    """What the dates of a question demand; gives roles to what they are made of."""
    return [*_ranges(board), *_single(board)]


def number_at(board: Board, index: int | None) -> int | float | None:
    """The number that stands at an index without a role yet."""
    return board.units[index].tokens[0].number if index is not None and board.free(index, "number") else None


def _single(board: Board) -> list[Condition]:
    found = []
    for index in range(len(board.units)):
        span = _span(board, index)
        if span is None:
            continue
        start, stop, words, used = span
        column = _date_column(board, index)
        before = board.before(index, within=3)
        compare = before if before is not None and board.free(before, "compare") else None
        operator = board.units[compare].value if compare is not None else ""
        if column is None:
            condition = _year_number(board, words, operator)
            if condition is None:
                if board.units[index].kind == "number":
                    continue
                raise Ungrounded(f"{board.table.label} has no date column for “{words}”")
        else:
            condition = _between_dates(column, start, stop, words, operator)
        _absorb(board, index, column or board.table.column(("year",)))
        board.give("date", *used, *([compare] if compare is not None else []))
        found.append(condition)
    return found


def _ranges(board: Board) -> list[Condition]:
    """`between D1 and D2`, `from D1 to D2`: both ends belong to it."""
    found = []
    for index, unit in enumerate(board.units):
        opens = unit.kind == "between" or (unit.kind == "word" and unit.value == "from")
        low = board.after(index, within=2) if opens else None
        high = board.after(low, within=3) if low is not None else None
        if low is None or high is None or not board.free(low, "date") or not board.free(high, "date"):
            continue
        first, last = _span(board, low), _span(board, high)
        column = _date_column(board, index)
        if first is None or last is None or column is None:
            continue
        board.give("date", index, low, high)
        sql = f"{column.date_sql} >= DATE {literal(first[0])} AND {column.date_sql} < {_end(last[1])}"
        found.append(Condition(sql, f"{column.name} from {first[2]} to {last[2]}"))
    return found


def _end(stop: str) -> str:
    return f"DATE {literal(stop[:-2])} + 1" if stop.endswith("+1") else f"DATE {literal(stop)}"


def _absorb(board: Board, index: int, column: Column | None) -> None:
    """`born before 1960` names `birth_year` by what happened then."""
    for step in range(max(0, index - 3), index):
        if column is not None and board.free(step, "word") and not board.is_filler(step):
            words = parts(board.units[step].value)
            if any(same_concept(word, own) or alike(word, own) for word in words for own in column.parts):
                board.give("unit", step)


def _span(board: Board, index: int) -> tuple[str, str, str, list[int]] | None:
    """The days that the unit at an index means: first day, the day after the last, words, units used."""
    if not board.free(index, "date", "month", "number"):
        return None
    unit = board.units[index]
    if unit.kind == "date":
        pieces = [int(piece) for piece in unit.value.split("-")]
        if not 1 <= pieces[1] <= 12 or (len(pieces) == 3 and not 1 <= pieces[2] <= 31):
            return None
        if len(pieces) == 3:
            return unit.value, f"{unit.value}+1", unit.value, [index]
        return *_month_span(pieces[0], pieces[1]), unit.value, [index]
    if unit.kind == "month":
        year = number_at(board, board.after(index, within=2))
        name = MONTH_NAMES[int(unit.value) - 1]
        if isinstance(year, int) and 1000 <= year <= 9999:
            return (
                *_month_span(year, int(unit.value)),
                f"{name} {year}",
                [index, board.after(index, within=2) or index],
            )
        return "", unit.value, name, [index]
    year = unit.tokens[0].number
    previous = board.units[index - 1] if index else None
    led = previous is not None and previous.value in (
        "in",
        "of",
        "during",
        "from",
        "for",
        ">",
        ">=",
        "<",
        "year",
    )
    if isinstance(year, int) and 1900 <= year <= 2100 and led and not board.columns.get(index - 1):
        return f"{year}-01-01", f"{year + 1}-01-01", str(year), [index]
    return None


def _month_span(year: int, month: int) -> tuple[str, str]:
    following = (year + 1, 1) if month == 12 else (year, month + 1)
    return f"{year:04d}-{month:02d}-01", f"{following[0]:04d}-{following[1]:02d}-01"


def _date_column(board: Board, index: int) -> Column | None:
    near = [step for step in board.open_columns() if board.columns[step].kind == "date"]
    if near:
        step = min(near, key=lambda step: abs(step - index))
        if abs(step - index) <= 4:
            board.give("date", step)
        return board.columns[step]
    dates = board.table.of_kind("date")
    return dates[0] if dates else None


def _between_dates(column: Column, start: str, stop: str, words: str, operator: str) -> Condition:
    sql = column.date_sql
    if not start:
        return Condition(f"EXTRACT(month FROM {sql}) = {stop}", f"in {words}")
    end = _end(stop)
    begin = f"DATE {literal(start)}"
    if operator == "<":
        return Condition(f"{sql} < {begin}", f"before {words}")
    if operator == ">":
        return Condition(f"{sql} >= {end}", f"after {words}")
    if operator == ">=":
        return Condition(f"{sql} >= {begin}", f"since {words}")
    return Condition(f"{sql} >= {begin} AND {sql} < {end}", f"in {words}")


def _year_number(board: Board, words: str, operator: str) -> Condition | None:
    column = board.table.column(("year",))
    if column is None or column.kind != "number" or not words.isdigit():
        return None
    return Condition(f"{column.sql} {operator or '='} {words}", f"{column.name} {operator or '='} {words}")
