"""Frames on their way to the process that runs SQL, and its answers on their way back.

Invariants: a frame goes out as columns in one file without a name, which the other side maps: numbers are not copied
there. That way is pickle's, since what goes out is our own. An answer is read as what a stranger wrote: numbers as raw
values, texts as one text and its offsets, other cells as JSON with marks; lengths are checked against the bytes that
came, and nothing in it can name code.
"""

from __future__ import annotations

import base64
import json
import pickle
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import UUID

if TYPE_CHECKING:
    import pandas as pd

_PIECE_ROWS = 1 << 18  # cells that are written at once, so that an interrupt is heard between two pieces
_GAP = "\0"  # between the texts of a column; a column that holds it goes another way
MOST_BYTES = 256 << 20  # of an answer
_MOST_MARKED = 64 << 20  # bytes of the cells of one column that are JSON: they take many times that once read
_FIXED = re.compile(r"[<>|=]?[biufmM]\d{1,2}(?:\[\d{0,6}[a-zA-Z]{1,2}\])?")
_MASKED = re.compile(r"[<>|=]?(?:b1|[iu][1248]|f[48])")
_ZONED = re.compile(r"datetime64\[(s|ms|us|ns), ([A-Za-z0-9_+:/-]{1,64})\]")


class AnswerError(ValueError):
    """An answer that cannot be carried, or that is damaged; `hint` says what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


# Frames to the process

Place = tuple[int, int]  # offset and bytes in the file


def write_frame(frame: pd.DataFrame, file: BinaryIO, go_on: Callable[[], None]) -> Place:
    """Append a frame to a file.

    Args:
        frame: what `sql_frames.as_table` gave: plain cells alone.
        go_on: called between two pieces; raises to stop.

    Returns:
        Where its index of columns lies, for `read_frame`.
    """
    columns: list[Any] = []
    for at, name in enumerate(frame.columns):
        column, cast = _as_texts(frame.iloc[:, at])
        rows = len(column) if _is_fixed(column.dtype) else _PIECE_ROWS
        pieces = []
        for start in range(0, max(1, len(column)), max(1, rows)):
            go_on()
            pieces.append(_write_piece(column.iloc[start : start + rows], file))
        columns.append((name, pieces, cast))
    return _append(file, pickle.dumps((columns, len(frame)), protocol=5))


def read_frame(data: memoryview, place: Place) -> pd.DataFrame:
    """Return a frame that `write_frame` wrote; its numbers stay where they are."""
    import pandas as pd

    columns, rows = pickle.loads(_at(data, place))  # noqa: S301 - written by the parent, in a file that nobody else has
    frame = {name: _read_column(data, pieces) for name, pieces, _ in columns}
    return pd.DataFrame(frame, index=range(rows), copy=False)


def read_casts(data: memoryview, place: Place) -> dict[str, str]:
    """Return the columns of a frame that `write_frame` wrote as texts, each with its type in SQL."""
    columns, _ = pickle.loads(_at(data, place))  # noqa: S301 - as in `read_frame`
    return {name: cast for name, _, cast in columns if cast}


def _as_texts(column: pd.Series[Any]) -> tuple[pd.Series[Any], str]:
    """Return a column of objects as texts, and the type that SQL reads of them, if DuckDB misreads the objects.

    It fails for 2**128 - 1 beside 0 and for times west of Greenwich, and rounds decimals and whole numbers of very many
    digits. Other columns are returned as they are, with no type.
    """
    import pandas as pd

    if _is_fixed(column.dtype) or column.dtype.kind != "O" or isinstance(column.dtype, pd.CategoricalDtype):
        return column, ""
    cells = column.tolist()
    kinds = set(map(type, cells)) - {type(None)}
    if kinds == {int}:
        numbers = [cell for cell in cells if cell is not None]
        low, high = min(numbers), max(numbers)
        signed = "HUGEINT" if low >= -(2**127) and high < 2**127 else "BIGNUM"
        cast = "UHUGEINT" if low >= 0 and 2**127 <= high < 2**128 else signed
    elif kinds == {Decimal}:
        cast = "DECIMAL({}, {})".format(*decimal_size(cells))
    elif kinds == {time} and any(cell is not None and cell.tzinfo is not None for cell in cells):
        cast = "TIME WITH TIME ZONE"
    else:
        return column, ""
    texts = [None if cell is None else f"{cell:f}" if kinds == {Decimal} else str(cell) for cell in cells]
    return pd.Series(texts, dtype=object), cast


def decimal_size(cells: Sequence[Decimal | None]) -> tuple[int, int]:
    """Return the digits that hold all finite decimals exactly: in all, and after the point."""
    whole = scale = 0
    for cell in cells:
        _, digits, exponent = Decimal(cell or 0).as_tuple()
        whole, scale = max(whole, len(digits) + int(exponent)), max(scale, -int(exponent))
    return max(1, whole + scale), scale


def _is_fixed(dtype: Any) -> bool:
    """Return whether the cells of a column lie side by side, so that they are written at once."""
    import numpy as np

    return isinstance(dtype, np.dtype) and dtype.kind != "O"


def _write_piece(column: pd.Series[Any], file: BinaryIO) -> tuple[Any, ...]:
    import numpy as np

    cells = None if _is_fixed(column.dtype) else _texts(column)
    if cells is not None:
        texts, missing = cells
        joined = _GAP.join(texts)
        if joined.count(_GAP) == len(texts) - 1:
            mask = np.packbits(missing).tobytes() if missing.any() else b""
            encoded = joined.encode("utf-8", "surrogatepass")
            return ("texts", len(texts), _append(file, encoded), _append(file, mask))
    buffers: list[pickle.PickleBuffer] = []
    values: Any = column.array if not _is_fixed(column.dtype) else column.to_numpy()
    pickled = pickle.dumps(values, protocol=5, buffer_callback=buffers.append)
    places = [_append(file, buffer.raw()) for buffer in buffers]
    return ("values", _append(file, pickled), places)


def _texts(column: pd.Series[Any]) -> tuple[list[str], Any] | None:
    """Return the texts of a column, and which are missing; None for a column of anything else, or of nothing."""
    import numpy as np
    import pandas as pd

    all_texts = isinstance(column.dtype, pd.StringDtype)
    if not (all_texts or (isinstance(column.dtype, np.dtype) and column.dtype.kind == "O")):
        return None
    cells = column.tolist()
    kinds = {str} if all_texts else set(map(type, cells))
    if not kinds <= {str, float, type(None)} or str not in kinds:
        return None
    missing = column.isna().to_numpy()
    if not missing.any():
        return (cells, missing) if kinds == {str} and cells else None
    texts = ["" if gone else cell for cell, gone in zip(cells, missing.tolist(), strict=True)]
    mixed = missing.all() or (float in kinds and any(type(text) is float for text in texts))
    return None if mixed else (texts, missing)


def _read_column(data: memoryview, pieces: Sequence[tuple[Any, ...]]) -> pd.Series[Any]:
    import pandas as pd

    read = [_read_piece(data, piece) for piece in pieces]
    # With its type said, a column of texts is not looked through once more.
    parts: list[pd.Series[Any]] = [pd.Series(part, dtype=part.dtype, copy=False) for part in read]
    if len(parts) == 1:
        return parts[0]
    same = len({str(part.dtype) for part in parts}) == 1
    return pd.concat([part if same else part.astype(object) for part in parts], ignore_index=True)


def _read_piece(data: memoryview, piece: tuple[Any, ...]) -> Any:
    import numpy as np

    if piece[0] == "values":
        _, place, places = piece
        return pickle.loads(_at(data, place), buffers=[_at(data, buffer) for buffer in places])  # noqa: S301
    _, count, place, mask = piece
    cells = np.empty(count, dtype=object)
    cells[:] = str(_at(data, place), "utf-8", "surrogatepass").split(_GAP)
    if mask[1]:
        cells[np.unpackbits(np.frombuffer(_at(data, mask), "uint8"), count=count).astype(bool)] = None
    return cells


def _append(file: BinaryIO, piece: bytes | memoryview) -> Place:
    file.write(b"\0" * (-file.tell() % 64))  # numbers lie where a processor reads them at once
    place = (file.tell(), len(piece))
    file.write(piece)
    return place


def _at(data: memoryview, place: Place) -> memoryview:
    return data[place[0] : place[0] + place[1]]


# Answers


def write_answer(frame: pd.DataFrame) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Return the columns of an answer, as a header says them, and their bytes.

    Raises:
        AnswerError: they are too many, or a cell is of an unknown kind.
    """
    pieces: list[bytes] = []
    columns = []
    for at, name in enumerate(frame.columns):
        try:
            described, parts = _write_cells(frame.iloc[:, at])
        except AnswerError as error:
            raise AnswerError(f"in the column {name!r}, {error}", error.hint) from None
        columns.append({"name": str(name), **described, "sizes": [len(part) for part in parts]})
        pieces += parts
        if sum(map(len, pieces)) > MOST_BYTES:
            raise AnswerError(f"the answer has more than {MOST_BYTES >> 20} MB")
    return columns, pieces


