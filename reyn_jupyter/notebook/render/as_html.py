"""A view as static HTML: one scoped style, no script, nothing loaded.

Invariant: every text goes through `escaped` (hidden characters shown, then escaped), and whatever the view holds, the
HTML keeps to 32 KB (a report to 96 KB) with every tag closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from reyn_jupyter.notebook.render.chart_blocks import Intervals, Scatter
from reyn_jupyter.notebook.render.charts import has_charts, scatter_fold, scatter_table, titles_of
from reyn_jupyter.notebook.render.fit import ROOMY, byte_size, fit, leading, named_left_out
from reyn_jupyter.notebook.render.html_charts import (
    interval_row,
    intervals_closing,
    intervals_opening,
    scatter_figure,
)
from reyn_jupyter.notebook.render.html_parts import (
    badge_row,
    escaped,
    escaped_within,
    head_of,
    heading,
    inline,
    table_cell,
)
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
from reyn_jupyter.notebook.render.style import style
from reyn_jupyter.support.sanitize import visible

HTML_BYTES = 32 * 1024
REPORT_BYTES = 96 * 1024


def to_html(view: View) -> str:
    """The view as one self-contained element, at most 32 KB (a report: 96 KB).

    Whatever had to be left out is announced in its place, with what gives all of it.
    """
    head = head_of(view)
    label = escape(visible(f"{view.kind}: {view.title}")[:120])
    css = style(has_charts(view.blocks))
    opening = f'<div class="reyn-view" role="group" aria-label="{label}"><style>{css}</style>'
    page = _Page(view.knob)
    roomy = view.kind in ROOMY
    titles = titles_of(view.blocks) if roomy else []
    longest = byte_size(page.left_out([title for title in titles if title]))
    room = (REPORT_BYTES if roomy else HTML_BYTES) - byte_size(opening) - byte_size(head) - longest - 64
    parts = page.blocks(view.blocks, room, ordered=roomy)
    body = "".join(parts)
    if page.dropped:
        body += page.left_out(
            [title for title, part in zip(titles, parts, strict=False) if title and not part]
        )
    return f'{opening}{head}<div class="r-body">{body}</div></div>'


class _Page:
    """Draws the blocks of one view. Every method keeps to its limit, or returns ""."""

    def __init__(self, knob: str) -> None:
        self._knob = knob
        self.dropped = False

    def left_out(self, titles: Sequence[str]) -> str:
        return self._more(named_left_out(titles))

    def blocks(self, blocks: Sequence[Block], limit: int | None, *, ordered: bool = False) -> list[str]:
        parts = fit(blocks, limit, self.block, ordered=ordered)
        self.dropped = self.dropped or not all(parts)
        return parts

    def block(self, block: Block, limit: int | None) -> str:
        html = self._block(block, limit)
        return html if limit is None or byte_size(html) <= limit else ""

    def _block(self, block: Block, limit: int | None) -> str:  # noqa: C901 - one line a kind of block
        match block:
            case Paragraph():
                return self._wrapped("<p>", block.spans, "</p>", limit)
            case Heading():
                opening = f'<p class="r-h" role="heading" aria-level="{min(block.level + 3, 6)}"><strong>'
                return self._wrapped(opening, block.spans, "</strong></p>", limit)
            case Bullets():
                return self._bullets(block, limit)
            case Quote():
                return self._around("<blockquote>", block.blocks, "</blockquote>", limit)
            case Rule():
                return "<hr>"
            case Code():
                return self._code(block, limit)
            case Commands():
                return self._commands(block, limit)
            case Lines():
                return self._lines(block, limit)
            case Grid():
                return self._grid(block, limit)
            case Tree():
                return self._tree(block, limit)
            case Diff():
                return self._diff(block, limit)
            case Facts():
                rows = [
                    f"<div><dt>{escaped(name)}</dt> <dd>{escaped(value)}</dd></div>"
                    for name, value in block.pairs
                ]
                return self._rows('<dl class="r-list">', rows, "</dl>", limit, "facts")
            case Message():
                return self._message(block, limit)
            case Section():
                title = f'<div class="r-sec"><p class="r-label"><strong>{escaped(block.title)}</strong></p>'
                return self._around(title, block.blocks, "</div>", limit, alone=False)
            case Fold():
                return self._fold(block, limit)
            case Intervals():
                rows = [interval_row(row, block) for row in block.rows]
                opening, closing = intervals_opening(block), intervals_closing(block)
                return self._rows(opening, rows, closing, limit, "rows", block.more)
            case Scatter():
                return self._scatter(block, limit)
            case Pair():
                return self._pair(block, limit)

    def _more(self, text: str, knob: bool = True) -> str:
        if not text:
            return ""
        end = f"; all of it: {self._knob}" if knob and self._knob else ""
        return f'<p class="r-more">{escaped(text + end)}</p>'

    def _wrapped(self, opening: str, spans: Sequence[Span], closing: str, limit: int | None) -> str:
        whole = f"{opening}{inline(spans, None)}{closing}"
        if limit is None or byte_size(whole) <= limit:
            return whole
        return f"{opening}{inline(spans, limit - len(opening) - len(closing))}{closing}"

    def _around(
        self, opening: str, blocks: Sequence[Block], closing: str, limit: int | None, *, alone: bool = True
    ) -> str:
        """`alone`: what is around says something even where nothing fits into it; a heading over nothing does not."""
        room = None if limit is None else limit - byte_size(opening) - byte_size(closing)
        parts = self.blocks(blocks, room)
        return f"{opening}{''.join(parts)}{closing}" if alone or not blocks or any(parts) else ""

    def _rows(
        self, opening: str, rows: Sequence[str], closing: str, limit: int | None, what: str, more: str = ""
    ) -> str:
        """As many leading rows as fit; a note after the closing tag when not all do."""
        end = self._more(more, knob=False)
        if limit is None:
            return f"{opening}{''.join(rows)}{closing}{end}"
        room = limit - byte_size(opening) - byte_size(closing)
        kept = leading(rows, room - byte_size(end))
        if kept < len(rows):
            end = self._more(
                f"… {len(rows) - kept:,} of these {len(rows):,} {what} left out to keep this display small"
            )
            kept = leading(rows, room - byte_size(end))
        return f"{opening}{''.join(rows[:kept])}{closing}{end}"

    def _bullets(self, block: Bullets, limit: int | None) -> str:
        start = f' start="{block.start}"' if block.start not in (None, 1) else ""
        tag = "ul" if block.start is None else "ol"
        items = [f"<li>{self._tight(item)}</li>" for item in block.items]
        return self._rows(f"<{tag}{start}>", items, f"</{tag}>", limit, "items")

    def _tight(self, item: Sequence[Block]) -> str:
        if len(item) > 0 and isinstance(item[0], Paragraph):
            return inline(item[0].spans, None) + "".join(self.blocks(item[1:], None))
        return "".join(self.blocks(item, None))

    def _code(self, block: Code, limit: int | None) -> str:
        label = f'<p class="r-label">{escaped(block.label)}</p>' if block.label else ""
        opening, closing = (
            f'<div class="r-group">{label}<pre>',
            f"</pre>{self._more(block.more, knob=False)}</div>",
        )
        whole = f"{opening}{escaped(block.text)}{closing}"
        if limit is None or byte_size(whole) <= limit:
            return whole
        closing = f"</pre>{self._more('… cut to keep this display small')}</div>"
        return (
            f"{opening}{escaped_within(block.text, limit - byte_size(opening) - byte_size(closing))}{closing}"
        )

    def _commands(self, block: Commands, limit: int | None) -> str:
        opening = f'<div class="r-cmd"><span class="r-label">{escaped(block.label)}</span> '
        rows = [f"<code>{escaped(line)}</code> " for line in block.lines]
        return self._rows(opening, rows, "</div>", limit, "lines")

    def _lines(self, block: Lines, limit: int | None) -> str:
        width = len(str(block.first + len(block.lines) - 1))
        rows = [
            f'<span class="r-no">{block.first + place:>{width}}</span>  {escaped(line)}\n'
            for place, line in enumerate(block.lines)
        ]
        opening = (
            f'<pre class="r-lines" tabindex="0" role="region" aria-label="{escape(block.label or "lines")}">'
        )
        return self._rows(opening, rows, "</pre>", limit, "lines", block.more)

    def _grid(self, grid: Grid, limit: int | None) -> str:
        caption = f"<caption>{escaped(grid.caption)}</caption>" if grid.caption else ""
        head = "".join(heading(column) for column in grid.columns)
        opening = (
            '<div class="r-scroll" tabindex="0" role="region" aria-label="table"><table>'
            f"{caption}<thead><tr>{head}</tr></thead><tbody>"
        )
        rows = [
            f"<tr>{''.join(table_cell(cell, column) for cell, column in zip(row, grid.columns, strict=False))}</tr>"
            for row in grid.rows
        ]
        return self._rows(opening, rows, "</tbody></table></div>", limit, "rows", grid.more)

    def _tree(self, tree: Tree, limit: int | None) -> str:
        end = self._more(tree.more, knob=False)
        whole = f'<div class="r-tree">{self._node(tree.root, None, True)}</div>{end}'
        if limit is None or byte_size(whole) <= limit:
            return whole
        end = self._more("Not all of it is shown")
        room = limit - byte_size(end) - len('<div class="r-tree"></div>')
        return f'<div class="r-tree">{self._node(tree.root, room, True)}</div>{end}'

    def _node(self, node: Node, limit: int | None, is_open: bool) -> str:
        key = f'<span class="r-key">{escaped(node.key)}</span>: ' if node.key is not None else ""
        if not node.children:
            html = f'<div>{key}<span class="r-{node.kind}">{escaped(node.text)}</span></div>'
            return html if limit is None or byte_size(html) <= limit else ""
        opened = " open" if is_open else ""
        opening = (
            f'<details{opened}><summary>{key}<span class="r-quiet">{escaped(node.text)}</span></summary>'
        )
        room = None if limit is None else limit - byte_size(opening) - len("</details>")
        if room is not None and room < 0:
            return ""
        inner = fit(node.children, room, lambda child, share: self._node(child, share, False))
        return f"{opening}{''.join(inner)}</details>"

    def _diff(self, diff: Diff, limit: int | None) -> str:
        label = f"<code>{escaped(diff.path)}</code> {escaped(diff.summary)}"
        opening = f'<div class="r-diff"><p class="r-label">{label}</p>'
        if not diff.lines:
            return f"{opening}{self._more(diff.more, knob=False)}</div>"
        classes = {"+": ' class="r-add"', "-": ' class="r-del"', "@": ' class="r-at"'}
        rows = [
            f"<span{classes.get(line.sign, '')}>{line.sign.replace('@', '').ljust(2)}{escaped(line.text)}\n</span>"
            for line in diff.lines
        ]
        return self._rows(f"{opening}<pre>", rows, "</pre></div>", limit, "lines", diff.more)

    def _message(self, block: Message, limit: int | None) -> str:
        opening, closing = f'<div class="r-msg r-{block.tone}" role="note"><p>', "</p>"
        hint = f'<p class="r-hint">{escaped(block.hint)}</p>' if block.hint else ""
        whole = f"{opening}{escaped(block.text)}{closing}{hint}</div>"
        if limit is None or byte_size(whole) <= limit:
            return whole
        room = limit - byte_size(opening) - byte_size(closing) - len("</div>")
        return f"{opening}{escaped_within(block.text, room)}{closing}</div>"

    def _fold(self, fold: Fold, limit: int | None) -> str:
        aside = f' <span class="r-aside">{escaped(fold.aside)}</span>' if fold.aside else ""
        opened = " open" if fold.open else ""
        opening = (
            f'<details class="r-fold"{opened}><summary>{badge_row(fold.badges[:1])} '
            f'<span class="r-what">{inline(fold.title, None)}</span> {badge_row(fold.badges[1:])}{aside}</summary>'
            '<div class="r-in">'
        )
        return self._around(opening, fold.blocks, "</div></details>", limit)

    def _scatter(self, chart: Scatter, limit: int | None) -> str:
        """The drawing over its figures; where both do not fit, as many of the figures as do."""
        drawn = scatter_figure(chart)
        if not chart.figures:
            return drawn  # the table that has them stands beside it
        whole = drawn + self._fold(scatter_fold(chart), None)
        if limit is None or byte_size(whole) <= limit:
            return whole
        return self._grid(scatter_table(chart), limit)

    def _pair(self, pair: Pair, limit: int | None) -> str:
        sides = (Section(pair.left, pair.left_blocks), Section(pair.right, pair.right_blocks))
        return self._around('<div class="r-pair">', sides, "</div>", limit)
