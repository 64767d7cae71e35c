"""The parent's side of reading pages: HTML as Markdown.

Invariants: what a stranger's page makes a parser do, it does in a child process: within its memory, and until its
deadline. An answer is bounded, and is text alone.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from reyn_jupyter.support.programs.child_process import (
    ChildDeadlineError,
    ChildEndedError,
    ChildLimits,
    ChildMessage,
    ChildProcess,
    ChildProcesses,
)

SECONDS = 60.0  # for one page
_MEMORY = 2 << 30
_LARGEST_TEXT = 64 << 20  # bytes of Markdown
_MODULE = "reyn_jupyter.backends.web.page_child"


class PageTextError(Exception):
    """A page that could not be read; the message is a sentence. `code` is "page_unreadable" or "page_slow"."""

    def __init__(self, message: str, code: str = "page_unreadable") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class PageText:
    """A page as Markdown.

    Attributes:
        text: the Markdown.
        title: as the page has it; "" where it has none.
        note: what is to be said of it, a sentence; "" for nothing.
    """

    text: str
    title: str = ""
    note: str = ""


class PageTextReader:
    """Turns pages into Markdown, one after another.

    Args:
        children: the processes of the session.

    Example:
        >>> with ChildProcesses() as children:
        ...     found = asyncio.run(PageTextReader(children).read(b"<h1>Hi</h1><p>there</p>"))
        >>> found.text
        '# Hi\\n\\nthere'
    """

    def __init__(self, children: ChildProcesses) -> None:
        self._children = children
        self._reading: threading.Event | None = None  # of the one whose turn it is

    async def read(
        self, data: bytes, *, url: str = "", charset: str = "", seconds: float = SECONDS
    ) -> PageText:
        """Return a page as Markdown; a cancellation ends the process that reads it.

        Args:
            data: the HTML.
            url: where it comes from, so that its links are whole.
            charset: how a server calls its encoding.
            seconds: the deadline.

        Raises:
            PageTextError: it is broken beyond reading, or took too long or too much memory.
        """
        ended = threading.Event()
        try:
            return await asyncio.to_thread(self._read, data, url, charset, seconds, ended)
        except asyncio.CancelledError:
            ended.set()
            if self._reading is ended:
                self._child().kill()
            raise

    def _read(self, data: bytes, url: str, charset: str, seconds: float, ended: threading.Event) -> PageText:
        child = self._child()
        with child.turn, handed_over(data) as file:
            self._reading = ended
            try:
                if ended.is_set():
                    raise PageTextError("Nobody waits for it any more.")
                request = ChildMessage({"url": url, "charset": charset}, (), (file.fileno(),))
                answer = child.exchange(request, seconds)
            except ChildDeadlineError:
                raise PageTextError(
                    f"The page was not read within {seconds:g} seconds.", "page_slow"
                ) from None
            except (ChildEndedError, OSError) as error:
                raise PageTextError(f"The page could not be read: {error}.") from None
            finally:
                self._reading = None
        header: Any = answer.header
        if "error" in header:
            raise PageTextError(str(header["error"]))
        text = b"".join(answer.body).decode("utf-8", "replace")
        return PageText(text, str(header["title"]), str(header["note"]))

    def _child(self) -> ChildProcess:
        return self._children.get(
            "pages", lambda: ChildProcess(_MODULE, ChildLimits(_MEMORY, answer=_LARGEST_TEXT))
        )


@contextmanager
def handed_over(data: bytes) -> Iterator[BinaryIO]:
    """Yield a file without a name that holds the data, for a child process."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        file.seek(0)
        yield file
