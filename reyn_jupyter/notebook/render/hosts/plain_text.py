"""A view as plain text: for terminals, logs and screen readers.

Invariants: every text passes `visible`. The whole is at most 4 KB (a report: 20 KB), whatever the view holds; folds
that are closed show their summary line alone. Columns line up for every script: widths follow the Unicode East Asian
Width property, wide and full-width letters take two cells, combining marks and format characters none. The track of a
chart is 40 cells wide whatever its values, and its words follow it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import zip_longest

from reyn_jupyter.notebook.render.blocks import (
    Block,
    Bullets,
    Chart,
    Code,
    Column,
    Commands,
    Diff,
    Facts,
    Fold,
    Grid,
    Heading,
    Interval,
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
from reyn_jupyter.notebook.render.charts import Axis, beyond, interval_words, scatter_table, share, titles_of
from reyn_jupyter.notebook.render.hosts.fit import (
    ORDERED,
    ROOMY,
    byte_size,
    count_leading,
    fit,
    left_out_sentence,
)
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import count

TEXT_BYTES = 4 * 1024
REPORT_BYTES = 20 * 1024
_TREE_LINE = 110
_AIRY = (Paragraph, Bullets, Quote, Code, Grid, Lines, Tree, Intervals, Scatter, Chart)


def to_text(view: View, *, roomy: bool = False) -> str:
    """The view as text of at most 4 KB (`roomy`, or a report: 20 KB); what was left out is announced in its place."""
    badges = "".join(f"  [{badge.text}]" for badge in view.badges)
    head = visible(view.title + badges)
    if view.facts:
        head += "\n" + visible(" · ".join(view.facts))
    roomy = roomy or view.kind in ROOMY
    page = _TextPage(view.knob, roomy=roomy)
    head = _clip(head, TEXT_BYTES // 4)
    blocks = [block for block in view.blocks if _shown(block)]
    titles = titles_of(blocks) if roomy else []
    room = (REPORT_BYTES if roomy else TEXT_BYTES) - byte_size(head) - 2
    room -= byte_size(page.left_out([title for title in titles if title]))
    parts = fit(blocks, room, page.spaced, ordered=view.kind in ORDERED)
    gone = [title for title, part in zip(titles, parts, strict=False) if title and not part]
    end = page.left_out(gone) if page.dropped or not all(parts) else page.folded if roomy else ""
    return "\n".join(part for part in (head, "".join(parts).rstrip("\n"), end.rstrip("\n")) if part)


def _clip(text: str, limit: int | None) -> str:
    if limit is None or byte_size(text) <= limit:
        return text
    return text.encode("utf-8", "replace")[: limit - 3].decode("utf-8", "ignore") + "…" if limit > 3 else ""


def _words(spans: Sequence[Span]) -> str:
    """Return inline text; a link shows its whole address instead of the host alone."""
    parts = []
    for place, span in enumerate(spans):
        after = spans[place + 1] if place + 1 < len(spans) else None
        parts.append(span.text)
        if span.href and (after is None or after.href != span.href):
            parts.append(f" <{span.href[:200]}>")
    return visible("".join(parts))


def _shown(block: Block) -> bool:
    """Return whether a block is anything in text.

    Buttons are not, nor is a drawing whose figures stand in a table beside it.
    """
    match block:
        case Toolbar():
            return bool(block.words)
        case ToolbarItem():
            return False
        case Scatter():
            return block.figures
    return True


def _least(block: Block) -> int:
    """Return the lines without which the start of a block says nothing: its headings and a row."""
    match block:
        case Grid():
            return 4 if any(column.detail for column in block.columns) else 3
        case Intervals():
            return 2 if block.caption else 1
        case _:
            return 0


class _TextPage:
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
        """Return the line at the end, which names what is not there at all."""
        if not titles:
            return self.cut
        return (
            visible(left_out_sentence(titles) + (f"; all of it: {self._knob}" if self._knob else "")) + "\n"
        )

    def blocks(self, blocks: Sequence[Block], limit: int | None) -> str:
        parts = fit([block for block in blocks if _shown(block)], limit, self.block)
        self.dropped = self.dropped or not all(parts)
        return "".join(parts)

    def spaced(self, block: Block, limit: int | None) -> str:
        """Return a block at the top, with a blank line after what reads better with one."""
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
        kept = count_leading([f"{line}\n" for line in lines], room)
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
                lead = f"{visible(block.label)}: "
                space = " " * text_width(lead)
                return [
                    f"{space if place else lead}{visible(line)}" for place, line in enumerate(block.lines)
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
            case Media():
                return [visible(block.words)]
            case Chart():
                return [visible(block.words), *text_table(block.table)]
            case Notice():
                mark = {"bad": "✗ ", "warn": "! "}.get(block.tone, "")
                return [
                    *f"{mark}{visible(block.text)}".split("\n"),
                    *(f"  {line}" for line in visible(block.hint).split("\n") if block.hint),
                ]
            case Section():
                inner = self._inner(block.blocks, limit)
                if block.blocks and not any(line and line != self.cut.rstrip("\n") for line in inner):
                    return []  # a heading over nothing
                return [visible(block.title), *(f"  {line}".rstrip() for line in inner)]
            case Fold():
                return self._fold(block, limit)
            case Toolbar():
                return [visible(block.words)] if block.words else []
            case ToolbarItem():
                return []
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
        if not (fold.open or fold.printed):
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


LINE = 120
_CELL = 48
_NARROW = 20
_SENTENCE = 28
_WRAPPED = 24
_GAP = 2


def text_width(text: str) -> int:
    """Return the cells that a text takes in a terminal.

    >>> text_width("漢字"), text_width("e\\u0301")
    (4, 1)
    """
    return len(text) if text.isascii() else sum(map(_letter_width, text))


def _letter_width(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def clip_width(text: str, width: int) -> str:
    """Return text within a width; a cut ends with "…"."""
    if text_width(text) <= width:
        return text
    used = 0
    for place, letter in enumerate(text):
        used += _letter_width(letter)
        if used > width - 1:
            return text[:place] + "…"
    return text


def pad(text: str, width: int, right: bool = False) -> str:
    space = " " * (width - text_width(text))
    return space + text if right else text + space


def text_table(grid: Grid, *, whole: bool = False) -> list[str]:
    """Return the lines of a table.

    Columns that do not fit in 120 cells are left out, with a note. A table that is shown `whole` goes on with them
    below, under the same first column, and wraps sentences where it would cut them.
    """
    columns = grid.columns
    head = [[visible(column.name) for column in columns]]
    if any(column.detail for column in columns):
        head.append([visible(column.detail) for column in columns])
    body = [[visible(cell.text) for cell in row] for row in grid.rows]
    if whole and columns:
        lines = _panels(head, body, columns)
    else:
        lines, shown = _panel(head, body, columns, whole=False)
        if shown < len(columns):
            left = ", ".join(visible(column.name) for column in columns[shown : shown + 4])
            more = f"{count(len(columns) - shown, 'more column')}"
            lines.append(clip_width(f"… {more}: {left}", LINE))
    return [*lines, *(visible(text) for text in (grid.caption, grid.more) if text)]


_Rows = Sequence[Sequence[str]]


def _panels(head: _Rows, body: _Rows, columns: Sequence[Column]) -> list[str]:
    """Return all columns, as many as fit at a time, each time beside the first one."""
    lines: list[str] = []
    rest = list(range(1, len(columns)))
    while rest or not lines:
        places = [0, *rest]

        def part(rows: _Rows, places: Sequence[int] = places) -> list[list[str]]:
            return [[row[place] if place < len(row) else "" for place in places] for row in rows]

        panel, shown = _panel(part(head), part(body), [columns[place] for place in places], whole=True)
        lines += ["", *panel] if lines else panel
        rest = rest[max(1, shown - 1) :]
    return lines


def _panel(head: _Rows, body: _Rows, columns: Sequence[Column], *, whole: bool) -> tuple[list[str], int]:
    """Return a table of the first columns that fit side by side, and how many those are."""
    widths = _widths([*head, *body], columns, whole)
    lines = [_line(row, columns, widths) for row in head]
    lines.append("  ".join("─" * width for width in widths))
    for row in body:
        cells = [
            wrap(text, width) if whole and column.wide else [text]
            for text, width, column in zip(row, widths, columns, strict=False)
        ]
        lines += [_line(each, columns, widths) for each in zip_longest(*cells, fillvalue="")] or [""]
    return lines, len(widths)


def wrap(text: str, width: int) -> list[str]:
    """Return a text as lines of at most a width, broken between words.

    >>> wrap("it is a long way", 8)
    ['it is a', 'long way']
    """
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and text_width(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [clip_width(line, width) for line in lines]


def _widths(rows: _Rows, columns: Sequence[Column], whole: bool) -> list[int]:
    """A width for each column that is shown: the widest give way first, then the last columns go."""
    widths = [
        min(_CELL, max((text_width(row[place]) for row in rows if place < len(row)), default=1)) or 1
        for place in range(len(columns))
    ]
    usual, sentence = (_CELL, _WRAPPED) if whole else (_NARROW, _SENTENCE)
    least = [_CELL if column.whole else sentence if column.wide else usual for column in columns]
    while widths and (over := sum(widths) + _GAP * (len(widths) - 1) - LINE) > 0:
        widest = max(range(len(widths)), key=lambda place: widths[place] - least[place])
        if widths[widest] <= least[widest]:
            widths.pop()
        else:
            widths[widest] = max(least[widest], widths[widest] - over)
    return widths


def _line(row: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    cells = [
        pad(clip_width(text, width), width, column.right)
        for text, width, column in zip(row, widths, columns, strict=False)
    ]
    return "  ".join(cells).rstrip()


TRACK = 40
_LABEL = 28


def intervals_lines(chart: Intervals) -> list[str]:
    """Return a chart as lines: title, a line a row, the axis with its ticks, what the marks mean."""
    labels = [clip_width(visible(row.label), _LABEL) for row in chart.rows]
    width = max(map(text_width, labels), default=0)
    lines = [visible(chart.caption)] if chart.caption else []
    if not chart.rows:
        lines.append("nothing to draw")
    for label, row in zip(labels, chart.rows, strict=True):
        said = interval_words(row, chart.axis) + (f"; {row.detail}" if row.detail else "")
        line = f"{pad(label, width)}  {_track(row, chart)}  {visible(said)}"
        lines.append(clip_width(line, LINE + 40))
    if chart.ticks and chart.rows:
        lines += [f"{' ' * width}  {line}" for line in _axis(chart)]
    lines += [visible(text) for text in (chart.legend, chart.more) if text]
    return lines


def _cell(value: float, axis: Axis) -> int:
    return int(share(value, axis) * (TRACK - 1) + 0.5)


def _track(row: Interval, chart: Intervals) -> str:
    cells = [" "] * TRACK
    at = None if row.estimate is None else _cell(row.estimate, chart.axis)
    if chart.bars and at is not None:
        cells[:at] = "░" * at
    if chart.zero is not None:
        cells[_cell(chart.zero, chart.axis)] = "┊"
    if row.low is not None and row.high is not None:
        low, high = _cell(row.low, chart.axis), _cell(row.high, chart.axis)
        for place in range(low, high + 1):
            cells[place] = "─"
        cells[low], cells[high] = "├", "┤"
    if row.reference is not None:
        cells[_cell(row.reference, chart.axis)] = "○"
    if at is not None:
        cells[at] = "◉" if cells[at] == "○" else "●"
    before, after = beyond(row, chart.axis)
    if before:
        cells[0] = "◂"
    if after:
        cells[-1] = "▸"
    return "".join(cells)


def _axis(chart: Intervals) -> list[str]:
    line = ["─"] * TRACK
    texts = [" "] * TRACK
    free = 0
    for value, text in sorted(chart.ticks):
        at = _cell(value, chart.axis)
        line[at] = "┴"
        said = clip_width(visible(text), 10)
        start = min(max(at - text_width(said) // 2, 0), TRACK - text_width(said))
        if start >= free and text_width(said) == len(said):
            texts[start : start + len(said)] = said
            free = start + len(said) + 1
    return ["".join(line), "".join(texts).rstrip()]
