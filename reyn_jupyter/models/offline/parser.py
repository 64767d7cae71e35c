"""From a question and a table to a query, or to the words that could not be placed.

Invariant: a query is returned only when every word of the question has a role or carries no meaning, and every column
and function that it names has a job. So a question about something that the table does not hold ends in `Ungrounded`,
never in a plausible number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reyn_jupyter.models.offline.conditions import Condition
from reyn_jupyter.models.offline.filters import VALUE_WORDS, conditions, value_conditions
from reyn_jupyter.models.offline.lexer import EXTREMES, Unit
from reyn_jupyter.models.offline.lexicon import one_letter_off
from reyn_jupyter.models.offline.parse_state import ParseState, Ungrounded, Values
from reyn_jupyter.models.offline.sql_query import (
    Output,
    TableQuery,
    aggregate,
    correlation,
    duplicates,
    of_column,
    share,
)
from reyn_jupyter.models.offline.subjects import TOTALS, Subjects, functions, is_generic, subjects
from reyn_jupyter.models.offline.table_schema import ColumnSchema, TableSchema

_IS = ("is", "are", "was", "were", "come", "comes", "came", "have", "has", "had")


class ValueLookup(Exception):  # noqa: N818  a request, not an error
    """Words that may be values of the table's text columns; the caller looks them up and asks again."""

    def __init__(self, candidates: Sequence[str], open_words: int) -> None:
        super().__init__("values are needed")
        self.candidates = tuple(candidates)
        self.open_words = open_words


def interpret(
    units: tuple[Unit, ...], table: TableSchema, values: Values | None = None, others: Sequence[str] = ()
) -> TableQuery:
    """Make a question a query.

    Args:
        units: the question.
        table: the table it is asked of.
        values: words that are values of its columns, None before they were looked up.
        others: further names that stand for the table in the question.

    Raises:
        ValueLookup: words are left that may be values.
        Ungrounded: words are left that mean nothing here, or what to compute is not said.
    """
    board = ParseState(units, table)
    board.name_source(others)
    board.name_columns()
    candidates = board.candidates()
    try:
        return _query(board, values or {})
    except Ungrounded as caught:
        error = _unknown_words(board, caught)
        if values is None and candidates and table.of_kind("text"):
            raise ValueLookup(candidates, len(error.words) or 1) from error
        misspelled = _misspelled(units, table, error.words)
        if misspelled is None:
            raise error from caught
        word, column = misspelled
        query = interpret(_corrected(units, word, column), table, values or {}, others)
        return replace(query, note=f"I read “{word}” as `{column.name}`")


def _unknown_words(board: ParseState, error: Ungrounded) -> Ungrounded:
    """What to say of a refusal: first of all the words that mean nothing here."""
    words = [
        board.units[index].text
        for index in board.leftover()
        if index not in board.columns and board.units[index].kind in ("word", "quoted")
    ]
    return _unknown(board, words) if words and not error.words else error


def _unknown(board: ParseState, words: Sequence[str]) -> Ungrounded:
    said = ", ".join(f"“{word[:60]}”" for word in words[:5])
    verb = "is" if len(words) == 1 else "are"
    return Ungrounded(
        f"{said} {verb} no column or value of {board.table.label}, and no word that I know", words
    )


def _misspelled(
    units: Sequence[Unit], table: TableSchema, words: Sequence[str]
) -> tuple[str, ColumnSchema] | None:
    """The one word without a meaning that is one letter away from the name of one column."""
    found = [
        (word, column)
        for word in words
        for column in table.columns
        if one_letter_off(word.lower(), column.name)
    ]
    known = {column.name.lower() for column in table.columns}
    return found[0] if len(found) == 1 and found[0][0].lower() not in known else None


def _corrected(units: Sequence[Unit], word: str, column: ColumnSchema) -> tuple[Unit, ...]:
    return tuple(
        Unit("word", column.name, (replace(unit.tokens[0], text=column.name),)) if unit.text == word else unit
        for unit in units
    )


def _query(board: ParseState, values: Values) -> TableQuery:
    where = value_conditions(board, values)
    found = subjects(board)
    where += conditions(board)
    special = _special(board, where)
    if special is None:
        found.finish(board)
        query = _build(board, found, tuple(where))
    else:
        query = special
    _check(board)
    return query


def _check(board: ParseState) -> None:
    left = board.leftover()
    if not left:
        return
    unknown = [index for index in left if index not in board.columns]
    plain = [index for index in unknown if board.units[index].kind in ("word", "quoted")]
    if unknown:
        raise _unknown(board, [board.units[index].text for index in plain or unknown])
    words = [board.units[index].text for index in left]
    said = ", ".join(f"“{word[:60]}”" for word in words[:5])
    raise Ungrounded(f"I do not know what to do with {said} in this question", words)


