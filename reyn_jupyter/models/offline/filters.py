"""Conditions of a question as SQL: values, missing values, texts, comparisons, ranges and yes-or-no columns.

Invariant: what a condition is made of gets a role; what is left without one makes the question a refusal.
"""

from __future__ import annotations

import re

from reyn_jupyter.models.offline.conditions import OPPOSITE, SAID, Condition, negated, number_at
from reyn_jupyter.models.offline.date_filters import date_conditions
from reyn_jupyter.models.offline.lexer import DIMENSIONS
from reyn_jupyter.models.offline.lexicon import same_concept, stem
from reyn_jupyter.models.offline.parse_state import CALENDAR, ParseState, Ungrounded, Values
from reyn_jupyter.models.offline.table_schema import ColumnSchema, is_flag, literal


def conditions(board: ParseState) -> list[Condition]:
    """All conditions of a question but its values; gives roles to what they are made of."""
    return [
        *date_conditions(board),
        *_missing(board),
        *_texts(board),
        *_ranges(board),
        *_comparisons(board),
        *_equalities(board),
        *_signs(board),
        *_identities(board),
        *_flags(board),
    ]


# -- values ---------------------------------------------------------------------------------------------------------


def value_conditions(board: ParseState, values: Values) -> list[Condition]:
    """`for Turku and Oslo`, `neither paid nor open`: the values that a question names, one condition a column."""
    taken = board.take_values(values)
    chosen: dict[tuple[str, bool], dict[str, None]] = {}
    places: dict[str, int] = {}
    denied: dict[int, bool] = {}
    for number, (column, stored, index) in enumerate(taken):
        link = _link(board, taken[number - 1][2], index) if number else ""
        same = bool(number) and taken[number - 1][0] == column
        if link == "or" and not same:
            raise Ungrounded("“or” joins two columns, which I cannot do", ("or",))
        # "not in north or south" denies both.
        denied[number] = negated(board, index) or (bool(link) and same and denied[number - 1])
        chosen.setdefault((column, denied[number]), {}).update(dict.fromkeys(stored))
        places.setdefault(column, index)
    return [
        _value_condition(board, column, no, list(found), places[column])
        for (column, no), found in chosen.items()
    ]


def _link(board: ParseState, first: int, second: int) -> str:
    """`and`, `or` or a comma between two values, which gets its role; empty where other words are between."""
    found = ""
    for step in range(first + 1, second):
        unit = board.units[step]
        if board.roles.get(step) == "value" or unit.kind == "not":
            continue
        if unit.kind == "or" and unit.value == "or":
            board.give("link", step)
            found = "or"
        elif unit.value in ("and", ",", "&"):
            found = found or "and"
        elif not board.is_filler(step):
            return ""
    return found


def _value_condition(board: ParseState, name: str, no: bool, chosen: list[str], place: int) -> Condition:
    column = next(column for column in board.table.columns if column.name == name)
    if len(chosen) == 1:
        operator = "IS DISTINCT FROM" if no else "="
        return Condition(
            f"{column.sql} {operator} {literal(chosen[0])}",
            f"{name} is {'not ' if no else ''}{chosen[0]}",
            place,
        )
    listed = ", ".join(literal(value) for value in chosen)
    sql = f"({column.sql} IS NULL OR {column.sql} NOT IN ({listed}))" if no else f"{column.sql} IN ({listed})"
    return Condition(sql, f"{name} is {'not ' if no else ''}{' or '.join(chosen)}", place)


# -- missing values and texts ---------------------------------------------------------------------------------------


def _missing(board: ParseState) -> list[Condition]:
    """`amount is missing`, `no comment`, `empty comment`, `without a comment`: rows whose column holds nothing."""
    found = []
    for index in [*board.of_kind("missing"), *board.of_kind("not")]:
        if not board.free(index) or (
            board.units[index].kind == "not" and board.units[index].text.lower() != "without"
        ):
            continue
        step = _column_beside(board, index)
        if step is None:
            continue
        column = board.columns[step]
        if board.units[index].value == "none" and is_flag(column):
            said = f"“no {board.units[step].text}”"
            raise Ungrounded(f"{said} may be the value no, or a missing one: say “not” or “missing”", ("no",))
        board.give("missing", index, step)
        nothing = column.kind == "text" and board.units[index].value != "null"
        blank = f" OR trim(CAST({column.sql} AS VARCHAR)) = ''" if nothing else ""
        words = f"{column.name} is {'missing or blank' if nothing else 'missing'}"
        if negated(board, min(index, step)):
            found.append(Condition(f"NOT ({column.sql} IS NULL{blank})", f"not {words}", index))
        else:
            found.append(Condition(f"({column.sql} IS NULL{blank})", words, index))
    return found


