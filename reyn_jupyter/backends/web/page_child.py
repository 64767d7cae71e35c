"""The process that turns pages into Markdown: `python -m` of this module, started by `page_text`.

Invariants: a failure of the parser is an answer, and what it makes is bounded. Nothing is fetched: no images, no style
sheets, no entities.
"""

from __future__ import annotations

import os
import re
from typing import Any

from reyn_jupyter.backends.web.text_encoding import decode_text
from reyn_jupyter.support.encoding import clip
from reyn_jupyter.support.programs.child_process import ChildMessage, serve

_PIECE = 1 << 20
_MOST_TEXT = 60 << 20  # bytes of Markdown
_MOST_TITLE = 300
_BLANKS = re.compile(r"\n{3,}")
_PLAIN = "No main text was found: this is all of its text."


def answer(request: ChildMessage) -> ChildMessage:
    """Return the Markdown of the page whose file was handed over, or why there is none."""
    header, (descriptor,) = request.header, request.descriptors
    try:
        text, title, note = _read(_content(descriptor), header)
    except MemoryError:
        return ChildMessage({"error": "The page needs too much memory."})
    except Exception as error:  # noqa: BLE001 - parsers fail on strangers' pages in ways of their own
        why = f"{type(error).__name__}: {clip(str(error), 300)}" if str(error) else type(error).__name__
        return ChildMessage({"error": f"The page could not be read ({why})."})
    body = _BLANKS.sub("\n\n", text).encode("utf-8", "replace")
    if len(body) > _MOST_TEXT:
        body, size = body[:_MOST_TEXT].decode("utf-8", "ignore").encode(), len(body) >> 20
        note = f"Only the first {_MOST_TEXT >> 20} of {size} MiB of text are here."
    title = clip(" ".join(title.split()), _MOST_TITLE)
    return ChildMessage({"title": title, "note": note}, (body,))


def _content(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    pieces = []
    while piece := os.read(descriptor, _PIECE):
        pieces.append(piece)
    return b"".join(pieces)


def _read(data: bytes, header: Any) -> tuple[str, str, str]:
    """Return the Markdown of a page, its title, and what is to be said of it."""
    import trafilatura
    from lxml.html import HTMLParser, document_fromstring

    text = decode_text(data, header["charset"], html=True)
    if not text.strip("\ufeff\x00 \t\r\n"):
        return "", "", ""
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
    return (main, title, "") if main else (trafilatura.html2txt(tree) or "", title, _PLAIN)


def _title(tree: Any) -> str:
    for path in ("//meta[@property='og:title']/@content", "//title/text()", "//h1//text()"):
        found = next((str(each) for each in tree.xpath(path) if str(each).strip()), "")
        if found:
            return found
    return ""


if __name__ == "__main__":
    serve(answer, lambda: None)
