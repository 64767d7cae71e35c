"""The pandas code that gives the rows of a grid: for a person to go on with.

Invariant: executed, it gives the same rows in the same order. Columns whose label is equal to another's or is no plain
text are named by position; where pandas' own operators would differ from the grid (categories, mixed objects, nullable
numbers), the code calls `order_key` and `matches`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reyn_jupyter.outputs.table.frame_table import RowFilter, RowRequest, SortColumn
from reyn_jupyter.outputs.table.held_table import HeldTable
from reyn_jupyter.outputs.table.open_table import OpenedTable
from reyn_jupyter.outputs.table.row_filter import moment, number

if TYPE_CHECKING:
    from collections.abc import Callable

_OPERATORS = {"equals": "==", "differs": "!=", "less": "<", "most": "<=", "greater": ">", "least": ">="}


def code_of(opened: OpenedTable | HeldTable, asked: RowRequest, shown: Callable[[str], bool]) -> str:
    """The lines that load the table, keep what matches, and order it.

    Args:
        shown: whether a label may be written out; a column whose label holds a secret is named by its position.
    """
    writer = _Writer(opened, shown)
    body = [writer.filter(each) for each in asked.filters]
    if asked.sort:
        body.extend(writer.sort(asked.sort))
    lines = ["import reyn_jupyter as reyn"] if isinstance(opened, OpenedTable) else []
    if writer.pandas:
        lines.append("import pandas as pd")
    if writer.helpers:
        lines.append(f"from reyn_jupyter.outputs.table import {', '.join(sorted(writer.helpers))}")
    source = "# df is the frame that was viewed" if opened.expression is None else f"df = {opened.expression}"
    return "\n".join([*lines, *([""] if lines else []), source, *body, "df"])


class _Writer:
    def __init__(self, opened: OpenedTable | HeldTable, shown: Callable[[str], bool]) -> None:
        self.opened = opened
        self.pandas = False
        self.helpers: set[str] = set()
        self._labels = [column.spec.get("label", column.key) for column in opened.columns]
        self._levels = sum(column.level is not None for column in opened.columns)
        self._shown = shown

    def _name(self, column: int) -> str | None:
        """The label, where it alone names the column."""
        label = self._labels[column]
        if not isinstance(label, str) or self._labels.count(label) > 1 or not self._shown(label):
            return None
        frame = self.opened.frame_info
        if label == ((frame or {}).get("index") or {}).get("label"):
            return None
        return None if frame is not None and len(frame.get("column_names", [None])) > 1 else label

    def _at(self, column: int) -> str:
        if column < self._levels:
            return f"df.index.get_level_values({column}).to_series(index=df.index)"
        name = self._name(column)
        if name is not None:
            return f"df[{name!r}]"
        return f"df.iloc[:, {column - self._levels}]"

    def _is_plain(self, column: int) -> bool:
        """Return whether pandas' own comparison and order are the grid's."""
        dtype = self.opened.columns[column].dtype
        return dtype == "str" or dtype.startswith(
            ("int", "uint", "float", "bool", "datetime64", "timedelta64")
        )

    def filter(self, each: RowFilter) -> str:
        at, dtype = self._at(each.column), self.opened.columns[each.column].dtype
        if each.op in ("missing", "present") and self._is_plain(each.column):
            return f"df = df[{at}.{'isna' if each.op == 'missing' else 'notna'}()]"
        if each.op == "contains" and dtype == "str":
            return f"df = df[{at}.str.upper().str.contains({each.value.upper()!r}, regex=False, na=False)]"
        value = self._value(each, dtype) if self._is_plain(each.column) else None
        if value is None or each.op == "contains":
            self.helpers.add("matches")
            given = "" if each.op in ("missing", "present") else f", {each.value!r}"
            return f"df = df[matches({at}, {each.op!r}{given})]"
        test = f"{at} {_OPERATORS[each.op]} {value}"
        if each.op == "differs" and dtype.startswith(("str", "float", "datetime", "timedelta")):
            test = f"({test}) & {at}.notna()"
        return f"df = df[{test}]"

    def _value(self, each: RowFilter, dtype: str) -> str | None:
        if each.op in ("missing", "present", "contains"):
            return ""
        if dtype == "str":
            return repr(each.value)
        if dtype.startswith("bool"):
            return str(each.value.strip().lower() == "true")
        if dtype.startswith(("datetime64", "timedelta64")):
            self.pandas = True
            assert self.opened.table is not None
            made = moment(each.value, self.opened.table.series[each.column])
            return f"pd.{type(made).__name__}({str(made)!r}{self._zone(made)})"
        made = number(each.value)
        return repr(made) if made == made and abs(made) != float("inf") else f"float({str(made)!r})"

    def _zone(self, made: Any) -> str:
        zone = getattr(made, "tzinfo", None)
        return f", tz={str(zone)!r}" if zone is not None and "+" not in str(made) else ""

    def sort(self, keys: tuple[SortColumn, ...]) -> list[str]:
        names = [self._name(key.column) if key.column >= self._levels else None for key in keys]
        directions = [not key.descending for key in keys]
        plain = all(self._is_plain(key.column) for key in keys)
        if plain and None not in names:
            by: Any = names[0] if len(names) == 1 else names
            up: Any = directions[0] if len(names) == 1 else directions
            given = "" if up is True or up == [True] * len(keys) else f", ascending={up}"
            return [f'df = df.sort_values({by!r}{given}, kind="stable")']
        self.pandas = True
        columns = []
        for number_, key in enumerate(keys):
            at = self._at(key.column)
            if not self._is_plain(key.column):
                self.helpers.add("order_key")
                at = f"order_key({at})"
            columns.append(f"{number_}: {at}.array")
        order = f"pd.DataFrame({{{', '.join(columns)}}})"
        return [
            f'order = {order}.sort_values({list(range(len(keys)))}, ascending={directions}, kind="stable").index',
            "df = df.iloc[order]",
        ]