def _column_beside(board: ParseState, index: int) -> int | None:
    """The column after a word for nothing (`missing values in amount`), or before it (`amount is missing`)."""
    following = board.after(index)
    while (
        following is not None
        and board.units[following].value in VALUE_WORDS
        and following not in board.columns
    ):
        board.give("unit", following)
        following = board.after(following)
    steps = (following,) if board.units[index].value in ("none", "no") else (following, board.before(index))
    return next((step for step in steps if step is not None and _open(board, step)), None)


VALUE_WORDS = ("value", "values", "cell", "cells")


def _open(board: ParseState, step: int) -> bool:
    return step in board.columns and board.roles.get(step) == "column"


def _texts(board: ParseState) -> list[Condition]:
    """`comment contains "gift"`, `that mention gift in the comment`: rows whose column holds a text."""
    found = []
    for index in board.of_kind("contain"):
        step = board.after(index)
        if (
            not board.free(index)
            or step is None
            or not board.free(step, "word", "quoted")
            or board.is_filler(step)
        ):
            continue
        before, after = board.before(index), board.after(step)
        near = next((s for s in (before, after) if s is not None and _open(board, s)), None)
        if near is None or board.columns[near].kind != "text":
            continue
        column, text = board.columns[near], board.units[step].text
        board.give("contain", index, step, near)
        no = negated(board, index)
        sql = f"contains(lower(CAST({column.sql} AS VARCHAR)), {literal(text.lower())})"
        sql = f"NOT coalesce({sql}, FALSE)" if no else sql
        words = f"{column.name} {'does not contain' if no else 'contains'} “{text}” in any letter case"
        found.append(Condition(sql, words, index))
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
        column, factor, note = _in_unit(board, index, high)
        before = board.before(index)
        before = board.before(before) if before is not None and board.units[before].kind == "not" else before
        if before is not None and _measured(board, before) and all(_like_a_year(n) for n in (first, second)):
            said = f"between {first} and {second}"
            raise Ungrounded(
                f"“{said}” may be years or values of {column.name}: write the column before it", (said,)
            )
        no = negated(board, index)
        board.give("between", index, low, high)
        a, b = (_scaled(number, factor) for number in sorted((first, second)))
        sql = f"{column.sql} BETWEEN {literal(a)} AND {literal(b)}"
        sql = f"({sql}) IS NOT TRUE" if no else sql
        found.append(
            Condition(sql, f"{column.name} is {'not ' if no else ''}between {a} and {b}{note}", index)
        )
    return found


def _in_unit(board: ParseState, index: int, last: int) -> tuple[ColumnSchema, float, str]:
    """Return the column of a comparison, the factor that its unit needs, and what the answer says of that.

    Raises:
        Ungrounded: The column's name does not say that it is in units of that kind.
    """
    if not board.free(last + 1, "unit"):
        return _compared(board, index, last), 1, ""
    unit = board.units[last + 1].value
    board.give("unit", last + 1)
    fitting = [column for column in board.table.of_kind("number") if _factor(unit, column) is not None]
    try:
        column = _compared(board, index, last)
    except Ungrounded:
        if len(fitting) != 1:
            raise
        column = fitting[0]
    factor = _factor(unit, column)
    if factor is None:
        said = f"I cannot tell whether {column.name} is in “{unit}”: leave the unit out if it is"
        raise Ungrounded(said, (unit,))
    return column, factor, "" if factor == 1 else f" (converted from {unit})"


def _factor(unit: str, column: ColumnSchema) -> float | None:
    """Return what a number with a unit is multiplied by, if one unit in the column's name measures the same."""
    names = [name.lower() for name in re.findall(r"[A-Za-z]+", column.name)][1:]
    for dimension in DIMENSIONS:
        said = unit if unit in dimension else unit.removesuffix("s")
        own = [name if name in dimension else name.removesuffix("s") for name in names]
        own = [name for name in own if name in dimension]
        if said in dimension and len(own) == 1 and "per" not in names:
            return dimension[said] / dimension[own[0]]
    return None


def _scaled(number: float, factor: float) -> int | float:
    if factor == 1:
        return number
    product = round(number * factor, 9)
    return int(product) if product.is_integer() else product


def _like_a_year(number: int | float) -> bool:
    return isinstance(number, int) and 1900 <= number <= 2100