def read_answer(columns: Any, rows: Any, body: bytes | bytearray) -> pd.DataFrame:
    """Return the frame of an answer.

    Args:
        columns, rows: as the header has them.
        body: the bytes beside it.

    Raises:
        AnswerError: it is no answer.
    """
    import pandas as pd

    view = memoryview(body)
    try:
        position = 0
        found: list[Any] = []
        for column in columns:
            parts = []
            for size in column["sizes"]:
                if type(size) is not int or not 0 <= size <= len(view) - position:
                    raise AnswerError("a column is longer than what came")
                parts.append(view[position : position + size])
                position += size
            found.append(_read_cells(column, int(rows), parts))
        frame = pd.DataFrame(dict(enumerate(found)), index=range(int(rows)))
        frame.columns = pd.Index([str(column["name"]) for column in columns])
    except (LookupError, TypeError, ValueError, RecursionError, AttributeError, ArithmeticError) as error:
        raise AnswerError(f"a column cannot be read: {type(error).__name__}") from error
    return frame


def _write_cells(column: pd.Series[Any]) -> tuple[dict[str, Any], list[bytes]]:
    import pandas as pd

    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        described, parts = _write_cells(pd.Series(dtype.categories))
        codes = column.cat.codes.to_numpy("int64")
        inner = described | {"count": len(dtype.categories)}
        return {"kind": "category", "of": inner, "ordered": bool(dtype.ordered)}, [codes.tobytes(), *parts]
    if isinstance(dtype, pd.DatetimeTZDtype):
        return {"kind": "zoned", "dtype": str(dtype)}, [column.array.asi8.tobytes()]
    if _is_fixed(dtype):
        values = column.to_numpy()
        return {"kind": "fixed", "dtype": values.dtype.str}, [values.tobytes()]
    if isinstance(column.array, pd.arrays.BooleanArray | pd.arrays.IntegerArray | pd.arrays.FloatingArray):
        values = column.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
        return {"kind": "masked", "dtype": values.dtype.str}, [
            values.tobytes(),
            column.isna().to_numpy().tobytes(),
        ]
    return _write_objects(column)


