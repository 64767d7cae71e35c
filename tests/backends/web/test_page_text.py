"""Real pages as Markdown, and pages that should hurt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from reyn_jupyter.backends.web.page_text import PageTextError, PageTextReader
from reyn_jupyter.backends.web.text_encoding import decode_text
from reyn_jupyter.support.programs.child_process import ChildProcesses

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
def reader(children: ChildProcesses) -> PageTextReader:
    return PageTextReader(children)


async def test_a_page_becomes_markdown_with_its_title_and_whole_links(reader: PageTextReader) -> None:
    page = await reader.read(PAGE.encode(), url="https://example.org/tea")
    assert page.title == "Prices of tea"
    assert "# Tea" in page.text and "## Black tea" in page.text
    assert "[two shops](https://example.org/shops)" in page.text
    assert "| green | 4 |" in page.text
    assert "alert" not in page.text and "color" not in page.text


async def test_a_page_without_an_article_is_given_with_all_of_its_text(reader: PageTextReader) -> None:
    assert "just this" in (await reader.read(b"<html><body><div>just this</div></body></html>")).text
    assert (await reader.read(b"")).text == ""


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
async def test_a_page_is_read_in_its_own_encoding(reader: PageTextReader, data: bytes, charset: str) -> None:
    assert "Grüße aus Köln" in (await reader.read(data, charset=charset)).text


def test_texts_in_encodings_that_nobody_named_are_guessed() -> None:
    words = "Это предложение написано по-русски, и его надо прочитать правильно. " * 5
    assert decode_text(words.encode("koi8-r")) == words
    assert decode_text(words.encode("utf-8")[:-1]).startswith("Это предложение")


async def test_elements_nested_without_end_do_not_end_the_reader(
    reader: PageTextReader, children: ChildProcesses
) -> None:
    assert "words" in (await reader.read(b"<div>" * 200 + b"words")).text
    pid = children.pids
    await reader.read(b"<b>" * 100_000 + b"words")  # the parser leaves out what is deeper than it goes
    assert "Tea" in (await reader.read(PAGE.encode())).text
    assert children.pids == pid


async def test_a_deadline_and_an_interrupt_end_what_reads_a_page(children: ChildProcesses) -> None:
    reader = PageTextReader(children)
    slow = b"<html><body>" + b"".join(b"<p>number %d of very many paragraphs</p>" % n for n in range(200_000))
    with pytest.raises(PageTextError, match=r"within 0\.3 seconds") as caught:
        await reader.read(slow, seconds=0.3)
    assert caught.value.code == "page_slow"
    task = asyncio.create_task(reader.read(slow))
    while not children.pids:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 100  # the rest of the page takes minutes
    assert "Tea" in (await reader.read(PAGE.encode())).text
