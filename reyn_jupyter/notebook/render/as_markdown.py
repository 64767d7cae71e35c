"""A view as Markdown, for issues, pull requests and reports.

Invariant: every text is escaped, so that nothing a tool or a model said becomes markup; charts are written as the
tables of figures that they draw. Nothing is left out: what is folded in a notebook stands under its heading here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

from reyn_jupyter.notebook.render.chart_blocks import Intervals, Scatter
from reyn_jupyter.notebook.render.model import (
    Block,
    Bullets,
    Code,
    Commands,
    Diff,
    Facts,
    Fold,
    Grid,
    Heading,
    Lines,
    Message,
    Node,
    Pair,
    Paragraph,
    Quote,
    Rule,
    Section,
    Span,
    Tree,
    View,
)
from reyn_jupyter.support.sanitize import visible

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&!])")
_DEEPEST = 6


def to_markdown(view: View) -> str:
    """The view as one Markdown document."""
    badges = "".join(f" [{_text(badge.text)}]" for badge in view.badges)
    facts = [_text(" · ".join(view.facts))] if view.facts else []
    parts = [f"# {_text(view.title)}{badges}", *facts, *_blocks(view.blocks, 2)]
    return "\n\n".join(parts) + "\n"


def _text(text: str) -> str:
    """Text on one line, nothing of it markup."""
    return _MARKUP.sub(r"\\\1", " ".join(visible(text).split()))


def _words(spans: Sequence[Span]) -> str:
    return "".join(
        f"**{_text(span.text)}**" if "strong" in span.marks and span.text.strip() else _kept(span.text)
        for span in spans
    )


def _kept(text: str) -> str:
    """As `_text`, the spaces at both ends kept, since another span follows."""
    inner = _text(text)
    return f"{' ' if text[:1].isspace() else ''}{inner}{' ' if text[-1:].isspace() and inner else ''}"


def _blocks(blocks: Sequence[Block], depth: int) -> list[str]:
    return [part for block in blocks for part in _block(block, depth) if part]


def _block(block: Block, depth: int) -> list[str]:  # noqa: C901 - one line a kind of block
    match block:
        case Paragraph():
            return [_words(block.spans)]
        case Heading():
            return [_title(_words(block.spans), depth)]
        case Bullets():
            marks = ("-" if block.start is None else f"{block.start + place}." for place in count())
            return [
                "\n".join(
                    f"{mark} {' '.join(_blocks(item, depth))}"
                    for mark, item in zip(marks, block.items, strict=False)
                )
            ]
        case Quote():
            return [f"> {part}" for part in _blocks(block.blocks, depth)]
        case Rule():
            return ["---"]
        case Code():
            return [_text(block.label), _fence(block.text), _text(block.more)]
        case Commands():
            return [f"{_text(block.label)}:", _fence("\n".join(block.lines))]
        case Lines():
            return [_text(block.label), _fence("\n".join(block.lines)), _text(block.more)]
        case Grid():
            names = [f"{column.name} {column.detail}".strip() for column in block.columns]
            table = _table(names, [[cell.text for cell in row] for row in block.rows])
            return [_text(block.caption), table, _text(block.more)]
        case Tree():
            return [_fence("\n".join(_tree(block.root, 0))), _text(block.more)]
        case Diff():
            lines = "\n".join(f"{line.sign}{line.text}" for line in block.lines)
            return [_text(f"{block.path} {block.summary}"), _fence(lines, "diff"), _text(block.more)]
        case Facts():
            return ["\n".join(f"- {_text(name)}: {_text(value)}" for name, value in block.pairs)]
        case Message():
            return [f"> {_text(block.text)}", _text(block.hint)]
        case Section():
            return [_title(_text(block.title), depth), *_blocks(block.blocks, depth + 1)]
        case Fold():
            badges = "".join(f" [{_text(badge.text)}]" for badge in block.badges)
            return [
                _title(_words(block.title) + badges, depth),
                _text(block.aside),
                *_blocks(block.blocks, depth + 1),
            ]
        case Intervals():
            rows = [[row.label, row.text, row.detail] for row in block.rows]
            return [
                _text(block.caption),
                _table(["", "estimate", ""], rows),
                _text(block.legend),
                _text(block.more),
            ]
        case Scatter():
            if not block.figures:
                return []  # the table that has them stands beside it
            points = [[point.label, point.text] for point in block.points]
            return [_text(block.caption), _table(["", f"{block.y_name}, {block.x_name}"], points)]
        case Pair():
            left = [_title(_text(block.left), depth), *_blocks(block.left_blocks, depth + 1)]
            return [*left, _title(_text(block.right), depth), *_blocks(block.right_blocks, depth + 1)]


def _title(text: str, depth: int) -> str:
    return f"{'#' * min(depth, _DEEPEST)} {text}"


def _fence(text: str, language: str = "") -> str:
    """A code block; its fence is longer than any run of backticks in the text."""
    shown = visible(text)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}" if shown else ""


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
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
