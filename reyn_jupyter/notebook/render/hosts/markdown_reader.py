"""Read the Markdown of an answer into blocks.

Invariants: nothing in an answer loads or runs. HTML stays text, an image becomes its words and its host, and only
http(s) links stay links, with the host that they lead to beside them; other addresses stay plain text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from reyn_jupyter.notebook.render.blocks import (
    Block,
    Bullets,
    Cell,
    Code,
    Column,
    Grid,
    Heading,
    Mark,
    Notice,
    Paragraph,
    Quote,
    Rule,
    Span,
    number_cell,
)
from reyn_jupyter.support.network.hosts import read_host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MARKDOWN_CHARACTERS = 12_000
_LINK_CHARACTERS = 2_000
_DEEPEST = 19  # the parser's own limit of nesting is 20
_NUMBER = re.compile(r"[$€£]?([-+−]?\d[\d,]*(?:\.\d+)?) ?%?")
_MARKS: dict[str, Mark] = {"strong": "strong", "em": "emphasis", "s": "strike"}


def markdown(text: str, knob: str) -> tuple[Block, ...]:
    """Return the blocks of a Markdown text; past 12,000 characters it is cut, and says so with the `knob`.

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
        blocks = (*blocks, Notice(f"… {left:,} more characters; all of it: {knob}", "muted"))
    return blocks


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])


def _blocks(tokens: Iterator[Token], end: str) -> tuple[Block, ...]:
    """Return blocks up to the token that closes the container."""
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
    """Return a table; a column of numbers stands at the right, unless its dashes say where it stands."""
    columns: list[Column] = []
    aligned: list[bool] = []
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
                style = str(heading.attrGet("style") or "")
                aligned.append(bool(style))
                columns.append(Column(words(spans(token.children or ())), right="right" in style))
                heading = None
            case "inline":
                row.append(Cell(words(spans(token.children or ()))))
            case "tr_close" if row:
                rows.append(tuple(row))
                row = []
            case _:
                pass
    sorted_cells = [_by_value(cells) for cells in zip(*rows, strict=True)]
    for place, cells in enumerate(sorted_cells):
        if not aligned[place] and any(cell.value is not None for cell in cells):
            columns[place] = replace(columns[place], right=True)
    return Grid("", tuple(columns), tuple(zip(*sorted_cells, strict=True)))


def _by_value(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Return the cells of one column, with the values of what is written there if all of it is numbers."""
    numbers = [_NUMBER.fullmatch(cell.text) for cell in cells]
    if not all(number or not cell.text for number, cell in zip(numbers, cells, strict=True)):
        return cells
    return tuple(
        number_cell(cell.text, float(number[1].replace(",", "").replace("−", "-"))) if number else cell
        for number, cell in zip(numbers, cells, strict=True)
    )


def spans(children: Sequence[Token]) -> tuple[Span, ...]:
    """Return the inline run of a block, flat: each span carries the marks that hold for it."""
    found: list[Span] = []
    marks: list[Mark] = []
    link = ""
    for token in children:
        match token.type:
            case "code_inline":
                found.append(Span(token.content, (*marks, "code"), link_address(link)))
            case "softbreak":
                found.append(Span(" ", tuple(marks), link_address(link)))
            case "hardbreak":
                found.append(Span("\n", tuple(marks)))
            case "image":
                found.append(_image(token, tuple(marks)))
            case "link_open":
                link = str(token.attrGet("href") or "")
            case "link_close":
                found.append(Span(f" ({link_destination(link)})", (*marks, "muted")))
                link = ""
            case "strong_open" | "em_open" | "s_open":
                marks.append(_MARKS[token.type[:-5]])
            case "strong_close" | "em_close" | "s_close":
                marks.remove(_MARKS[token.type[:-6]])
            case _:
                found.append(Span(token.content, tuple(marks), link_address(link)))
    return tuple(span for span in found if span.text)


def words(run: Sequence[Span]) -> str:
    return "".join(span.text for span in run).replace("\n", " ")


def _image(token: Token, marks: tuple[Mark, ...]) -> Span:
    host = _host(str(token.attrGet("src") or ""))
    what = " ".join(part for part in (token.content.strip(), f"({host})" if host else "") if part)
    return Span(f"[image: {what}, not loaded]" if what else "[image, not loaded]", (*marks, "muted"))


def link_address(link: str) -> str:
    """Return the link itself where it may be one, else nothing: the text stays plain."""
    return link if len(link) <= _LINK_CHARACTERS and _host(link) else ""


def link_destination(link: str) -> str:
    """Return the host of a link, or the beginning of what is none."""
    return _host(link) or link[:80]


def _host(link: str) -> str:
    """Return the host that an http(s) address really leads to, in its one spelling; "" where readers do not agree.

    What stands before an @ is no part of it, but a browser ends the host at a backslash.
    """
    try:
        parts = urlsplit(link)
        return read_host(link).name if parts.scheme in ("http", "https") and parts.hostname else ""
    except ValueError:
        return ""
