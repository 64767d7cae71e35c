"""A table as far as results have shown it, and which of its columns a few words mean.

Invariant: a column is matched by its own name's words first, by a synonym only where a caller asks for it, and
two equally good columns are never told apart by chance: the shorter name wins, and of two as short neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from reyn_jupyter.models.offline.lexicon import alike, parts, same_concept, stem

ColumnKind = Literal["number", "text", "date", "flag", "other"]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].{0,30})?\Z")
_UNNAMED = re.compile(r"level_\d+|\(index\)")
_FLAGS = {"yes", "no", "true", "false", "y", "n"}


@dataclass(frozen=True)
class ColumnSchema:
    """A column: its name, what it holds, the few values that were seen, and whether it is a level of an index."""

    name: str
    kind: ColumnKind
    seen: tuple[Any, ...] = ()
    level: bool = False

    @cached_property
    def parts(self) -> tuple[str, ...]:
        return parts(self.name)

    @property
    def sql(self) -> str:
        return quoted(self.name)

    @property
    def date_sql(self) -> str:
        return f"CAST({self.sql} AS DATE)"


@dataclass(frozen=True)
class TableSchema:
    """A table that a query can name.

    Attributes:
        label: what people call it: a variable's name or a path.
        source: what the query action takes for it.
        alias: its name in SQL.
        columns: what results have shown of it.
        named: whether the prompt named it.
    """

    label: str
    source: str
    alias: str
    columns: tuple[ColumnSchema, ...]
    named: bool = True

    def column(self, words: Sequence[str], *, loosely: bool = False) -> ColumnSchema | None:
        """The column that some words name, None when none or several do. `loosely` accepts a synonym for one word."""
        scores = [(_match(words, column, loosely), column) for column in self.columns]
        best = max((score - 0.01 * len(column.parts) for score, column in scores if score > 0), default=0.0)
        chosen = [
            column for score, column in scores if score > 0 and score - 0.01 * len(column.parts) == best
        ]
        return chosen[0] if len(chosen) == 1 else None

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
        if all(_DATE.match(str(value)) for value in seen):
            return "date"
        return "text"
    return "other"


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
        columns.append(ColumnSchema(name, by_values if known in ("other", "text") else known, seen))
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
        levels.append(ColumnSchema(name, kind, seen, level=True))
    return (*levels, *columns)
