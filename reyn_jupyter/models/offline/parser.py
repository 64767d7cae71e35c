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
from reyn_jupyter.models.offline.lexer import Unit
from reyn_jupyter.models.offline.lexicon import one_letter_off
from reyn_jupyter.models.offline.parse_state import CALENDAR, ParseState, Ungrounded, Values
from reyn_jupyter.models.offline.shapes import shape_query
from reyn_jupyter.models.offline.sql_query import (
    Output,
    TableQuery,
    aggregate,
    correlation,
    duplicates,
    of_column,
    share,
)
from reyn_jupyter.models.offline.subjects import TOTALS, Subjects, direction, is_generic, subjects
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
    shape = shape_query(units, table)
    if shape is not None:
        return shape
    board = ParseState(units, table)
    board.name_source(others)
    board.name_columns()
    candidates = board.candidates()
    doubtful = any(unit.doubtful and board.free(index) for index, unit in enumerate(units))
    if values is None and doubtful and table.of_kind("text"):
        raise ValueLookup(candidates, 1)
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
    said = {word.lower() for word in error.words}
    return _unknown(board, words) if words and not said & {word.lower() for word in words} else error


def _unknown(board: ParseState, words: Sequence[str]) -> Ungrounded:
    for word in words:
        several = board.table.columns_named((word,))
        if len(several) > 1:
            names = ", ".join(f"`{column.name}`" for column in several[:10])
            return Ungrounded(f"“{word[:60]}” could be {names}: write the one that you mean", (word,))
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
    _check_opening(board, query)
    return query


_YES_OR_NO = ("is", "are", "was", "were", "does", "do", "did", "has", "have")


def _check_opening(board: ParseState, query: TableQuery) -> None:
    """Refuse an answer that is of another kind than the first word asks for: a price to “when”, a figure to “is it”."""
    word = board.units[0].value
    shown = (*query.outputs, *query.groups)
    if word == "when" and shown and not any(o.column is not None and o.column.kind == "date" for o in shown):
        raise Ungrounded("the answer would hold no date, and “when” asks for one", ("when",))
    named = any(output.column is not None and output.column.kind != "number" for output in shown)
    if word in ("who", "whose", "whom", "where") and shown and not named:
        raise Ungrounded(f"the answer would be a figure, and “{word}” asks for something else", (word,))
    compared = any(board.roles.get(index) == "compare" for index in board.of_kind("compare", "between"))
    if word in _YES_OR_NO and compared and query.outputs and not query.groups:
        raise Ungrounded(f"I do not answer with yes or no, which “{word}” asks for", (word,))


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


# -- duplicates, shares, correlations ----------------------------------------------------------------


def _special(board: ParseState, where: list[Condition]) -> TableQuery | None:
    for attempt in (_duplicates, _share, _correlation):
        query = attempt(board, where)
        if query is not None:
            return query
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
    whole = [condition for condition in part if condition.column is None]  # "... is Japan in 2017": of 2017
    part = whole or part
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


def _refuse_unused(board: ParseState, found: Subjects) -> None:
    """Refuse an adjective, an order, or a product that the query would not use."""
    if found.extremes and found.figures and found.target is None and found.limit is None:
        words = [board.units[index].text for index in found.extremes]
        raise Ungrounded(f"I compute nothing of the rows that are “{words[0]}” alone", words)
    if found.order is not None and found.figures and not (found.groups or found.target):
        raise Ungrounded(f"one row is not ordered by {found.order.label}", (found.order.label,))
    products = [measure.label for measure in found.measures if measure.column is None]
    if products and not (found.figures or found.extremes or found.target or found.limit):
        names = " and ".join(products)
        raise Ungrounded(f"the question does not say whether {names} is added up or averaged", (names,))


def _build(board: ParseState, found: Subjects, where: tuple[Condition, ...]) -> TableQuery:
    _refuse_unused(board, found)
    if found.having is not None and found.target is not None:
        return TableQuery(
            found.figures, (found.target,), where, (found.target.sql, False), having=found.having
        )
    if found.target is not None or found.limit is not None:
        query = _ranking(board, found, where)
    elif found.extremes and not found.figures:
        query = _extreme_rows(board, found, where)
    elif found.groups:
        query = _grouped(board, found, where)
    elif found.figures:
        query = TableQuery(found.figures, (), where)
    elif found.topic is not None:
        query = TableQuery((found.topic,), (), where, (found.topic.sql, False), distinct=True)
    elif where and found.order is None and (shown := board.open_columns()):
        board.give("shown", *shown)  # "price of GOOG in 2005"
        several = [c for c in board.table.columns if any(w.sql.startswith(f"{c.sql} IN (") for w in where)]
        columns = (*several, *(board.columns[i] for i in shown))  # of two countries, each is named
        query = TableQuery(tuple(dict.fromkeys(map(of_column, columns))), (), where)
    elif where or found.order is not None:
        order = (found.order.sql, found.descending) if found.order is not None else None
        if found.order is not None and found.order_word is not None:
            order = (found.order.sql, direction(board, found.order_word, found.order) == "max")
        query = TableQuery((), (), where, order)
    else:
        raise Ungrounded("the question does not say what to compute")
    return query


