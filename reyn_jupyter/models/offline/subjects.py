"""The subjects of a question about a table: what is computed, of what, for which groups, and in which order.

Invariant: what is used gets a role; a function or an extreme that the query would not use is refused, never dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from reyn_jupyter.models.offline.conditions import SAID, Condition, number_at
from reyn_jupyter.models.offline.lexer import EXTREMES, direction_of
from reyn_jupyter.models.offline.parse_state import CALENDAR, ParseState, Ungrounded
from reyn_jupyter.models.offline.sql_query import Output, aggregate, of_column, period
from reyn_jupyter.models.offline.table_schema import fits_concept, literal

_LISTING = ("list", "display", "print", "name", "sort", "order", "rank", "split")
_SORTING = ("sort", "order", "rank")
TOTALS = ("most", "least", "fewest")  # of groups: there is no "most" of a column
_JOINED = ("and", ",", "&", "+")


def is_generic(word: str) -> bool:
    """Return whether an extreme says nothing of its column: `highest`, not `heaviest`."""
    return not EXTREMES[word].concept


def direction(board: ParseState, index: int, measure: Output) -> Literal["max", "min"]:
    """Return the end of a measure that an adjective asks for.

    Raises:
        Ungrounded: The measure does not decide it.
    """
    unit, column = board.units[index], measure.column
    if unit.value in EXTREMES and not fits_concept(EXTREMES[unit.value].concept, column):
        said = f"“{unit.text}” is not said of {measure.label}: name the column that is meant"
        raise Ungrounded(said, (unit.text,))
    end = direction_of(
        unit.value if unit.value in EXTREMES else "earliest",
        column.parts if column else (),
        column is not None and column.kind == "date",
    )
    if end is None:
        raise Ungrounded(
            f"“{unit.text}” may mean the highest or the lowest {measure.label}: say which", (unit.text,)
        )
    return end


def functions(board: ParseState) -> list[int]:
    """The places of the functions that are asked for and have no role yet."""
    return [index for index in board.of_kind("aggregate") if board.free(index)]


@dataclass
class Subjects:
    """The subjects that were found in a question.

    Attributes:
        groups: what to group by.
        target: the thing asked for by `which …` or `top 5 …`: a column or a period.
        topic: the text column that the question opens with: "customers with …".
        measures: columns or expressions to compute with.
        figures: what is computed.
        extremes: places of the extremes that rank rows or groups.
        having: which groups count.
        limit: how many rows are wanted.
        first: whether any rows will do: "first 5 rows".
        order: what to order by.
        ordered: whether an order of the figures is asked for.
        order_word: the place of an adjective that says from which end: "worst first".
        descending: from which end.
        unsaid: measures whose function the question does not say.
    """

    groups: list[Output] = field(default_factory=list)
    target: Output | None = None
    topic: Output | None = None
    measures: list[Output] = field(default_factory=list)
    figures: tuple[Output, ...] = ()
    extremes: list[int] = field(default_factory=list)
    having: Condition | None = None
    limit: int | None = None
    first: bool = False
    order: Output | None = None
    ordered: bool = False
    order_word: int | None = None
    descending: bool = True
    unsaid: tuple[Output, ...] = ()

    def finish(self, board: ParseState) -> None:
        """Find what is computed, once the conditions have taken their words."""
        _order(board, self)
        _groups(board, self)
        self.extremes = [index for index in board.of_kind("extreme") if board.free(index)]
        _target(board, self)
        _figures(board, self)
        _topic(board, self)


def subjects(board: ParseState) -> Subjects:
    """Find the number of rows, the expression and conditions on groups; the rest follows after the conditions."""
    found = Subjects()
    if board.units and board.free(0, "word") and board.units[0].value in _LISTING:
        board.give("verb", 0)
    _limit(board, found)
    _expression(board, found)
    _having(board, found)
    return found


# -- before the conditions ------------------------------------------------------------------------------------------


def _limit(board: ParseState, found: Subjects) -> None:
    """`top 5`, `bottom three`, `the 3 highest`, `first 10 rows`."""
    for index in board.of_kind("top", "extreme"):
        for step in (index + 1, index - 1):
            number = number_at(board, step) if 0 <= step < len(board.units) else None
            if isinstance(number, int) and 0 < number <= 1000 and found.limit is None:
                found.limit = number
                unit = board.units[index]
                found.descending = unit.value != "asc"
                rows = board.tokens_after(step)[:1] in (["rows"], ["records"], ["lines"], ["entries"])
                found.first = unit.value == "first" or (unit.value == "desc" and rows)
                board.give("top", step, *([index] if unit.kind == "top" else []))
    for index in board.of_kind("number"):  # "the three orders with the lowest amount"
        counted = board.roles.get(index + 1) == "source" and board.of_kind("extreme")[:1] > [index]
        before = board.units[index - 1].kind if index else ""
        number = number_at(board, index)
        if counted and before != "compare" and found.limit is None and isinstance(number, int) and number:
            found.limit = number
            board.give("top", index)


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


def _having(board: ParseState, found: Subjects) -> None:
    """`customers with more than 20 orders`, `which products have an average amount under 600`."""
    topic = _opening(board)
    compares = [index for index in board.of_kind("compare") if board.free(index)]
    if topic is None or len(compares) != 1:
        return
    index, step = compares[0], board.after(compares[0])
    number = number_at(board, step)
    if number is None or step is None:
        return
    counted = step + 1 if step + 1 < len(board.units) else None
    before = board.before(index)
    if counted is not None and board.roles.get(counted) == "source":
        figure, used = Output("COUNT(*)", "number of rows"), [counted]
    elif counted is not None and board.units[counted].value in ("row", "rows", "entries", "records"):
        figure, used = Output("COUNT(*)", "number of rows"), []
    else:
        function = board.before(before) if before is not None else None
        column = board.columns.get(before) if before is not None else None
        if function is None or column is None or column.kind != "number" or before is None:
            return
        if not board.free(function, "aggregate") or board.units[function].value in ("count", "corr"):
            return
        figure, used = aggregate(board.units[function].value, of_column(column)), [function, before]
    operator = board.units[index].value
    board.give("having", topic, index, step, *used)
    found.target = of_column(board.columns[topic])
    found.figures = (figure,)
    found.having = Condition(
        f"{figure.sql} {operator} {literal(number)}", f"{figure.label} {SAID[operator]} {number}"
    )


def _opening(board: ParseState) -> int | None:
    """The text column that a question opens with: `customers with …`, `which products …`, `list the regions`."""
    for index, unit in enumerate(board.units):
        if board.roles.get(index) == "column":
            return index if board.columns[index].kind in ("text", "other") else None
        listing = unit.kind == "word" and unit.value in _LISTING
        if not (listing or unit.kind == "distinct" or board.is_filler(index)):
            return None
    return None


# -- after the conditions -------------------------------------------------------------------------------------------


def _order(board: ParseState, found: Subjects) -> None:
    """`sorted by amount`, `highest first`."""
    for index in board.of_kind("order"):
        value = board.units[index].value
        board.give("order", index)
        found.ordered = True
        if value in EXTREMES:
            found.order_word = index
            continue
        if value != "by":
            found.descending = value == "desc"
            continue
        if not any(board.units[i].value == "desc" for i in board.of_kind("order")):
            found.descending = False
        step = board.after(index)
        if step is None or board.roles.get(step) != "column":
            continue
        again = list(board.columns.values()).count(board.columns[step]) > 1  # "by day, sorted by day"
        if again or not functions(board):
            board.give("order", step)
            found.order = of_column(board.columns[step])


def _groups(board: ParseState, found: Subjects) -> None:
    """`by clinic and doctor`, `per month of visit_date`, `monthly`."""
    for marker in board.of_kind("group"):
        step = board.after(marker)
        ranked = found.limit is not None or bool(board.of_kind("extreme", "order"))
        if step in board.open_columns() and board.units[0].value in _SORTING and step is not None:
            board.give("order", marker, step)  # "sort orders by day"
            found.order = of_column(board.columns[step])
            found.descending = any(board.units[i].value == "desc" for i in board.of_kind("order"))
            found.ordered = True
            continue
        if step is not None and ranked and _is_figure(board, step):
            board.give("group", marker)  # "top 3 customers by total amount"
            if (
                found.ordered
                and step in board.open_columns()
                and not functions(board)
                and found.limit is None
            ):
                board.give("order", step)  # "orders by amount, highest first"
                found.order = of_column(board.columns[step])
            continue
        if step is not None and board.roles.get(step) == "value" and board.units[marker].text.lower() == "by":
            board.give("group", marker)  # "books by Tanaka"
            continue
        while step is not None:
            output = _group_at(board, step)
            if output is None:
                break
            board.give("group", marker, step)
            found.groups.append(output)
            step = _next_joined(board, step)
    for index in board.of_kind("period"):
        if board.free(index) and board.units[index].text.lower().endswith("ly"):
            before = board.before(index)
            if before is not None and board.units[before].value in ("avg", "median", "max", "min"):
                words = f"{board.units[before].text} {board.units[index].text}"
                raise Ungrounded(f"“{words}” may be of the rows or of the totals: say “per …”", (words,))
            found.groups.append(_period_at(board, index))
            board.give("group", index)


def _is_figure(board: ParseState, step: int) -> bool:
    column = board.columns.get(step)
    extremes = [board.units[index].value for index in board.of_kind("extreme")]
    ends = any(EXTREMES[word].concept == "time" for word in extremes)  # "youngest by birth_date"
    return board.units[step].kind in ("aggregate", "extreme") or (
        column is not None and (column.kind == "number" or (column.kind == "date" and ends))
    )


def _next_joined(board: ParseState, index: int) -> int | None:
    """The unit after an `and` or a comma."""
    following = index + 1
    while following < len(board.units) and (
        board.roles.get(following) in ("unit", "name", "date") or board.units[following].value == "of"
    ):
        following += 1  # "per month of day and region"
    if following < len(board.units) and board.units[following].value in ("and", ",", "&"):
        step = board.after(following)
        if board.units[following].value == "," and board.tokens_after(following)[:1] == ["the"]:
            return None  # "for each region, the product with …"
        return step if step in board.columns or board.free(-1 if step is None else step, "period") else None
    return None


def _group_at(board: ParseState, step: int) -> Output | None:
    if board.roles.get(step) == "column":
        return of_column(board.columns[step])
    return _period_at(board, step) if board.free(step, "period") else None


def _period_at(board: ParseState, step: int) -> Output:
    """The period of the date column that is named, or of the only one."""
    column = board.date_column(step, within=len(board.units))
    if column is None:
        raise Ungrounded(f"{board.table.label} has no date column", (board.units[step].text,))
    return period(board.units[step].value, column)


def _target(board: ParseState, found: Subjects) -> None:
    """`which building …`, `the site with the highest …`, `top 5 products by …`, `busiest month`."""
    if found.having is not None or not (
        found.limit or found.extremes or (found.ordered and not found.groups)
    ):
        return
    for index in board.of_kind("period"):
        if board.free(index):
            found.target = _period_at(board, index)
            board.give("target", index)
            return
    named = [
        index for index in board.open_columns() if board.columns[index].kind in ("text", "other", "flag")
    ]
    days = [index for index in board.open_columns() if board.columns[index].kind == "date"]
    if days and not named and found.extremes and board.units[found.extremes[0]].value in TOTALS:
        board.give("target", days[0])  # "on which date were the most orders"
        found.target = period("day", board.columns[days[0]])
        return
    if not named or (
        found.ordered and not found.extremes and found.limit is None and _opening(board) != named[0]
    ):
        return
    board.give("target", named[0])
    if found.ordered and not found.extremes and found.limit is None:
        found.groups.append(of_column(board.columns[named[0]]))
    else:
        found.target = of_column(board.columns[named[0]])


def _topic(board: ParseState, found: Subjects) -> None:
    """`list the regions`, `customers who …`: the different values of the column that the question opens with."""
    if found.figures or found.groups or found.target or found.limit or found.extremes or found.order:
        return
    index = _opening(board)
    if index is not None:
        board.give("topic", index, *board.of_kind("distinct"))
        found.topic = of_column(board.columns[index])


# -- what is computed -----------------------------------------------------------------------------------------------


@dataclass
class _Call:
    """A function of the question: its place, its name, the columns that are its own."""

    place: int
    function: str
    columns: list[int] = field(default_factory=list)


def _figures(board: ParseState, found: Subjects) -> None:
    if found.having is not None:
        return
    calls = [_Call(index, board.units[index].value) for index in functions(board)]
    ranking = found.target is not None or found.limit is not None or _row_wanted(board, found)
    totals = [board.units[index].text for index in found.extremes if board.units[index].value in TOTALS]
    if not ranking and totals:
        raise Ungrounded(
            f"I cannot tell what “{totals[0]}” is asked of: name a column of groups", (totals[0],)
        )
    if not ranking and all(_of_column(board, index) for index in found.extremes):
        calls += [_Call(index, board.units[index].value) for index in found.extremes]
        found.extremes = []
    if not ranking:
        calls += [_Call(index, "min") for index in board.of_kind("top") if _is_first_date(board, index)]
    calls = _joined(board, sorted(calls, key=lambda call: call.place))
    named = [index for index in board.open_columns() if board.columns[index].kind in ("number", "date")]
    if not calls:
        _measures(board, found, named)
        board.give("extreme", *found.extremes)
        return
    _share_columns(board, calls, named)
    figures: list[Output] = []
    for call in calls:
        board.give("function", call.place)
        outputs = _outputs(board, found, call)
        figures += [output for output in outputs if output not in figures]
    board.give("extreme", *found.extremes)
    found.figures = tuple(figures)


def _of_column(board: ParseState, index: int) -> bool:
    """Return whether an extreme is of a column alone: `highest fee`, `latest visit_date`.

    Raises:
        Ungrounded: The adjective is not of such a column: "hottest hour".
    """
    step, word = board.after(index), board.units[index].value
    column = board.columns.get(step) if step is not None and board.roles.get(step) == "column" else None
    if column is None or column.kind not in ("number", "date"):
        return is_generic(word) and word not in ("best", "worst")
    is_day = column.kind == "date" or column.name.lower() in (*CALENDAR, "hour")
    if is_day and EXTREMES[word].concept not in ("", "time"):
        said = board.units[index].text
        raise Ungrounded(f"“{said}” is not said of {column.name}: name the column that is meant", (said,))
    return True


def _is_first_date(board: ParseState, index: int) -> bool:
    step = board.after(index)
    named = step is not None and board.roles.get(step) == "column" and board.columns[step].kind == "date"
    return board.free(index) and board.units[index].value == "first" and named


def _row_wanted(board: ParseState, found: Subjects) -> bool:
    """`the order with the highest amount`, `when was the latest order`: a row is wanted, not only its extreme."""
    if not found.extremes:
        return False
    if board.units[0].value in ("who", "when", "where"):
        return True
    rows = [
        index
        for index in board.of_kind("word")
        if board.units[index].value in ("row", "rows", "record", "records")
    ]
    sources = [index for index, role in board.roles.items() if role == "source"] + rows
    sources = [index for index in sources if index < found.extremes[0]]
    between = [board.units[i].value for s in sources for i in range(s + 1, found.extremes[0])]
    return any(word in ("with", "has", "had", "have") for word in between)


def _joined(board: ParseState, calls: list[_Call]) -> list[_Call]:
    """Drop a `number of` that belongs to a column's name; refuse a function of a function."""
    kept: list[_Call] = []
    for call in calls:
        if not kept:
            kept.append(call)
            continue
        last = kept[-1]
        between = range(last.place + 1, call.place)
        if any(board.units[i].value in _JOINED for i in between):
            kept.append(call)
        elif (
            call.function == "count"
            and all(board.is_filler(i) for i in between)
            and _number_follows(board, call.place)
        ):
            board.give("function", call.place)
        else:
            first, second = board.units[last.place].text, board.units[call.place].text
            raise Ungrounded(f"“{first}” of a “{second}” is two steps, and I make one", (first, second))
    return kept


