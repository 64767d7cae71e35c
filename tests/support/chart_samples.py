"""Charts without a renderer: the parts that a drawing leaves behind, and pictures of every kind."""

from __future__ import annotations

from typing import Any

from reyn_jupyter.backends.charts.chart_result import MIME
from reyn_jupyter.outputs.parts.content_parts import ContentPart, ContentParts

SVG = "http://www.w3.org/2000/svg"
PLAIN = f'<svg xmlns="{SVG}" width="200" height="100"><rect width="200" height="100" fill="red"/></svg>'


def chart_parts(picture: str | bytes = PLAIN, mime: str = "image/svg+xml", **record: Any) -> ContentParts:
    """Return the parts of a chart as a blob, or somebody else, may hold them."""
    data = picture.encode() if isinstance(picture, str) else picture
    held = {
        "title": "sum of amount by month",
        "words": "Bar chart: sum of amount by month, 3 bars, highest Feb 1,050; from 10 rows.",
        "table": {"columns": ["month", "amount"], "rows": [["Jan", "510"], ["Feb", "1,050"]], "more": 1},
        "altair": "import altair as alt\n",
        "spec": {},
    }
    return ContentParts(
        [
            ContentPart.of_text("a chart"),
            ContentPart(MIME, json=held | record, audience="person"),
            ContentPart(mime, data=data, name="chart", audience="person"),
        ]
    )
