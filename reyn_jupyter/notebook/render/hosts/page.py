"""An exported page: one HTML file that needs no kernel, no network and no other file.

Invariants: the renderer and the style are in it once; data stands in script elements that are no script, and nothing
in it can end them; a policy in the page lets no other script run and nothing be loaded. Without JavaScript Python's
HTML shows.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.notebook import assets
from reyn_jupyter.notebook.render.charts import escape_text
from reyn_jupyter.notebook.render.hosts.html import style

_PAGE_STYLE = (
    ":root{color-scheme:light dark}"
    "body{margin:0 auto;padding:24px 20px 48px;max-width:1100px;background:light-dark(#fff,#14171c);"
    "color:light-dark(#1c2128,#e6e9ee);font:14px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}"
    "h1{font-size:20px;margin:0 0 12px;overflow-wrap:anywhere}section{margin:0 0 16px}"
    "h2{font-size:15px;margin:20px 0 6px;overflow-wrap:anywhere}"
    "footer{font-size:12px;color:light-dark(#59636e,#9da7b3)}"
    # As under a host's dark theme, see view.css.
    "@media (prefers-color-scheme:dark){.r-picture{filter:invert(1) hue-rotate(180deg);mix-blend-mode:screen}}"
)


@dataclass(frozen=True)
class PageEntry:
    """One object of a page.

    Attributes:
        snapshot: what the renderer draws.
        html: what shows without it.
        answers: what the kernel answered when the page was written, by request: the operation's name, a space, the
            arguments as JSON with sorted keys (`request_key`).
        heading: what stands above it: the question of a run, where the page's own heading is another one.
    """

    snapshot: Mapping[str, Any]
    html: str
    answers: Mapping[str, Any] = field(default_factory=dict)
    heading: str = ""


def request_key(operation: str, arguments: Mapping[str, Any]) -> str:
    """Return the key under which an answer is found again.

    Example:
        >>> request_key("trace.part", {"run": "r", "id": "c1"})
        'trace.part {"id":"c1","run":"r"}'
    """
    return f"{operation} {json.dumps(arguments, ensure_ascii=False, sort_keys=True, separators=(',', ':'))}"


def to_page(title: str, entries: Sequence[PageEntry], note: str = "") -> str:
    """Return the page as HTML.

    Args:
        title: its heading.
        note: a line under everything: when and by what it was written.

    Raises:
        FileNotFoundError: the renderer is not built.
    """
    code, style = assets.read_module("page")
    script, sheet = _script(code), style.replace("</", "<\\/")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; media-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    body = "".join(_section(entry) for entry in entries)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape_text(title)}</title><style>{sheet}{_PAGE_STYLE}</style></head>\n"
        f"<body><main><h1>{escape_text(title)}</h1>{body}</main><footer>{escape_text(note)}</footer>\n"
        f'<script type="module">{script}</script></body></html>\n'
    )


def _section(entry: PageEntry) -> str:
    data = _data({"snapshot": entry.snapshot, "answers": entry.answers})
    shown = entry.html
    for charts in (False, True):
        shown = shown.replace(f"<style>{style(charts)}</style>", "")
    heading = f"<h2>{escape_text(entry.heading)}</h2>" if entry.heading else ""
    return (
        f'{heading}<section data-reyn><script type="application/json">{data}</script>'
        f'<div class="reyn-saved">{shown}</div></section>\n'
    )


def _data(value: Any) -> str:
    """Return JSON in which no letter can begin or end an element or a comment; half letters are replaced."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text.encode("utf-8", "replace").decode()


def _script(source: str) -> str:
    """The renderer as it may stand in a page. In JavaScript a slash may be escaped wherever these can occur."""
    return source.replace("</", "<\\/").replace("<!--", "<\\!--")