def _number_follows(board: ParseState, place: int) -> bool:
    step = board.after(place)
    return step is not None and step in board.columns and board.columns[step].kind == "number"


def _share_columns(board: ParseState, calls: list[_Call], named: list[int]) -> None:
    """Give each function the columns behind it, up to the next function; one without takes its neighbour's."""
    for number, call in enumerate(calls):
        if call.function == "count":
            continue
        end = calls[number + 1].place if number + 1 < len(calls) else len(board.units)
        mine = [index for index in named if call.place < index < end]
        call.columns = _run(board, mine)
    for number, call in reversed(list(enumerate(calls))):
        if call.function != "count" and not call.columns and number + 1 < len(calls):
            call.columns = calls[number + 1].columns
    before = [index for index in named if index < calls[0].place]
    for call in calls:
        if call.function != "count" and not call.columns and before:
            call.columns = _run(board, before[-1:])


def _run(board: ParseState, columns: list[int]) -> list[int]:
    """The first columns that are joined by `and` or commas."""
    run = columns[:1]
    for index in columns[1:]:
        between = [
            board.units[i].value
            for i in range(run[-1] + 1, index)
            if board.roles.get(i) not in ("unit", "name")
        ]
        if not between or not all(word in _JOINED for word in between):
            break
        run.append(index)
    return run