def _comparisons(board: ParseState) -> list[Condition]:
    found = []
    for index in board.of_kind("compare"):
        step = board.after(index)
        if not board.free(index) or step is None:
            continue
        number = number_at(board, step)
        if number is None and board.units[index].value != "=":
            found += _of_average(board, index, step)
        if number is None:
            continue
        column, factor, note = _in_unit(board, index, step)
        found.append(
            _comparison(board, column, board.units[index].value, _scaled(number, factor), index, note)
        )
        board.give("compare", index, step)
    for index in board.of_kind("or"):  # "12 or more"
        number = number_at(board, index - 1)
        if number is None or board.units[index].value == "or":
            continue
        column = _compared(board, index - 1, index)
        operator = ">=" if board.units[index].value == "or more" else "<="
        found.append(_comparison(board, column, operator, number, index - 1))
        board.give("compare", index - 1, index)
    return found


def _comparison(
    board: ParseState, column: ColumnSchema, operator: str, number: int | float, index: int, note: str = ""
) -> Condition:
    said = OPPOSITE[operator] if negated(board, index) else operator
    sign = "IS DISTINCT FROM" if said == "<>" else said
    words = f"{column.name} {SAID[said]} {number}{note}"
    return Condition(f"{column.sql} {sign} {literal(number)}", words, index)


def _of_average(board: ParseState, index: int, step: int) -> list[Condition]:
    """`above the average amount`, `amount below the median`: a comparison with one figure of the whole table."""
    following, before = board.after(step), board.before(index)
    unit = board.units[step]
    if not board.free(step, "aggregate") or unit.value not in ("avg", "median"):
        return []
    named = [
        s
        for s in (following, before)
        if s is not None and _open(board, s) and board.columns[s].kind == "number"
    ]
    if not named:
        return []
    column = board.columns[named[0]]
    board.give("compare", index, step, *[s for s in named if board.columns[s] == column])
    operator = board.units[index].value
    inner = f"SELECT {unit.value.upper()}({column.sql}) FROM {board.table.alias}"  # noqa: S608
    return [
        Condition(
            f"{column.sql} {operator} ({inner})",
            f"{column.name} {SAID[operator]} the {unit.text} {column.name}",
            index,
        )
    ]


def _compared(board: ParseState, index: int, last: int) -> ColumnSchema:
    """The column that a comparison is about: the one before it, the one after its number, or the only one."""
    before, after = board.before(index), board.after(last, within=2)
    if before is not None and board.units[before].kind == "not":
        before = board.before(before)
    concept = _ADJECTIVES.get(board.units[index].tokens[0].text.lower(), "")
    for step in (before, after):
        if step is not None and step in board.columns and board.columns[step].kind in ("number", "other"):
            if concept and not _fits(concept, board.columns[step]):
                said, name = board.units[index].text, board.columns[step].name
                raise Ungrounded(f"“{said}” is not said of {name}: name the column that is meant", (said,))
            if board.roles.get(step) == "column" and not _measured(board, step):
                board.give("compared", step)
            return board.columns[step]
    if after is not None and board.free(after, "word") and not board.is_filler(after):  # "at least 10 units"
        named = board.table.column((board.units[after].value,), loosely=True)
        if named is not None and named.kind == "number":
            board.give("compared", after)
            return named
    if concept:
        fitting = [column for column in board.table.of_kind("number") if _fits(concept, column)]
        if len(fitting) != 1:
            said = board.units[index].text
            names = ", ".join(f"`{column.name}`" for column in fitting) or "none"
            raise Ungrounded(
                f"“{said}” does not say which column is meant (those that fit: {names})", (said,)
            )
        return fitting[0]
    numbers = board.table.of_kind("number")
    if len(numbers) == 1:
        return numbers[0]
    raise Ungrounded(
        f"I cannot tell which column “{board.units[index].text}” is about", (board.units[index].text,)
    )


_ADJECTIVES = {
    "longer": "length", "shorter": "length", "heavier": "mass", "lighter": "mass", "older": "age", "younger": "age",
    "cheaper": "price", "costlier": "price", "taller": "height",
}  # fmt: skip


def _fits(concept: str, column: ColumnSchema) -> bool:
    """Return whether an adjective is said of a column: an age is an age, and no day of the month is long."""
    if concept == "age":
        return "age" in column.parts
    own = [
        part for part in column.parts if len(column.parts) > 1 or part not in (*CALENDAR, "hour", "minute")
    ]
    return any(concept == part or same_concept(concept, part) for part in own)


def _measured(board: ParseState, index: int) -> bool:
    """Return whether a column is what is aggregated, as in `average fee over 20`."""
    before = board.before(index)
    unit = board.units[before] if before is not None else None
    return unit is not None and unit.kind in ("aggregate", "extreme") and unit.value != "count"


