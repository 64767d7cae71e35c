"""Conditions of a question as SQL: comparisons, ranges, days, months and years, yes-or-no columns and values.

Invariant: every condition is a pair: its SQL, and the words in which the answer repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass

from reyn_jupyter.models.offline.lexicon import alike, parts, same_concept
from reyn_jupyter.models.offline.parse_state import ParseState, Ungrounded, Values
from reyn_jupyter.models.offline.table_schema import ColumnSchema, is_flag, literal


def conditions(board: ParseState, values: Values) -> list[Condition]:
    """All conditions of a question; gives roles to what they are made of."""
    found = [*date_conditions(board), *_ranges(board), *_comparisons(board), *_equalities(board)]
    found.extend(_values(board, values))
    found.extend(_flags(board))
    return found


# -- numbers --------------------------------------------------------------------------------------------------------


def _ranges(board: ParseState) -> list[Condition]:
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


def _comparisons(board: ParseState) -> list[Condition]:
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


def _compared(board: ParseState, index: int, last: int) -> ColumnSchema:
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


def _measured(board: ParseState, index: int) -> bool:
    """Return whether a column is what is aggregated, as in `average fee over 20`."""
    before = board.before(index)
    return before is not None and board.units[before].kind in ("aggregate", "extreme")


def _equalities(board: ParseState) -> list[Condition]:
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


def _negated(board: ParseState, index: int) -> bool:
    for step in range(index - 1, max(-1, index - 4), -1):
        if board.units[step].kind == "not" or board.units[step].value == "<>":
            board.give("not", step)
            return True
        if not board.is_filler(step) and step not in board.columns:
            return False
    return False


def _values(board: ParseState, values: Values) -> list[Condition]:
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


def _flags(board: ParseState) -> list[Condition]:
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


_MONTHS = "January February March April May June July August September October November December"
MONTH_NAMES = _MONTHS.split()


@dataclass(frozen=True)
class Condition:
    """One condition: SQL, and how the answer says it."""

    sql: str
    words: str


def date_conditions(board: ParseState) -> list[Condition]:
    """Return what the dates of a question demand, and give roles to what they are made of."""
    return [*_date_ranges(board), *_single(board)]


def number_at(board: ParseState, index: int | None) -> int | float | None:
    """The number that stands at an index without a role yet."""
    return board.units[index].tokens[0].number if index is not None and board.free(index, "number") else None


def _single(board: ParseState) -> list[Condition]:
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


def _date_ranges(board: ParseState) -> list[Condition]:
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


def _absorb(board: ParseState, index: int, column: ColumnSchema | None) -> None:
    """`born before 1960` names `birth_year` by what happened then."""
    for step in range(max(0, index - 3), index):
        if column is not None and board.free(step, "word") and not board.is_filler(step):
            words = parts(board.units[step].value)
            if any(same_concept(word, own) or alike(word, own) for word in words for own in column.parts):
                board.give("unit", step)


def _span(board: ParseState, index: int) -> tuple[str, str, str, list[int]] | None:
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


def _date_column(board: ParseState, index: int) -> ColumnSchema | None:
    near = [step for step in board.open_columns() if board.columns[step].kind == "date"]
    if near:
        step = min(near, key=lambda step: abs(step - index))
        if abs(step - index) <= 4:
            board.give("date", step)
        return board.columns[step]
    dates = board.table.of_kind("date")
    return dates[0] if dates else None


def _between_dates(column: ColumnSchema, start: str, stop: str, words: str, operator: str) -> Condition:
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


def _year_number(board: ParseState, words: str, operator: str) -> Condition | None:
    column = board.table.column(("year",))
    if column is None or column.kind != "number" or not words.isdigit():
        return None
    return Condition(f"{column.sql} {operator or '='} {words}", f"{column.name} {operator or '='} {words}")
