"""A drawn chart as a result: words for the model, spec, table, code and picture for the person.

Invariant: a chart is parts and nothing else, so that what was stored is the same chart as what was returned. The model
reads the words alone.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.charts.chart_drawing import ChartDrawing, ChartTable
from reyn_jupyter.backends.charts.renderer import PICTURE_BYTES, SVG_BYTES, Picture
from reyn_jupyter.outputs.parts.content_parts import ContentPart, ContentParts
from reyn_jupyter.support.frames import frame_of_rows

if TYPE_CHECKING:
    import pandas as pd

MIME = "application/vnd.reyn.chart+json"
_WORDS = 700  # bytes of what the model reads; the policy has room for a little more


class ChartResult(ContentParts):
    """A drawn chart.

    Attributes:
        parts: the words; a JSON part of the type `MIME` with spec, title, words, table and code; the picture.

    Example:
        >>> chart = session.invoke_action("chart__draw", {"data": "orders", "mark": "bar", "x": "region"}).value
        >>> chart.spec["mark"]["type"], chart.df.columns.tolist()
        ('bar', ['x', 'y'])
    """

    @classmethod
    def of(cls, drawing: ChartDrawing, picture: Picture) -> ChartResult:
        """Return the result of a drawing and its picture."""
        from reyn_jupyter.support.encoding import clip

        record = {
            "title": drawing.title,
            "words": drawing.words,
            "table": {
                "columns": list(drawing.table.columns),
                "rows": [list(row) for row in drawing.table.rows],
                "more": drawing.table.more,
            },
            "altair": drawing.code,
            "spec": picture.spec,
        }
        own = ContentPart(picture.mime, data=picture.data, name=drawing.title[:100], audience="person")
        return cls(
            [
                ContentPart.of_text(clip(drawing.words, _WORDS)),
                ContentPart(MIME, json=record, name="chart", audience="person"),
                own,
            ]
        )

    @property
    def _record(self) -> Mapping[str, Any]:
        held = self.parts[1].json
        return held if isinstance(held, dict) else {}

    @property
    def spec(self) -> dict[str, Any]:
        """The Vega-Lite spec, with its rows."""
        return dict(self._record["spec"])

    @property
    def svg(self) -> str:
        """The picture as SVG; "" where it is one of pixels, because it would be too long."""
        part = self.parts[2]
        return _bytes_of(part).decode() if part.mime == "image/svg+xml" else ""

    @property
    def title(self) -> str:
        return str(self._record["title"])

    @property
    def words(self) -> str:
        """What is drawn, in a sentence or two."""
        return str(self._record["words"])

    @property
    def altair(self) -> str:
        """Python that makes the same chart with Altair."""
        return str(self._record["altair"])

    @property
    def df(self) -> pd.DataFrame:
        """The rows that are drawn, a column a channel."""
        return frame_of_rows(self.spec["data"]["values"])


def _bytes_of(part: ContentPart) -> bytes:
    return part.data if part.data is not None else (part.text or "").encode()


def is_chart(types: Sequence[str]) -> bool:
    """Return whether parts of these MIME types are a chart."""
    return len(types) == 3 and types[1] == MIME


class StoredChart:
    """What a page draws of a chart's parts, checked: they may come from a file or from somebody else.

    Attributes:
        title, words, table, code: text.
        mime, picture: "image/svg+xml" or "image/png", and its content in base64; both "" where it cannot be drawn.
    """

    def __init__(self, record: Mapping[str, Any], mime: str, data: bytes) -> None:
        from reyn_jupyter.backends.charts.renderer import is_plain_svg

        self.title, self.words = _text(record.get("title"), 300), _text(record.get("words"), 2000)
        self.code = _text(record.get("altair"), 200_000)
        self.table = _table(record.get("table"))
        drawn = (
            len(data) <= SVG_BYTES and is_plain_svg(data.decode("utf-8", "replace"))
            if mime == "image/svg+xml"
            else mime == "image/png" and len(data) <= PICTURE_BYTES and data.startswith(b"\x89PNG\r\n\x1a\n")
        )
        self.mime = mime if drawn else ""
        self.picture = base64.b64encode(data).decode() if drawn else ""

    @classmethod
    def of_parts(cls, parts: Sequence[ContentPart]) -> StoredChart | None:
        """Return the chart that some parts are; None where they are none."""
        if not is_chart([part.mime for part in parts]):
            return None
        record = parts[1].json
        if not isinstance(record, Mapping):
            try:
                record = json.loads(parts[1].text or "")
            except ValueError:
                return None
        return cls(record, parts[2].mime, _bytes_of(parts[2])) if isinstance(record, Mapping) else None


def _text(value: object, most: int) -> str:
    return value[:most] if isinstance(value, str) else ""


def _table(given: object) -> ChartTable:
    table = given if isinstance(given, Mapping) else {}
    columns, rows, more = table.get("columns"), table.get("rows"), table.get("more")
    names = tuple(_text(name, 200) for name in columns[:12]) if isinstance(columns, list) else ()
    kept = [row for row in (rows if isinstance(rows, list) else [])[:60] if isinstance(row, list)]
    return ChartTable(
        names,
        tuple(
            tuple(_text(cell, 200) for cell in row[: len(names)]) for row in kept if len(row) >= len(names)
        ),
        more if type(more) is int and more >= 0 else 0,
    )