def _write_objects(column: pd.Series[Any]) -> tuple[dict[str, Any], list[bytes]]:
    import numpy as np

    texts = _texts(column)
    described = {"dtype": "str" if str(column.dtype) == "str" else "object"}
    if texts is None:
        marked = json.dumps([_mark(cell) for cell in column.tolist()]).encode()
        if len(marked) > _MOST_MARKED:
            raise AnswerError(f"the nested cells of one column have more than {_MOST_MARKED >> 20} MB")
        return described | {"kind": "marked"}, [marked]
    cells, missing = texts
    encoded = [cell.encode("utf-8", "surrogatepass") for cell in cells]
    ends = np.cumsum([len(cell) for cell in encoded], dtype="int64")
    return described | {"kind": "texts"}, [b"".join(encoded), ends.tobytes(), missing.tobytes()]


def _read_cells(column: dict[str, Any], rows: int, parts: Sequence[memoryview]) -> Any:
    import numpy as np
    import pandas as pd

    kind = column["kind"]
    if kind == "category":
        inner = column["of"]
        categories = _read_cells(inner, int(inner["count"]), parts[1:])
        codes = np.frombuffer(_exactly(parts[0], rows * 8), "int64")
        return pd.Categorical.from_codes(codes, pd.Index(categories), ordered=column["ordered"] is True)
    if kind == "zoned":
        zoned = _ZONED.fullmatch(column["dtype"])
        if zoned is None:
            raise AnswerError("a type of column is none")
        values = np.frombuffer(_exactly(parts[0], rows * 8), f"datetime64[{zoned[1]}]")
        return pd.Series(values).dt.tz_localize("UTC").dt.tz_convert(zoned[2])
    if kind == "fixed":
        if not _FIXED.fullmatch(column["dtype"]):
            raise AnswerError("a type of column is none")
        dtype = np.dtype(column["dtype"])
        return pd.Series(np.frombuffer(_exactly(parts[0], rows * dtype.itemsize), dtype).copy())
    if kind == "masked":
        if not _MASKED.fullmatch(column["dtype"]):
            raise AnswerError("a type of column is none")
        dtype = np.dtype(column["dtype"])
        held = np.frombuffer(_exactly(parts[0], rows * dtype.itemsize), dtype).copy()
        missing = np.frombuffer(_exactly(parts[1], rows), "uint8") != 0
        array = pd.arrays.IntegerArray if dtype.kind in "iu" else pd.arrays.FloatingArray
        return pd.Series(pd.arrays.BooleanArray(held, missing) if dtype.kind == "b" else array(held, missing))
    cells = _read_texts(parts, rows) if kind == "texts" else _read_marked(parts[0], rows)
    return pd.Series(cells, dtype="str" if column["dtype"] == "str" else object)