# -- missing values, duplicates, shares, correlations ----------------------------------------------------------------


def _special(board: ParseState, where: list[Condition]) -> TableQuery | None:
    for attempt in (_missing, _duplicates, _share, _correlation):
        query = attempt(board, where)
        if query is not None:
            return query
    return None


def _missing(board: ParseState, where: list[Condition]) -> TableQuery | None:
    """`missing values per column`, `how many missing values`, and the count behind `missing values in amount`."""
    for index in board.of_kind("missing"):
        unit = board.units[index]
        following = board.after(index)
        valued = (
            following is not None and board.units[following].value in VALUE_WORDS
        ) or unit.text.endswith("s")
        if board.roles.get(index) == "missing" and valued and not functions(board):
            return TableQuery((Output("COUNT(*)", "number of rows"),), (), tuple(where))
        counts = [i for i in functions(board) if board.units[i].value == "count"]
        if not board.free(index) or unit.value == "none" or not (valued or counts):
            continue
        board.give(
            "missing", index, *[i for i in board.of_kind("word") if board.units[i].value in VALUE_WORDS]
        )
        columns = [i for i in board.of_kind("word") if board.units[i].value in ("column", "columns")]
        board.give("missing", *counts)
        if columns:
            board.give("missing", *columns, *board.of_kind("group"))
            return TableQuery((), (), tuple(where), missing=board.table.cells)
        held = " - ".join(f"COUNT({column.sql})" for column in board.table.cells)
        sql = f"{len(board.table.cells)} * COUNT(*) - {held}"
        return TableQuery((Output(sql, "number of missing values in all columns"),), (), tuple(where))
    return None


def _duplicates(board: ParseState, where: list[Condition]) -> TableQuery | None:
    """`how many duplicate rows`, `duplicates in order_id`, `is order_id unique?`."""
    marks = [index for index in board.of_kind("duplicate") if board.free(index)]
    named = board.open_columns()
    if not marks and board.units[0].value in ("is", "are") and len(named) == 1:
        marks = [index for index in board.of_kind("distinct") if index > named[0]]
    if len(marks) != 1 or len(named) > 1:
        return None
    if board.units[0].value in ("which", "show", "list"):
        raise Ungrounded("I count duplicates and do not list them", (board.units[marks[0]].text,))
    board.give(
        "duplicate",
        *marks,
        *named,
        *[i for i in board.of_kind("word") if board.units[i].value in VALUE_WORDS],
    )
    board.give("duplicate", *[i for i in board.of_kind("aggregate") if board.units[i].value == "count"])
    column = board.columns[named[0]] if named else None
    return TableQuery((duplicates(column, board.table, where),), (), tuple(where))


def _share(board: ParseState, where: list[Condition]) -> TableQuery | None:
    """`what percent of orders is paid`, `share of the amount that comes from the north`."""
    marks = [index for index in board.of_kind("share") if board.free(index)]
    if len(marks) != 1:
        return None
    verb = next((i for i in range(marks[0] + 1, len(board.units)) if board.units[i].value in _IS), None)
    part = [condition for condition in where if verb is None or condition.place > verb]
    if not part or (verb is None and len(part) > 1):
        raise Ungrounded(
            "I cannot tell of what a share is asked: say “what percent of ROWS is VALUE”", ("share",)
        )
    named = [index for index in board.open_columns() if board.columns[index].kind == "number"]
    totals = [i for i in board.of_kind("aggregate") if board.units[i].value == "sum" and board.free(i)]
    if len(named) > 1 or (totals and not named):
        raise Ungrounded("a share is of the rows or of one number column", ("share",))
    board.give("share", *marks, *named, *totals)
    measure = of_column(board.columns[named[0]]) if named else None
    rest = tuple(condition for condition in where if condition not in part)
    return TableQuery((share(part, measure),), (), rest)


def _correlation(board: ParseState, where: list[Condition]) -> TableQuery | None:
    marks = [i for i in board.of_kind("aggregate") if board.units[i].value == "corr"]
    if not marks:
        return None
    named = [index for index in board.open_columns() if board.columns[index].kind == "number"]
    if len(named) != 2 or len(marks) != 1:
        raise Ungrounded("a correlation is of two number columns", ("correlation",))
    board.give("correlation", *marks, *named)
    return TableQuery((correlation(*(of_column(board.columns[i]) for i in named)),), (), tuple(where))


