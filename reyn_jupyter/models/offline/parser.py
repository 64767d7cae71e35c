"""From a question and a table to a query, or to the words that could not be placed.

Invariant: a query is returned only when every word of the question has a role or carries no meaning. So a
question about something that the table does not hold ends in `Ungrounded`, never in a plausible number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reyn_jupyter.models.offline.filters import Condition, conditions
from reyn_jupyter.models.offline.lexer import EXTREMES, Unit
from reyn_jupyter.models.offline.parse_state import ParseState, Ungrounded, Values
from reyn_jupyter.models.offline.sql_query import Output, TableQuery, aggregate, of_column, period
from reyn_jupyter.models.offline.table_schema import ColumnSchema, TableSchema

GENERIC = frozenset(word for word, extreme in EXTREMES.items() if not extreme.concept)
TOTALS = ("most", "least", "fewest")  # "used the most": a total, not one row
ROWS = 50  # rows of an answer that shows whole rows


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
        LookUp: words are left that may be values.
        Ungrounded: words are left that mean nothing here, or what to compute is not said.
    """
    board = ParseState(units, table)
    board.name_source(others)
    board.name_columns()
    found = subjects(board)
    candidates = board.candidates()
    where = tuple(conditions(board, values or {}))
    find_groups(board, found)
    find_target(board, found)
    if not found.measures:
        _find_measures(board, found)
    left = board.leftover()
    if values is None and candidates and left and table.of_kind("text"):
        raise ValueLookup(candidates, len(left))
    _check(board, left)
    return _build(board, found, where)


# -- what to compute with -------------------------------------------------------------------------------------------


def _find_measures(board: ParseState, found: Subjects) -> None:
    asked = functions(board)
    wants = [index for index in board.of_kind("aggregate", "extreme") if index not in board.columns]
    named = [index for index in board.open_columns() if _measurable(board, index, asked)]
    if not named:
        _measure_by_concept(board, found)
        return
    last, first = max(wants, default=-1), min(wants, default=-1)
    start = next((index for index in named if index > last), None)
    start = start if start is not None else next((index for index in named if index > first), named[0])
    chosen = [start]
    following = next_joined(board, start)
    while following is not None and following in named:
        chosen.append(following)
        following = next_joined(board, following)
    if asked != ["count"] or not found.groups or _distinct(board):
        board.give("measure", *chosen)
    found.measures = [of_column(board.columns[index]) for index in chosen]


def _measurable(board: ParseState, index: int, asked: list[str]) -> bool:
    kind = board.columns[index].kind
    if kind == "number":
        return True
    if asked == ["count"]:
        return _distinct(board)
    return kind == "date" and set(asked) <= {"count"}


def _measure_by_concept(board: ParseState, found: Subjects) -> None:
    """`heaviest` is about a mass, `longest` about a length; `highest price` finds the column `fee`."""
    for index in board.of_kind("extreme", "aggregate"):
        unit = board.units[index]
        concept = EXTREMES[unit.value].concept if unit.value in EXTREMES else ""
        column = board.table.column((concept,), loosely=True) if concept else None
        if column is not None and column.kind in ("number", "date"):
            found.measures = [of_column(column)]
            return
        following = board.after(index)
        if following is None:
            continue
        if board.units[following].value == "count" and unit.kind == "extreme":
            column = board.table.column(("n",), loosely=True)
        elif board.free(following, "word") and not board.is_filler(following):
            column = board.table.column((board.units[following].value,), loosely=True)
        if column is not None and column.kind == "number":
            board.give("measure", following)
            found.measures = [of_column(column)]
            return


def _distinct(board: ParseState) -> bool:
    return bool(board.of_kind("distinct"))


# -- whether everything was understood ------------------------------------------------------------------------------


def _check(board: ParseState, left: list[int]) -> None:
    if len(left) == 1 and board.table.named and _is_entity(board, left[0]):
        return
    if left:
        words = [board.units[index].text for index in left]
        said = ", ".join(f"“{word[:60]}”" for word in words[:5])
        raise Ungrounded(f"I cannot place {said}", words)


def _is_entity(board: ParseState, index: int) -> bool:
    """A noun right after `how many` or `heaviest` says what the rows are; it need not be a column."""
    before = board.before(index, within=2)
    if not board.free(index, "word") or before is None:
        return False
    unit = board.units[before]
    counts = unit.kind == "aggregate" and unit.value == "count" and not _distinct(board)
    return counts or (unit.kind == "extreme" and unit.value not in GENERIC)


# -- the query ------------------------------------------------------------------------------------------------------


def _build(board: ParseState, found: Subjects, where: tuple[Condition, ...]) -> TableQuery:
    asked = functions(board)
    extremes = [board.units[index].value for index in board.of_kind("extreme")]
    ends: list[str] = list(dict.fromkeys(EXTREMES[word].direction for word in extremes))
    if found.target is not None and (asked or any(word in TOTALS for word in extremes)):
        output = _outputs(board, found, asked[:1] or ["sum" if found.measures else "count"])[0]
        down = ends[0] == "max" if ends and found.limit is None else found.descending
        return TableQuery((output,), (found.target,), where, (output.sql, down), found.limit or 1)
    if found.groups:
        return _grouped(board, found, asked, ends, where)
    if found.limit is not None and not asked and (found.measures or ends):
        measure = _measure(board, found, "order")
        down = ends[0] == "max" if ends else found.descending
        return TableQuery(_row(board, found, measure), (), where, (measure.sql, down), found.limit)
    single = found.target is not None or any(word not in GENERIC for word in extremes)
    if extremes and not asked and single:
        measure = _measure(board, found, "extreme")
        extreme = Output(measure.sql, f"{ends[0].upper()}({measure.sql})")
        return TableQuery(_row(board, found, measure), (), where, None, 5, extreme)
    if asked or ends:
        return TableQuery(_outputs(board, found, [*asked, *ends]), (), where)
    if where or found.limit:
        return TableQuery((), (), where, None, found.limit or ROWS)
    raise Ungrounded("the question does not say what to compute")