def _outputs(board: ParseState, found: Subjects, call: _Call) -> list[Output]:
    if call.function == "count":
        return [_count(board, call)]
    board.give("measure", *call.columns)
    measures = [of_column(board.columns[index]) for index in call.columns] or found.measures
    if not measures:
        concept = _by_concept(board, call.place)
        measures = [concept] if concept is not None else []
    if call.function in EXTREMES:
        if not measures:
            raise Ungrounded("the question does not say of which column the highest or lowest value is meant")
        return [aggregate(direction(board, call.place, measure), measure) for measure in measures]
    dates = [index for index in call.columns if board.columns[index].kind == "date"]
    if dates and call.function not in ("max", "min"):
        raise Ungrounded(
            f"{board.columns[dates[0]].name} is no number column", (board.columns[dates[0]].name,)
        )
    if (
        not measures
        and board.units[call.place].text.lower() == "how much"
        and _counts_rows(board, call.place)
    ):
        return [Output("COUNT(*)", "number of rows")]
    if not measures:
        names = ", ".join(f"`{column.name}`" for column in board.table.of_kind("number")) or "none"
        raise Ungrounded(f"the question names no number column of {board.table.label} (it has: {names})")
    return [aggregate(call.function, measure) for measure in measures]


def _counts_rows(board: ParseState, place: int) -> bool:
    step = board.after(place)
    return step is not None and board.roles.get(step) == "source"


