"""SQL in a process of its own: what the way there and back costs, beside the same query of DuckDB in this process.

The peer opens a database for each query too, with the same memory and without access to files, registers the frame and
fetches the rows; it has no deadline that holds, and no memory limit for texts. Medians; CPU time counts both processes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from reyn_jupyter.backends.sql.sql_query import MEMORY, SqlQuery, sql_child
from reyn_jupyter.backends.sql.sql_scans import FEWEST_CELLS, WHOLE
from reyn_jupyter.support.programs.child_process import ChildProcesses
from tests.benchmarks.frames import table

if TYPE_CHECKING:
    import pandas as pd

ROUNDS = 15
TICK = 10.0  # ms, as the system counts the time of other processes
QUERIES = {
    "one row": "SELECT count(*) FROM t",
    "1,000 rows": "FROM t LIMIT 1000",
    "ten sums": "SELECT id % 10 AS part, sum(amount) FROM t GROUP BY part",
}


def main() -> None:
    whole = table()
    numbers = whole[["id", "amount", "quantity", "rate"]]
    sources = {
        "1,000 × 10": whole.head(1000),
        "100,000 × 10": whole.head(100_000),
        "1,000,000 × 4 numbers": numbers,
        "1,000,000 × 10, 3 of texts": whole,
    }
    with ChildProcesses() as children:
        print(f"cold start with the first query  {_cold(children):8.0f} ms")
        print(f"{'source':<28}{'answer':<12}{'child':>10}{'CPU':>9}{'in process':>14}{'CPU':>9}")
        for source, frame in sources.items():
            for answer, sql in QUERIES.items():
                child, used = _median(children, lambda sql=sql, frame=frame: _there(children, frame, sql))  # type: ignore[misc]
                here, spent = _median(None, lambda sql=sql, frame=frame: _here(frame, sql))  # type: ignore[misc]
                print(
                    f"{source:<28}{answer:<12}{child:>7.1f} ms{used:>6.0f} ms{here:>11.1f} ms{spent:>6.0f} ms"
                )


def _cold(children: ChildProcesses) -> float:
    times = []
    for _ in range(5):
        children.close()
        times.append(_timed(lambda: _there(children, None, "SELECT 1")))
    return statistics.median(times)


def hop(children: ChildProcesses, frame: pd.DataFrame) -> tuple[float, float]:
    """Return the median time in ms of a count over a frame in the process for SQL, and in this one."""
    sql = QUERIES["one row"]
    there, _ = _median(children, lambda: _there(children, frame, sql))
    here, _ = _median(None, lambda: _here(frame, sql))
    return there, here


def _there(children: ChildProcesses, frame: pd.DataFrame | None, sql: str) -> None:
    with closing(SqlQuery(sql_child(children))) as query:
        query.check(sql)
        if frame is not None:
            scans = query.scans(sql, {"t": frame}, 1000) if frame.size >= FEWEST_CELLS else {}
            query.add_table("t", frame, scans.get("t", WHOLE))
        query.run(sql, 1000)


def _here(frame: pd.DataFrame, sql: str) -> None:
    settings = {"memory_limit": MEMORY, "threads": 4, "temp_directory": ""}
    with closing(duckdb.connect(":memory:", config=settings)) as connection:
        connection.register("t", frame)
        connection.execute("SET enable_external_access = false")
        connection.sql(sql).limit(1001).df()


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begun)


def _median(children: ChildProcesses | None, work: Callable[[], object]) -> tuple[float, float]:
    """Return the median time of a call, and the mean of the processor time that it took in all processes, in ms."""
    work()
    before = _used(children)
    times = [_timed(work) for _ in range(ROUNDS)]
    return statistics.median(times), (_used(children) - before) / ROUNDS


def _used(children: ChildProcesses | None) -> float:
    own = 1000 * time.process_time()
    for pid in children.pids if children else ():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        own += TICK * (int(fields[11]) + int(fields[12]))
    return own
