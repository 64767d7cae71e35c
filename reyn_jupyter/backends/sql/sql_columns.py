"""Names of a table's columns in SQL, where letter case does not count.

Invariant: a name in SQL is that of one column. If two labels are the same in SQL, neither has its plain name there, so
that a query with the plain name is refused instead of reading one of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.backends.object_summary import is_scalar
from reyn_jupyter.outputs.convert import type_name
from reyn_jupyter.outputs.frames.records import label_text
from reyn_jupyter.support.secret_names import secret_name
from reyn_jupyter.support.text import shorten

_NUMBERED = re.compile(r"(.+)_\d+", re.DOTALL)
_MOST_LISTED = 20  # columns in one message
_LONGEST_LABEL = 80  # characters of a label in a message


@dataclass(frozen=True)
class Label:
    """A column before it had a name in SQL.

    Attributes:
        value: the label: any object, of which only the type is asked if it is not a plain value.
        is_index: whether it is a level of the index.
    """

    value: Any
    is_index: bool = False


# The columns of a table whose names in SQL are others than their labels: name → (label, what it is).
Renamed = Mapping[str, tuple[str, str]]


def column_names(labels: Sequence[Any]) -> list[str]:
    """Return the name of each column in SQL.

    Labels that are the same in SQL are numbered, the first of them too. Columns without a name get one.

    >>> column_names(["Region", "region", None, ("a", "x"), 7])
    ['Region_0', 'region_1', 'column_2', 'a_x', '7']
    """
    texts = [_text(label) for label in labels]
    counts = Counter(text.lower() for text in texts)
    taken = set(counts)
    positions: Counter[str] = Counter()
    names = []
    for at, text in enumerate(texts):
        name = text
        if not text or counts[text.lower()] > 1:
            number = positions[text.lower()] if text else at
            while not name or name.lower() in taken:
                name = _numbered(text, number)
                number += 1
            positions[text.lower()] = number
            taken.add(name.lower())
        names.append(name)
    return names


def field_names(keys: Sequence[Any]) -> list[str]:
    """Return the names of the fields of a nested cell: its keys as texts, numbered if two are the same."""
    names = [_text(key) or f"column_{at}" for at, key in enumerate(keys)]
    return names if len(set(names)) == len(names) else column_names(keys)


def renamed_columns(labels: Sequence[Label]) -> Renamed:
    """Return the columns whose names in SQL are not their labels as they are written elsewhere."""
    names = column_names([label.value for label in labels])
    described = [_described(label) for label in labels]
    counts = Counter(described)
    return {
        name: (_text(label.value), f"{told} (number {at})" if counts[told] > 1 else told)
        for at, (name, label, told) in enumerate(zip(names, labels, described, strict=True), 1)
        if name != label.value and (type(label.value) is str or name != _plain_text(label.value))
    }


def meant_by(name: str, tables: Mapping[str, Renamed]) -> dict[str, str]:
    """Return the columns that a name may mean although none has it in SQL: name in SQL → what it is."""
    return {
        column: described
        for renamed in tables.values()
        for column, (label, described) in renamed.items()
        if label and label.lower() == name.lower()
    }


def shown_renames(tables: Mapping[str, Renamed], columns: Iterable[str]) -> list[str]:
    """Return a phrase for each renamed column that is in an answer.

    Args:
        tables: the renamed columns of the sources, by table.
        columns: of the answer.
    """
    shown = [column.lower() for column in columns]
    return [
        f"{name} is {described} in {table}"
        for table, renamed in tables.items()
        for name, (_, described) in renamed.items()
        if any(name.lower() in column for column in shown)
    ]


def distinct_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return names that differ, as a frame needs them, and a phrase for each name that was changed."""
    taken, seen, result, phrases = set(names), Counter[str](), [], []
    for name in names:
        number, distinct = seen[name], name
        while number and distinct in taken:
            distinct = f"{name}_{number}"
            number += 1
        if distinct != name:
            phrases.append(f"{distinct} is another column {name!r} of the query")
        seen[name] = max(1, number)
        taken.add(distinct)
        result.append(distinct)
    return result, phrases


def listed(phrases: Sequence[str]) -> str:
    """Return phrases as one text, the number of those left out at its end."""
    more = f" and {len(phrases) - _MOST_LISTED:,} more" if len(phrases) > _MOST_LISTED else ""
    return ", ".join(phrases[:_MOST_LISTED]) + more


def seem_renamed(names: Collection[str]) -> bool:
    """Return whether DuckDB may have numbered columns of a file: it has a name, and the same name with a number."""
    lowered = {name.lower() for name in names}
    return any((found := _NUMBERED.fullmatch(name)) and found[1] in lowered for name in lowered)


def without_number(name: str) -> str:
    """Return a name without the number at its end."""
    found = _NUMBERED.fullmatch(name)
    return found[1] if found else name


def _numbered(text: str, number: int) -> str:
    name = f"{text or 'column'}_{number}"
    # Some names are a secret's only with their last word last: pass, but not pass_1.
    return f"column_{number}_{text}" if secret_name(text) and not secret_name(name) else name


def _text(label: Any) -> str:
    """Return a label as a name, "" for a label that is missing or of an unknown type."""
    if type(label) is str:
        return label.replace("\0", "").encode("utf-8", "replace").decode()
    if type(label) is tuple:
        return "_".join(filter(None, map(_text, label)))
    return _plain_text(label)


def _plain_text(label: Any) -> str:
    """Return a label that is a plain value as records write it, else ""."""
    if type(label) in (bool, int):
        return str(label)
    if type(label) is tuple or label is None or not is_scalar(type(label)) or label != label:
        return ""
    return label_text(label)


def _described(label: Label) -> str:
    kind = "the index" if label.is_index else "the column"
    if type(label.value) is tuple or (type(label.value) is str and _text(label.value)):
        return f"{kind} {shorten(repr(label.value), _LONGEST_LABEL)}"
    if text := _plain_text(label.value):
        return f"{kind} {text}"
    known = type(label.value) is str or is_scalar(type(label.value))
    return f"{kind} without a name" if known else f"{kind} <{type_name(label.value)}>"
