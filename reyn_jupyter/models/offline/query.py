"""What to ask of a table: the parts of one SQL statement, each with the name that the answer gives it."""

from __future__ import annotations

from dataclasses import dataclass

from reyn_jupyter.models.offline.dates import Condition
from reyn_jupyter.models.offline.table import Column


@dataclass(frozen=True)
class Output:
    """One thing to compute or show: SQL, and the name that the answer gives it."""

    sql: str
    label: str


@dataclass(frozen=True)
class Query:
    """What to ask of the table.

    Attributes:
        outputs: aggregates, or the columns of rows; none for whole rows.
        groups: what to group by.
        conditions: which rows count.
        order: what to order by, and whether downwards.
        limit: how many rows of the answer.
        extreme: only rows where this column has its greatest or smallest value.
    """

    outputs: tuple[Output, ...]
    groups: tuple[Output, ...] = ()
    conditions: tuple[Condition, ...] = ()
    order: tuple[str, bool] | None = None
    limit: int | None = None
    extreme: Output | None = None


def of_column(column: Column) -> Output:
    return Output(column.sql, column.name)


def aggregated(function: str, measure: Output) -> Output:
    """A function of a measure, with the words for it."""
    if function == "count":
        return Output(f"COUNT({measure.sql})", f"number of {measure.label}")
    words = {"avg": "average", "sum": "total", "max": "maximum", "min": "minimum", "median": "median",
             "stddev": "standard deviation", "var_samp": "variance"}  # fmt: skip
    return Output(f"{function.upper()}({measure.sql})", f"{words[function]} {measure.label}")


def period(name: str, column: Column) -> Output:
    """A date column cut to months, weekdays and so on."""
    if name == "month":
        return Output(f"strftime({column.date_sql}, '%Y-%m')", "month")
    if name == "dayofweek":
        return Output(f"dayname({column.date_sql})", "weekday")
    if name == "day":
        return Output(f"strftime({column.date_sql}, '%Y-%m-%d')", "day")
    return Output(f"EXTRACT({name} FROM {column.date_sql})", name)
