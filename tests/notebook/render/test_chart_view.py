"""Charts as blocks: an image and nothing else, words and figures wherever the picture is not."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from reyn_jupyter.backends.charts.renderer import SVG_BYTES
from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.notebook.render.blocks import Chart, Grid, View
from reyn_jupyter.notebook.render.hosts.html import HTML_BYTES
from reyn_jupyter.notebook.render.hosts.markdown_writer import to_markdown
from reyn_jupyter.notebook.render.parts_view import MediaRoom, stored_parts
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.notebook.serving.view_json import SNAPSHOT_BYTES, json_size, to_snapshot
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.outputs.parts.content_parts import ContentParts
from reyn_jupyter.sessions.result_objects import Result
from tests.support.chart_samples import PLAIN, chart_parts
from tests.support.media_samples import png

WORDS = "Bar chart: sum of amount by month, 3 bars, highest Feb 1,050; from 10 rows."


def chart_of(parts: ContentParts) -> Chart:
    found = [block for block in view(Result("chart__draw", "", parts)).blocks if isinstance(block, Chart)]
    assert len(found) == 1
    return found[0]


def test_a_chart_is_an_image_named_by_its_words_over_its_figures() -> None:
    shown = view(Result("chart__draw", "", chart_parts()))
    html = to_html(shown)
    coded = base64.b64encode(PLAIN.encode()).decode()
    assert f'<img src="data:image/svg+xml;base64,{coded}" alt="{WORDS}">' in html
    assert "<svg" not in html and "<td" in html and "1,050" in html and "and 1 more" in html
    for text in (to_text(shown), to_markdown(shown)):
        assert WORDS in text and "1,050" in text and "base64" not in text


async def test_a_stored_chart_is_drawn_like_a_fresh_one() -> None:
    store = MemoryBlobStore()
    for picture in (PLAIN, PLAIN.replace("<rect", "<g></g>" * 4000 + "<rect")):
        delivered = await deliver(chart_parts(picture), store=store)
        assert delivered.blob is not None and "svg" not in delivered.text.replace("image/svg+xml", "")
        blocks = stored_parts(store, delivered.blob, Look(), "blob.parts", MediaRoom())
        [chart] = [block for block in blocks if isinstance(block, Chart)]
        assert base64.b64decode(chart.data).decode() == picture and chart.words == WORDS


@pytest.mark.parametrize(
    "picture",
    [
        "<svg onload='alert(1)'></svg>",
        '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><foreignObject/></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><image href="https://example.com/x.png"/></svg>',
        '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ><g xlink:href="https://example.com"/></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><rect fill="url(https://example.com/#a)"/></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><rect style="fill:red"/></svg>',
        '<!DOCTYPE svg [<!ENTITY a "aaaa">]><svg xmlns="http://www.w3.org/2000/svg"><text>&a;</text></svg>',
        '<?xml-stylesheet href="https://example.com"?><svg xmlns="http://www.w3.org/2000/svg"/>',
        '<svg xmlns="http://www.w3.org/2000/svg"><animate/></svg>',
        '<html xmlns="http://www.w3.org/1999/xhtml"/>',
        "no picture",
        "<svg ",
        '<svg xmlns="http://www.w3.org/2000/svg">' + "<g/>" * SVG_BYTES + "</svg>",
        "",
    ],
)
def test_a_picture_that_is_no_plain_drawing_is_words(picture: str) -> None:
    parts = chart_parts(picture)
    chart = chart_of(parts)
    assert (chart.mime, chart.data, chart.words) == ("", "", WORDS)
    html = to_html(view(Result("chart__draw", "", parts)))
    assert "<img" not in html and WORDS in html and "1,050" in html
    assert "gone, or no plain drawing" in html


def test_a_picture_of_pixels_is_one_by_its_bytes() -> None:
    assert chart_of(chart_parts(png(20, 10), "image/png")).mime == "image/png"
    assert chart_of(chart_parts(b"GIF89a", "image/png")).mime == ""
    assert chart_of(chart_parts(PLAIN, "image/gif")).mime == ""


@pytest.mark.parametrize(
    "record",
    [
        {"title": None, "words": 3, "table": [], "altair": {}},
        {"table": {"columns": "abc", "rows": 5, "more": -1}},
        {"table": {"columns": ["a"], "rows": [["x", "y"], "z", [], [5], None], "more": "9"}},
        {"title": "t" * 100_000, "words": "<b>w</b>" * 100_000, "altair": "x" * 10_000_000},
        {"table": {"columns": ["c"] * 5000, "rows": [["v" * 5000] * 5000] * 500, "more": 1 << 70}},
    ],
)
def test_a_chart_that_somebody_else_wrote_keeps_to_the_bounds(record: dict[str, Any]) -> None:
    shown = view(Result("chart__draw", "", chart_parts(**record)))
    html = to_html(shown)
    assert len(html.encode()) - len(base64.b64encode(PLAIN.encode())) <= HTML_BYTES + 64
    assert "<b>w" not in html
    to_text(shown)


def test_a_view_fits_its_bounds_beside_the_picture_and_keeps_it() -> None:
    long = {"columns": ["month", "amount"], "rows": [["<" * 80, "9" * 80]] * 60, "more": 7}
    picture = PLAIN.replace("<rect", "<g></g>" * 20_000 + "<rect")
    parts = chart_parts(picture, table=long, altair="#" * 100_000)
    shown = view(Result("chart__draw", "", parts))
    coded = base64.b64encode(picture.encode()).decode()
    html, snapshot = to_html(shown), to_snapshot(shown, "s", limit=6000)
    assert html.count(coded) == 1 and len(html.encode()) - len(coded) <= HTML_BYTES
    [chart] = [block for block in snapshot["view"]["blocks"] if block["type"] == "chart"]
    assert chart["data"] == coded and json_size(snapshot) - len(coded) <= SNAPSHOT_BYTES
    assert "left out to keep this view small" in chart["table"]["more"]


def test_a_block_takes_no_other_picture() -> None:
    empty = Grid("", (), ())
    for mime, data in (
        ("image/svg+xml", '"><script>'),
        ("text/html", "PGI+"),
        ("", "PGI+"),
        ("image/png", ""),
    ):
        with pytest.raises(ValueError, match="picture of a chart"):
            Chart("t", "w", mime, data, empty)
    assert to_html(View("result", "t", blocks=(Chart("t", "said", "", "", empty),))).count("<p>said</p>") == 1
