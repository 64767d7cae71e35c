"""Charts made by Altair and drawn by the native renderer. For the process of `chart_child` alone.

The spec is built by Altair from lists and names of our own, holds its rows, and names no address; the renderer is told
that none may be read.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import vl_convert

from reyn_jupyter.backends.charts.chart_drawing import CLASSES
from reyn_jupyter.backends.charts.chart_theme import CONFIG
from reyn_jupyter.support.programs.child_process import ChildMessage

_LONGEST_MESSAGE = 600
_SCALE = 1.5  # pixels of a picture for one of the chart

alt.data_transformers.enable("default", consolidate_datasets=False)  # the rows stand in data.values


def spec_of(drawing: dict[str, Any]) -> dict[str, Any]:
    """Return the Vega-Lite spec of a drawing, checked by Altair against its schema."""
    layers = [
        getattr(alt.Chart(), f"mark_{mark}")(**options).encode(
            **{channel: getattr(alt, CLASSES[channel])(**given) for channel, given in encodings.items()}
        )
        for mark, options, encodings in drawing["layers"]
    ]
    chart = layers[0] if len(layers) == 1 else alt.layer(*layers)
    title = alt.Title(drawing["title"], subtitle=drawing["subtitle"])
    chart = chart.properties(
        data=alt.InlineData(values=drawing["values"]),
        title=title,
        width=drawing["width"],
        height=drawing["height"],
    )
    spec: dict[str, Any] = chart.configure(**CONFIG).to_dict()
    return spec


def answer(request: ChildMessage) -> ChildMessage:
    """Return the spec in the header, and the picture beside it: SVG, or PNG where the SVG is too long."""
    drawing, longest = request.header["drawing"], int(request.header["longest"])
    try:
        spec = spec_of(drawing)
        version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
        svg = vl_convert.vegalite_to_svg(spec, vl_version=version, allowed_base_urls=[]).encode()
        if len(svg) <= longest:
            return ChildMessage({"spec": spec, "mime": "image/svg+xml"}, (svg,))
        picture = vl_convert.vegalite_to_png(spec, vl_version=version, scale=_SCALE, allowed_base_urls=[])
        return ChildMessage({"spec": spec, "mime": "image/png"}, (picture,))
    except Exception as error:  # noqa: BLE001 - whatever a library says of a chart is its reader's
        words = " ".join(f"{type(error).__name__}: {error}".split())
        return ChildMessage({"error": words[:_LONGEST_MESSAGE]})
