"""CSV to Parquet, by DuckDB: it reads in parts, so that a file may be larger than memory."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import duckdb


def main() -> None:
    given = json.load(sys.stdin)
    source, target = Path(given["file"]), Path(given.get("into", ".")) / f"{_stem(given['file'])}.parquet"
    connection = duckdb.connect(
        config={
            "memory_limit": "1GB",
            "threads": 2,
            "temp_directory": "spill",
            "autoinstall_known_extensions": False,
        }
    )
    options = {name: given[name] for name in ("delimiter", "header") if name in given}
    # All rows are looked at for the types.
    rows = connection.read_csv(_literal(source), sample_size=-1, **options)
    columns = [{"name": name, "type": str(kind)} for name, kind in zip(rows.columns, rows.types, strict=True)]
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        rows.write_parquet(str(unfinished), compression=given["compression"])
        counted = connection.execute("SELECT count(*) FROM read_parquet(?)", [_literal(unfinished)])
        ((number,),) = counted.fetchall()
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    found = {"file": str(target), "rows": number, "columns": columns}
    json.dump({**found, "bytes": target.stat().st_size}, sys.stdout)


def _literal(path: Path) -> str:
    """Return a path as DuckDB takes it for one file, not for a pattern of several."""
    return re.sub(r"([\[*?])", r"[\1]", str(path))


def _stem(file: str) -> str:
    name = Path(file).name
    for ending in (".gz", ".csv", ".tsv", ".txt"):
        name = name.removesuffix(ending)
    return name or "table"


try:
    main()
except duckdb.Error as error:
    sys.exit(f"The file could not be converted: {str(error).strip().splitlines()[0]}")
