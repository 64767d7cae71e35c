"""An answer in Markdown, read into blocks.

Invariant: nothing in an answer loads or runs. HTML stays text, an image becomes its words and its host, and only
http(s) links stay links, with the host that they lead to beside them. Other addresses stay plain text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from reyn_jupyter.notebook.render.model import (
    Block,
    Bullets,
    Cell,
    Code,
    Column,
    Grid,
    Heading,
    Mark,
    Message,
    Paragraph,
    Quote,
    Rule,
    Span,
    number_cell,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MARKDOWN_CHARACTERS = 12_000
_LINK_CHARACTERS = 2_000
_DEEPEST = 19  # the parser's own limit of nesting is 20
_NUMBER = re.compile(r"\$?(-?\d[\d,]*(?:\.\d+)?) ?%?")
_MARKS: dict[str, Mark] = {"strong": "strong", "em": "emphasis", "s": "strike"}


def markdown(text: str, knob: str) -> tuple[Block, ...]:
    """The blocks of a Markdown text; past 12,000 characters it is cut, and says so with the `knob`.

    >>> markdown("**4** regions", "trace.answer")[0].spans[0]
    Span(text='4', marks=('strong',), href='')
    """
    cut = len(text) > MARKDOWN_CHARACTERS
    tokens = _parser().parse(text[:MARKDOWN_CHARACTERS])
    if max((token.level for token in tokens), default=0) >= _DEEPEST:
        # The parser drops what lies deeper; as it was written nothing is lost.
        return (Code(text[:MARKDOWN_CHARACTERS], "as written", f"All of it: {knob}" if cut else ""),)
    blocks = _blocks(iter(tokens), "")
    if cut:
        left = len(text) - MARKDOWN_CHARACTERS
        blocks = (*blocks, Message(f"… {left:,} more characters; all of it: {knob}", "muted"))
    return blocks


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])


def _blocks(tokens: Iterator[Token], end: str) -> tuple[Block, ...]:
    """Blocks up to the token that closes the container."""
    blocks: list[Block] = []
    for token in tokens:
        if token.type == end:
            break
        block = _block(token, tokens)
        if block is not None:
            blocks.append(block)
    return tuple(blocks)


def _block(token: Token, tokens: Iterator[Token]) -> Block | None:
    match token.type:
        case "paragraph_open":
            return Paragraph(_inline_until(tokens, "paragraph_close"))
        case "heading_open":
            return Heading(int(token.tag[1:]), _inline_until(tokens, "heading_close"))
        case "bullet_list_open":
            return Bullets(_items(tokens, "bullet_list_close"))
        case "ordered_list_open":
            return Bullets(_items(tokens, "ordered_list_close"), int(token.attrGet("start") or 1))
        case "blockquote_open":
            return Quote(_blocks(tokens, "blockquote_close"))
        case "fence" | "code_block":
            return Code(token.content.removesuffix("\n"), token.info.strip().partition(" ")[0][:30])
        case "hr":
            return Rule()
        case "table_open":
            return _table(tokens)
        case "inline":
            return Paragraph(spans(token.children or ()))
        case _:
            return None


def _inline_until(tokens: Iterator[Token], end: str) -> tuple[Span, ...]:
    found: tuple[Span, ...] = ()
    for token in tokens:
        if token.type == end:
            break
        found += spans(token.children or ())
    return found


def _items(tokens: Iterator[Token], end: str) -> tuple[tuple[Block, ...], ...]:
    items: list[tuple[Block, ...]] = []
    for token in tokens:
        if token.type == end:
            break
        if token.type == "list_item_open":
            items.append(_blocks(tokens, "list_item_close"))
    return tuple(items)


def _table(tokens: Iterator[Token]) -> Grid:
    columns: list[Column] = []
    rows: list[tuple[Cell, ...]] = []
    row: list[Cell] = []
    heading: Token | None = None
    for token in tokens:
        match token.type:
            case "table_close":
                break
            case "th_open":
                heading = token
            case "inline" if heading is not None:
                right = "right" in str(heading.attrGet("style") or "")
                columns.append(Column(words(spans(token.children or ())), right=right))
                heading = None
            case "inline":
                row.append(Cell(words(spans(token.children or ()))))
            case "tr_close" if row:
                rows.append(tuple(row))
                row = []
            case _:
                pass
    sorted_cells = [_by_value(cells) for cells in zip(*rows, strict=True)]
    return Grid("", tuple(columns), tuple(zip(*sorted_cells, strict=True)))


def _by_value(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """The cells of one column, with the values of what is written there if all of it is numbers."""
    numbers = [_NUMBER.fullmatch(cell.text) for cell in cells]
    if not all(number or not cell.text for number, cell in zip(numbers, cells, strict=True)):
        return cells
    return tuple(
        number_cell(cell.text, float(number[1].replace(",", ""))) if number else cell
        for number, cell in zip(numbers, cells, strict=True)
    )


def spans(children: Sequence[Token]) -> tuple[Span, ...]:
    """The inline run of a block, flat: each span carries the marks that hold for it."""
    found: list[Span] = []
    marks: list[Mark] = []
    link = ""
    for token in children:
        match token.type:
            case "code_inline":
                found.append(Span(token.content, (*marks, "code"), _address(link)))
            case "softbreak":
                found.append(Span(" ", tuple(marks), _address(link)))
            case "hardbreak":
                found.append(Span("\n", tuple(marks)))
            case "image":
                found.append(_image(token, tuple(marks)))
            case "link_open":
                link = str(token.attrGet("href") or "")
            case "link_close":
                found.append(Span(f" ({_destination(link)})", (*marks, "muted")))
                link = ""
            case "strong_open" | "em_open" | "s_open":
                marks.append(_MARKS[token.type[:-5]])
            case "strong_close" | "em_close" | "s_close":
                marks.remove(_MARKS[token.type[:-6]])
            case _:
                found.append(Span(token.content, tuple(marks), _address(link)))
    return tuple(span for span in found if span.text)


def words(run: Sequence[Span]) -> str:
    return "".join(span.text for span in run).replace("\n", " ")


def _image(token: Token, marks: tuple[Mark, ...]) -> Span:
    host = _host(str(token.attrGet("src") or ""))
    what = " ".join(part for part in (token.content.strip(), f"({host})" if host else "") if part)
    return Span(f"[image: {what}, not loaded]" if what else "[image, not loaded]", (*marks, "muted"))


def _address(link: str) -> str:
    """The link itself where it may be one, else nothing: the text stays plain."""
    return link if len(link) <= _LINK_CHARACTERS and _host(link) else ""


def _destination(link: str) -> str:
    return _host(link) or link[:80]


def _host(link: str) -> str:
    """The host that an http(s) address really leads to: what stands before an @ is no part of it."""
    try:
        parts = urlsplit(link)
        return (parts.hostname or "") if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""
