"""A frame as a document: one row a section, its text from one column, facts from the others.

Invariant: nothing of the person's own classes is called; a value that is no number, text or truth value is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from reyn_jupyter.backends.object_summary import HIDDEN
from reyn_jupyter.backends.sql.sql_frames import NotATableError, as_table
from reyn_jupyter.corpora.document import Document, DocumentSection
from reyn_jupyter.search.metadata import is_fact
from reyn_jupyter.support.secret_names import secret_name
from reyn_jupyter.support.secrets import Redactor
from reyn_jupyter.support.text import meant_clause
from reyn_jupyter.support.user_errors import UserError

MOST_ROWS = 200_000
MOST_FACTS = 20  # columns
_LONGEST_FACT = 200  # characters of a text


class FrameError(UserError, ValueError):
    """A value that cannot be indexed as a frame; the message says why."""


def frame_document(name: str, value: Any, text_column: str | None, redactor: Redactor) -> Document:
    """Return a tabular value as a document.

    Args:
        name: of the frame, for messages.
        value: a DataFrame, or records.
        text_column: has the text; None for the column of texts whose texts are longest.
        redactor: covers secrets.

    Raises:
        FrameError: it is no table, has no such column, no text, or too many rows.
    """
    try:
        frame = as_table(value, rows=MOST_ROWS + 1)
    except NotATableError as error:
        raise FrameError(f"{name} {error}") from error
    if len(frame) > MOST_ROWS:
        raise FrameError(f"{name} has more than {MOST_ROWS:,} rows; index a part of it")
    columns = {column: frame[column].tolist() for column in frame.columns if not secret_name(column)}
    chosen = _text_column(name, columns, text_column)
    others = [column for column in columns if column != chosen][:MOST_FACTS]
    sections = tuple(
        DocumentSection(
            redactor.text(text), (), "row", number, _row_facts(columns, others, number - 1, redactor)
        )
        for number, text in enumerate(columns[chosen], 1)
        if isinstance(text, str) and text.strip() and text != HIDDEN
    )
    if not sections:
        raise FrameError(f"the column {chosen!r} of {name} holds no text")
    return Document("frame", sections, {"column": chosen})


def _text_column(name: str, columns: dict[str, list[Any]], wanted: str | None) -> str:
    if wanted is not None:
        if wanted not in columns:
            raise FrameError(f"{name} has no column {wanted!r}{meant_clause(wanted, columns)}")
        return wanted
    lengths = {
        column: sum(len(each) for each in values[:1000] if isinstance(each, str))
        for column, values in columns.items()
    }
    best = max(lengths, key=lambda column: lengths[column], default=None)
    if best is None or not lengths[best]:
        raise FrameError(f"{name} has no column of texts")
    return best


def _row_facts(
    columns: dict[str, list[Any]], names: Sequence[str], row: int, redactor: Redactor
) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for name in names:
        value = columns[name][row]
        if isinstance(value, date):  # a moment is one, too
            value = value.isoformat()
        if type(value) is str:
            facts[name] = redactor.text(value[:_LONGEST_FACT])
        elif type(value) in (int, float, bool) and is_fact(value):
            facts[name] = value
    return facts
