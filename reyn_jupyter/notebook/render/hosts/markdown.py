"""Markdown in both directions: an answer read into blocks, and a view written for issues, pull requests and reports.

Invariants: nothing in an answer loads or runs. HTML stays text, an image becomes its words and its host, and only
http(s) links stay links, with the host that they lead to beside them; other addresses stay plain text. In what is
written every text is escaped, so that nothing a tool or a model said becomes markup, and charts are the tables of
figures that they draw. Nothing is left out: what is folded in a notebook stands under its heading here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from reyn_jupyter.notebook.render.blocks import (
    Block,
    Bullets,
    Cell,
    Chart,
    Code,
    Column,
    Commands,
    Diff,
    Facts,
    Fold,
    Grid,
    Heading,
    Intervals,
    Lines,
    Mark,
    Media,
    Node,
    Notice,
    Pair,
    Paragraph,
    Quote,
    Rule,
    Scatter,
    Section,
    Span,
    Toolbar,
    ToolbarItem,
    Tree,
    View,
    number_cell,
)
from reyn_jupyter.support.network.hosts import read_host
from reyn_jupyter.support.sanitize import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it import MarkdownIt
    from markdown_it.token import Token


MARKDOWN_CHARACTERS = 12_000
_LINK_CHARACTERS = 2_000
_DEEPEST = 19  # the parser's own limit of nesting is 20
_DRAWN_FENCES = frozenset({"mermaid"})  # which JupyterLab, GitHub and others draw
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


_MARKUP = re.compile(r"[`*_{}\[\]<>#|~&!]|([$\\])")
_DEEPEST_HEADING = 6


def to_markdown(view: View) -> str:
    """Return the view as one Markdown document."""
    badges = "".join(f" [{_text(badge.text)}]" for badge in view.badges)
    facts = [_text(" · ".join(view.facts))] if view.facts else []
    parts = [f"# {_text(view.title)}{badges}", *facts, *_write_blocks(view.blocks, 2)]
    return "\n\n".join(parts) + "\n"


def _text(text: str) -> str:
    """Return text on one line, nothing of it markup."""
    return _MARKUP.sub(_escape, " ".join(visible(text).split()))


def _escape(found: re.Match[str]) -> str:
    """Return a character as itself. What begins a formula is alone in an element: pages look for formulas in what is
    drawn, too, where an escape is gone, and no formula goes beyond an element."""
    return f"<span>\\{found[0]}</span>" if found[1] else f"\\{found[0]}"


def _words(spans: Sequence[Span]) -> str:
    return "".join(
        f"**{_text(span.text)}**" if "strong" in span.marks and span.text.strip() else _kept(span.text)
        for span in spans
    )


def _kept(text: str) -> str:
    """Return as `_text`, the spaces at both ends kept, since another span follows."""
    inner = _text(text)
    return f"{' ' if text[:1].isspace() else ''}{inner}{' ' if text[-1:].isspace() and inner else ''}"


def _write_blocks(blocks: Sequence[Block], depth: int) -> list[str]:
    return [part for block in blocks for part in _write_block(block, depth) if part]


def _write_block(block: Block, depth: int) -> list[str]:  # noqa: C901 - one line a kind of block
    match block:
        case Paragraph():
            return [_words(block.spans)]
        case Heading():
            return [_title(_words(block.spans), depth)]
        case Bullets():
            marks = ("-" if block.start is None else f"{block.start + place}." for place in count())
            return [
                "\n".join(
                    f"{mark} {' '.join(_write_blocks(item, depth))}"
                    for mark, item in zip(marks, block.items, strict=False)
                )
            ]
        case Quote():
            return [f"> {part}" for part in _write_blocks(block.blocks, depth)]
        case Rule():
            return ["---"]
        case Code():
            if block.label in _DRAWN_FENCES:
                return [_fence(block.text, block.label), _text(block.more)]
            return [_text(block.label), _fence(block.text), _text(block.more)]
        case Commands():
            return [f"{_text(block.label)}:", _fence("\n".join(block.lines))]
        case Lines():
            return [_text(block.label), _fence("\n".join(block.lines)), _text(block.more)]
        case Grid():
            names = [f"{column.name} {column.detail}".strip() for column in block.columns]
            table = _write_table(names, [[cell.text for cell in row] for row in block.rows])
            return [_text(block.caption), table, _text(block.more)]
        case Tree():
            return [_fence("\n".join(_tree(block.root, 0))), _text(block.more)]
        case Diff():
            lines = "\n".join(f"{line.sign}{line.text}" for line in block.lines)
            return [_text(f"{block.path} {block.summary}"), _fence(lines, "diff"), _text(block.more)]
        case Facts():
            return ["\n".join(f"- {_text(name)}: {_text(value)}" for name, value in block.pairs)]
        case Media():
            return [_text(block.words)]
        case Chart():
            return [_text(block.words), *_write_blocks((block.table,), depth)]
        case Notice():
            return [f"> {_text(block.text)}", _text(block.hint)]
        case Section():
            return [_title(_text(block.title), depth), *_write_blocks(block.blocks, depth + 1)]
        case Fold():
            badges = "".join(f" [{_text(badge.text)}]" for badge in block.badges)
            return [
                _title(_words(block.title) + badges, depth),
                _text(block.aside),
                *_write_blocks(block.blocks, depth + 1),
            ]
        case Toolbar():
            held = [item for item in block.blocks if not item.inserts]
            return [part for item in held for part in _write_block(item, depth)]
        case ToolbarItem():
            return [_title(_text(block.label), depth), *_write_blocks(block.blocks, depth + 1)]
        case Intervals():
            rows = [[row.label, row.text, row.detail] for row in block.rows]
            return [
                _text(block.caption),
                _write_table(["", "estimate", ""], rows),
                _text(block.legend),
                _text(block.more),
            ]
        case Scatter():
            if not block.figures:
                return []  # the table that has them stands beside it
            points = [[point.label, point.text] for point in block.points]
            return [_text(block.caption), _write_table(["", f"{block.y_name}, {block.x_name}"], points)]
        case Pair():
            left = [_title(_text(block.left), depth), *_write_blocks(block.left_blocks, depth + 1)]
            return [*left, _title(_text(block.right), depth), *_write_blocks(block.right_blocks, depth + 1)]


def _title(text: str, depth: int) -> str:
    return f"{'#' * min(depth, _DEEPEST_HEADING)} {text}"


def _fence(text: str, language: str = "") -> str:
    """Return a code block; its fence is longer than any run of backticks in the text."""
    shown = visible(text)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}" if shown else ""


def _write_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        [_text(name) for name in names],
        ["---"] * len(names),
        *([_text(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _tree(node: Node, depth: int) -> list[str]:
    key = f"{node.key}: " if node.key is not None else ""
    lines = [f"{'  ' * depth}{key}{node.text}"]
    for child in node.children:
        lines += _tree(child, depth + 1)
    return lines
