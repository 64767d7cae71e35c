"""Real documents as Markdown, and documents that should hurt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from reyn_jupyter.backends.documents import DocumentError, DocumentReader, document_type
from reyn_jupyter.backends.documents.document_types import DOCX, HTML, PDF, PPTX, XLSX
from reyn_jupyter.backends.documents.text_encoding import decode_text
from reyn_jupyter.support.child_process import ChildProcesses
from tests.support import document_samples as samples

PAGE = """<html><head><title>Prices of tea</title><style>p {color: red}</style></head>
<body><nav><a href="/">Home</a><a href="/about">About</a></nav>
<article><h1>Tea</h1><p>Green tea costs four euros a pound, and it is sold in
<a href="/shops">two shops</a> of the town.</p>
<h2>Black tea</h2><p>Black tea costs three euros a pound, and is sold everywhere that people buy bread.</p>
<table><tr><th>kind</th><th>euros</th></tr><tr><td>green</td><td>4</td></tr></table>
<script>alert(1)</script></article><footer>Imprint</footer></body></html>"""


@pytest.fixture(scope="module")
def children() -> Iterator[ChildProcesses]:
    with ChildProcesses() as made:
        yield made


@pytest.fixture(scope="module")
def reader(children: ChildProcesses) -> DocumentReader:
    return DocumentReader(children)


def test_a_page_becomes_markdown_with_its_title_and_whole_links(reader: DocumentReader) -> None:
    page = reader.read_now(PAGE.encode(), HTML, url="https://example.org/tea")
    assert page.title == "Prices of tea"
    assert "# Tea" in page.text and "## Black tea" in page.text
    assert "[two shops](https://example.org/shops)" in page.text
    assert "| green | 4 |" in page.text
    assert "alert" not in page.text and "color" not in page.text


def test_a_page_without_an_article_is_given_with_all_of_its_text(reader: DocumentReader) -> None:
    assert "just this" in reader.read_now(b"<html><body><div>just this</div></body></html>", HTML).text
    assert reader.read_now(b"", HTML).text == ""


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ("<p>Grüße aus Köln, und was man sonst so sagt.</p>".encode("latin-1"), "ISO-8859-1"),
        (
            '<meta charset="windows-1252"><p>Grüße aus Köln, und was man sonst so sagt.</p>'.encode("cp1252"),
            "",
        ),
        ("\ufeff<p>Grüße aus Köln, und was man sonst so sagt.</p>".encode("utf-16"), "utf-8"),
        ("<p>Grüße aus Köln, und was man sonst so sagt.</p>".encode(), "no-such-charset"),
    ],
)
def test_a_page_is_read_in_its_own_encoding(reader: DocumentReader, data: bytes, charset: str) -> None:
    assert "Grüße aus Köln" in reader.read_now(data, HTML, charset=charset).text


def test_texts_in_encodings_that_nobody_named_are_guessed() -> None:
    words = "Это предложение написано по-русски, и его надо прочитать правильно. " * 5
    assert decode_text(words.encode("koi8-r")) == words
    assert decode_text(words.encode("utf-8")[:-1]).startswith("Это предложение")


def test_a_pdf_is_read_page_by_page(reader: DocumentReader) -> None:
    document = reader.read_now(samples.pdf([["First page", "of two"], ["Second page"]], "A report"), PDF)
    lines = document.text.split("\n")
    assert document.title == "A report"
    assert [lines[number - 1] for number in document.pages] == ["First page", "Second page"]
    assert lines[1] == "of two"


def test_a_pdf_without_text_says_so(reader: DocumentReader) -> None:
    assert "no text" in reader.read_now(samples.pdf([[]]), PDF).notes[0]


def test_a_word_document_keeps_its_headings(reader: DocumentReader) -> None:
    data = samples.docx(
        [("Heading1", "Plan"), ("", "We go on Monday."), ("Heading2", "Costs"), ("", "Nine.")]
    )
    assert document_type(data) == DOCX
    assert reader.read_now(data, DOCX).text == "# Plan\n\nWe go on Monday.\n\n## Costs\n\nNine."


def test_a_workbook_and_a_presentation_become_tables_and_slides(reader: DocumentReader) -> None:
    book = samples.xlsx([["city", "people"], ["Bonn", 330_000]], "Cities")
    assert document_type(book) == XLSX
    text = reader.read_now(book, XLSX).text
    assert "## Cities" in text and "| Bonn | 330000 |" in text
    show = samples.pptx([("Start", "Hello"), ("End", "Goodbye")])
    assert document_type(show) == PPTX
    slides = reader.read_now(show, PPTX)
    assert len(slides.pages) == 2
    assert "Goodbye" in slides.text.split("\n", slides.pages[1] - 1)[-1]


def test_the_bytes_say_what_a_document_is() -> None:
    assert document_type(samples.pdf([["x"]]), "text/html", "page.html") == PDF
    assert document_type(b"no pdf", "application/pdf") is None
    assert document_type(samples.packed({"a.txt": "x"}), DOCX, "a.docx") is None
    assert document_type(b"<!DOCTYPE html><p>x") == HTML
    assert document_type(b"plain words", "text/plain", "a.txt") is None
    assert document_type(b"PK\x03\x04 broken", "", "a.docx") is None


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (b"%PDF-1.7 and then nothing", PDF),
        (samples.pdf([["x"]])[:200], PDF),
        (samples.docx([("", "x")])[:-60], DOCX),
        (samples.packed({"[Content_Types].xml": "<Types/>", "word/document.xml": "<not closed"}), DOCX),
        (samples.packed({"[Content_Types].xml": "<Types/>", "xl/workbook.xml": ""}), XLSX),
    ],
)
def test_a_broken_document_is_an_error_and_the_next_one_is_read(
    reader: DocumentReader, data: bytes, mime: str
) -> None:
    with pytest.raises(DocumentError, match="could not be read"):
        reader.read_now(data, mime)
    assert reader.read_now(samples.pdf([["still here"]]), PDF).text.startswith("still here")


def test_a_document_that_unpacks_to_gigabytes_is_refused_before_it_is_unpacked(
    reader: DocumentReader,
) -> None:
    with pytest.raises(DocumentError, match="It unpacks to 300 MiB") as caught:
        reader.read_now(samples.zip_bomb(300), DOCX)
    assert caught.value.code == "document_too_large"


def test_a_bomb_that_lies_about_its_size_does_not_take_the_memory(reader: DocumentReader) -> None:
    bomb = samples.zip_bomb(300)
    small = (300 << 20).to_bytes(4, "little"), (1000).to_bytes(4, "little")
    with pytest.raises(DocumentError):
        reader.read_now(bomb.replace(*small), DOCX)


def test_entities_that_multiply_are_not_expanded(reader: DocumentReader) -> None:
    laugh = "<!DOCTYPE w [<!ENTITY a 'ha'>" + "".join(
        f"<!ENTITY {new} '{f'&{old};' * 10}'>" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    document = f"{laugh}]><w:document xmlns:w='w'><w:body>&i;</w:body></w:document>"
    data = samples.packed({"[Content_Types].xml": "<Types/>", "word/document.xml": document})
    with pytest.raises(DocumentError):
        reader.read_now(data, DOCX)


def test_elements_nested_without_end_do_not_end_the_reader(
    reader: DocumentReader, children: ChildProcesses
) -> None:
    assert "words" in reader.read_now(b"<div>" * 200 + b"words", HTML).text
    pid = children.pids
    reader.read_now(b"<b>" * 100_000 + b"words", HTML)  # the parser leaves out what is deeper than it goes
    assert "Tea" in reader.read_now(PAGE.encode(), HTML).text
    assert children.pids == pid


async def test_a_deadline_and_an_interrupt_end_what_reads_a_document(children: ChildProcesses) -> None:
    reader = DocumentReader(children)
    slow = b"<html><body>" + b"".join(b"<p>number %d of very many paragraphs</p>" % n for n in range(200_000))
    with pytest.raises(DocumentError, match=r"within 0\.3 seconds") as caught:
        await reader.read(slow, HTML, seconds=0.3)
    assert caught.value.code == "document_slow"
    task = asyncio.create_task(reader.read(slow, HTML))
    while not children.pids:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 5
    assert "Tea" in (await reader.read(PAGE.encode(), HTML)).text
