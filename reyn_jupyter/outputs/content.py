"""The types of a tool result on its way into the history, and how much of it a conversation may carry.

Invariant: every bound counts bytes of UTF-8, never characters. Source: tool-output design (Inline, Stored, BlobStore).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

JsonValue = Any  # None, bool, int, float, str, list[JsonValue], dict[str, JsonValue]
BlobId = str  # canonical lower-case text of a UUID version 7


@dataclass(frozen=True)
class Text:
    """Plain text, exactly as it is; never parsed as JSON. `note` is a sentence for who reads it, no part of it."""

    text: str
    note: str = field(default="", compare=False)


@dataclass(frozen=True)
class Structured:
    """A JSON value. `source` keeps the original bytes where a handler's string was already JSON.

    `frame` describes a table kept as records (rows, columns, dtypes, index), so that ``.df`` restores it. `parts` says
    that the value lists the parts of a result (`outputs.parts.stored_parts`).
    """

    value: JsonValue
    source: str | None = None
    frame: dict[str, Any] | None = field(default=None, compare=False)
    parts: bool = False


@dataclass(frozen=True)
class FileContent:
    """A file handed over by path, moved into the store without a copy through memory. `kind` is "text" or "json"."""

    path: Path
    kind: str = "text"


Content = Text | Structured | FileContent


@dataclass(frozen=True)
class Inline:
    """A small result: it goes to the history as it is. `frame` is as that of `Structured`, where it is a table."""

    text: str
    frame: dict[str, Any] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Stored:
    """A large result: only the summary goes to the history. A handler may return one with its own summary."""

    summary: str
    content: Content


ToolOutput = Inline | Stored


class BlobStoreError(Exception):
    """The store could not keep or give content (disk full, read-only, damaged)."""


class BlobNotFoundError(BlobStoreError):
    """No blob has this id."""

    def __init__(self, blob_id: str) -> None:
        super().__init__(f"no blob has the id {blob_id!r}")
        self.blob_id = blob_id


class BlobStore(Protocol):
    """A store of results. Implementations: `FsBlobStore`, `MemoryBlobStore` in `outputs.blobs`.

    One that has `store`, `load` and `exists` alone, without `action` and `run`, is adapted when a session is given it.
    """

    async def store(self, content: Content, *, action: str | None = None, run: str | None = None) -> BlobId:
        """Keep content; `action` and `run` go into the blob's manifest. Raises BlobStoreError."""
        ...

    async def load(self, blob_id: BlobId) -> Content:
        """The whole content. Raises BlobNotFoundError, BlobStoreError."""
        ...

    async def exists(self, blob_id: BlobId) -> bool: ...

    async def store_bytes(self, data: bytes, *, action: str | None = None, run: str | None = None) -> BlobId:
        """Keep raw bytes (a file's previous content, for undo). Raises BlobStoreError."""
        ...

    async def load_bytes(self, blob_id: BlobId) -> bytes:
        """The exact bytes of any blob. Raises BlobNotFoundError, BlobStoreError."""
        ...


@dataclass(frozen=True)
class OutputPolicy:
    """The numbers of the one choke point. Defaults: tool-output design (Inline / Stored, automatic summary).

    Args:
        inline_bytes: up to this size a result goes into the history as it is.
        summary_bytes: the most a blob leaves in the history, its ``[blob:…]`` prefix included.
        head_lines: lines of a text that its summary opens with.
        tail_lines: lines of a text that its summary closes with.
        answer_bytes: the most that `inspect`, a listing or a catalog error may answer.

    >>> OutputPolicy().inline_bytes
    800
    """

    inline_bytes: int = 800
    summary_bytes: int = 400
    head_lines: int = 5
    tail_lines: int = 3
    answer_bytes: int = 8192


DEFAULT_POLICY = OutputPolicy()
