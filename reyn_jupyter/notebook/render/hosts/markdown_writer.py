"""Write a view as Markdown, for issues, pull requests and reports.

Invariants: every text is escaped, so that nothing a tool or a model said becomes markup, and charts are the tables of
figures that they draw. Nothing is left out: what is folded in a notebook stands under its heading here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

from reyn_jupyter.notebook.render.blocks import (
    Block,
    Bullets,
    Chart,
    Code,
    Commands,
    Diff,
    Facts,
    Fold,
    Grid,
    Heading,
    Intervals,
    Lines,
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
)
from reyn_jupyter.support.sanitize import visible

if TYPE_CHECKING:
    pass

_MARKUP = re.compile(r"[`*_{}\[\]<>#|~&!]|([$\\])")
_DEEPEST_HEADING = 6
_DRAWN_FENCES = frozenset({"mermaid"})  # which JupyterLab, GitHub and others draw


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
