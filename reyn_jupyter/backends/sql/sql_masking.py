"""The sources of a query with their secrets covered, before SQL sees them.

Invariant: whatever a query computes of a source, it computes it of the covered text: a file is copied with its secrets
covered, a frame gets covered columns, and a Parquet file with a secret is refused. A source without one goes on as it
is, at the cost of one linear pass over its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from reyn_jupyter.backends.files.masked_files import masked_copy, masked_texts
from reyn_jupyter.backends.sql.sql_columns import column_names

if TYPE_CHECKING:
    import pandas as pd

    from reyn_jupyter.backends.files.file_lines import Check
    from reyn_jupyter.support.secrets import Redactor

_PACKED = ".gz"
_COLUMNAR = ".parquet"


class SecretInSourceError(ValueError):
    """A source holds a secret and cannot be covered; `column` is where."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


# The rows of the columns of a Parquet file that hold text, part by part.
TextReader = Callable[[str, BinaryIO], "Iterator[pd.DataFrame]"]


def masked_source(
    name: str, file: BinaryIO, redactor: Redactor, check: Check, read_texts: TextReader
) -> tuple[str, BinaryIO] | None:
    """Return the name and the copy of a file with its secrets covered; None for a file that goes on as it is.

    Args:
        name: the file's name, whose ending says its kind.
        file: the open file.
        redactor: knows the secrets.
        check: asked between blocks.
        read_texts: reads a Parquet file.

    Raises:
        SecretInSourceError: a Parquet file that holds a secret.
        OSError: the file is damaged, or the copy finds no room.
    """
    if name.lower().endswith(_COLUMNAR):
        for part in read_texts(name, file):
            check()
            _, covered = masked_frame(part, redactor)
            if covered:
                raise SecretInSourceError(covered[0])
        return None
    packed = name.lower().endswith(_PACKED)
    copy = masked_copy(file, redactor, check, packed=packed)
    return None if copy is None else (name[: -len(_PACKED)] if packed else name, copy)


def masked_frame(frame: pd.DataFrame, redactor: Redactor) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a frame whose texts have their secrets covered, those that go over several rows too.

    Args:
        frame: as `sql_frames.as_table` makes it: plain cells, text names.
        redactor: knows the secrets.

    Returns:
        The frame, the same one where it holds none, and the columns that were covered.
    """
    import pandas as pd

    changed: dict[str, Any] = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind not in "OST" and not isinstance(
            column.dtype, pd.CategoricalDtype | pd.StringDtype
        ):
            continue
        cells = column.astype(object).tolist()
        texts = list(_texts(cells))
        covered = masked_texts(texts, redactor)
        if covered is not texts:
            left = iter(covered)
            changed[name] = pd.Series(
                [_with_texts(cell, left) for cell in cells], dtype=object, index=frame.index
            )
    covered_names = column_names(masked_texts(list(frame.columns), redactor))
    names = dict(zip(frame.columns, covered_names, strict=True))
    result = frame.assign(**changed) if changed else frame
    if any(name != covered for name, covered in names.items()):
        result = result.rename(columns=names)
        changed |= {name: None for name, covered in names.items() if name != covered}
    return result, tuple(names[name] for name in changed)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in plain cells, in the order in which `_with_texts` takes them."""
    kind = type(value)
    if kind is str:
        yield value
    elif kind in (bytes, bytearray):
        yield value.decode("utf-8", "surrogateescape")
    elif kind is list:
        for item in value:
            yield from _texts(item)
    elif kind is dict:
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)


def _with_texts(value: Any, texts: Iterator[str]) -> Any:
    """Return plain cells with these texts in place of their own."""
    kind = type(value)
    if kind is str:
        return next(texts)
    if kind in (bytes, bytearray):
        return next(texts).encode("utf-8", "surrogateescape")
    if kind is list:
        return [_with_texts(item, texts) for item in value]
    if kind is dict:
        return {_with_texts(key, texts): _with_texts(item, texts) for key, item in value.items()}
    return value
