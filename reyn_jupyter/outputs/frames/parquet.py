"""The Parquet file beside a large frame: a fast way back to it. Written by DuckDB; without the extra `sql` none.

Invariant: a sidecar is an extra. When it cannot be written or read, the JSON records still hold everything.
"""

from __future__ import annotations

import json
import logging
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

PARQUET_FROM = 50_000_000  # bytes of JSON
_log = logging.getLogger(__name__)


def write_parquet(frame: pd.DataFrame | None, path: Path) -> bool:
    """Write the frame; False when there is no DuckDB or the frame does not fit the format."""
    if frame is None or find_spec("duckdb") is None:
        return False
    import duckdb

    try:
        with closing(duckdb.connect()) as connection:
            connection.register("frame", frame)
            connection.execute(f"COPY frame TO '{_quoted(path)}' (FORMAT parquet{_nullable(frame)})")
        path.chmod(0o600)
    except (duckdb.Error, OSError) as problem:
        _log.debug("no Parquet file for %s: %s", path.stem, problem)
        with suppress(OSError):
            path.unlink()
        return False
    return True


def read_parquet(path: Path) -> pd.DataFrame | None:
    """The frame again, or None when it cannot be read."""
    if find_spec("duckdb") is None:
        return None
    import duckdb

    try:
        with closing(duckdb.connect()) as connection:
            table: pd.DataFrame = connection.execute(f"SELECT * FROM read_parquet('{_quoted(path)}')").df()  # noqa: S608 - our own path, quoted
            return table
    except (duckdb.Error, OSError) as problem:
        _log.debug("could not read %s: %s", path.name, problem)
        return None


def _nullable(frame: pd.DataFrame) -> str:
    """Return what tells pandas that a column of truth values holds missing ones; without it they become objects."""
    names = [str(name) for name in frame.columns if str(frame[name].dtype) == "boolean"]
    kind = {"pandas_type": "bool", "numpy_type": "boolean", "metadata": None}
    columns = [{"name": name, "field_name": name, **kind} for name in names]
    noted = json.dumps({"index_columns": [], "column_indexes": [], "columns": columns}).replace("'", "''")
    return f", KV_METADATA {{pandas: '{noted}'}}" if names else ""


def _quoted(path: Path) -> str:
    return str(path.resolve()).replace("'", "''")