def _grouped(
    board: ParseState, found: Subjects, asked: list[str], ends: list[str], where: tuple[Condition, ...]
) -> TableQuery:
    # "quantity by store" is a total; "visits per month" counts rows.
    chosen = [*asked, *ends] if asked and found.limit is None else asked or ends
    outputs = _outputs(board, found, chosen or ["sum" if found.measures else "count"])
    orders = [board.units[index].value for index in board.of_kind("order")]
    if found.limit is not None or "desc" in orders:
        order = (outputs[0].sql, found.descending)
    elif "asc" in orders:
        order = (outputs[0].sql, False)
    else:
        order = (found.groups[0].sql, False)
    return TableQuery(outputs, tuple(found.groups), where, order, found.limit)


def _outputs(board: ParseState, found: Subjects, asked: Sequence[str]) -> tuple[Output, ...]:
    outputs: list[Output] = []
    for function in asked:
        measures = found.measures if function != "count" else []
        outputs += [aggregate(function, each) for each in measures or [_measure(board, found, function)]]
    return tuple(outputs)


def _measure(board: ParseState, found: Subjects, function: str) -> Output:
    if function == "count":
        if _distinct(board) and found.measures:
            return Output(
                f"DISTINCT {found.measures[0].sql}", f"different values of {found.measures[0].label}"
            )
        if _distinct(board):
            raise Ungrounded("the question does not name a column to count the different values of")
        return Output("*", "rows")
    if not found.measures:
        names = ", ".join(f"`{column.name}`" for column in board.table.of_kind("number")) or "none"
        raise Ungrounded(f"the question names no number column of {board.table.label} (it has: {names})")
    return found.measures[0]


def _row(board: ParseState, found: Subjects, measure: Output) -> tuple[Output, ...]:
    """Return what to show of a row: what was asked for and the measure, or its first text columns too."""
    if found.target is not None:
        return (found.target, measure)
    labels = [of_column(column) for column in board.table.columns if column.kind in ("text", "date")]
    return (*[output for output in labels[:4] if output.sql != measure.sql], measure)


@dataclass
class Subjects:
    """The subjects that were found in a question.

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


def subjects(board: ParseState) -> Subjects:
    """Find the number of rows and the expression; groups and target follow after the conditions."""
    found = Subjects()
    _top(board, found)
    _expression(board, found)
    return found


def functions(board: ParseState) -> list[str]:
    """The aggregate functions that are asked for, in order; `count` beside another one is a column's word."""
    asked = [board.units[index].value for index in board.of_kind("aggregate") if index not in board.columns]
    found = list(dict.fromkeys(asked))
    if len(found) > 1 and "count" in found:
        found.remove("count")
    return found


def _top(board: ParseState, found: Subjects) -> None:
    for index in board.of_kind("top", "extreme"):
        for step in (index + 1, index - 1):
            number = board.units[step].tokens[0].number if board.free(step, "number") else None
            if isinstance(number, int) and 0 < number <= 1000 and found.limit is None:
                found.limit = number
                found.descending = board.units[index].kind != "top" or board.units[index].value == "desc"
                board.give("top", step, *([index] if board.units[index].kind == "top" else []))


def _expression(board: ParseState, found: Subjects) -> None:
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


def find_groups(board: ParseState, found: Subjects) -> None:
    """`by clinic and doctor`, `per month of visit_date`."""
    for marker in board.of_kind("group"):
        step = board.after(marker)
        while step is not None:
            output, used = _group_at(board, found, step)
            if output is None:
                break
            board.give("group", marker, step, *used)
            found.groups.append(output)
            step = next_joined(board, max([step, *used]))


def next_joined(board: ParseState, index: int) -> int | None:
    """The unit after an `and` or a comma."""
    following = index + 1
    while following < len(board.units) and board.roles.get(following) == "unit":
        following += 1
    if following < len(board.units) and board.units[following].value in ("and", ",", "&"):
        step = board.after(following)
        return step if step in board.columns or board.free(-1 if step is None else step, "period") else None
    return None


def _group_at(board: ParseState, found: Subjects, step: int) -> tuple[Output | None, list[int]]:
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


def _date_column(board: ParseState, step: int) -> tuple[ColumnSchema, list[int]]:
    named = [index for index in board.open_columns() if board.columns[index].kind == "date"]
    chosen = [board.columns[index] for index in named] or list(board.table.of_kind("date"))
    if not chosen:
        raise Ungrounded(f"{board.table.label} has no date column", (board.units[step].text,))
    return chosen[0], named[:1]


def find_target(board: ParseState, found: Subjects) -> None:
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


def _asked(board: ParseState, index: int) -> bool:
    words = [unit.value for unit in board.units[max(0, index - 2) : index]]
    return any(word in ("which", "what", "whose", "who") for word in words)


def _after_extreme(board: ParseState, index: int) -> bool:
    before = board.before(index, within=2)
    return before is not None and board.units[before].kind == "extreme"