def _signs(board: ParseState) -> list[Condition]:
    """`negative amount`: a sign before a number column."""
    found = []
    for index in board.of_kind("word"):
        operator = SIGNS.get(board.units[index].value)
        step = board.after(index)
        if operator is None or step is None or not board.free(index) or board.columns.get(step) is None:
            continue
        if board.columns[step].kind == "number" and _open(board, step):
            board.give("compared", index, step)
            found.append(_comparison(board, board.columns[step], operator, 0, index))
    return found


SIGNS = {"negative": "<", "positive": ">"}


def _identities(board: ParseState) -> list[Condition]:
    """`order 1234`: the row of a table of orders whose column for the number of an order holds it."""
    found = []
    for index, role in list(board.roles.items()):
        number = number_at(board, index + 1) if role == "source" and index + 1 < len(board.units) else None
        noun = board.units[index].text.lower()
        name = f"{noun}_id" if noun == stem(noun) else ""  # "orders 2025" names no row
        column = next((column for column in board.table.columns if column.name.lower() == name), None)
        if isinstance(number, int) and column is not None and column.kind == "number":
            board.give("compared", index + 1)
            found.append(Condition(f"{column.sql} = {number}", f"{column.name} is {number}", index))
    return found


def _equalities(board: ParseState) -> list[Condition]:
    """`floor 3`, `year = 1994`, `with 8 cylinders`: a number beside its column."""
    found = []
    for index, column in board.columns.items():
        number = number_at(board, index - 1) if index > 1 else None
        led = index > 1 and board.units[index - 2].value in ("with", "have", "has", "had", "having")
        if number is not None and led and column.kind == "number" and board.roles.get(index) == "column":
            board.give("compared", index - 1, index)
            no = negated(board, index - 1)
            sql = f"{column.sql} {'IS DISTINCT FROM' if no else '='} {literal(number)}"
            found.append(Condition(sql, f"{column.name} is {'not ' if no else ''}{number}", index))
    for index, column in list(board.columns.items()):
        following = index + 1
        while following in board.roles and board.roles[following] in ("unit", "name"):
            following += 1
        linked = following < len(board.units) and board.units[following].value in ("is", "was", "=", "of")
        denied = following + 1 if linked and board.free(following + 1, "not") else None  # "Pclass is not 1"
        place = following + 1 if linked else following
        place += denied is not None
        number = number_at(board, place)
        if number is None or column.kind != "number" or board.roles.get(index) != "column":
            continue
        numbers, used = [number], [*range(following, place + 1)]
        while (more := _joined_number(board, place)) is not None:  # "Pclass 1 or 2"
            numbers.append(more)
            used += [place + 1, place + 2]
            place += 2
        no = negated(board, index) or denied is not None
        board.give("compared", *used)
        if not _measured(board, index):
            board.give("compared", index)
        listed, said = ", ".join(map(literal, numbers)), " or ".join(map(str, numbers))
        sql = f"{column.sql} IN ({listed})"
        sql = f"({sql}) IS NOT TRUE" if no else sql  # a missing number is not one of them
        found.append(Condition(sql, f"{column.name} is {'not ' if no else ''}{said}", index))
    return found


def _joined_number(board: ParseState, index: int) -> int | float | None:
    """The number that `or`, `and` or a comma joins to the one at an index, if it ends the list."""
    if index + 2 >= len(board.units) or board.units[index + 1].value not in ("or", "and", ","):
        return None
    following = index + 3
    beside = board.columns.get(following) or (
        board.units[following] if board.free(following, "word") else None
    )
    return number_at(board, index + 2) if beside is None or board.is_filler(following) else None


# -- yes or no ------------------------------------------------------------------------------------------------------


def _flags(board: ParseState) -> list[Condition]:
    found = []
    for index in board.open_columns():
        column = board.columns[index]
        before = board.before(index, within=2)
        grouped = before is not None and board.units[before].kind in ("group", "distinct")
        if not is_flag(column) or grouped:
            continue
        no = negated(board, index) != (index in board.opposites)
        board.give("flag", index)
        if column.kind == "flag":
            found.append(
                Condition(
                    f"{'NOT ' if no else ''}{column.sql}",
                    f"{column.name} is {'false' if no else 'true'}",
                    index,
                )
            )
        else:
            listed = "('no', 'n', 'false')" if no else "('yes', 'y', 'true')"
            sql = f"lower(CAST({column.sql} AS VARCHAR)) IN {listed}"
            found.append(Condition(sql, f"{column.name} is {'no' if no else 'yes'}", index))
    return found
