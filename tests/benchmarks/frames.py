"""The data grid, kernel side: windows, order, matches and figures of a table of 1,000,000 × 10.

Every figure is of a whole operation as a view asks it, over a connection, from the request to the answer. Beside each
order stands what pandas' own `sort_values` takes in the same run.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.notebook.serving.operation import operations
from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
from reyn_jupyter.outputs.frames.records import to_structured
from reyn_jupyter.sessions.session import Session

if TYPE_CHECKING:
    import pandas as pd

ROWS = 1_000_000
WINDOW_LIMIT = 50.0  # ms
AGAIN_LIMIT = 20.0
NUMBERS_LIMIT = 250.0
TEXTS_LIMIT = 600.0
FILTER_LIMIT = 500.0


class _View:
    """Asks as a view does."""

    def __init__(self, session: Session, blob: str) -> None:
        self._answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._connection = Connection(Hub(lambda: session), self._answers.put, None)
        self._blob = blob
        self._number = 0

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        self._number += 1
        message = {
            "type": "request",
            "id": self._number,
            "op": operation,
            "args": {"blob": self._blob, **arguments},
        }
        self._connection.receive(message)
        while True:
            said = self._answers.get(timeout=300)
            if said["type"] == "answer":
                value: dict[str, Any] = said["value"]
                return value
            if said["type"] == "error":
                raise RuntimeError(said["message"])


def table() -> pd.DataFrame:
    """Numbers, texts with few and with many values, dates, truth values."""
    import numpy as np
    import pandas as pd

    chance = np.random.default_rng(0)
    start = pd.Timestamp("2020-01-01")
    return pd.DataFrame(
        {
            "id": np.arange(ROWS),
            "amount": chance.normal(size=ROWS) * 100,
            "quantity": chance.integers(0, 1000, ROWS),
            "rate": chance.random(ROWS),
            "region": chance.choice(["north", "south", "east", "west"], ROWS),
            "customer": [f"customer-{number:07d}" for number in chance.integers(0, 10**7, ROWS)],
            "note": [f"note {number} of many" for number in chance.integers(0, 10**6, ROWS)],
            "day": start + pd.to_timedelta(chance.integers(0, 2000, ROWS), unit="D"),
            "at": start + pd.to_timedelta(chance.integers(0, 10**8, ROWS), unit="s"),
            "open": chance.random(ROWS) > 0.5,
        }
    )


def _spent(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def _line(what: str, spent: float, limit: float | None = None, beside: str = "") -> None:
    aim = "" if limit is None else f"   limit {limit:.0f} ms{'' if spent <= limit else '   MISSED'}"
    print(f"  {what:<44} {spent:8.1f} ms{aim}{beside}")


def _windows(view: _View) -> None:
    _line("open (manifest and first rows)", _spent(lambda: view.ask("frame.open")), WINDOW_LIMIT)
    _line("first window, from the file", _spent(lambda: view.ask("frame.rows")), WINDOW_LIMIT)
    places = [ROWS * part // 10 for part in range(10)]
    spent = [_spent(lambda place=place: view.ask("frame.rows", start=place)) for place in places]  # type: ignore[misc]
    _line("a window anywhere, from the file (median)", statistics.median(spent), WINDOW_LIMIT)
    _line("load the table", _spent(lambda: view.ask("frame.rows", filter=[{"column": 9, "op": "present"}])))


def _orders(view: _View, frame: pd.DataFrame) -> None:
    names = list(frame.columns)
    for name in ("id", "amount", "quantity", "day", "region", "customer", "note"):
        sort = [{"column": names.index(name)}]
        first = _spent(lambda sort=sort: view.ask("frame.rows", sort=sort))  # type: ignore[misc]
        windows = [
            _spent(lambda sort=sort, place=place: view.ask("frame.rows", sort=sort, start=place))  # type: ignore[misc]
            for place in (1000, 500_000, 999_800)
        ]
        pandas = _spent(lambda name=name: frame.sort_values(name, kind="stable"))  # type: ignore[misc]
        limit = TEXTS_LIMIT if str(frame[name].dtype) == "str" else NUMBERS_LIMIT
        _line(f"sort by {name} ({frame[name].dtype}), first time", first, limit, f"   pandas {pandas:.0f} ms")
        _line("  a window of it", statistics.median(windows), AGAIN_LIMIT)
    both = [{"column": names.index("region")}, {"column": names.index("customer"), "descending": True}]
    _line("sort by region, customer ↓", _spent(lambda: view.ask("frame.rows", sort=both)))


def _matches(view: _View, frame: pd.DataFrame) -> None:
    names = list(frame.columns)
    for name, op, value in (
        ("customer", "contains", "777"),
        ("amount", "least", "10"),
        ("day", "less", "2021-01-01"),
    ):
        wanted = [{"column": names.index(name), "op": op, "value": value}]
        spent = _spent(lambda wanted=wanted: view.ask("frame.rows", filter=wanted))  # type: ignore[misc]
        _line(f"filter {name} {op} {value}", spent, FILTER_LIMIT)
    for name in ("amount", "day", "region", "customer"):
        column = names.index(name)
        _line(f"figures of {name}", _spent(lambda column=column: view.ask("frame.column", column=column)))  # type: ignore[misc]


def main() -> None:
    """Print the figures; writing the table takes half a minute."""
    with tempfile.TemporaryDirectory(prefix="reyn-frames-") as name:
        frame = table()
        store = FsBlobStore(Path(name) / "blobs")
        blob = store.put(to_structured(frame))
        print(f"a stored table of {ROWS:,} × {frame.shape[1]}, {blob.size / 1e6:.0f} MB of JSON")
        operations()  # a kernel imports the rooms behind them once
        view = _View(Session(root=name, store=store), blob.id)
        _windows(view)
        _orders(view, frame)
        _matches(view, frame)


if __name__ == "__main__":
    main()
