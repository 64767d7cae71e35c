"""The types of documents that can be turned into Markdown, and how a type is told from a name or from first bytes.

Invariant: what the bytes say goes before what a server or a file's name says of them.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import PurePosixPath

HTML, PDF, EPUB = "text/html", "application/pdf", "application/epub+zip"
_OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX = f"{_OFFICE}wordprocessingml.document"
PPTX = f"{_OFFICE}presentationml.presentation"
XLSX = f"{_OFFICE}spreadsheetml.sheet"
PACKED = frozenset({DOCX, PPTX, XLSX, EPUB})  # ZIP files
TYPES = frozenset({HTML, PDF, *PACKED})
_SUFFIXES = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
    ".pdf": PDF,
    ".docx": DOCX,
    ".pptx": PPTX,
    ".xlsx": XLSX,
    ".epub": EPUB,
}
_ALIASES = {"application/xhtml+xml": HTML, "application/x-pdf": PDF}
_MEMBERS = (("word/", DOCX), ("ppt/", PPTX), ("xl/", XLSX))
_LOOKED_THROUGH = 200  # members of a ZIP file


def document_type(data: bytes, mime: str = "", name: str = "") -> str | None:
    """Return the MIME type of a document that can be read; None where it is none.

    Args:
        data: the whole document.
        mime: what a server says of it, parameters allowed.
        name: its file's name or path.

    Example:
        >>> document_type(b"%PDF-1.7 ...", "text/html"), document_type(b"<p>hi", name="a/page.HTML")
        ('application/pdf', 'text/html')
    """
    if data[:1024].lstrip().startswith(b"%PDF-"):
        return PDF
    if data[:4] == b"PK\x03\x04":
        return _packed_type(data)
    said = mime.partition(";")[0].strip().lower()
    said = _ALIASES.get(said, said)
    if said in ("", "application/octet-stream"):
        said = _SUFFIXES.get(PurePosixPath(name).suffix.lower(), "")
    # What should be a ZIP file or a PDF and does not begin as one is none.
    return HTML if said == HTML or _looks_like_html(data, said) else None


def _looks_like_html(data: bytes, said: str) -> bool:
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return said == "" and start.startswith((b"<!doctype html", b"<html"))


def _packed_type(data: bytes) -> str | None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            names = packed.namelist()[:_LOOKED_THROUGH]
            if "mimetype" in names and packed.getinfo("mimetype").file_size < 100:
                return EPUB if packed.read("mimetype").strip() == EPUB.encode() else None
    except (zipfile.BadZipFile, NotImplementedError, ValueError, RuntimeError, OSError, EOFError):
        return None
    if "[Content_Types].xml" not in names:
        return None
    return next((kind for prefix, kind in _MEMBERS if any(name.startswith(prefix) for name in names)), None)