def _count(board: ParseState, call: _Call) -> Output:
    """Rows; different values where the question says so, or counts what a text column names ("how many customers")."""
    marks = [index for index in board.of_kind("distinct") if board.free(index)]
    following = board.after(call.place, within=3)
    if following in marks:
        following = board.after(following or 0, within=3)
    step = following if following is not None and board.roles.get(following) == "column" else None
    if marks and step is None:
        step = next((index for index in board.open_columns() if index > marks[0]), None)
    if step is None:
        if marks:
            raise Ungrounded("the question does not name a column to count the different values of")
        return Output("COUNT(*)", "number of rows")
    column = board.columns[step]
    if not marks and column.kind not in ("text", "other"):
        raise Ungrounded(
            f"I cannot tell whether rows or different values of {column.name} are counted", (column.name,)
        )
    board.give("distinct", *marks, step)
    if not marks and column.name in board.valued:  # "how many g are a"
        return Output("COUNT(*)", "number of rows")
    return Output(f"COUNT(DISTINCT {column.sql})", f"number of different values of {column.name}")


def _measures(board: ParseState, found: Subjects, named: list[int]) -> None:
    """The columns of a question without a function: what is ranked, or summed by group."""
    named = [index for index in named if board.columns[index].kind == "number" or found.extremes]
    if named:
        start = next((i for i in named if not found.extremes or i > found.extremes[0]), named[0])
        run = _run(board, [index for index in named if index >= start])
        if found.groups or found.extremes or found.limit is not None:
            board.give("measure", *run)
        found.measures = [*found.measures, *(of_column(board.columns[index]) for index in run)]
    elif found.extremes and not found.measures:
        concept = _by_concept(board, found.extremes[0])
        found.measures = [concept] if concept is not None else []
    if found.groups and found.target is None and found.limit is None and not found.extremes:
        # "quantity by store" may be a total or an average: both are shown. "visits per month" counts rows.
        outputs = [aggregate(function, measure) for measure in found.measures for function in ("sum", "avg")]
        found.unsaid = tuple(found.measures)
        found.figures = tuple(outputs) or (Output("COUNT(*)", "number of rows"),)


def _by_concept(board: ParseState, place: int) -> Output | None:
    """`heaviest` is about a mass, `longest` about a length; `highest price` finds the column `fee`."""
    unit = board.units[place]
    concept = EXTREMES[unit.value].concept if unit.value in EXTREMES else ""
    if concept in ("time", "speed"):
        fitting = [
            column
            for column in board.table.of_kind("number", "date")
            if direction_of(unit.value, column.parts, column.kind == "date") is not None
        ]
        ages = [column for column in fitting if column.kind == "number" and "age" in column.parts]
        fitting = ages or fitting
        if len(fitting) > 1:
            names = ", ".join(f"`{column.name}`" for column in fitting)
            raise Ungrounded(f"“{unit.text}” may be by {names}: name one of them", (unit.text,))
        return of_column(fitting[0]) if fitting else None
    column = board.table.column((concept,), loosely=True) if concept else None
    if column is not None and column.kind in ("number", "date"):
        return of_column(column)
    following = board.after(place)
    if following is None or not board.free(following, "word") or board.is_filler(following):
        return None
    column = board.table.column((board.units[following].value,), loosely=True)
    if column is None or column.kind != "number":
        return None
    board.give("measure", following)
    return of_column(column)
