"""The objects that the Python face returns: one a verb, each with the very payload that a model gets for it.

An unknown name, a wrong argument, a denial or a failed handler is never raised here: the usual object comes back
with `.error` set. Only `.value` of a failed `Result` raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.object_summary import is_loaded_type
from reyn_jupyter.outputs.blob import Blob
from reyn_jupyter.outputs.parts.content_parts import ContentPart, ContentParts
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.record.run_result import NoTableError
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.support.frames import frame_of_rows

if TYPE_CHECKING:
    import pandas as pd

Payload = str | dict[str, Any]


class ActionFailedError(RuntimeError):
    """The value of a call that failed was asked for. `code` is the action's own name for the error, or None."""

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


def error_of(payload: Payload) -> str | None:
    return str(payload["error"]) if isinstance(payload, dict) and "error" in payload else None


@dataclass(frozen=True)
class ActionTable:
    """A listing or a search. `payload` is the wrapper's JSON: {items, total, next_offset?, categories?, …}.

    `rows` are the same actions with what people want beside it:
    {qualified_name, category, description, arguments ("path*, offset"), purity, permission, score?, uses, last_ms}.
    `hidden` says why categories are not on offer, for people: those that were asked for, or all of them.
    """

    payload: dict[str, Any]
    rows: tuple[dict[str, Any], ...] = ()
    kind: str = "list"  # or "search"
    query: str = ""
    hidden: Mapping[str, str] = field(default_factory=dict)

    @property
    def error(self) -> str | None:
        return error_of(self.payload)

    @property
    def total(self) -> int:
        return int(self.payload.get("total", 0))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    @property
    def df(self) -> pd.DataFrame:
        return frame_of_rows(list(self.rows))


@dataclass(frozen=True)
class CatalogExplorer:
    """The catalog to look through: live where a front end can, else the table of the first actions.

    `query` is what it opens with; `table` holds the first actions that have all of its words.
    """

    table: ActionTable
    query: str = ""

    @property
    def payload(self) -> dict[str, Any]:
        return self.table.payload

    @property
    def error(self) -> str | None:
        return self.table.error

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.table)

    @property
    def df(self) -> pd.DataFrame:
        return self.table.df


@dataclass(frozen=True)
class ActionCard:
    """One action described. `payload`: {qualified_name, description, input_schema, metadata}, or an error.

    `invoke_line` is a ready ``%reyn invoke`` line; `permission` what the gate would say now.
    """

    payload: dict[str, Any]
    invoke_line: str = ""
    permission: str = ""

    @property
    def error(self) -> str | None:
        return error_of(self.payload)


@dataclass(frozen=True)
class Result:
    """The result of an invoked action.

    Attributes:
        name: the qualified name as resolved, or as given when it could not be.
        payload: the history text (a `str`), or the error as a dict.
        blob: the blob, or None when it went inline.
        trace: the run of kind "manual" that the call was.
    """

    name: str
    payload: Payload
    _value: Any = field(default=None, repr=False)
    blob: Blob | None = None
    trace: Trace | None = None
    hint: str = ""

    @property
    def error(self) -> str | None:
        return error_of(self.payload)

    @property
    def ok(self) -> bool:
        """Return whether the action did what it was called for."""
        return self.error is None

    @property
    def code(self) -> str | None:
        """The action's own name for its error, such as "tool_timeout"; None where it gave none."""
        finished = [call.finished for call in self.trace.calls if call.finished] if self.trace else []
        return finished[-1].code if finished else None

    @property
    def fix(self) -> Mapping[str, Any] | None:
        """The arguments with which a call that failed would do what was meant; None where the action knows of none."""
        return self._value.fix if isinstance(self._value, ActionError) else None

    @property
    def parts(self) -> tuple[ContentPart, ...]:
        """The parts of a result that has several, or an image or a sound; none for any other.

        ``IPython.display.Image(result.parts[1].data)`` draws an image.
        """
        return self._value.parts if isinstance(self._value, ContentParts) else ()

    @property
    def value(self) -> Any:
        """The handler's own value. Raises ActionFailedError when the call failed."""
        if self.error is not None:
            raise ActionFailedError(self.error, self.code)
        return self._value

    @property
    def df(self) -> pd.DataFrame:
        """The result as a new DataFrame: the table of a query, or an array of records.

        Raises:
            ActionFailedError: the call failed.
            NoTableError: the result is not a table.
            BlobNotFoundError, BlobStoreError: the stored result is gone or damaged.
        """
        if is_loaded_type(self.value, "pandas", "DataFrame"):
            frame: pd.DataFrame = self.value.copy()
            return frame
        if self.trace is None:
            raise NoTableError(f"{self.name} gave no table; use .value or .payload")
        return self.trace.df


@dataclass(frozen=True, eq=False, repr=False)
class FrameView:
    """A table of the person's to look at, from memory.

    Attributes:
        frame: the rows as they were when the view was made.
        name: of the variable that held it, "" where none is known.
    """

    frame: pd.DataFrame
    name: str = ""

    @property
    def df(self) -> pd.DataFrame:
        return self.frame


@dataclass(frozen=True)
class Inspection:
    """A part of a stored blob. `payload` is the answer's text, or the error as a dict."""

    payload: Payload
    blob: Blob | None = None
    selector: str | None = None

    @property
    def error(self) -> str | None:
        return error_of(self.payload)

    @property
    def text(self) -> str:
        return self.payload if isinstance(self.payload, str) else ""


@dataclass(frozen=True)
class Table:
    """Rows of one kind (blobs, runs, events, turns, memory, models, approvals …), with length, iteration and `.df`.

    Args:
        kind: "blobs", "runs", "events", "history", "models", "approvals", "memory", "surface", "config" …
        rows: dicts with the same keys in the same order; values are plain (str, int, float, bool, None).
        note: one line under the table: what was cut, or what to do next.
    """

    kind: str
    rows: tuple[dict[str, Any], ...]
    title: str = ""
    note: str = ""
    items: tuple[Any, ...] = field(default=(), repr=False)

    @property
    def payload(self) -> dict[str, Any]:
        return {"items": [dict(row) for row in self.rows], "total": len(self.rows)}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items or self.rows)

    def __getitem__(self, index: int) -> Any:
        return (self.items or self.rows)[index]

    @property
    def df(self) -> pd.DataFrame:
        return frame_of_rows([dict(row) for row in self.rows])


@dataclass(frozen=True)
class Card:
    """A small card of facts (status, help, doctor, trust, undo …).

    Args:
        kind: "status", "help", "doctor", "trust", "undo", "reset" …
        title: the heading.
        facts: (label, value) pairs, in order.
        sections: (heading, lines) blocks under them; lines are plain text, shown in a fixed-width font.
        tries: ready lines to try next.
    """

    kind: str
    title: str
    facts: tuple[tuple[str, str], ...] = ()
    sections: tuple[tuple[str, tuple[str, ...]], ...] = ()
    tries: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def payload(self) -> dict[str, Any]:
        return {"title": self.title, **dict(self.facts), **self.data}
