"""Real documents, made by the tests: PDF, docx, pptx, xlsx, and some that should not be opened."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence


def pdf(pages: Sequence[Sequence[str]], title: str = "") -> bytes:
    """Return a PDF with lines of ASCII text on each page."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>"
        % (b" ".join(b"%d 0 R" % (5 + 2 * number) for number in range(len(pages))), len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (%s) >>" % title.encode(),
    ]
    for number, lines in enumerate(pages):
        shown = b"".join(
            b"BT /F1 12 Tf 72 %d Td (%s) Tj ET\n" % (720 - 16 * at, line.encode())
            for at, line in enumerate(lines)
        )
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (6 + 2 * number)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(shown), shown))
    out, places = io.BytesIO(), []
    out.write(b"%PDF-1.4\n")
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(
        b"trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (len(objects) + 1, start)
    )
    return out.getvalue()


def packed(members: Mapping[str, str | bytes]) -> bytes:
    """Return a ZIP file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def docx(paragraphs: Sequence[tuple[str, str]]) -> bytes:
    """Return a Word document of (style, text): "Heading1" and so on, "" for plain text."""
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in paragraphs
    )
    names = "http://schemas.openxmlformats.org"
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/></w:style>'
        for level in (1, 2)
    )
    word = f'xmlns:w="{names}/wordprocessingml/2006/main"'
    relation = f"{names}/officeDocument/2006/relationships"
    return packed(
        {
            "[Content_Types].xml": f'<Types xmlns="{names}/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/>'
            '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
            'wordprocessingml.document.main+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{names}/package/2006/relationships"><Relationship Id="r1" '
            f'Type="{relation}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{names}/package/2006/relationships">'
            f'<Relationship Id="s1" Type="{relation}/styles" Target="styles.xml"/></Relationships>',
            "word/styles.xml": f"<w:styles {word}>{styles}</w:styles>",
            "word/document.xml": f"<w:document {word}><w:body>{body}</w:body></w:document>",
        }
    )


def xlsx(rows: Sequence[Sequence[object]], sheet: str = "Sheet1") -> bytes:
    """Return a workbook of one sheet."""
    from openpyxl import Workbook

    book, out = Workbook(), io.BytesIO()
    book.active.title = sheet
    for row in rows:
        book.active.append(list(row))
    book.save(out)
    return out.getvalue()


def pptx(slides: Sequence[tuple[str, str]]) -> bytes:
    """Return a presentation of (title, text)."""
    from pptx import Presentation

    show, out = Presentation(), io.BytesIO()
    for title, text in slides:
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    show.save(out)
    return out.getvalue()


def zip_bomb(megabytes: int) -> bytes:
    """Return a Word document whose text unpacks to so many megabytes."""
    return packed({"[Content_Types].xml": "<Types/>", "word/document.xml": b" " * (megabytes << 20)})
