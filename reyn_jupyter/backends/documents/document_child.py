"""The process that turns documents into Markdown: `python -m` of this module, started by `document_reader`.

Invariants: a parser is imported with the first document that needs it; a failure of one is an answer; what would unpack
to more than the bound is refused before it is unpacked. Nothing is fetched: no images, no style sheets, no entities.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.backends.documents.document_types import DOCX, EPUB, HTML, PACKED, PDF, PPTX, XLSX
from reyn_jupyter.backends.documents.text_encoding import decode_text
from reyn_jupyter.support.child_process import Message, serve
from reyn_jupyter.support.encoding import clip

_PIECE = 1 << 20
_MOST_UNPACKED = 256 << 20  # bytes of the members of a ZIP file together
_MOST_MEMBERS = 20_000
_MOST_PAGES = 5_000
_MOST_TEXT = 60 << 20  # bytes of Markdown
_MOST_TITLE = 300
_EXTRA = "pip install 'reyn-jupyter[documents]'"
_SLIDE = re.compile(r"^<!-- Slide number: \d+ -->$", re.MULTILINE)
_BLANKS = re.compile(r"\n{3,}")


class _RefusalError(Exception):
    def __init__(self, message: str, code: str = "document_unreadable", hint: str = "") -> None:
        super().__init__(message)
        self.answer = {"error": message, "code": code, "hint": hint}


@dataclass(frozen=True)
class _Reading:
    text: str
    title: str = ""
    pages: Sequence[int] = ()
    notes: Sequence[str] = ()


def answer(request: Message) -> Message:
    """Return the Markdown of the document whose file was handed over, or why there is none."""
    header, (descriptor,) = request.header, request.descriptors
    try:
        reading = _READERS[header["mime"]](_content(descriptor), header)
    except _RefusalError as refusal:
        return Message(refusal.answer)
    except MemoryError:
        return Message(_RefusalError("The document needs too much memory.", "document_too_large").answer)
    except ImportError as error:
        missing = f"What reads such a document is not installed ({error.name or error})."
        return Message(_RefusalError(missing, "documents_missing", _EXTRA).answer)
    except Exception as error:  # noqa: BLE001 - parsers fail on strangers' files in ways of their own
        why = f"{type(error).__name__}: {clip(str(error), 300)}" if str(error) else type(error).__name__
        return Message(_RefusalError(f"The document could not be read ({why}).").answer)
    notes = list(reading.notes)
    # Where pages begin is told by lines.
    text = reading.text if reading.pages else _BLANKS.sub("\n\n", reading.text)
    body = text.encode("utf-8", "replace")
    if len(body) > _MOST_TEXT:
        body, said = body[:_MOST_TEXT].decode("utf-8", "ignore").encode(), len(body) >> 20
        notes.append(f"Only the first {_MOST_TEXT >> 20} of {said} MiB of text are here.")
    title = clip(" ".join(reading.title.split()), _MOST_TITLE)
    return Message({"title": title, "pages": list(reading.pages), "notes": notes}, (body,))


def _content(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    pieces = []
    while piece := os.read(descriptor, _PIECE):
        pieces.append(piece)
    return b"".join(pieces)


def _read_html(data: bytes, header: Any) -> _Reading:
    import trafilatura
    from lxml.html import HTMLParser, document_fromstring

    text = decode_text(data, header["charset"], html=True)
    if not text.strip("\ufeff\x00 \t\r\n"):
        return _Reading("")
    # As bytes, since a page may name another encoding than the one that it was read in.
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    tree = document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    title = _title(tree)
    main = trafilatura.extract(
        tree,
        url=header["url"] or None,
        output_format="markdown",
        include_links=True,
        include_tables=True,
        include_comments=False,
        favor_recall=True,
    )
    if main:
        return _Reading(main, title)
    plain = trafilatura.html2txt(tree)
    return _Reading(plain or "", title, (), ("No main text was found: this is all of its text.",))


def _title(tree: Any) -> str:
    for path in ("//meta[@property='og:title']/@content", "//title/text()", "//h1//text()"):
        found = next((str(each) for each in tree.xpath(path) if str(each).strip()), "")
        if found:
            return found
    return ""


def _read_pdf(data: bytes, header: Any) -> _Reading:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "assword" in str(error):
            raise _RefusalError(
                "The PDF is encrypted, and its password is not known.", hint="Save it without a password."
            ) from None
        raise
    count, notes = len(document), []
    if count > _MOST_PAGES:
        notes.append(f"Only the first {_MOST_PAGES:,} of {count:,} pages are here.")
    lines: list[str] = []
    pages, size = [], 0
    for number in range(min(count, _MOST_PAGES)):
        page = document[number]
        text = page.get_textpage().get_text_bounded()
        page.close()
        pages.append(len(lines) + 1)
        lines += [*text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]
        size += len(text)
        if size > _MOST_TEXT:
            break
    if not size:
        notes.append("It holds no text: its pages may be pictures of text.")
    return _Reading("\n".join(lines), document.get_metadata_dict().get("Title", ""), pages, notes)


def _read_office(data: bytes, header: Any) -> _Reading:
    _check_unpacked(data)
    from markitdown import StreamInfo
    from markitdown.converters import DocxConverter, EpubConverter, PptxConverter, XlsxConverter

    converter: Any = {
        DOCX: DocxConverter, PPTX: PptxConverter, XLSX: XlsxConverter, EPUB: EpubConverter,
    }[header["mime"]]()  # fmt: skip
    made = converter.convert(io.BytesIO(data), StreamInfo(mimetype=header["mime"]))
    text = made.markdown.replace("\r\n", "\n").strip("\n")
    pages = [text.count("\n", 0, found.start()) + 1 for found in _SLIDE.finditer(text)]
    return _Reading(text, made.title or "", pages if header["mime"] == PPTX else ())


def _check_unpacked(data: bytes) -> None:
    """Refuse a ZIP file that unpacks to too much, by its directory; its members are held to that when they are read."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        members = packed.infolist()
        if any(member.flag_bits & 1 for member in members):
            raise _RefusalError("The document is encrypted.", hint="Save it without a password.")
        total = sum(member.file_size for member in members)
        if len(members) > _MOST_MEMBERS or total > _MOST_UNPACKED:
            raise _RefusalError(
                f"It unpacks to {total >> 20} MiB in {len(members):,} files, and at most {_MOST_UNPACKED >> 20} MiB "
                f"in {_MOST_MEMBERS:,} are read.",
                "document_too_large",
            )


_READERS: dict[str, Callable[[bytes, Any], _Reading]] = {
    HTML: _read_html,
    PDF: _read_pdf,
    **dict.fromkeys(PACKED, _read_office),
}

if __name__ == "__main__":
    serve(answer, lambda: None)
