"""Read the rows of a dataset's files: JSON, JSON lines, CSV, Parquet, Arrow, and a Hugging Face dataset on disk.

Invariants: a row is plain data with the place where it stands; nothing of a file is run, unpickled or fetched; a file
costs a bounded amount of memory, and one that is too large is refused with how to take a part of it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from reyn_jupyter.evaluation.plan.suite import SuiteError
from reyn_jupyter.evaluation.suites.suite_document import LARGEST, read_text
from reyn_jupyter.support.files.bounded_reading import open_regular
from reyn_jupyter.support.validation_messages import quote_value

MOST_ROWS = 100_000
_LARGEST_TABLE = 4 * LARGEST  # bytes of the values of an Arrow or Parquet file, unpacked
_BATCH = 256  # rows that are unpacked at a time


class DatasetError(SuiteError):
    """A dataset that cannot be read; the message says which file and row, why, and what to do."""


@dataclass(frozen=True)
class Row:
    """One row: its values by name, and where it stands ("questions.jsonl, line 3")."""

    place: str
    data: Mapping[str, Any]


def read_rows(path: Path, split: str | None = None, limit: int | None = None) -> tuple[Row, ...]:
    """Return the rows of a dataset.

    Args:
        path: a file that ends in .jsonl, .json (a list, or one object a line), .csv, .parquet or .arrow, the first
            three also gzipped (.gz), or a folder that the package datasets wrote with ``save_to_disk``.
        split: the split of a folder that has several.
        limit: how many rows, from the first; all when None.

    Raises:
        DatasetError: there is no such file, it is none of its kind, or larger than is read.
    """
    try:
        found = tuple(islice(_rows(path, split), (MOST_ROWS if limit is None else limit) + 1))
    except DatasetError:
        raise
    except SuiteError as error:
        raise DatasetError(str(error)) from error
    if limit is not None:
        return found[:limit]
    if len(found) > MOST_ROWS:
        raise DatasetError(
            f"{path.name} has more than {MOST_ROWS:,} rows; take the first ones: limit={MOST_ROWS}"
        )
    return found


def _rows(path: Path, split: str | None) -> Iterator[Row]:
    kind = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if path.is_dir():
        yield from _saved(path, split)
        return
    if split is not None:
        raise DatasetError(f"{path.name} is one file, which has no splits; leave split out")
    if kind in ("jsonl", "ndjson"):
        yield from _lines(path, read_text(path))
    elif kind == "json":
        yield from _json(path)
    elif kind == "csv":
        yield from _csv(path)
    elif kind in ("parquet", "arrow"):
        yield from _table(path, kind)
    else:
        raise DatasetError(
            f"{path.name} is of no kind that is read; give a .jsonl, .json, .csv, .parquet or .arrow file, or the "
            "folder of a dataset that was saved to disk"
        )


def _json(path: Path) -> Iterator[Row]:
    """Yield the rows of a list, of an object's ``tasks``, or, as BFCL's files have it, of a line each."""
    text = read_text(path)
    try:
        whole = json.loads(text)
    except ValueError:
        yield from _lines(path, text)
        return
    except RecursionError as error:
        raise DatasetError(f"{path.name} is nested too deeply to be read") from error
    listed = whole.get("tasks", [whole]) if isinstance(whole, Mapping) else whole
    if not isinstance(listed, list):
        raise DatasetError(f"{path.name} holds {quote_value(whole)}; a dataset is a list of objects")
    for number, data in enumerate(listed, 1):
        yield _row(f"{path.name}, row {number}", data)


def _lines(path: Path, text: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path.name}, line {number}"
        try:
            data = json.loads(line)
        except json.JSONDecodeError as error:
            raise DatasetError(
                f"{where}: no JSON ({error.msg}, column {error.colno}); correct the line"
            ) from error
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{where}: no JSON that can be read ({type(error).__name__})") from error
        yield _row(where, data)


def _row(where: str, data: Any) -> Row:
    if not isinstance(data, Mapping):
        raise DatasetError(f"{where}: {quote_value(data)} is no row; a row is an object with named values")
    return Row(where, data)


def _csv(path: Path) -> Iterator[Row]:
    # As a file, since a text is split at more than ends a row: U+2028 stands in answers of models.
    lines = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    before = csv.field_size_limit(LARGEST)
    try:
        names = next(lines, [])
        if not names or len(set(names)) < len(names):
            raise DatasetError(
                f"{path.name}: its first line names the columns, each once; it is {quote_value(names)}"
            )
        for cells in lines:
            if not cells:
                continue
            where = f"{path.name}, line {lines.line_num}"
            if len(cells) != len(names):
                raise DatasetError(
                    f"{where}: {len(cells)} cells for {len(names)} columns; put texts into quotes"
                )
            yield Row(where, {name: cell for name, cell in zip(names, cells, strict=True) if cell})
    except csv.Error as error:
        raise DatasetError(
            f"{path.name}, line {lines.line_num}: no CSV ({error}); correct the line"
        ) from error
    finally:
        csv.field_size_limit(before)


def _saved(folder: Path, split: str | None) -> Iterator[Row]:
    """Yield the rows of a folder that ``save_to_disk`` wrote. Source: the package datasets, Dataset.save_to_disk."""
    splits = (
        _facts(folder / "dataset_dict.json").get("splits")
        if (folder / "dataset_dict.json").is_file()
        else None
    )
    if splits is not None:
        if not isinstance(splits, list) or not splits:
            raise DatasetError(f"{folder.name}/dataset_dict.json names no splits; save the dataset again")
        if split not in splits:
            have = ", ".join(map(str, splits))
            raise DatasetError(f"{folder.name} has the splits {have}; name one: split={str(splits[0])!r}")
        folder = folder / _plain_name(folder, split)
    elif split is not None:
        raise DatasetError(f"{folder.name} is one split; leave split out")
    if not (folder / "state.json").is_file():
        raise DatasetError(
            f"{folder.name} is no dataset that was saved to disk: it has no state.json. Name a file in it, or save the "
            "dataset with save_to_disk"
        )
    files = _facts(folder / "state.json").get("_data_files")
    if not isinstance(files, list):
        raise DatasetError(f"{folder.name}/state.json names no data files; save the dataset again")
    for file in files:
        name = _plain_name(folder, file.get("filename") if isinstance(file, Mapping) else file)
        yield from _table(folder / name, "arrow")


def _facts(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path.parent.name}/{path.name} is no JSON; save the dataset again") from error
    if not isinstance(found, Mapping):
        raise DatasetError(f"{path.parent.name}/{path.name} is no object; save the dataset again")
    return found


def _plain_name(folder: Path, name: object) -> str:
    if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
        raise DatasetError(f"{folder.name} names a file outside itself ({quote_value(name)}); it is not read")
    return name


def _table(path: Path, kind: str) -> Iterator[Row]:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise DatasetError(
            f"{path.name}: Arrow and Parquet files are read with pyarrow: pip install 'reyn-jupyter[arrow]'"
        ) from error
    number = size = 0
    try:
        for batch in _batches(path, kind):
            for place in range(
                batch.num_rows
            ):  # one by one: a few bytes of a file can stand for very much text
                (data,) = batch.slice(place, 1).to_pylist()
                number += 1
                size += _weight(data)
                if size > _LARGEST_TABLE:
                    raise DatasetError(
                        f"{path.name} holds more than {_LARGEST_TABLE >> 20} MiB; take its first rows: "
                        f"limit={max(1, number - 1)}"
                    )
                there = {key: value for key, value in data.items() if value is not None}
                yield _row(f"{path.name}, row {number}", there)
    except (pa.ArrowException, OSError) as error:
        raise DatasetError(f"{path.name} cannot be read: {str(error)[:200]}") from error


def _weight(value: Any) -> int:
    """Return about how many bytes a value holds."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Mapping):
        return sum(len(key) + _weight(each) for key, each in value.items())
    return sum(map(_weight, value)) if isinstance(value, list) else 8


def _batches(path: Path, kind: str) -> Iterable[Any]:
    import pyarrow as pa

    if kind == "parquet":
        import pyarrow.parquet as pq

        with open_regular(path) as content, pq.ParquetFile(content) as file:
            yield from file.iter_batches(batch_size=_BATCH)
        return
    open_regular(path).close()
    with pa.memory_map(str(path)) as source:
        if source.read(6) == b"ARROW1":
            source.seek(0)
            file = pa.ipc.open_file(source)
            batches = (file.get_batch(number) for number in range(file.num_record_batches))
        else:  # a stream, which is what the package datasets writes
            source.seek(0)
            batches = iter(pa.ipc.open_stream(source))
        yield from batches