def _grouped(board: ParseState, found: Subjects, where: tuple[Condition, ...]) -> TableQuery:
    if not found.figures:
        raise Ungrounded("the question does not say what to compute for each group")
    first = found.figures[0]
    order = (first.sql, found.descending) if found.ordered else (found.groups[0].sql, False)
    if found.order_word is not None:
        order = (first.sql, direction(board, found.order_word, first) == "max")
    if found.order is not None and any(found.order == output for output in (*found.groups, *found.figures)):
        order = (found.order.sql, found.descending)
    elif found.order is not None:
        raise Ungrounded(f"groups have no single {found.order.label} to be ordered by", (found.order.label,))
    return TableQuery(found.figures, tuple(found.groups), where, order, unsaid=found.unsaid)


def _ranking(board: ParseState, found: Subjects, where: tuple[Condition, ...]) -> TableQuery:
    """`top 3 products by total amount`, `which month had the most orders`, `the 5 largest orders by amount`."""
    words = [board.units[index].value for index in found.extremes]
    generic = all(is_generic(word) for word in words)
    if len(found.figures) > 1 or len(set(words)) > 1:
        raise Ungrounded("I can order by one figure only")
    counting = bool(words) and words[0] in TOTALS
    figure = found.figures[0] if found.figures else None
    unsaid: tuple[Output, ...] = ()
    if (
        figure is None
        and found.target is not None
        and (not words or counting or words[0] in ("best", "worst"))
    ):
        if found.measures:
            figure = aggregate("sum", found.measures[0])
            unsaid = () if counting and not _owned(board, found.extremes[0]) else (found.measures[0],)
        elif counting:
            figure = Output("COUNT(*)", "number of rows")
    if found.target is not None and figure is not None:
        column = found.target.column
        if column is not None and column.kind in ("text", "other"):  # rows without a name are no winner
            where += (Condition(f"{column.sql} IS NOT NULL", f"{column.name} is not missing"),)
        down = direction(board, found.extremes[0], figure) == "max" if words else found.descending
        query = TableQuery(
            (figure,),
            (*found.groups, found.target),
            where,
            (figure.sql, down),
            found.limit or 1,
            unsaid=unsaid,
        )
        return replace(query, ties=found.limit is None, within=tuple(found.groups))
    if found.groups or figure is not None:
        raise Ungrounded("I cannot tell what is ordered here; name a column after “top”", ("top",))
    if not found.measures:
        if found.limit is not None and found.first and found.target is None:
            return TableQuery((), (), where, None, found.limit)
        raise Ungrounded("the question does not say by which number column to order")
    measure = found.measures[0]
    down = direction(board, found.extremes[0], measure) == "max" if words else found.descending
    if found.target is not None and found.target.label in CALENDAR:
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


def _owned(board: ParseState, index: int) -> bool:
    """Return whether a thing has its most, rather than uses or sells it: a total may be meant, or one value."""
    before = board.before(index)
    near = board.units[index - 2 : index] if index > 1 else ()
    owned = ("has", "have", "had", "with")
    return any(unit.value in owned for unit in near) or (
        before is not None and board.units[before].value in owned
    )


def _extreme_rows(board: ParseState, found: Subjects, where: tuple[Condition, ...]) -> TableQuery:
    """`the heaviest bird`, `which order has the highest amount`: the rows where a column has its extreme value."""
    if len({board.units[index].value for index in found.extremes}) != 1 or not found.measures:
        raise Ungrounded("the question does not say of which column the highest or lowest value is meant")
    measure = found.measures[0]
    end = direction(board, found.extremes[0], measure)
    extreme = Output(measure.sql, f"{end.upper()}({measure.sql})")
    if found.groups:
        return TableQuery(
            (aggregate(end, measure),), tuple(found.groups), where, (found.groups[0].sql, False)
        )
    name = f"{'highest' if end == 'max' else 'lowest'} {measure.label} of one row"
    outputs = (found.target, Output(measure.sql, name, measure.column)) if found.target is not None else ()
    title = f"rows with the {name.removesuffix(' of one row')}"
    return TableQuery(outputs, (), where, extreme=extreme, title=title)
