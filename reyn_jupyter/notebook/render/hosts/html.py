"""A view as static HTML: one scoped style, no script, nothing loaded, no text typeset as a formula.

Invariants: every text goes through `escape_text` (hidden characters shown, then escaped); the only attribute that
carries untrusted text is an http(s) address that the view model let through, or the words that stand for an image;
whatever the view holds, the HTML keeps to 32 KB (a report to 96 KB) with every tag closed, beside the data of images
and sounds, which whoever makes blocks bounds. The style travels with every view, so it is small and without white
space.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path

from reyn_jupyter.notebook.render.blocks import (
    Badge,
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
from reyn_jupyter.notebook.render.charts import (
    escape_text,
    has_charts,
    interval_row,
    intervals_closing,
    intervals_opening,
    scatter_figure,
    scatter_fold,
    scatter_table,
    titles_of,
)
from reyn_jupyter.notebook.render.hosts.fit import (
    ORDERED,
    ROOMY,
    byte_size,
    count_leading,
    fit,
    left_out_sentence,
)
from reyn_jupyter.support.sanitize import visible

# MathJax 3 and 4 (JupyterLab, Notebook 7) heed the one, MathJax 2 (nbconvert, nbviewer) the other: what a model, a cell
# of a table or a file's name says is text, and not a formula that loads an address or links elsewhere.
NOT_TYPESET = "mathjax_ignore tex2jax_ignore"
HTML_BYTES = 32 * 1024
REPORT_BYTES = 96 * 1024
_STYLES = Path(__file__).parents[1]  # the style sheets that the front end shares
_PLACE = re.compile("\x00([0-9]+)\x00")
_TAGS = {"strong": "strong", "emphasis": "em", "strike": "s", "code": "code"}


def to_html(view: View) -> str:
    """Return the view as one self-contained element, at most 32 KB (a report: 96 KB).

    Whatever had to be left out is announced in its place, with what gives all of it.
    """
    head = head_of(view)
    label = escape(visible(f"{view.kind}: {view.title}")[:120])
    css = style(has_charts(view.blocks))
    opening = f'<div class="reyn-view {NOT_TYPESET}" role="group" aria-label="{label}"><style>{css}</style>'
    page = _HtmlPage(view.knob)
    roomy = view.kind in ROOMY
    titles = titles_of(view.blocks) if roomy else []
    longest = byte_size(page.left_out([title for title in titles if title]))
    room = (REPORT_BYTES if roomy else HTML_BYTES) - byte_size(opening) - byte_size(head) - longest - 64
    parts = page.blocks(view.blocks, room, ordered=view.kind in ORDERED)
    body = "".join(parts)
    if page.dropped:
        body += page.left_out(
            [title for title, part in zip(titles, parts, strict=False) if title and not part]
        )
    return f'{opening}{head}<div class="r-body">{page.with_data(body)}</div></div>'


class _HtmlPage:
    """Draws the blocks of one view. Every method keeps to its limit, or returns ""."""

    def __init__(self, knob: str) -> None:
        self._knob = knob
        self.dropped = False
        self._data: list[str] = []

    def left_out(self, titles: Sequence[str]) -> str:
        return self._more(left_out_sentence(titles))

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
                    f"<div><dt>{escape_text(name)}</dt> <dd>{escape_text(value)}</dd></div>"
                    for name, value in block.pairs
                ]
                return self._rows('<dl class="r-list">', rows, "</dl>", limit, "facts")
            case Media():
                return self._media(block)
            case Chart():
                return self._chart(block, limit)
            case Notice():
                return self._notice(block, limit)
            case Section():
                title = (
                    f'<div class="r-sec"><p class="r-label"><strong>{escape_text(block.title)}</strong></p>'
                )
                return self._around(title, block.blocks, "</div>", limit, alone=False)
            case Fold():
                return self._fold(block, limit)
            case Toolbar():
                held = [item for item in block.blocks if item.blocks]
                return self._around('<div class="r-tools">', held, "</div>", limit, alone=False)
            case ToolbarItem():
                opening = (
                    f'<details class="r-tool"><summary>{escape_text(block.label)}</summary><div class="r-in">'
                )
                return self._around(opening, block.blocks, "</div></details>", limit, alone=False)
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
        return f'<p class="r-more">{escape_text(text + end)}</p>'

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
        """Return as many leading rows as fit; a note after the closing tag when not all do."""
        end = self._more(more, knob=False)
        if limit is None:
            return f"{opening}{''.join(rows)}{closing}{end}"
        room = limit - byte_size(opening) - byte_size(closing)
        kept = count_leading(rows, room - byte_size(end))
        if kept < len(rows):
            end = self._more(
                f"… {len(rows) - kept:,} of these {len(rows):,} {what} left out to keep this view small"
            )
            kept = count_leading(rows, room - byte_size(end))
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
        label = f'<p class="r-label">{escape_text(block.label)}</p>' if block.label else ""
        opening, closing = (
            f'<div class="r-group">{label}<pre>',
            f"</pre>{self._more(block.more, knob=False)}</div>",
        )
        whole = f"{opening}{escape_text(block.text)}{closing}"
        if limit is None or byte_size(whole) <= limit:
            return whole
        closing = f"</pre>{self._more('… cut to keep this view small')}</div>"
        return (
            f"{opening}{escape_within(block.text, limit - byte_size(opening) - byte_size(closing))}{closing}"
        )

    def _commands(self, block: Commands, limit: int | None) -> str:
        opening = f'<div class="r-cmd"><span class="r-label">{escape_text(block.label)}</span> '
        rows = [f"<code>{escape_text(line)}</code> " for line in block.lines]
        return self._rows(opening, rows, "</div>", limit, "lines")

    def _lines(self, block: Lines, limit: int | None) -> str:
        width = len(str(block.first + len(block.lines) - 1))
        rows = [
            f'<span class="r-no">{block.first + place:>{width}}</span>  {escape_text(line)}\n'
            for place, line in enumerate(block.lines)
        ]
        opening = (
            f'<pre class="r-lines" tabindex="0" role="region" aria-label="{escape(block.label or "lines")}">'
        )
        return self._rows(opening, rows, "</pre>", limit, "lines", block.more)

    def _grid(self, grid: Grid, limit: int | None) -> str:
        caption = f"<caption>{escape_text(grid.caption)}</caption>" if grid.caption else ""
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
        whole = f'<div class="r-tree">{self._node(tree.root, None, tree.levels)}</div>{end}'
        if limit is None or byte_size(whole) <= limit:
            return whole
        end = self._more("Not all of it is shown")
        room = limit - byte_size(end) - len('<div class="r-tree"></div>')
        return f'<div class="r-tree">{self._node(tree.root, room, tree.levels)}</div>{end}'

    def _node(self, node: Node, limit: int | None, levels: int) -> str:
        key = f'<span class="r-key">{escape_text(node.key)}</span>: ' if node.key is not None else ""
        if not node.children:
            html = f'<div>{key}<span class="r-{node.kind}">{escape_text(node.text)}</span></div>'
            return html if limit is None or byte_size(html) <= limit else ""
        opened = " open" if levels > 0 else ""
        opening = (
            f'<details{opened}><summary>{key}<span class="r-quiet">{escape_text(node.text)}</span></summary>'
        )
        room = None if limit is None else limit - byte_size(opening) - len("</details>")
        if room is not None and room < 0:
            return ""
        inner = fit(node.children, room, lambda child, share: self._node(child, share, levels - 1))
        return f"{opening}{''.join(inner)}</details>"

    def _diff(self, diff: Diff, limit: int | None) -> str:
        label = f"<code>{escape_text(diff.path)}</code> {escape_text(diff.summary)}"
        opening = f'<div class="r-diff"><p class="r-label">{label}</p>'
        if not diff.lines:
            return f"{opening}{self._more(diff.more, knob=False)}</div>"
        classes = {"+": ' class="r-add"', "-": ' class="r-del"', "@": ' class="r-at"'}
        rows = [
            f"<span{classes.get(line.sign, '')}>{line.sign.replace('@', '').ljust(2)}{escape_text(line.text)}\n</span>"
            for line in diff.lines
        ]
        return self._rows(f"{opening}<pre>", rows, "</pre></div>", limit, "lines", diff.more)

    def _notice(self, block: Notice, limit: int | None) -> str:
        opening, closing = f'<div class="r-msg r-{block.tone}" role="note"><p>', "</p>"
        hint = f'<p class="r-hint">{escape_text(block.hint)}</p>' if block.hint else ""
        whole = f"{opening}{escape_text(block.text)}{closing}{hint}</div>"
        if limit is None or byte_size(whole) <= limit:
            return whole
        room = limit - byte_size(opening) - byte_size(closing) - len("</div>")
        return f"{opening}{escape_within(block.text, room)}{closing}</div>"

    def _media(self, block: Media) -> str:
        """Return an image or a sound with a place for its data, which is put in when everything is fitted."""
        self._data.append(f"data:{block.mime};base64,{block.data}")
        place, alt = f"\x00{len(self._data) - 1}\x00", escape(visible(block.alt))
        caption = f"<figcaption>{escape_text(block.caption)}</figcaption>" if block.caption else ""
        if block.is_image:
            size = f' width="{block.width}" height="{block.height}"'
            return f'<figure class="r-media"><img src="{place}" alt="{alt}"{size}>{caption}</figure>'
        sound = f'<audio controls preload="metadata" src="{place}" aria-label="{alt}"></audio>'
        return f'<figure class="r-media">{sound}{caption}</figure>'

    def _chart(self, chart: Chart, limit: int | None) -> str:
        """Return the picture over the fold with its figures, of which as many as fit; the words stand for it."""
        drawn = f"<p>{escape_text(chart.words)}</p>"
        if chart.data:
            self._data.append(f"data:{chart.mime};base64,{chart.data}")
            alt = escape(visible(chart.words))
            drawn = (
                f'<figure class="r-picture"><img src="\x00{len(self._data) - 1}\x00" alt="{alt}"></figure>'
            )
        opening = '<details class="r-fold"><summary>As a table</summary><div class="r-in">'
        closing = "</div></details>"
        room = None if limit is None else limit - byte_size(drawn) - byte_size(opening) - byte_size(closing)
        return f"{drawn}{opening}{self._grid(chart.table, room)}{closing}"

    def with_data(self, body: str) -> str:
        """Return the fitted blocks with the data of their images and sounds; no text holds a NUL, see `visible`."""
        return _PLACE.sub(lambda found: self._data[int(found[1])], body) if self._data else body

    def _fold(self, fold: Fold, limit: int | None) -> str:
        aside = f' <span class="r-aside">{escape_text(fold.aside)}</span>' if fold.aside else ""
        opened = " open" if fold.open else ""
        opening = (
            f'<details class="r-fold"{opened}><summary>{badge_row(fold.badges[:1])} '
            f'<span class="r-what">{inline(fold.title, None)}</span> {badge_row(fold.badges[1:])}{aside}</summary>'
            '<div class="r-in">'
        )
        return self._around(opening, fold.blocks, "</div></details>", limit)

    def _scatter(self, chart: Scatter, limit: int | None) -> str:
        """Return the drawing over its figures; where both do not fit, as many of the figures as do."""
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


def badge_row(badges: Sequence[Badge]) -> str:
    return " ".join(
        f'<span class="r-badge r-{badge.tone}">{escape_text(badge.text)}</span>' for badge in badges
    )


def escape_within(text: str, limit: int | None) -> str:
    """Return escaped text within a limit."""
    whole = escape_text(text)
    if limit is None or byte_size(whole) <= limit:
        return whole
    parts = [escape_text(letter) for letter in text[: max(0, limit)]]
    return "".join(parts[: count_leading(parts, limit - 4)]) + "…"


def inline(spans: Sequence[Span], limit: int | None) -> str:
    """A run of spans; cut to a limit it loses its marks."""
    if limit is not None:
        return escape_within("".join(span.text for span in spans), limit)
    return "".join(_span(span) for span in spans)


def _span(span: Span) -> str:
    html = escape_text(span.text).replace("\n", "<br>")
    for mark in reversed(span.marks):
        tag = _TAGS.get(mark)
        html = f"<{tag}>{html}</{tag}>" if tag else f'<span class="r-quiet">{html}</span>'
    if span.href:
        rel = 'rel="noopener noreferrer nofollow" target="_blank"'
        return f'<a href="{escape(visible(span.href))}" {rel}>{html}</a>'
    return html


def heading(column: Column) -> str:
    if not column.name and not column.detail:
        return "<td></td>"
    side = ' class="r-right"' if column.right else ""
    detail = f'<br><span class="r-quiet">{escape_text(column.detail)}</span>' if column.detail else ""
    return f'<th scope="col"{side}>{escape_text(column.name)}{detail}</th>'


def table_cell(cell: Cell, column: Column) -> str:
    classes = [name for name, on in (("r-right", column.right), ("r-wide", column.wide)) if on]
    text = escape_text(cell.text)
    if cell.face == "badge":
        text = f'<span class="r-badge r-{cell.tone}">{text}</span>'
    elif cell.face == "code":
        text = f"<code>{text}</code>"
    elif cell.tone == "muted":
        classes.append("r-quiet")
    attribute = f' class="{" ".join(classes)}"' if classes else ""
    return f'<th scope="row"{attribute}>{text}</th>' if column.header else f"<td{attribute}>{text}</td>"


def head_of(view: View) -> str:
    """Return the title with its badges, and the facts under it."""
    facts = " · ".join(escape_text(fact) for fact in view.facts)
    return (
        '<div class="r-head"><div class="r-top">'
        f'<span class="r-title" role="heading" aria-level="3"><strong>{escape_text(view.title)}</strong></span> '
        f"{badge_row(view.badges)}</div>"
        + (f'<div class="r-facts">{facts}</div>' if facts else "")
        + "</div>"
    )


@cache
def style(charts: bool = False) -> str:
    """Return the style sheet on one line: `view.css`, with `chart.css` after it for a view that holds charts."""
    names = ("view.css", "chart.css") if charts else ("view.css",)
    return "".join(_small((_STYLES / name).read_text(encoding="utf-8")) for name in names)


def _small(sheet: str) -> str:
    sheet = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    sheet = re.sub(r"\s+", " ", sheet)
    sheet = re.sub(r" ?([{};,]) ?", r"\1", sheet)
    return (
        re.sub(r": | (?=> )|(?<=>) ", lambda match: match.group().strip(), sheet).replace(";}", "}").strip()
    )
