"""The process in which PDF, office and HTML files are read: `python -m` of this module, started by `packed_documents`.

Invariant: parsers meet a file of somebody else's here alone, in a process with bounded memory, no files to write and no
environment of the person's, which is killed when it takes too long. A packed file that would unpack to more than a
bound is refused before anything of it is unpacked.
"""

from __future__ import annotations

import json
import logging
import os
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from reyn_jupyter.corpora.text_readers import markdown_sections
from reyn_jupyter.support.programs.child_process import ChildMessage, serve

MOST_TEXT = 20_000_000  # characters of one document
MOST_UNPACKED = 256 << 20  # bytes of all parts of an office file
MOST_PARTS = 10_000
MOST_PAGES = 5_000
MOST_ROWS = 200_000  # of one sheet
MOST_CELLS = 200  # of one row

Found = dict[str, Any]  # {"text", "heading", "unit", "first"}


class RefusedError(Exception):
    """The file cannot be read; the message is the end of a sentence that names it."""


def answer(request: ChildMessage) -> ChildMessage:
    """Read the file whose descriptor a request brings: header {"kind"} → body {"sections", "facts", "note"}."""
    kind = str(request.header.get("kind"))
    try:
        with os.fdopen(os.dup(request.descriptors[0]), "rb") as file:
            file.seek(0)
            read = _READERS[kind](file)
    except RefusedError as error:
        return ChildMessage({"error": str(error)})
    except MemoryError:
        return ChildMessage({"error": "needs more memory than one document may take"})
    except Exception as error:  # noqa: BLE001 - a broken file makes a parser raise anything
        return ChildMessage({"error": f"is damaged, or no such file: {type(error).__name__}"})
    return ChildMessage({"ok": True}, [json.dumps(read).encode("utf-8", "replace")])


def _read(sections: Iterator[Found], facts: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the sections up to the bound of a document's text."""
    found: list[Found] = []
    left = MOST_TEXT
    for section in sections:
        section["text"] = section["text"][:left]
        left -= len(section["text"])
        if section["text"].strip():
            found.append(section)
        if left <= 0:
            break
    note = f"only its first {MOST_TEXT:,} characters" if left <= 0 else ""
    return {"sections": found, "facts": facts or {}, "note": note}


def _pdf(file: BinaryIO) -> dict[str, Any]:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    reader = PdfReader(file, strict=False)
    if reader.is_encrypted:
        opened: object = None
        try:
            opened = reader.decrypt("")
        except DependencyError:  # of a cipher that another package knows
            opened = None
        if not opened:
            raise RefusedError("is encrypted")

    def pages() -> Iterator[Found]:
        for number, page in enumerate(reader.pages, 1):
            if number > MOST_PAGES:
                return
            yield {"text": page.extract_text() or "", "heading": [], "unit": "page", "first": number}

    title = ((reader.metadata.title if reader.metadata is not None else None) or "").strip()
    read = _read(pages(), {"title": title[:200]} if title else {})
    if not read["sections"]:
        raise RefusedError("holds no text (scanned pages, perhaps)")
    return read


def _html(file: BinaryIO) -> dict[str, Any]:
    import trafilatura
    from lxml import html as lxml_html

    raw = file.read()
    markdown = trafilatura.extract(raw, output_format="markdown", include_tables=True, include_comments=False)
    tree = lxml_html.document_fromstring(raw)
    title = " ".join((tree.findtext(".//title") or "").split())[:200]
    if not markdown:
        for gone in tree.xpath("//script|//style|//noscript"):
            gone.drop_tree()
        markdown = "\n".join(filter(None, (line.strip() for line in tree.text_content().splitlines())))
    return _read(_by_headings(markdown, title), {"title": title} if title else {})


def _by_headings(markdown: str, title: str = "") -> Iterator[Found]:
    above = (title,) if title else ()
    for number, section in enumerate(markdown_sections(markdown), 1):
        heading = section.heading if section.heading[:1] == above else (*above, *section.heading)
        yield {"text": section.text, "heading": list(heading), "unit": "section", "first": number}


def _checked(file: BinaryIO) -> BinaryIO:
    """Return an office file, once what it would unpack to is known to be bounded. Raises RefusedError."""
    try:
        with zipfile.ZipFile(file) as packed:
            parts = packed.infolist()
    except zipfile.BadZipFile:
        start = file.seek(0) or file.read(8)
        encrypted = start == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
        raise RefusedError("is encrypted, or of an old format" if encrypted else "is damaged") from None
    # More than its header says is never unpacked of a part.
    if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_UNPACKED:
        raise RefusedError("would unpack to more than one document may hold")
    file.seek(0)
    return file


def _word(file: BinaryIO) -> dict[str, Any]:
    import docx
    from docx.table import Table
    from docx.text.paragraph import Paragraph

    document = docx.Document(_checked(file))

    def lines() -> Iterator[str]:
        for block in document.iter_inner_content():
            if isinstance(block, Paragraph):
                name = (block.style.name or "") if block.style is not None else ""
                level = name.removeprefix("Heading ")
                depth = int(level) if name.startswith("Heading ") and level.isdigit() else 0
                depth = 1 if name == "Title" else depth
                text = block.text.strip()
                yield f"{'#' * min(depth, 6)} {' '.join(text.split())}" if depth and text else text
            elif isinstance(block, Table):
                for row in block.rows:
                    yield "| " + " | ".join(" ".join(cell.text.split()) for cell in row.cells) + " |"

    return _read(_by_headings("\n\n".join(lines())))


def _slides(file: BinaryIO) -> dict[str, Any]:
    import pptx

    deck = pptx.Presentation(_checked(file))

    def slides() -> Iterator[Found]:
        for number, slide in enumerate(deck.slides, 1):
            title = slide.shapes.title.text_frame.text.strip() if slide.shapes.title is not None else ""
            texts: list[str] = []
            for shape in slide.shapes:
                if shape.has_text_frame:
                    texts.append(shape.text_frame.text)
                if getattr(shape, "has_table", False) and shape.has_table:
                    texts += [" | ".join(cell.text for cell in row.cells) for row in shape.table.rows]
            if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
                texts.append(slide.notes_slide.notes_text_frame.text)
            yield {
                "text": "\n".join(texts),
                "heading": [title] if title else [],
                "unit": "slide",
                "first": number,
            }

    return _read(slides())


def _sheet(file: BinaryIO) -> dict[str, Any]:
    import openpyxl

    book = openpyxl.load_workbook(_checked(file), read_only=True, data_only=True)

    def sheets() -> Iterator[Found]:
        for sheet in book.worksheets:
            rows = sheet.iter_rows(max_row=MOST_ROWS, max_col=MOST_CELLS, values_only=True)
            names: tuple[str, ...] | None = None
            lines: list[str] = []
            for row in rows:
                cells = ["" if value is None else " ".join(str(value).split()) for value in row]
                if names is None and sum(map(bool, cells)) > 1:
                    names = tuple(cells)
                    lines.append(" | ".join(cells))
                    continue
                pairs = zip((*(names or ()), *[""] * len(cells)), cells, strict=False)
                lines.append("; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs if cell))
            yield {"text": "\n".join(lines), "heading": [sheet.title], "unit": "row", "first": 1}

    return _read(sheets())


_READERS: dict[str, Callable[[BinaryIO], dict[str, Any]]] = {
    "pdf": _pdf,
    "html": _html,
    "word": _word,
    "slides": _slides,
    "sheet": _sheet,
}


def main() -> None:
    """Serve until the parent is gone."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    serve(answer, lambda: None)


if __name__ == "__main__":
    main()
