"""Charts drawn by the session's own process for them, which is killed when its time is up.

Invariant: neither Altair nor the native renderer is imported in this process. What comes back is bounded, and an SVG
that holds anything but drawing (a script, a link, foreign markup) is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.backends.charts.chart_drawing import ChartDrawing
from reyn_jupyter.backends.charts.chart_request import ChartError
from reyn_jupyter.support.optional_modules import is_importable
from reyn_jupyter.support.programs.child_process import (
    ChildDeadlineError,
    ChildEndedError,
    ChildLimits,
    ChildMessage,
    ChildProcess,
    ChildProcesses,
)
from reyn_jupyter.support.text import enumerate_words

SVG_BYTES = 200_000  # beyond, a picture of pixels is made
PICTURE_BYTES = 700_000
SECONDS = 60.0
INSTALL = "pip install 'reyn-jupyter[charts]'"
_MEMORY = 2_000_000_000
_PACKAGES = {"altair": "Altair", "vl_convert": "vl-convert-python"}
_ELEMENTS = frozenset({
    "svg", "g", "path", "rect", "line", "circle", "text", "tspan", "title", "defs", "clipPath",
    "linearGradient", "stop",
})  # fmt: skip
_ADDRESS = re.compile(r"url\(\s*['\"]?(?!#)|^\s*(?:javascript|data|https?):", re.IGNORECASE)


@dataclass(frozen=True)
class Picture:
    """A drawn chart: its spec, and the picture as "image/svg+xml" or "image/png"."""

    spec: dict[str, Any]
    mime: str
    data: bytes


def why_not() -> str | None:
    """Return why charts cannot be drawn here, with what installs the rest; None where they can. Imports nothing."""
    wanted = _PACKAGES | {"duckdb": "DuckDB"}
    missing = [name for module, name in wanted.items() if not is_importable(module)]
    verb = "is" if len(missing) == 1 else "are"
    return (
        f"charts need {enumerate_words(missing)}, which {verb} not installed: {INSTALL}" if missing else None
    )


def chart_child(children: ChildProcesses) -> ChildProcess:
    """Return the process of a session that draws; it starts with the first chart."""
    limits = ChildLimits(_MEMORY, PICTURE_BYTES + SVG_BYTES)
    return children.get("charts", lambda: ChildProcess("reyn_jupyter.backends.charts.chart_child", limits))


def render(child: ChildProcess, drawing: ChartDrawing, seconds: float = SECONDS) -> Picture:
    """Draw a chart; blocks, so it belongs into a worker thread.

    Raises:
        ChartError: it took too long, the process ended, or a library refused it.
    """
    with child.turn:
        try:
            answer = child.exchange(ChildMessage({"drawing": drawing.record, "longest": SVG_BYTES}), seconds)
        except ChildDeadlineError:
            raise ChartError(
                f"Drawing was stopped after {seconds:g} seconds.",
                "Draw fewer marks: a coarser bin or time unit.",
            ) from None
        except (ChildEndedError, OSError) as error:
            raise ChartError(f"The process that draws charts failed: {error}") from None
    header, data = answer.header, bytes(answer.body[0])
    if "error" in header:
        raise ChartError(f"The chart cannot be drawn: {header['error']}")
    mime, spec = header.get("mime"), header.get("spec")
    if not isinstance(spec, dict) or mime not in ("image/svg+xml", "image/png") or len(data) > PICTURE_BYTES:
        raise ChartError("The chart's picture is too large, or none.", "Draw fewer marks.")
    if mime == "image/svg+xml" and not is_plain_svg(data.decode("utf-8", "replace")):
        raise ChartError("The chart's picture holds more than a drawing, and is not shown.")
    return Picture(spec, mime, data)


def is_plain_svg(text: str) -> bool:
    """Return whether an SVG is a drawing and nothing else: no script, link, style, entity or foreign markup."""
    from xml.parsers.expat import ExpatError, ParserCreate

    foreign: list[str] = []

    def look(name: str, attributes: dict[str, str]) -> None:
        if name not in _ELEMENTS:
            foreign.append(name)
        for key, value in attributes.items():
            if key.lower().startswith("on") or "href" in key.lower() or key == "style":
                foreign.append(key)
            if not key.startswith("aria-") and not key.startswith("xmlns") and _ADDRESS.search(value):
                foreign.append(key)

    def refuse(*_: object) -> None:
        foreign.append("a declaration")

    parser = ParserCreate()
    parser.StartElementHandler = look
    parser.StartDoctypeDeclHandler = refuse
    parser.ProcessingInstructionHandler = refuse
    try:
        parser.Parse(text, True)
    except ExpatError:
        return False
    return not foreign
