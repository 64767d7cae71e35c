"""A table as far as results have shown it, and which of its columns a few words mean.

Invariant: a column is matched by its own name's words first, by a synonym only if a caller asks for it. Two columns
that fit equally well are never told apart by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from reyn_jupyter.models.offline.lexicon import alike, parts, same_concept, stem

ColumnKind = Literal["number", "text", "date", "flag", "other"]

_DATE_FORMATS = (  # of texts that hold dates; "" for what SQL reads by itself; a day before or after a month is none
    (re.compile(r"\d{4}[-/]\d{1,2}[-/]\d{1,2}(?:[T ].{0,30})?\Z"), ""),
    (re.compile(r"[A-Z][a-z]{2} \d{1,2},? \d{4}\Z"), "%b %d %Y"),
    (re.compile(r"\d{1,2} [A-Z][a-z]{2} \d{4}\Z"), "%d %b %Y"),
    (re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}\Z"), "%d.%m.%Y"),
)
_ZONED = re.compile(r"(?:datetime64\[\w+, |timestamp\[\w+, tz=)([^\]]+)\]")
_OFFSET = re.compile(r"(?:UTC)?([+-])(\d\d):?(\d\d)|(?:pytz\.)?FixedOffset\((-?\d+)\)")
_UNNAMED = re.compile(r"level_\d+|\(index\)")
_FLAGS = {"yes", "no", "true", "false", "y", "n"}


@dataclass(frozen=True)
class ColumnSchema:
    """A column.

    Attributes:
        name: as the table has it.
        kind: what it holds.
        seen: the few values that were seen.
        level: whether it is a level of an index.
        dtype: its type in the notebook, if that is known.
    """

    name: str
    kind: ColumnKind
    seen: tuple[Any, ...] = ()
    level: bool = False
    dtype: str = ""

    @cached_property
    def parts(self) -> tuple[str, ...]:
        return parts(self.name)

    @property
    def sql(self) -> str:
        return quoted(self.name)

    @property
    def zone(self) -> str:
        """The time zone of a column of moments; "" for anything else."""
        match = _ZONED.match(self.dtype)
        return match[1] if match else ""

    @property
    def local_sql(self) -> str:
        """The column with moments as its own time zone has them, and texts that hold dates as dates."""
        match = _OFFSET.fullmatch(self.zone)
        if match is not None:
            sign = -1 if match[1] == "-" else 1
            minutes = int(match[4]) if match[4] else sign * (60 * int(match[2]) + int(match[3]))
            return f"timezone('UTC', {self.sql}) + INTERVAL ({minutes}) MINUTE"
        if self.zone:
            return f"timezone({literal(self.zone)}, {self.sql})"
        style = date_format(self.seen) if self.kind == "date" else None
        text = f"replace({self.sql}, ',', '')" if style == "%b %d %Y" else self.sql
        return f"strptime({text}, {literal(style)})" if style else self.sql

    @property
    def date_sql(self) -> str:
        return f"CAST({self.local_sql} AS DATE)"


@dataclass(frozen=True)
class TableSchema:
    """A table that a query can name.

    Attributes:
        label: what people call it: a variable's name or a path.
        source: what the query action takes for it.
        alias: its name in SQL.
        columns: what results have shown of it.
        named: whether the prompt named it.
        unlisted: how many further columns it has that no result has shown.
    """

    label: str
    source: str
    alias: str
    columns: tuple[ColumnSchema, ...]
    named: bool = True
    unlisted: int = 0

    def column(self, words: Sequence[str], *, loosely: bool = False) -> ColumnSchema | None:
        """The column that some words name, None when none or several do. `loosely` accepts a synonym for one word."""
        chosen = self.columns_named(words, loosely=loosely)
        return chosen[0] if len(chosen) == 1 else None

    def columns_named(self, words: Sequence[str], *, loosely: bool = False) -> list[ColumnSchema]:
        """The columns that some words name equally well."""
        scores = [(_match(words, column, loosely), column) for column in self.columns]
        best = max((score for score, _ in scores), default=0.0)
        return [column for score, column in scores if score == best and score > 0]

    @cached_property
    def repeated(self) -> tuple[ColumnSchema, ...]:
        """The columns whose name another one has too: a description calls the second one `a (2)`."""
        names = {column.name for column in self.columns}
        bases = {re.sub(r" \(\d+\)\Z", "", name) for name in names}
        twice = {base for base in bases if base in names and f"{base} (2)" in names}
        return tuple(c for c in self.columns if re.sub(r" \(\d+\)\Z", "", c.name) in twice)

    @property
    def cells(self) -> tuple[ColumnSchema, ...]:
        """The columns without the levels of an index, which are no part of what a row holds."""
        return tuple(column for column in self.columns if not column.level)

    def of_kind(self, *kinds: ColumnKind) -> tuple[ColumnSchema, ...]:
        return tuple(column for column in self.columns if column.kind in kinds)

    def named_like(self, word: str) -> bool:
        """Return whether a word says the table's own name: ``visits``, ``visit`` or ``visits.csv``."""
        base = self.label.rsplit("/", 1)[-1].split(".", 1)[0]
        said = stem(word)
        return word.lower() == base.lower() or any(
            alike(said, part) or said.removesuffix("ed") == part for part in parts(base)
        )


def _match(words: Sequence[str], column: ColumnSchema, loosely: bool) -> float:
    if "_".join(words).lower() == column.name.lower() or " ".join(words).lower() == column.name.lower():
        return 3.0
    stems = tuple(part for word in words for part in parts(word))
    if not stems:
        return 0.0
    if stems == column.parts:
        return 2.5
    if all(part in column.parts for part in stems):
        return 2.0
    # One letter or two say too little to stand for a part of a name.
    if all(len(part) > 2 and any(alike(part, own) for own in column.parts) for part in stems):
        return 1.5
    if loosely and len(stems) == 1 and any(same_concept(stems[0], own) for own in column.parts):
        return 0.5
    return 0.0


