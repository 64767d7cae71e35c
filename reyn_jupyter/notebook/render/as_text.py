"""A view as plain text: for terminals, logs and screen readers.

Invariant: every text passes `visible`; columns line up also for wide and combining letters; at most 4 KB (a report:
20 KB), whatever the view holds. Folds that are closed show their summary line alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from reyn_jupyter.notebook.render.chart_blocks import Intervals, Scatter
from reyn_jupyter.notebook.render.charts import scatter_table, titles_of
from reyn_jupyter.notebook.render.columns import clip_width, text_table
from reyn_jupyter.notebook.render.fit import ROOMY, byte_size, fit, leading, named_left_out
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
from reyn_jupyter.notebook.render.text_charts import intervals_lines
from reyn_jupyter.support.sanitize import visible

TEXT_BYTES = 4 * 1024
REPORT_BYTES = 20 * 1024
_TREE_LINE = 110
_AIRY = (Paragraph, Bullets, Quote, Code, Grid, Lines, Tree, Intervals, Scatter)


def to_text(view: View) -> str:
    """The view as text of at most 4 KB (a report: 20 KB); whatever was left out is announced in its place."""
    badges = "".join(f"  [{badge.text}]" for badge in view.badges)
    head = visible(view.title + badges)
    if view.facts:
        head += "\n" + visible(" · ".join(view.facts))
    roomy = view.kind in ROOMY
    page = _Page(view.knob, roomy=roomy)
    head = _clip(head, TEXT_BYTES // 4)
    blocks = [block for block in view.blocks if _shown(block)]
    titles = titles_of(blocks) if roomy else []
    room = (REPORT_BYTES if roomy else TEXT_BYTES) - byte_size(head) - 2
    room -= byte_size(page.left_out([title for title in titles if title]))
    parts = fit(blocks, room, page.spaced, ordered=roomy)
    gone = [title for title, part in zip(titles, parts, strict=False) if title and not part]
    end = page.left_out(gone) if page.dropped or not all(parts) else page.folded if roomy else ""
    return "\n".join(part for part in (head, "".join(parts).rstrip("\n"), end.rstrip("\n")) if part)


def _clip(text: str, limit: int | None) -> str:
    if limit is None or byte_size(text) <= limit:
        return text
    return text.encode("utf-8", "replace")[: limit - 3].decode("utf-8", "ignore") + "…" if limit > 3 else ""


def _words(spans: Sequence[Span]) -> str:
    """Inline text; a link shows its whole address instead of the host alone."""
    parts = []
    for place, span in enumerate(spans):
        after = spans[place + 1] if place + 1 < len(spans) else None
        parts.append(span.text)
        if span.href and (after is None or after.href != span.href):
            parts.append(f" <{span.href[:200]}>")
    return visible("".join(parts))


def _shown(block: Block) -> bool:
    """Whether a block is anything in text: a drawing whose figures stand in a table beside it is not."""
    return not isinstance(block, Scatter) or block.figures


def _least(block: Block) -> int:
    """The lines without which the start of a block says nothing: its headings and a row."""
    match block:
        case Grid():
            return 4 if any(column.detail for column in block.columns) else 3
        case Intervals():
            return 2 if block.caption else 1
        case _:
            return 0


class _Page:
    """Draws the blocks of one view; every block is lines that end with a newline."""

    def __init__(self, knob: str, *, roomy: bool = False) -> None:
        self.dropped = False
        self._knob, self._roomy = knob, roomy
        self._closed = False
        self.cut = visible(f"… cut here; all of it: {knob}\n" if knob else "… cut here\n")

    @property
    def folded(self) -> str:
        """The line that says where to read what a report has folded away, which nothing in a text unfolds."""
        return visible(f"▸ is folded; all of it: {self._knob}") if self._knob and self._closed else ""

    def left_out(self, titles: Sequence[str]) -> str:
        """The line at the end, which names what is not there at all."""
        if not titles:
            return self.cut
        return visible(named_left_out(titles) + (f"; all of it: {self._knob}" if self._knob else "")) + "\n"

    def blocks(self, blocks: Sequence[Block], limit: int | None) -> str:
        parts = fit([block for block in blocks if _shown(block)], limit, self.block)
        self.dropped = self.dropped or not all(parts)
        return "".join(parts)

    def spaced(self, block: Block, limit: int | None) -> str:
        """A block at the top, with a blank line after what reads better with one."""
        text = self.block(block, limit if limit is None else limit - 1)
        airy = isinstance(block, _AIRY) or (self._roomy and isinstance(block, Section))
        return text + "\n" if text and airy else text

    def block(self, block: Block, limit: int | None) -> str:
        lines = self._lines_of(block, limit)
        whole = "".join(f"{line}\n" for line in lines)
        if limit is None or byte_size(whole) <= limit:
            return whole
        room = limit - byte_size(self.cut)
        if room < 0:
            return ""
        kept = leading([f"{line}\n" for line in lines], room)
        if kept < _least(block):
            return ""  # a heading over nothing
        start = "".join(f"{line}\n" for line in lines[:kept])
        if not kept and lines:
            start = _clip(lines[0], room - 1) + "\n" if room > 8 else ""
        return start + self.cut

    def _lines_of(self, block: Block, limit: int | None) -> list[str]:  # noqa: C901 - one line a kind of block
        match block:
            case Paragraph():
                return _words(block.spans).split("\n")
            case Heading():
                return [f"{'#' * block.level} {_words(block.spans)}"]
            case Bullets():
                return self._bullets(block)
            case Quote():
                return [f"> {line}" for line in self._inner(block.blocks, None)]
            case Rule():
                return ["─" * 40]
            case Code():
                label = [f"{visible(block.label)}:"] if block.label else []
                return [
                    *label,
                    *(f"    {line}" for line in visible(block.text).split("\n")),
                    *self._more(block.more),
                ]
            case Commands():
                return [
                    f"{visible(block.label)}: {visible(block.lines[0])}",
                    *(f"  {visible(x)}" for x in block.lines[1:]),
                ]
            case Lines():
                return self._numbered(block)
            case Grid():
                return text_table(block, whole=self._roomy)
            case Tree():
                return [*_tree(block.root, 0), *self._more(block.more)]
            case Diff():
                head = f"{visible(block.path)} ({visible(block.summary)})"
                return [
                    head,
                    *(f"{line.sign} {visible(line.text)}" for line in block.lines),
                    *self._more(block.more),
                ]
            case Facts():
                return _facts(block)
            case Message():
                mark = {"bad": "✗ ", "warn": "! "}.get(block.tone, "")
                return [
                    *f"{mark}{visible(block.text)}".split("\n"),
                    *([f"  {visible(block.hint)}"] if block.hint else []),
                ]
            case Section():
                inner = self._inner(block.blocks, limit)
                if block.blocks and not any(line and line != self.cut.rstrip("\n") for line in inner):
                    return []  # a heading over nothing
                return [visible(block.title), *(f"  {line}".rstrip() for line in inner)]
            case Fold():
                return self._fold(block, limit)
            case Intervals():
                return intervals_lines(block)
            case Scatter():
                caption = [visible(block.caption)] if block.caption else []
                return [*caption, *text_table(scatter_table(block))]
            case Pair():
                sides = (Section(block.left, block.left_blocks), Section(block.right, block.right_blocks))
                return self._inner(sides, limit)

    def _inner(self, blocks: Sequence[Block], limit: int | None) -> list[str]:
        room = None if limit is None else limit * 9 // 10  # the rest is for indents
        return self.blocks(blocks, room).rstrip("\n").split("\n") if blocks else []

    @staticmethod
    def _more(more: str) -> list[str]:
        return [visible(more)] if more else []

    def _bullets(self, block: Bullets) -> list[str]:
        lines: list[str] = []
        for place, item in enumerate(block.items):
            mark = "•" if block.start is None else f"{block.start + place}."
            inner = self._inner(item, None) or [""]
            lines.append(f"{mark} {inner[0]}")
            lines += [f"{' ' * (len(mark) + 1)}{line}" for line in inner[1:] if line]
        return lines

    def _numbered(self, block: Lines) -> list[str]:
        width = len(str(block.first + len(block.lines) - 1))
        rows = [
            f"{block.first + place:>{width}}  {clip_width(visible(line), 160)}"
            for place, line in enumerate(block.lines)
        ]
        return [*rows, *self._more(block.more)]

    def _fold(self, fold: Fold, limit: int | None) -> list[str]:
        badges = "".join(f"  [{badge.text}]" for badge in fold.badges)
        aside = f"  {fold.aside}" if fold.aside else ""
        line = visible(f"▸ {_words(fold.title).rstrip()}{badges}{aside}")
        if not fold.open:
            self._closed = True
            return [line]
        return [line, *(f"    {inner}" for inner in self._inner(fold.blocks, limit))]


def _facts(block: Facts) -> list[str]:
    width = max((len(name) for name, _ in block.pairs), default=0)
    lines: list[str] = []
    for name, value in block.pairs:
        first, *rest = visible(value).split("\n")
        lines.append(f"{visible(name):<{width}}  {first}")
        lines += [" " * (width + 2) + line for line in rest]
    return lines


def _tree(node: Node, depth: int) -> list[str]:
    key = f"{visible(node.key)}: " if node.key is not None else ""
    lines = ["  " * depth + clip_width(key + visible(node.text), _TREE_LINE)]
    for child in node.children:
        lines += _tree(child, depth + 1)
    return lines
