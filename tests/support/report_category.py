"""A category whose actions return parts: a PNG, a WAV, JSON and a link, and what a hostile server would send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool
from reyn_jupyter.outputs.parts.content_parts import ContentPart, ContentParts
from tests.support.media_samples import png, png_bomb, wav

PLOT = png(320, 200)
TONE = wav(0.25)
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" onload="window.__pwned=1"><script>window.__pwned=1</script>'
    '<image href="https://evil.example/x.png"/>'
    '<foreignObject><img src=x onerror="window.__pwned=1"/></foreignObject></svg>'
)
NAME = 'plot"><img src=x onerror="window.__pwned=1">\u202egnp'


def report() -> ContentParts:
    return ContentParts(
        (
            ContentPart.of_text("Sales by month, as a picture, a sound and figures:"),
            ContentPart("image/png", data=PLOT, name="sales.png"),
            ContentPart("audio/wav", data=TONE, name="sales.wav"),
            ContentPart.of_json({"months": [{"month": "May", "sales": 12}], "total": 12}, name="figures"),
            ContentPart.link("https://example.org/report?id=7", "The whole report", "text/html"),
        )
    )


def hostile() -> ContentParts:
    return ContentParts(
        (
            ContentPart.of_text("<script>window.__pwned=1</script>", "text/html", NAME),
            ContentPart("image/svg+xml", data=SVG.encode(), name=NAME),
            ContentPart("image/png", data=b"<svg onload='window.__pwned=1'>", name=NAME),
            ContentPart('image/png" onerror="window.__pwned=1', data=PLOT, name=NAME),
            ContentPart("image/png", data=PLOT, name=NAME),
            ContentPart("image/png", data=png_bomb(), name="bomb.png"),
            ContentPart("audio/wav", data=TONE, name=NAME),
            ContentPart.of_json(
                {"<img src=x onerror=window.__pwned=1>": "<script>window.__pwned=1</script>"}
            ),
            ContentPart.link("javascript:window.__pwned=1", NAME),
            ContentPart.link("data:text/html,<script>window.__pwned=1</script>", "data"),
            ContentPart.link("https://example.org@evil.example/", "https://example.org"),
        )
    )


RETURNS: dict[str, Callable[[], Any]] = {
    "sales": report,
    "hostile": hostile,
    "text": lambda: ContentPart.of_text("one text alone"),
    "figures": lambda: ContentPart.of_json({"total": 12}),
    "picture": lambda: ContentPart("image/png", data=PLOT, name="sales.png"),
    "private": lambda: ContentPart("image/png", data=PLOT, name="private.png", audience="person"),
}


def report_category() -> Category:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}

    def operation(name: str, make: Callable[[], Any]) -> Operation:
        async def handler(args: Any, context: Any) -> Any:
            return make()

        return Operation(name, f"Return {name}.", schema, Tool(f"report_{name}", handler, Purity.READ))

    return Category("report", "Reports with pictures.", tuple(operation(*each) for each in RETURNS.items()))
