"""The parent's side of reading documents.

Invariants: what a stranger's file makes a parser do, it does in a child process: within its memory, and until its
deadline. An answer is bounded, and is text alone.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.backends.documents.document_types import TYPES
from reyn_jupyter.support.child_process import (
    ChildDeadlineError,
    ChildEndedError,
    ChildLimits,
    ChildProcess,
    ChildProcesses,
    Message,
)

SECONDS = 60.0  # for one document
LARGEST = 64 << 20  # bytes of a document
_MEMORY = 2 << 30
_LARGEST_TEXT = 64 << 20  # bytes of Markdown
_MODULE = "reyn_jupyter.backends.documents.document_child"


class DocumentError(Exception):
    """A document that could not be read; the message is a sentence.

    Args:
        hint: what to do next.
        code: "document_unreadable", "document_too_large", "document_slow" or "documents_missing".
    """

    def __init__(self, message: str, hint: str = "", code: str = "document_unreadable") -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code


@dataclass(frozen=True)
class Document:
    """A document as Markdown.

    Attributes:
        text: the Markdown.
        title: as the document has it; "" where it has none.
        pages: of a PDF or a presentation, the number of the line (from 1) that each page begins at; () elsewhere.
        notes: what was left out, in sentences.
    """

    text: str
    title: str = ""
    pages: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


class DocumentReader:
    """Turns documents into Markdown, one after another.

    Args:
        children: the processes of the session.

    Example:
        >>> with ChildProcesses() as children:
        ...     found = DocumentReader(children).read_now(b"<h1>Hi</h1><p>there</p>", "text/html")
        >>> found.text
        '# Hi\\n\\nthere'
    """

    def __init__(self, children: ChildProcesses) -> None:
        self._children = children
        self._reading: threading.Event | None = None  # of the one whose turn it is

    async def read(
        self, data: bytes, mime: str, *, url: str = "", charset: str = "", seconds: float = SECONDS
    ) -> Document:
        """Return a document as Markdown; a cancellation ends the process that reads it.

        Args:
            data: the whole document.
            mime: its type, as `document_type` gives it.
            url: where a page comes from, so that its links are whole.
            charset: how a server calls the encoding of a page.
            seconds: the deadline.

        Raises:
            DocumentError: it is too large, broken, encrypted or no such document; it took too long or too much memory;
                or what reads it is not installed.
        """
        ended = threading.Event()
        try:
            return await asyncio.to_thread(self._read, data, mime, url, charset, seconds, ended)
        except asyncio.CancelledError:
            ended.set()
            if self._reading is ended:
                self._child().kill()
            raise

    def read_now(
        self, data: bytes, mime: str, *, url: str = "", charset: str = "", seconds: float = SECONDS
    ) -> Document:
        """Return a document as Markdown on this thread; see `read`."""
        return self._read(data, mime, url, charset, seconds, threading.Event())

    def _read(
        self, data: bytes, mime: str, url: str, charset: str, seconds: float, ended: threading.Event
    ) -> Document:
        if mime not in TYPES:
            raise DocumentError(f"{mime or 'It'} is no type of document that can be read.")
        if len(data) > LARGEST:
            raise DocumentError(
                f"The document has {len(data) >> 20} MiB, and at most {LARGEST >> 20} are read.",
                code="document_too_large",
            )
        child = self._child()
        with child.turn, _handed_over(data) as descriptor:
            self._reading = ended
            try:
                if ended.is_set():
                    raise DocumentError("Nobody waits for it any more.")
                request = {"mime": mime, "url": url, "charset": charset}
                answer = child.exchange(Message(request, (), (descriptor,)), seconds)
            except ChildDeadlineError:
                raise DocumentError(
                    f"The document was not read within {seconds:g} seconds.", code="document_slow"
                ) from None
            except ChildEndedError as error:
                raise DocumentError(f"The document could not be read: {_words(error)}.") from None
            except OSError as error:
                raise DocumentError(f"What reads documents did not start: {error}.") from None
            finally:
                self._reading = None
        header: Any = answer.header
        if "error" in header:
            raise DocumentError(str(header["error"]), str(header.get("hint", "")), str(header["code"]))
        text = b"".join(answer.body).decode("utf-8", "replace")
        return Document(text, str(header["title"]), tuple(header["pages"]), tuple(header["notes"]))

    def _child(self) -> ChildProcess:
        return self._children.get(
            "documents", lambda: ChildProcess(_MODULE, ChildLimits(_MEMORY, answer=_LARGEST_TEXT))
        )


def _words(error: ChildEndedError) -> str:
    if error.signal in ("SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS"):
        return "its reader was ended, as one that needs too much memory is"
    return str(error)


@contextmanager
def _handed_over(data: bytes) -> Iterator[int]:
    """Yield a descriptor of a file without a name that holds the data."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        file.seek(0)
        yield file.fileno()
