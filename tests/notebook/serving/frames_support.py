"""A line to a session as a view has it, and frames as they really come."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from queue import SimpleQueue
from typing import Any

import numpy as np
import pandas as pd

from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.sessions.session import Session


class RefusedError(Exception):
    """The kernel said no: what, and what to do next."""

    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__(said["message"])
        self.hint = said["hint"]


class Line:
    """A view's connection; `ask` gives the answer of one operation."""

    def __init__(self, session: Session) -> None:
        self.hub = Hub(lambda: session)
        self.answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.connection = Connection(self.hub, self.answers.put, None)
        self.number = 0
        self.notes: list[str] = []

    def send(self, operation: str, **arguments: Any) -> int:
        self.number += 1
        self.connection.receive({"type": "request", "id": self.number, "op": operation, "args": arguments})
        return self.number

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        number = self.send(operation, **arguments)
        while True:
            said = self.answers.get(timeout=120)
            if said["type"] == "progress":
                self.notes.append(said["note"])
            elif said["id"] == number:
                if said["type"] == "error":
                    raise RefusedError(said)
                value: dict[str, Any] = said["value"]
                return value


def stored(session: Session, value: Any) -> str:
    """The id of the blob in which an action's result was stored."""

    def give() -> Any:
        return value

    session.action(give)
    result = session.invoke_action("function__give")
    assert result.blob is not None, result.payload
    return result.blob.id


def mixed(*values: Any) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(list(values), dtype=object), "pad": "x" * 200})


def long(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame often enough to be stored rather than shown at once."""
    return pd.concat([frame] * (3000 // max(1, len(frame)) + 1))


UTC = dt.UTC
CORPUS: dict[str, pd.DataFrame] = {
    "duplicate columns": pd.DataFrame(np.arange(900).reshape(300, 3), columns=["a", "a", "b"]),
    "columns that are no texts": pd.DataFrame(
        np.arange(1200).reshape(300, 4),
        columns=pd.Index([1, 2.5, None, ("a", 1)], dtype=object, tupleize_cols=False),
    ),
    "levels of rows and columns": pd.DataFrame(
        np.arange(600.0).reshape(300, 2),
        index=pd.MultiIndex.from_product([["north", "south"], range(150)], names=["region", "n"]),
        columns=pd.MultiIndex.from_tuples([("v", "mean"), ("v", "count")]),
    ),
    "floats": pd.DataFrame(
        {"x": [1.0, float("nan"), float("inf"), -float("inf"), 2.25, 1e20, 1e-9, 0.1 + 0.2] * 60}
    ),
    "large integers": mixed(*[2**53 + 1, -(2**63), 2**64, 10**40, 0, None] * 40),
    "unsigned": pd.DataFrame({"x": np.array([2**64 - 1, 0, 2**63] * 200, dtype="uint64")}),
    "nested": mixed(*[{"a": [1, 2]}, [1, {"b": None}], "text", None, {"$number": "no"}] * 40),
    "edges of time": pd.DataFrame(
        {
            "x": np.array(
                ["0001-01-01", "9999-12-31", "NaT", "2024-05-31T01:02:03"] * 100, dtype="datetime64[s]"
            )
        }
    ),
    "time zones": pd.DataFrame(
        {
            "x": pd.to_datetime(["2024-01-01", None, "2024-07-01 12:00"] * 100, format="ISO8601").tz_localize(
                "Europe/Vienna"
            )
        }
    ),
    "durations and periods": pd.DataFrame(
        {
            "t": pd.to_timedelta([1, None, 90] * 100, unit="m"),
            "p": pd.period_range("2020-01", periods=300, freq="M"),
        }
    ),
    "intervals and categories": pd.DataFrame(
        {
            "i": pd.interval_range(0, 300),
            "c": pd.Categorical(["low", "high", None] * 100, categories=["low", "high"], ordered=True),
        }
    ),
    "mixed kinds": mixed(
        *[
            1,
            "two",
            3.5,
            True,
            None,
            float("nan"),
            dt.date(2024, 1, 1),
            dt.datetime.fromisoformat("2024-01-01"),
            dt.datetime(2024, 1, 1, tzinfo=UTC),
            dt.time(1),
            Decimal("1.5"),
            Decimal("NaN"),
            {"a": 1},
            [2],
            2**70,
        ]
        * 20
    ),
    "decimals": mixed(*[Decimal("1.10"), Decimal(-2), None] * 80),
    "nullable": pd.DataFrame(
        {
            "n": pd.array([1, None, 2**60] * 200, dtype="Int64"),
            "b": pd.array([True, None, False] * 200, dtype="boolean"),
        }
    ),
    "texts": pd.DataFrame(
        {"s": ["b", None, "a\0b", "a", "", "é", "漢字", "z" * 5000, "line\nline\ttab"] * 20}
    ),
    "ten thousand columns": pd.DataFrame(np.arange(30_000).reshape(3, 10_000)),
}