# -- the query ------------------------------------------------------------------------------------------------------


def _build(board: ParseState, found: Subjects, where: tuple[Condition, ...]) -> TableQuery:
    if found.having is not None and found.target is not None:
        return TableQuery(
            found.figures, (found.target,), where, (found.target.sql, False), having=found.having
        )
    if found.target is not None or found.limit is not None:
        query = _ranking(board, found, where)
    elif found.extremes and not found.figures:
        query = _extreme_rows(board, found, where)
    elif found.groups:
        query = _grouped(found, where)
    elif found.figures:
        query = TableQuery(found.figures, (), where)
    elif found.topic is not None:
        query = TableQuery((found.topic,), (), where, (found.topic.sql, False), distinct=True)
    elif where or found.order is not None:
        order = (found.order.sql, found.descending) if found.order is not None else None
        query = TableQuery((), (), where, order)
    else:
        raise Ungrounded("the question does not say what to compute")
    return query


def _grouped(found: Subjects, where: tuple[Condition, ...]) -> TableQuery:
    first = found.figures[0].sql
    order = (first, found.descending) if found.ordered else (found.groups[0].sql, False)
    if found.order is not None and any(found.order == output for output in (*found.groups, *found.figures)):
        order = (found.order.sql, found.descending)
    elif found.order is not None:
        raise Ungrounded(f"groups have no single {found.order.label} to be ordered by", (found.order.label,))
    return TableQuery(found.figures, tuple(found.groups), where, order)


def _ranking(board: ParseState, found: Subjects, where: tuple[Condition, ...]) -> TableQuery:
    """`top 3 products by total amount`, `which month had the most orders`, `the 5 largest orders by amount`."""
    words = [board.units[index].value for index in found.extremes]
    generic = all(is_generic(word) for word in words)
    if len(found.figures) > 1 or len({EXTREMES[word].direction for word in words}) > 1:
        raise Ungrounded("I can order by one figure only")
    down = EXTREMES[words[0]].direction == "max" if words else found.descending
    totals = not words or any(word in TOTALS for word in words)
    figure = found.figures[0] if found.figures else None
    if (
        figure is None
        and found.target is not None
        and totals
        and (found.measures or (words and words[0] in TOTALS[:3]))
    ):
        figure = (
            aggregate("sum", found.measures[0]) if found.measures else Output("COUNT(*)", "number of rows")
        )
    if found.target is not None and figure is not None:
        query = TableQuery(
            (figure,), (*found.groups, found.target), where, (figure.sql, down), found.limit or 1
        )
        return replace(query, ties=found.limit is None, within=tuple(found.groups))
    if found.groups or figure is not None:
        raise Ungrounded("I cannot tell what is ordered here; name a column after “top”", ("top",))
    if not found.measures:
        if found.limit is not None and found.first and found.target is None:
            return TableQuery((), (), where, None, found.limit)
        raise Ungrounded("the question does not say by which number column to order")
    measure = found.measures[0]
    if found.target is not None and found.target.label in (
        "month",
        "weekday",
        "quarter",
        "week",
        "year",
        "day",
    ):
        raise Ungrounded(
            f"do you mean the {found.target.label} with the highest total, or average? Say which"
        )
    if found.limit is None or (found.target is not None and not generic):
        return (
            _extreme_rows(board, found, where) if found.limit is None else _rows(found, where, measure, down)
        )
    return _rows(found, where, measure, down)


def _rows(found: Subjects, where: tuple[Condition, ...], measure: Output, down: bool) -> TableQuery:
    """The rows at one end of a column."""
    outputs = (found.target, measure) if found.target is not None else ()
    return TableQuery(outputs, (), where, (measure.sql, down), found.limit)


def _extreme_rows(board: ParseState, found: Subjects, where: tuple[Condition, ...]) -> TableQuery:
    """`the heaviest bird`, `which order has the highest amount`: the rows where a column has its extreme value."""
    directions = {EXTREMES[board.units[index].value].direction for index in found.extremes}
    if len(directions) != 1 or not found.measures:
        raise Ungrounded("the question does not say of which column the highest or lowest value is meant")
    measure, direction = found.measures[0], directions.pop()
    extreme = Output(measure.sql, f"{direction.upper()}({measure.sql})")
    if found.groups:
        return replace(_grouped(found, where), outputs=(aggregate(direction, measure),))
    name = f"{'highest' if direction == 'max' else 'lowest'} {measure.label} of one row"
    outputs = (found.target, Output(measure.sql, name)) if found.target is not None else ()
    return TableQuery(outputs, (), where, None, 5, extreme)
