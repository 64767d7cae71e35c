"""A file of the workspace as a document: opened by the rules, read while it stands still, its secrets covered.

Invariants: a file is opened where the rules of the call allow it, and never through a link that leads out; what is
returned was one state of it, since a file that changes meanwhile is read again or refused; no secret that the session
knows is in the text, whatever the format that it came in.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import BinaryIO

from reyn_jupyter.backends.files.masked_files import redacted_blocks
from reyn_jupyter.corpora import packed_documents
from reyn_jupyter.corpora.document import Document, DocumentSection, Stamp, UnreadableError, headings
from reyn_jupyter.corpora.text_readers import (
    CODE,
    MARKDOWN,
    Reader,
    code_reader,
    read_markdown,
    read_notebook,
    read_text,
)
from reyn_jupyter.guard.workspace import Workspace, WorkspaceError
from reyn_jupyter.support.programs.child_process import ChildProcesses
from reyn_jupyter.support.secrets import Redactor

LARGEST_TEXT = 20_000_000  # bytes of a file that is text
LARGEST = 200_000_000  # bytes of any other
SETTLED = 0.02  # seconds after which a further change of a file shows in its times
DATA = frozenset({".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".lock", ".svg", ".map"})
NOTEBOOK = ".ipynb"
_LARGEST_NUMBER = (1 << 63) - 1
_LOOKED_AT = 8_192  # bytes that tell text from anything else


@dataclass(frozen=True)
class FileReader:
    """Reads files of one call.

    Args:
        workspace: as the call may see it.
        redactor: covers secrets.
        children: the processes of the session, for formats that need one.
    """

    workspace: Workspace
    redactor: Redactor
    children: ChildProcesses

    def read(self, place: str, *, named: bool = False) -> tuple[Document, Stamp]:
        """Return a file as a document, and the state in which it was read.

        Args:
            place: from the root.
            named: whether somebody named this very file, so that data are read as text, too.

        Raises:
            UnreadableError: it is none of the kinds that can be read, too large, damaged, or changes all the time.
        """
        try:
            with self.workspace.open_place(place) as file:
                return self._settled(place, file, named)
        except (WorkspaceError, OSError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise UnreadableError(f"cannot be opened ({why})") from None

    def _settled(self, place: str, file: BinaryIO, named: bool) -> tuple[Document, Stamp]:
        for _ in range(2):
            before = stamp_of(os.fstat(file.fileno()))
            young = SETTLED - (time.time() - before[1] / 1e9)
            if 0 < young <= SETTLED:
                time.sleep(young)
            document = self._read(place, file, before[0], named)
            if stamp_of(os.fstat(file.fileno())) == before:
                return document, before
        raise UnreadableError("changed while it was being read")

    def _read(self, place: str, file: BinaryIO, size: int, named: bool) -> Document:
        suffix = PurePosixPath(place).suffix.lower()
        kind = packed_documents.KINDS.get(suffix)
        largest = LARGEST if kind is not None else LARGEST_TEXT
        if size > largest:
            raise UnreadableError(f"is larger than {largest // 1_000_000:,} MB")
        if kind is not None:
            return self._covered(packed_documents.read_packed(kind, file, self.children))
        if suffix in DATA and not named:
            raise UnreadableError("holds data, not prose; name the file itself to have it indexed")
        file.seek(0)
        raw = file.read(LARGEST_TEXT + 1)
        if b"\0" in raw[:_LOOKED_AT] and not raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise UnreadableError("is no text")
        if suffix == NOTEBOOK:  # escapes would hide a secret from a look at the bytes
            return self._covered(read_notebook(_decoded(raw)))
        covered = b"".join(part for _, part in redacted_blocks(file, iter([(0, raw)]), self.redactor))
        return _reader(suffix)(_decoded(covered))

    def _covered(self, document: Document) -> Document:
        """Return a document with the secrets of its sections covered."""
        return replace(
            document,
            sections=tuple(self._covered_section(section) for section in document.sections),
            facts=self.redactor.value(dict(document.facts)),
        )

    def _covered_section(self, section: DocumentSection) -> DocumentSection:
        heading = headings(tuple(self.redactor.text(each) for each in section.heading))
        return replace(section, text=self.redactor.text(section.text), heading=heading)


def stamp_of(status: os.stat_result) -> Stamp:
    """Return what tells one state of a file from another."""
    inode = status.st_ino & _LARGEST_NUMBER  # some file systems number files beyond what SQLite keeps
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, inode


def _reader(suffix: str) -> Reader:
    if suffix in MARKDOWN:
        return read_markdown
    return code_reader(CODE[suffix]) if suffix in CODE else read_text


def _decoded(raw: bytes) -> str:
    """Return bytes as text: by their mark, as UTF-8, or as what older editors on Windows wrote."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("cp1252", "replace")
    return text.replace("\r\n", "\n").replace("\x00", " ")
