"""DataFrames as JSON records: encoded, restored, and kept as Parquet."""

from __future__ import annotations
