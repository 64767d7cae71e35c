"""Real documents, made for tests: PDF, Word, slides, sheets, notebooks, and broken ones."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def pdf(*pages: str, title: str = "") -> bytes:
    """Return a PDF with a page for each text, its lines below each other."""
    objects: list[bytes] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for text in pages:
        lines = [
            line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in text.split("\n")
        ]
        drawn = "BT /F1 12 Tf 72 720 Td 14 TL " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream".encode("latin-1"))
        kids.append(len(objects) + 1)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
    refs = " ".join(f"{kid} 0 R" for kid in kids)
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{refs}] >>".encode()
    objects.append(f"<< /Title ({title}) >>".encode())
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{place:010d} 00000 n \n".encode() for place in places)
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>"
    out += f"{trailer}\nstartxref\n{table}\n%%EOF\n".encode()
    return bytes(out)


def encrypted_pdf(text: str, password: str) -> bytes:
    """Return a PDF that opens with a password alone."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(text))))
    writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def word(*blocks: tuple[str, str] | Sequence[Sequence[str]]) -> bytes:
    """Return a Word document of (style, text) and of tables, which are rows of cells."""
    import docx

    document = docx.Document()
    for block in blocks:
        if isinstance(block[0], str):
            document.add_paragraph(str(block[1]), style=block[0])
        else:
            table = document.add_table(rows=0, cols=len(block[0]))
            for row in block:
                for cell, text in zip(table.add_row().cells, row, strict=True):
                    cell.text = text
    return _saved(document)


def slides(*pages: tuple[str, str]) -> bytes:
    """Return a deck of (title, text)."""
    import pptx

    deck = pptx.Presentation()
    for title, text in pages:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    return _saved(deck)


def sheets(**rows: Sequence[Sequence[Any]]) -> bytes:
    """Return a workbook of sheets by name."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, lines in rows.items():
        sheet = book.create_sheet(name)
        for line in lines:
            sheet.append(list(line))
    return _saved(book)


def _saved(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def notebook(*cells: tuple[str, str]) -> str:
    """Return a notebook of (kind, source)."""
    made = [
        {"cell_type": kind, "source": source.splitlines(keepends=True), "metadata": {}}
        for kind, source in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def zip_bomb(unpacked: int) -> bytes:
    """Return a file that looks like a Word document and unpacks to so many bytes."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(word(("Normal", "small")))) as real,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in real.namelist():
            if name != "word/document.xml":
                packed.writestr(name, real.read(name))
        with packed.open("word/document.xml", "w") as part:
            piece = b" " * (1 << 20)
            for _ in range(unpacked >> 20):
                part.write(piece)
    return out.getvalue()


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files below a folder."""
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
