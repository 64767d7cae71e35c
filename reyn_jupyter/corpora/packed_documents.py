"""PDF, office and HTML files as documents: which libraries that takes, and the process that reads them.

Invariant: no parser of a foreign format runs in the kernel.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO, cast

from reyn_jupyter.corpora.document import UNITS, Document, DocumentSection, UnreadableError, headings
from reyn_jupyter.search.metadata import is_fact
from reyn_jupyter.support.optional_modules import is_importable
from reyn_jupyter.support.programs.child_process import (
    ChildDeadlineError,
    ChildEndedError,
    ChildLimits,
    ChildMessage,
    ChildProcess,
    ChildProcesses,
)

KINDS = {
    ".pdf": "pdf", ".html": "html", ".htm": "html", ".xhtml": "html", ".docx": "word", ".pptx": "slides",
    ".xlsx": "sheet", ".xlsm": "sheet",
}  # fmt: skip
SECONDS = 60.0  # for one document, the start of the process included
INSTALL = "pip install 'reyn-jupyter[documents]'"
_MODULES = {"pdf": "pypdf", "html": "trafilatura", "word": "docx", "slides": "pptx", "sheet": "openpyxl"}
_MEMORY = 1 << 30
_ANSWER = 128 << 20


def is_installed(kind: str) -> bool:
    """Return whether the library for a kind is there; nothing is imported."""
    return is_importable(_MODULES[kind])


def document_child(children: ChildProcesses) -> ChildProcess:
    """Return the process of a session that reads documents; it starts with the first one."""
    limits = ChildLimits(_MEMORY, _ANSWER)
    return children.get("documents", lambda: ChildProcess("reyn_jupyter.corpora.document_child", limits))


def read_packed(kind: str, file: BinaryIO, children: ChildProcesses, seconds: float = SECONDS) -> Document:
    """Return a file of one of `KINDS` as a document; blocks, so it belongs into a worker thread.

    Raises:
        UnreadableError: its library is missing, it is damaged or encrypted, or takes too much time or memory.
    """
    if not is_installed(kind):
        raise UnreadableError(f"needs {_MODULES[kind]}, which is not installed: {INSTALL}")
    child = document_child(children)
    with child.turn:
        try:
            answer = child.exchange(ChildMessage({"kind": kind}, (), (file.fileno(),)), seconds)
        except ChildDeadlineError:
            raise UnreadableError(f"took longer than {seconds:g} seconds to read") from None
        except (ChildEndedError, OSError):
            raise UnreadableError("ended the process that reads documents") from None
    if "error" in answer.header:
        raise UnreadableError(str(answer.header["error"])[:300])
    try:
        said = json.loads(bytes(answer.body[0]))
        return Document(
            kind, tuple(map(_section, said["sections"])), _facts(said["facts"]), str(said["note"])
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UnreadableError("was answered by no document") from None


def _section(said: Mapping[str, Any]) -> DocumentSection:
    unit = said["unit"]
    if unit not in UNITS:
        raise ValueError(unit)
    path = headings(tuple(map(str, said["heading"])))
    return DocumentSection(str(said["text"]), path, cast("Any", unit), max(1, int(said["first"])))


def _facts(said: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): value for key, value in said.items() if is_fact(value)}
