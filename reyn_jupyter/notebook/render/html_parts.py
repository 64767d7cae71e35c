"""The small pieces of the HTML: escaped text, inline runs, badges, cells.

Invariant: every text goes through `escaped` (hidden characters shown, then escaped); the only attribute that carries
untrusted text is an http(s) address that the view model let through.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from reyn_jupyter.notebook.render.fit import byte_size, leading
from reyn_jupyter.notebook.render.model import Badge, Cell, Column, Span, View
from reyn_jupyter.support.sanitize import visible

_TAGS = {"strong": "strong", "emphasis": "em", "strike": "s", "code": "code"}


def escaped(text: str) -> str:
    """Text for between tags."""
    return escape(visible(text), quote=False)


def badge_row(badges: Sequence[Badge]) -> str:
    return " ".join(f'<span class="r-badge r-{badge.tone}">{escaped(badge.text)}</span>' for badge in badges)


def escaped_within(text: str, limit: int | None) -> str:
    """Escaped text within a limit."""
    whole = escaped(text)
    if limit is None or byte_size(whole) <= limit:
        return whole
    parts = [escaped(letter) for letter in text[: max(0, limit)]]
    return "".join(parts[: leading(parts, limit - 4)]) + "…"


def inline(spans: Sequence[Span], limit: int | None) -> str:
    """A run of spans; cut to a limit it loses its marks."""
    if limit is not None:
        return escaped_within("".join(span.text for span in spans), limit)
    return "".join(_span(span) for span in spans)


def _span(span: Span) -> str:
    html = escaped(span.text).replace("\n", "<br>")
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
    detail = f'<br><span class="r-quiet">{escaped(column.detail)}</span>' if column.detail else ""
    return f'<th scope="col"{side}>{escaped(column.name)}{detail}</th>'


def table_cell(cell: Cell, column: Column) -> str:
    classes = [name for name, on in (("r-right", column.right), ("r-wide", column.wide)) if on]
    text = escaped(cell.text)
    if cell.face == "badge":
        text = f'<span class="r-badge r-{cell.tone}">{text}</span>'
    elif cell.face == "code":
        text = f"<code>{text}</code>"
    elif cell.tone == "muted":
        classes.append("r-quiet")
    attribute = f' class="{" ".join(classes)}"' if classes else ""
    return f'<th scope="row"{attribute}>{text}</th>' if column.header else f"<td{attribute}>{text}</td>"


def head_of(view: View) -> str:
    """The title with its badges, and the facts under it."""
    facts = " · ".join(escaped(fact) for fact in view.facts)
    return (
        '<div class="r-head"><div class="r-top">'
        f'<span class="r-title" role="heading" aria-level="3"><strong>{escaped(view.title)}</strong></span> '
        f"{badge_row(view.badges)}</div>"
        + (f'<div class="r-facts">{facts}</div>' if facts else "")
        + "</div>"
    )
