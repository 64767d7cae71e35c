"""The columns of a stored table: index levels first, as its records have them.

Invariant: a column's position never changes while a table is open; columns that only later rows have are added at
the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.outputs.blobs.manifest import BlobInfo
from reyn_jupyter.outputs.frames.restore import untag
from reyn_jupyter.outputs.table.column_values import ABSENT

VALUE = "value"  # the column of elements that are no objects, as `.df` has it
STICKY = 4  # index levels that stay in sight; further ones are ordinary columns


@dataclass(frozen=True)
class ColumnSpec:
    """Attributes:
    key: its name in the records, unlike all others.
    spec: its description in the manifest; empty for records that never were a frame.
    level: which index level it is, None for a column.
    """

    key: str
    spec: dict[str, Any] = field(default_factory=dict)
    level: int | None = None

    @property
    def dtype(self) -> str:
        return str(self.spec.get("dtype", ""))


def frame_columns(info: BlobInfo) -> list[ColumnSpec]:
    """The columns of a stored frame, from its manifest."""
    return columns_of(info.frame or {})


def columns_of(frame: Mapping[str, Any]) -> list[ColumnSpec]:
    """The columns of a frame, from its description."""
    levels = (frame.get("index") or {}).get("levels", [])
    return [
        *(ColumnSpec(spec["key"], spec, number) for number, spec in enumerate(levels)),
        *(ColumnSpec(spec["key"], spec) for spec in frame.get("columns", [])),
    ]


def as_record(element: Any) -> dict[str, Any]:
    """An element of an array as a record."""
    return element if isinstance(element, dict) and untag(element) is element else {VALUE: element}


def keys_of(records: Iterable[dict[str, Any]]) -> list[str]:
    """The keys of records in the order in which they appear."""
    return list(dict.fromkeys(key for record in records for key in record))


def column_values(records: Sequence[dict[str, Any]], key: str) -> list[Any]:
    return [record.get(key, ABSENT) for record in records]


def specials_within(spec: dict[str, Any], start: int, stop: int) -> dict[int, str]:
    """Return which of the nulls between two rows stand for a number that JSON lacks, counted from `start`."""
    from bisect import bisect_left

    found = {}
    for name, places in spec.get("specials", {}).items():
        for place in places[bisect_left(places, start) : bisect_left(places, stop)]:
            found[place - start] = name
    return found