_CONCEPT_PARTS = {
    "length": "distance dist delay time trip duration elapsed wait km mile second ms wavelength width span",
    "mass": "lb pound ton carat wt",
    "height": "alt altitude elevation depth cm m ft inch",
    "price": "amount bill value salary fare wage rent total usd eur",
    "temperature": "degree celsius fahrenheit",
}


def fits_concept(concept: str, column: ColumnSchema | None) -> bool:
    """Return whether an adjective of a concept is said of a column: a price is not long, a flight number neither.

    Args:
        concept: as in `Extreme`; adjectives of time and speed are decided by `direction_of`.
        column: None for a count or an expression.
    """
    if concept in ("", "time", "speed"):
        return True
    own = column.parts if column is not None else ()
    return any(
        same_concept(concept, part) or part in (concept, *_CONCEPT_PARTS[concept].split()) for part in own
    )


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: object) -> str:
    """A value as an SQL literal."""
    if isinstance(text, bool):
        return "TRUE" if text else "FALSE"
    if isinstance(text, (int, float)):
        return repr(text)
    return "'" + str(text).replace("'", "''") + "'"


def kind_of_type(name: str) -> ColumnKind:
    """Return what a column of a type holds: ``int64``, ``datetime64[ns]``, ``VARCHAR`` …"""
    low = name.lower()
    if "bool" in low:
        return "flag"
    if low.startswith(("timedelta", "interval", "period", "complex", "duration")):
        return "other"
    if any(part in low for part in ("date", "time", "period")):
        return "date"
    if any(part in low for part in ("int", "float", "double", "decimal", "numeric", "number", "real")):
        return "number"
    if any(part in low for part in ("str", "object", "char", "text", "category", "enum")):
        return "text"
    return "other"


def kind_of_values(values: Iterable[object]) -> ColumnKind:
    """Return what a column holds, from a few of its values."""
    seen = [value for value in values if value is not None]
    if not seen:
        return "text"
    if all(isinstance(value, bool) for value in seen):
        return "flag"
    if all(
        isinstance(value, (int, float)) or (isinstance(value, dict) and "$number" in value) for value in seen
    ):
        return "number"
    if all(isinstance(value, str) for value in seen):
        return "text" if date_format(seen) is None else "date"
    return "other"


def date_format(values: Iterable[object]) -> str | None:
    """Return how texts hold dates: a format of `strptime`, "" for what SQL reads by itself, None for other texts."""
    seen = [value for value in values if value is not None]
    for pattern, style in _DATE_FORMATS:
        if seen and all(isinstance(value, str) and pattern.match(value) for value in seen):
            return style
    return None


def is_flag(column: ColumnSchema) -> bool:
    """Return whether a column says yes or no of a row."""
    seen = {str(value).lower() for value in column.seen if value is not None}
    return column.kind == "flag" or (column.kind == "text" and bool(seen) and seen <= _FLAGS)


def columns_of_rows(rows: Sequence[Mapping[str, Any]]) -> tuple[ColumnSchema, ...]:
    """The columns of a few records."""
    names = dict.fromkeys(key for row in rows for key in row)
    return tuple(
        ColumnSchema(name, kind_of_values(seen), seen)
        for name in names
        for seen in [tuple(row.get(name) for row in rows)]
    )


def columns_of_description(value: object) -> tuple[ColumnSchema, ...]:
    """The columns in the description of a frame: a mapping of names to types, or a list of either."""
    if not isinstance(value, Mapping):
        return ()
    head = value.get("head")
    rows = [row for row in head if isinstance(row, Mapping)] if isinstance(head, list) else []
    types: dict[str, str] = {}
    for key in ("columns", "schema", "dtypes"):
        found = value.get(key)
        if isinstance(found, Mapping):
            types = {str(name): str(kind) for name, kind in found.items()}
        elif isinstance(found, list):
            for item in found:
                if isinstance(item, Mapping) and isinstance(item.get("name"), str):
                    types[item["name"]] = str(item.get("dtype") or item.get("type") or "")
                elif isinstance(item, str):
                    types[item] = ""
        if types:
            break
    columns = []
    for name, kind in types.items():
        seen = tuple(row.get(name) for row in rows)
        known = kind_of_type(kind)
        by_values = kind_of_values(seen) if rows else "text"
        columns.append(
            ColumnSchema(name, by_values if known in ("other", "text") else known, seen, dtype=kind)
        )
    return _with_levels(value.get("index"), rows, columns) if columns else columns_of_rows(rows)


def _with_levels(
    index: object, rows: Sequence[Mapping[str, Any]], columns: list[ColumnSchema]
) -> tuple[ColumnSchema, ...]:
    """The columns of a frame behind the levels of its index, which SQL has as its first columns when they are named."""
    given = index if isinstance(index, list) else []
    named = [
        (str(level["name"]), str(level.get("dtype", ""))) for level in given if isinstance(level, Mapping)
    ]
    if all(_UNNAMED.fullmatch(name) for name, _ in named):
        return tuple(columns)
    levels = []
    for name, dtype in named:
        seen = tuple(row.get(name) for row in rows)
        known = kind_of_type(dtype)
        kind = kind_of_values(seen) if known in ("other", "text") else known
        levels.append(ColumnSchema(name, kind, seen, level=True, dtype=dtype))
    return (*levels, *columns)
