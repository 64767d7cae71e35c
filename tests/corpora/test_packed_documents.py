"""Real PDF, office and HTML files, whole and broken, in the process that reads them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from reyn_jupyter.corpora.document import Document, UnreadableError
from reyn_jupyter.corpora.packed_documents import KINDS, document_child, read_packed
from reyn_jupyter.support.programs.child_process import ChildProcesses
from tests.support.document_samples import encrypted_pdf, pdf, sheets, slides, word, zip_bomb


@pytest.fixture(scope="module")
def children() -> Iterator[ChildProcesses]:
    with ChildProcesses() as made:
        yield made


class Reads:
    def __init__(self, folder: Path, children: ChildProcesses) -> None:
        self.folder, self.children = folder, children

    def __call__(self, name: str, content: bytes, seconds: float = 60.0) -> Document:
        file = self.folder / name
        file.write_bytes(content)
        with file.open("rb") as opened:
            return read_packed(KINDS[file.suffix], opened, self.children, seconds)


@pytest.fixture
def read(tmp_path: Path, children: ChildProcesses) -> Reads:
    return Reads(tmp_path, children)


def outline(document: Document) -> list[tuple[str, str, int]]:
    return [(" › ".join(each.heading), each.unit, each.first) for each in document.sections]


def test_a_pdf_is_its_pages(read: Reads) -> None:
    document = read("a.pdf", pdf("First page\nabout cats", "", "Third page", title="Animals"))
    assert outline(document) == [("", "page", 1), ("", "page", 3)]
    assert "about cats" in document.sections[0].text and document.facts == {"title": "Animals"}


def test_a_word_document_is_its_headings_with_its_tables(read: Reads) -> None:
    rows = [["Plan", "Price"], ["Team", "20"]]
    document = read(
        "a.docx",
        word(("Title", "Guide"), ("Normal", "Intro."), ("Heading 2", "Prices"), ("Normal", "Low."), rows),
    )
    assert outline(document) == [("Guide", "section", 1), ("Guide › Prices", "section", 2)]
    assert "| Team | 20 |" in document.sections[1].text


def test_a_deck_is_its_slides_and_a_workbook_its_rows(read: Reads) -> None:
    deck = read("a.pptx", slides(("Goals", "Grow"), ("Risks", "Rain")))
    assert outline(deck) == [("Goals", "slide", 1), ("Risks", "slide", 2)] and "Rain" in deck.sections[1].text
    book = read("a.xlsx", sheets(Stock=[["item", "left"], ["nails", 3], [None, None], ["screws", 4]]))
    assert outline(book) == [("Stock", "row", 1)]
    assert book.sections[0].text.split("\n")[3] == "item: screws; left: 4"


def test_a_page_of_html_is_its_text_without_what_runs(read: Reads) -> None:
    story = " ".join(f"Sentence number {n} of the story about the harbour." for n in range(30))
    head = "<html><head><title>Harbour</title><script>evil()</script></head><body><nav>Menu</nav>"
    page = f"{head}<article><h1>Boats</h1><p>{story}</p><h2>Tides</h2><p>{story}</p></article></body></html>"
    document = read("a.html", page.encode())
    assert [heading for heading, _, _ in outline(document)] == ["Harbour › Boats", "Harbour › Boats › Tides"]
    assert "evil" not in str(document)
    assert "Tiny." in read("b.html", b"<title>x</title><p>Tiny.</p><script>evil()</script>").sections[0].text


def xml_bomb() -> bytes:
    """Return a Word document whose text would be a thousand million letters."""
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    xml = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "a">{entities}]><x>&e9;</x>'
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(word(("Normal", "x")))) as real, zipfile.ZipFile(out, "w") as packed:
        for name in real.namelist():
            packed.writestr(name, xml if name == "word/document.xml" else real.read(name))
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.pdf", pdf("text")[:200], "damaged|no text"),
        ("a.pdf", b"", "damaged"),
        ("a.pdf", encrypted_pdf("text", "secret"), "is encrypted"),
        ("a.pdf", pdf(""), "holds no text"),
        ("a.docx", b"PK\x03\x04 broken", "is damaged"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "is encrypted, or of an old format"),
        ("a.docx", partial(zip_bomb, 300 << 20), "would unpack to more"),
        ("a.docx", xml_bomb(), "damaged|memory|ended"),
        ("a.xlsx", word(("Normal", "no sheet")), "damaged"),
        ("a.html", b"", "damaged|no"),
    ],
    # The contents name no test: files that are made here hold the time, and each test process makes its own.
    ids=lambda value: value if isinstance(value, str) else "content",
)
def test_what_cannot_be_read_is_refused_with_the_reason_and_the_process_goes_on(
    read: Reads, name: str, content: bytes | Callable[[], bytes], why: str
) -> None:
    with pytest.raises(UnreadableError, match=why):
        read(name, content() if callable(content) else content)
    assert read("good.pdf", pdf("still here")).sections


def test_a_document_that_takes_too_long_ends_the_process_and_the_next_one_starts_another(read: Reads) -> None:
    read("a.pdf", pdf("ready"))
    before = document_child(read.children).pid
    with pytest.raises(UnreadableError, match="took longer than"):
        read("a.pdf", pdf("x"), seconds=0.0)
    assert read("a.pdf", pdf("ready")).sections and document_child(read.children).pid != before
