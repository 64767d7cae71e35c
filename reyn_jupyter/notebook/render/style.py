"""The style of the HTML views, small enough to travel with every one of them, without its white space."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


@cache
def style(charts: bool = False) -> str:
    """The style sheet on one line: `view.css`, with `chart.css` after it for a view that holds charts."""
    names = ("view.css", "chart.css") if charts else ("view.css",)
    return "".join(_small(Path(__file__).with_name(name).read_text(encoding="utf-8")) for name in names)


def _small(sheet: str) -> str:
    sheet = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    sheet = re.sub(r"\s+", " ", sheet)
    sheet = re.sub(r" ?([{};,]) ?", r"\1", sheet)
    return (
        re.sub(r": | (?=> )|(?<=>) ", lambda match: match.group().strip(), sheet).replace(";}", "}").strip()
    )