def _read_texts(parts: Sequence[memoryview], rows: int) -> list[str | None]:
    import numpy as np

    text, ends, missing = parts
    stops = np.frombuffer(_exactly(ends, rows * 8), "int64")
    gone = np.frombuffer(_exactly(missing, rows), "bool")
    if rows and (stops[0] < 0 or (np.diff(stops) < 0).any() or stops[-1] != len(text)):
        raise AnswerError("the texts of a column do not lie one after another")
    cells: list[str | None] = []
    start = 0
    for stop, without in zip(stops.tolist(), gone.tolist(), strict=True):
        cells.append(None if without else str(text[start:stop], "utf-8", "surrogatepass"))
        start = stop
    return cells


def _read_marked(part: memoryview, rows: int) -> list[Any]:
    if len(part) > _MOST_MARKED:
        raise AnswerError(f"the nested cells of a column have more than {_MOST_MARKED:,} bytes")
    cells = json.loads(bytes(part))
    if type(cells) is not list or len(cells) != rows:
        raise AnswerError("a column has another number of cells")
    return [_unmark(cell) for cell in cells]


def _exactly(part: memoryview, size: int) -> memoryview:
    if len(part) != size:
        raise AnswerError("a column has another number of cells")
    return part


def _mark(cell: Any) -> Any:
    """A cell as JSON; what JSON has no word for becomes an object of one key, its mark.

    Raises:
        AnswerError: a cell of an unknown kind: as its text it would be another value.
    """
    import numpy as np
    import pandas as pd

    if cell is None or type(cell) in (bool, int, str):
        return cell
    if type(cell) is float:
        return cell if cell - cell == 0 else {"number": repr(cell)}
    if cell is pd.NA or cell is pd.NaT:
        return None
    if type(cell) in (list, tuple):
        return [_mark(item) for item in cell]
    if type(cell) is dict:
        return {"pairs": [[_mark(key), _mark(item)] for key, item in cell.items()]}
    if type(cell) in (bytes, bytearray):
        return {"bytes": base64.b64encode(cell).decode()}
    if isinstance(cell, pd.Timestamp):
        return {"moment": cell.isoformat()}
    if isinstance(cell, timedelta):
        return {"span": [cell.days, cell.seconds, cell.microseconds]}
    mark = next((mark for mark, (kind, _) in _PLAIN.items() if type(cell) is kind), None)
    if mark is not None:
        return {mark: cell.isoformat() if hasattr(cell, "isoformat") else str(cell)}
    if isinstance(cell, np.generic) and type(cell.item()) is not type(cell):
        return _mark(cell.item())
    raise AnswerError(
        f"a cell of the type {type(cell).__name__} cannot be carried", "Cast it: column::VARCHAR."
    )


_PLAIN: dict[str, tuple[type, Callable[[str], Any]]] = {
    "date": (date, date.fromisoformat),
    "datetime": (datetime, datetime.fromisoformat),
    "time": (time, time.fromisoformat),
    "decimal": (Decimal, Decimal),
    "uuid": (UUID, UUID),
}


def _unmark(cell: Any) -> Any:
    import pandas as pd

    if type(cell) is list:
        return [_unmark(item) for item in cell]
    if type(cell) is not dict:
        return cell
    ((mark, value),) = cell.items()
    if mark == "pairs":
        return {_hashable(key): _unmark(item) for key, item in value}
    if mark == "number":
        return float(value)
    if mark == "bytes":
        return base64.b64decode(value)
    if mark == "moment":
        return pd.Timestamp(value)
    if mark == "span":
        days, seconds, microseconds = value
        return timedelta(days, seconds, microseconds)
    return _PLAIN[mark][1](value)


def _hashable(key: Any) -> Any:
    if type(key := _unmark(key)) in (list, dict):
        raise AnswerError("a key is nested")  # DuckDB gives such a map as its lists of keys and values
    return key
