"""Whole questions with one meaning: rows without values, values of each column, the last rows, shares.

Invariant: a shape matches a whole question, so no word of it is left without a meaning. Each shape is a pattern and the
query that it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reyn_jupyter.models.offline.conditions import Condition
from reyn_jupyter.models.offline.lexer import NUMBER_WORDS, Unit
from reyn_jupyter.models.offline.lexicon import stem
from reyn_jupyter.models.offline.parse_state import name_tokens
from reyn_jupyter.models.offline.sql_query import Output, TableQuery, aggregate, of_column
from reyn_jupyter.models.offline.table_schema import ColumnSchema, TableSchema, literal, quoted

# ruff: noqa: S608  (every identifier is quoted and every value a literal)

_POLITE = (
    r"(?:(?:please|can you|could you|tell me|show me|give me|show|list|display|find|what is|what's|what are|calculate"
    r"|i want to know) )*(?:the )?"
)
_GONE = r"(?:(?:missing|null|nan|na|empty)(?: (?:values?|cells?|data|entry|entries))?|nulls|nans)"
_VALUES = ("value", "cell", "entry", "data")
_SOME = r"(?:any |some |a |at least one |one or more )?"
_HAVE = r"(?:(?:that |which |who )?(?:with|have|has|having|contain|contains|containing)|(?:are there|there are) with)"
_COUNT = r"(?:how many|number of|the number of|count of|count)"
_EACH = r"(?:are there |there are )?(?:per|by|in each|for each|in every|for every|of each|each) column"
_COLUMN = r"(?:the )?(?:column )?(?P<column>.+?)(?: column)?"


@dataclass(frozen=True)
class _Asked:
    """A question that has a shape: the table, the column that it names, and the match."""

    table: TableSchema
    column: ColumnSchema
    match: re.Match[str]


Build = Callable[[_Asked], TableQuery | None]


def shape_query(units: Sequence[Unit], table: TableSchema) -> TableQuery | None:
    """Return the query of a question that is a known shape as a whole, or None."""
    text = _without_table(" ".join(token.lower for unit in units for token in unit.tokens), table)
    rows = rf"(?:rows?|records?|entries|entry|observations?|{_names(table)})"
    if any(
        column.name.lower() in _VALUES and column.name.lower() in text.split() for column in table.columns
    ):
        return None  # "missing value" of a table with a column `value`
    for pattern, kinds, build in _SHAPES:
        match = re.fullmatch(_POLITE + pattern.replace("ROWS", rows), text)
        column = _column(table, match, kinds) if match is not None else None
        if match is not None and column is not None and (query := build(_Asked(table, column, match))):
            return query
    return None


def _names(table: TableSchema) -> str:
    """The names of a table as alternatives of a pattern."""
    base = table.label.rsplit("/", 1)[-1].split(".", 1)[0].lower()
    names = dict.fromkeys((table.label.lower(), base, stem(base), f"{stem(base)}s"))
    return "|".join(re.escape(name) for name in names if name)


def _without_table(text: str, table: TableSchema) -> str:
    """The question without its marks at the end and without the words that name the table."""
    names = rf"(?:the |my )?(?:{_names(table)})(?: (?:table|data|dataframe|frame))?"
    named = (
        rf" (?:(?:does|do) {names} (?:have|has|contain)|(?:is|are)(?: there)? in {names}"
        rf"|(?:in|of|from|for|inside|within) {names})(?= |\Z)"
    )
    text = re.sub(r"[ ?.!]+\Z", "", text)
    *_, last = [None, *re.finditer(named, text)]
    return text if last is None else re.sub(r"\s+", " ", text[: last.start()] + text[last.end() :]).strip()


def _column(table: TableSchema, match: re.Match[str], kinds: str) -> ColumnSchema | None:
    """The one column that a question names; the only one of dates, or any, if the shape lets it name none."""
    text = match.groupdict().get("column")
    if text is None:
        any_kind = [*(table.of_kind("date") if kinds else table.columns)]
        return any_kind[0] if any_kind and (not kinds or len(any_kind) == 1) else None
    exact = [column for column in table.columns if " ".join(name_tokens(column.name)) == text]
    column = exact[0] if len(exact) == 1 and exact[0] not in table.repeated else None
    column = column if exact else table.column(tuple(text.split()))
    return column if column is not None and (not kinds or column.kind in kinds.split()) else None


ROWS_COUNT = Output("COUNT(*)", "number of rows")


def _rows_with(missing: bool, counted: bool) -> Build:
    def build(asked: _Asked) -> TableQuery:
        link = " OR " if missing else " AND "
        sql = link.join(f"{c.sql} IS {'' if missing else 'NOT '}NULL" for c in asked.table.cells)
        words = f"{'any' if missing else 'no'} value is missing"
        return TableQuery((ROWS_COUNT,) if counted else (), (), (Condition(sql, words),))

    return build


def _of_cells(each: str, link: str, around: str, label: str) -> Build:
    """A figure of all cells: the SQL of each column, joined, inside a whole."""

    def build(asked: _Asked) -> TableQuery:
        cells = asked.table.cells
        joined = link.join(each.format(column.sql) for column in cells)
        return TableQuery((Output(around.format(joined, len(cells)), label),))

    return build


def _per_column(figure: str, title: str, rest: str = "") -> Build:
    """A figure of each column, a row each; `rest` follows the table of these rows."""

    def build(asked: _Asked) -> TableQuery | None:
        name = "different values" if "DISTINCT" in figure else "missing values"
        each = " UNION ALL ".join(
            f'SELECT {literal(c.name)} AS "column", {figure.format(c.sql)} AS "{name}" FROM {asked.table.alias}'
            for c in asked.table.cells
        )
        query = TableQuery((), text=f"SELECT * FROM ({each}){rest}", title=title)
        return None if asked.table.unlisted else query

    return build


def _missing_in(asked: _Asked) -> TableQuery:
    gap = Condition(f"{asked.column.sql} IS NULL", f"{asked.column.name} is missing")
    return TableQuery((ROWS_COUNT,), (), (gap,))


def _held(asked: _Asked) -> TableQuery:
    label = f"number of values of {asked.column.name} that are not missing"
    return TableQuery((Output(f"COUNT({asked.column.sql})", label),))


def _last(asked: _Asked) -> TableQuery | None:
    word = (asked.match["number"] or "1").strip()
    rows = int(word) if word.isdigit() else NUMBER_WORDS.get(word)
    return TableQuery((), last=rows) if rows is not None and 0 < rows <= 1000 else None


def _range(asked: _Asked) -> TableQuery:
    return TableQuery(tuple(aggregate(function, of_column(asked.column)) for function in ("min", "max")))


def _nth(asked: _Asked) -> TableQuery | None:
    """`second highest price`: of different values, as the answer says."""
    column, match = asked.column, asked.match
    high = match["end"] in ("highest", "largest", "biggest", "greatest")
    if column.kind == "date" and match["end"] != "highest":
        return None
    shown = of_column(column)
    label = f"{match['nth']} {'highest' if high else 'lowest'} {column.name} (equal values counted once)"
    order = f"ORDER BY {shown.sql} {'DESC' if high else 'ASC'}"
    place = _NTH.index(match["nth"]) % 4 + 1
    text = (
        f"SELECT DISTINCT {shown.sql} AS {quoted(label)} FROM {asked.table.alias} WHERE {column.sql} IS NOT NULL "
        f"QUALIFY dense_rank() OVER ({order}) = {place + 1}"
    )
    return TableQuery((Output(shown.sql, label, column),), text=text)


_NTH = ("second", "third", "fourth", "fifth", "2nd", "3rd", "4th", "5th")


def _frequencies(*more: Output) -> Build:
    return lambda asked: TableQuery((ROWS_COUNT, *more), (of_column(asked.column),), order=("COUNT(*)", True))


def _different(asked: _Asked) -> TableQuery:
    title = f"different values of {asked.column.name}"
    order = (asked.column.sql, False)
    return TableQuery((of_column(asked.column),), order=order, distinct=True, title=title)


_WITH_GAPS = rf"(?:{_HAVE} {_SOME}{_GONE}|(?:that )?are incomplete)"
_WITHOUT_GAPS = rf"(?:{_HAVE} (?:no|zero) {_GONE}|without (?:any |a )?{_GONE}|(?:that )?are complete)"
_SHARE = "(?:share|percentage|percent|proportion|fraction|distribution)s?"
_GAPS = "COUNT(*) - COUNT({0})"
_CELLS = _of_cells(
    "COUNT({})", " - ", "{1} * COUNT(*) - {0}", "number of missing values (cells) in all columns"
)
_COLUMNS_WITH = _of_cells(
    "CAST(COUNT({}) < COUNT(*) AS INTEGER)", " + ", "{0}", "number of columns with missing values"
)
_GAP_ORDER = ' WHERE "missing values" > 0 ORDER BY "missing values" DESC'
_PERCENT = Output("100.0 * COUNT(*) / SUM(COUNT(*)) OVER ()", "percentage of all rows")
_UNIQUE = "(?:unique|distinct|different)"
_MOST_GAPS = ' QUALIFY rank() OVER (ORDER BY "missing values" DESC) = 1'
_ENDS = "highest|largest|biggest|greatest|lowest|smallest"
# A pattern; the kinds of the column that it needs, "" for any; the query that it stands for.
_SHAPES: tuple[tuple[str, str, Build], ...] = (
    (rf"{_COUNT} (?:ROWS {_WITH_GAPS}|incomplete ROWS)", "", _rows_with(True, True)),
    (rf"{_COUNT} (?:ROWS {_WITHOUT_GAPS}|complete ROWS)", "", _rows_with(False, True)),
    (rf"(?:which )?(?:ROWS {_WITH_GAPS}|incomplete ROWS)", "", _rows_with(True, False)),
    (rf"(?:which )?(?:ROWS {_WITHOUT_GAPS}|complete ROWS)", "", _rows_with(False, False)),
    (rf"(?:is|are) there {_SOME}{_GONE}", "", _CELLS),
    (rf"(?:(?:{_COUNT}|total|total number of) )?{_GONE}(?: are there| there are)?(?: in total)?", "", _CELLS),
    (rf"(?:{_COUNT} )?{_GONE} {_EACH}", "", _per_column(_GAPS, "missing values of each column")),
    (
        rf"(?:{_COUNT} )?{_UNIQUE} (?:values?|entries|elements?) (?:{_EACH}|of all columns)",
        "",
        _per_column("COUNT(DISTINCT {0})", "different values of each column, missing ones not counted"),
    ),
    (rf"(?:{_COUNT} )?{_GONE} (?:in|of|for) {_COLUMN}", "", _missing_in),
    (rf"{_UNIQUE} values (?:of|in|for) {_COLUMN}", "", _different),
    (rf"{_COUNT} columns {_HAVE} {_SOME}{_GONE}", "", _COLUMNS_WITH),
    (
        rf"(?:which |what )?columns? {_HAVE} {_SOME}{_GONE}",
        "",
        _per_column(_GAPS, "missing values of the columns that have some", _GAP_ORDER),
    ),
    (
        rf"(?:which |what )?column {_HAVE} the (?:most|largest number of|highest number of) {_GONE}",
        "",
        _per_column(_GAPS, "columns with the most missing values", _MOST_GAPS),
    ),
    (rf"(?P<nth>{'|'.join(_NTH)}) (?P<end>{_ENDS}) {_COLUMN}", "number date", _nth),
    (r"(?:the )?(?:last|bottom) (?P<number>\w+ )?ROWS", "", _last),
    (
        rf"(?:{_COUNT} )?values (?:in|of|for) {_COLUMN} (?:are|is) (?:not (?:missing|null|empty|nan)|present)",
        "",
        _held,
    ),
    (rf"(?:{_COUNT} )?non -? ?(?:missing|null|empty|nan) (?:values (?:in|of|for) )?{_COLUMN}", "", _held),
    (rf"(?:(?:date|time) range(?: of {_COLUMN})?)", "number date", _range),
    (rf"range of {_COLUMN}", "number date", _range),
    (
        rf"{_SHARE} (?:of|by|per) (?:rows (?:by|per) )?(?:each |every )?{_COLUMN}",
        "text flag",
        _frequencies(_PERCENT),
    ),
    (rf"(?:value counts|frequency|frequencies) (?:of|by|per) (?:each |every )?{_COLUMN}", "", _frequencies()),
)
