"""The style of the HTML views, small enough to travel with every one of them: `view.css` without its white space."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


@cache
def style() -> str:
    """The style sheet on one line."""
    sheet = Path(__file__).with_name("view.css").read_text(encoding="utf-8")
    sheet = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    sheet = re.sub(r"\s+", " ", sheet)
    sheet = re.sub(r" ?([{};,]) ?", r"\1", sheet)
    return (
        re.sub(r": | (?=> )|(?<=>) ", lambda match: match.group().strip(), sheet).replace(";}", "}").strip()
    )
