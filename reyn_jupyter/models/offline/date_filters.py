"""The days that a question means: dates, months, quarters, years and ranges of them, as conditions on a date column.

Invariant: a day without its year is compared by month and day alone; where that would not say which rows are meant
("after March"), the question is refused.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass

from reyn_jupyter.models.offline.conditions import OPPOSITE, SAID, Condition, negated, number_at
from reyn_jupyter.models.offline.lexicon import ADJECTIVES, alike, parts, same_concept
from reyn_jupyter.models.offline.parse_state import WEEKDAYS, ParseState, Ungrounded
from reyn_jupyter.models.offline.table_schema import ColumnSchema

MONTH_NAMES = calendar.month_name
_QUARTER = re.compile(r"q([1-4])\Z")
_ORDINAL = re.compile(r"(\d{1,2})(?:st|nd|rd|th)\Z")
_BEFORE_YEAR = ("in", "of", "during", "from", "for", "year", "and", "to")
_OF_TIME = ("after", "before", "since", "until", "up to", "later than", "earlier than")
_LISTED = ("and", ",", "&")
_LINKS = ("to", "and", "until", "till", "through", "-")

MonthDay = tuple[int, int]


@dataclass(frozen=True)
class DateSpan:
    """Days from the first to the last, both in it; `year` is None where the question does not say it."""

    first: MonthDay
    last: MonthDay
    words: str
    used: tuple[int, ...]
    year: int | None = None
    last_year: int | None = None


def date_conditions(board: ParseState) -> list[Condition]:
    """Return what the dates of a question demand, and give roles to what they are made of."""
    return [*_ranges(board), *_single(board), *_weekends(board)]


def _ranges(board: ParseState) -> list[Condition]:
    """`between D1 and D2`, `from D1 to D2`: both ends belong to it."""
    found = []
    for index, unit in enumerate(board.units):
        if not (unit.kind == "between" or (unit.kind == "word" and unit.value == "from")):
            continue
        low = board.after(index, within=2)
        first = _span(board, low, following=_LINKS) if low is not None else None
        link = max(first.used) + 1 if first is not None else len(board.units)
        joined = link < len(board.units) and board.units[link].text.lower() in _LINKS
        last = _span(board, link + 1) or _span(board, link + 2) if joined else None
        if first is None or last is None:
            continue
        year = first.year if first.year is not None else last.year
        words = f"{_said(first)} to {_said(last)}"
        span = DateSpan(first.first, last.last, words, (), year, last.year or year)
        column = board.date_column(index)
        if column is None:
            raise Ungrounded(f"{board.table.label} has no date column for “{span.words}”", (span.words,))
        no = negated(board, index)
        board.give("date", index, link, *first.used, *last.used)
        found.append(_condition(column, span, "", no, index))
    return found


def _single(board: ParseState) -> list[Condition]:
    """`in May and June`, `not in 2005 or 2006`: spans that are joined mean either; all others are demanded together."""
    joined: list[list[tuple[DateSpan, Condition]]] = []
    found: list[Condition] = []
    end, denied = len(board.units), False  # of the span before
    for index in range(len(board.units)):
        span = _span(board, index)
        if span is None:
            continue
        column = board.date_column(index)
        before = board.before(index, within=3)
        compare = before if before is not None and board.free(before, "compare") else None
        operator = board.units[compare].value if compare is not None else ""
        linked = compare is None and _is_linked(board, end, index)
        no = compare is None and (negated(board, index) or (linked and denied))
        if column is None:
            condition = _year_number(board, span, operator, no, index)
            if condition is None and board.units[index].kind == "number":
                continue
            if condition is None:
                raise Ungrounded(f"{board.table.label} has no date column for “{span.words}”", (span.words,))
        else:
            condition = _condition(column, span, operator, no, index)
        _absorb(board, index, column or board.table.column(("year",)))
        board.give("date", *span.used, *([compare] if compare is not None else []))
        end, denied = max(span.used) + 1, no
        if operator or no:
            found.append(condition)
        elif linked and joined:
            joined[-1].append((span, condition))
        else:
            joined.append([(span, condition)])
    return [*map(_either, joined), *found]


def _either(spans: list[tuple[DateSpan, Condition]]) -> Condition:
    """Join the conditions of spans. Raises Ungrounded if a year may belong to several: "January and March 2024"."""
    if len({(span.year is None, bool(span.words)) for span, _ in spans}) > 1:
        said = " and ".join(_said(span) for span, _ in spans)
        raise Ungrounded(f"“{said}” does not say the year of each: write it behind each month", (said,))
    held = [condition for _, condition in spans]
    sql = " OR ".join(f"({c.sql})" for c in held) if len(held) > 1 else held[0].sql
    return Condition(sql, " or ".join(c.words for c in held), held[0].place, held[0].column)


def _is_linked(board: ParseState, start: int, stop: int) -> bool:
    """Return whether `and`, `or` or a comma alone is between two spans; gives the links their role."""
    links = [step for step in range(start, stop) if board.units[step].value in (*_LISTED, "or", "nor")]
    if not links or not all(step in links or board.is_filler(step) for step in range(start, stop)):
        return False
    board.give("link", *links)
    return True


def _weekends(board: ParseState) -> list[Condition]:
    """`on weekends`, `on Sundays`."""
    found = []
    for index in board.of_kind("word"):
        word = board.units[index].value
        if word not in ("weekend", "weekends", *WEEKDAYS) or not board.free(index):
            continue
        column = board.date_column(index)
        if column is None:
            continue
        no = negated(board, index)
        board.give("date", index)
        days = f"isodow({column.date_sql})"
        sql = f"{days} = {WEEKDAYS[word]}" if word in WEEKDAYS else f"{days} >= 6"
        said = f"a {word.removesuffix('s').capitalize()}" if word in WEEKDAYS else "a Saturday or Sunday"
        words = f"{column.name} is {'not ' if no else ''}{said}"
        found.append(Condition(f"NOT ({sql})" if no else sql, words, index, column))
    if len(found) > 1:
        raise Ungrounded("I can filter by one weekday only", ("weekday",))
    return found


def _absorb(board: ParseState, index: int, column: ColumnSchema | None) -> None:
    """`born before 1960` names `birth_year` by what happened then."""
    for step in range(max(0, index - 3), index):
        if column is not None and board.free(step, "word") and not board.is_filler(step):
            words = [word for word in parts(board.units[step].value) if word not in ADJECTIVES]
            if any(same_concept(word, own) or alike(word, own) for word in words for own in column.parts):
                board.give("unit", step)


# -- what the words mean --------------------------------------------------------------------------------------------


def _span(board: ParseState, index: int, following: tuple[str, ...] = ()) -> DateSpan | None:
    """The days that the units from an index on mean; None when they are none."""
    if not board.free(index, "date", "month", "number", "word"):
        return None
    unit = board.units[index]
    if unit.kind == "date":
        return _of_date(unit.value, index)
    quarter = _QUARTER.match(unit.value) if unit.kind == "word" else None
    if quarter is not None:
        month = 3 * int(quarter.group(1)) - 2
        year, used = _year_after(board, index)
        return DateSpan((month, 1), (month + 2, _days(month + 2, year)), unit.value.upper(), used, year, year)
    if unit.kind == "month":
        return _of_month(board, index, int(unit.value))
    day = _day(board, index)
    step = index + 1
    if day is not None and step < len(board.units) and board.units[step].value == "of":
        step += 1
    if day is not None and board.free(step, "month"):  # "5 March 2026"
        month = int(board.units[step].value)
        year, used = _year_after(board, step)
        words = f"{day} {MONTH_NAMES[month]}"
        return DateSpan((month, day), (month, day), words, (*range(index, step), *used), year, year)
    if day is not None and following:  # "from 10 to 20 April"
        end = _span(board, index + 2) if index + 2 < len(board.units) else None
        if end is not None and board.units[index + 1].value in following and end.first == end.last:
            return DateSpan((end.first[0], day), (end.first[0], day), str(day), (index,), end.year, end.year)
        return None
    return _of_year(board, index)


def _of_date(text: str, index: int) -> DateSpan | None:
    pieces = [int(piece) for piece in text.split("-")]
    year, month = pieces[0], pieces[1]
    if not (1 <= month <= 12 and 1 <= year <= 9999):
        return None
    days = _days(month, year)
    if len(pieces) == 2:
        return DateSpan((month, 1), (month, days), text, (index,), year, year)
    return (
        DateSpan((month, pieces[2]), (month, pieces[2]), text, (index,), year, year)
        if 1 <= pieces[2] <= days
        else None
    )


def _of_month(board: ParseState, index: int, month: int) -> DateSpan:
    step = index + 1
    day = _day(board, step) if board.free(step, "number", "word") else None
    if day is not None:  # "March 5, 2026"
        comma = step + 1 < len(board.units) and board.units[step + 1].text == ","
        year, used = _year_after(board, step + 1 if comma else step)
        return DateSpan(
            (month, day), (month, day), f"{day} {MONTH_NAMES[month]}", (index, step, *used), year, year
        )
    year, used = _year_after(board, index)
    return DateSpan((month, 1), (month, _days(month, year)), MONTH_NAMES[month], used, year, year)


def _of_year(board: ParseState, index: int) -> DateSpan | None:
    year = number_at(board, index)
    is_year = isinstance(year, int) and 1900 <= year <= 2100
    if (
        not is_year
        or not isinstance(year, int)
        or index == 0
        or board.columns.get(index - 1)
        or not _led(board, index)
    ):
        return None
    return DateSpan((1, 1), (12, 31), "", (index,), year, year)


def _led(board: ParseState, index: int) -> bool:
    """Return whether a number is a year by the word before it: `in`, `since`; not by `over`, nor by `weight of`."""
    unit = board.units[index - 1]
    if unit.kind == "compare":
        return unit.text.lower() in _OF_TIME
    if unit.value in (*_LISTED, "or") and board.roles.get(index - 2) == "date":
        return True
    if unit.value == "and" and index >= 3 and board.units[index - 3].kind == "between":
        return False
    before = board.before(index - 1, within=1)
    measure = board.columns.get(before) if before is not None and unit.value == "of" else None
    return unit.value in _BEFORE_YEAR and (measure is None or measure.kind != "number")


def _day(board: ParseState, index: int) -> int | None:
    ordinal = _ORDINAL.match(board.units[index].text.lower())
    number = int(ordinal.group(1)) if ordinal else number_at(board, index)
    return number if isinstance(number, int) and 1 <= number <= 31 else None


def _year_after(board: ParseState, index: int) -> tuple[int | None, tuple[int, ...]]:
    """The year behind a unit, and the units up to it."""
    step = board.after(index, within=2)
    year = number_at(board, step)
    if step is not None and isinstance(year, int) and 1000 <= year <= 9999:
        return year, tuple(range(index, step + 1))
    return None, (index,)


def _days(month: int, year: int | None) -> int:
    return calendar.monthrange(year or 2024, month)[1]


# -- what they demand -----------------------------------------------------------------------------------------------


def _said(span: DateSpan) -> str:
    """The words of a span, with its year."""
    year = f" {span.year}" if span.year is not None and not re.search(r"\d{4}", span.words) else ""
    return f"{span.words}{year}".strip()


def _condition(column: ColumnSchema, span: DateSpan, operator: str, no: bool, place: int) -> Condition:
    sql = column.date_sql
    words = _said(span)
    if span.year is None or span.last_year is None:
        if operator not in ("", "="):
            raise Ungrounded(f"“{words}” has no year: say which one, as in “{words} 2024”", (words,))
        a, b = (100 * month + day for month, day in (span.first, span.last))
        if a > b:
            raise Ungrounded(f"“{words}” goes over the end of a year: say the years", (words,))
        sql = f"EXTRACT(month FROM {sql}) * 100 + EXTRACT(day FROM {sql}) BETWEEN {a} AND {b}"
        sql = f"({sql}) IS NOT TRUE" if no else sql
        return Condition(sql, f"{column.name} is {'not ' if no else ''}in {words}", place, column)
    begin, end = _literal(span.year, span.first), _literal(span.last_year, span.last)
    if operator in ("<", ">="):
        said = f"{sql} {operator} {begin}"
    elif operator in (">", "<="):
        said = f"{sql} {operator} {end}"
    else:
        no = no != (operator == "<>")
        said = f"{sql} BETWEEN {begin} AND {end}"
        said = f"({said}) IS NOT TRUE" if no else said
        return Condition(said, f"{column.name} is {'not ' if no else ''}in {words}", place, column)
    names = {"<": "before", ">=": "since", ">": "after", "<=": "up to"}
    return Condition(said, f"{column.name} is {names[operator]} {words}", place, column)


def _literal(year: int, day: MonthDay) -> str:
    return f"DATE '{year:04d}-{day[0]:02d}-{day[1]:02d}'"


def _year_number(board: ParseState, span: DateSpan, operator: str, no: bool, place: int) -> Condition | None:
    """A year or a month as a condition on a number column of that name, in a table without dates."""
    months = [c for c in board.table.of_kind("number") if c.name.lower() == "month"]
    one_month = span.year is None and span.first[0] == span.last[0] and span.last[1] - span.first[1] > 26
    column = months[0] if months and one_month else board.table.column(("year",))
    whole = span.first == (1, 1) and span.last == (12, 31) and span.year == span.last_year
    number = span.first[0] if months and one_month else span.year
    if column is None or column.kind != "number" or not (whole or (months and one_month)):
        return None
    said = OPPOSITE[operator or "="] if no else operator or "="
    sign = "IS DISTINCT FROM" if said == "<>" else said
    return Condition(f"{column.sql} {sign} {number}", f"{column.name} {SAID[said]} {number}", place, column)
