"""The look of charts: readable on their own white ground, wherever a host puts them.

Invariants: a picture in a page knows nothing of the page's theme, so that a chart brings its ground; hosts in the dark
turn its lightness round (`filter` in `view.css`), which keeps the hues. Text has a contrast of 4.5 : 1 or more against
the ground and marks one of 3 : 1, in both. No font is named but the generic one.
"""

from __future__ import annotations

from typing import Any

GROUND = "#ffffff"
TEXT = "#3a4048"
_LINE = "#d5d9df"
PALETTE = (
    "#2f6db5", "#bf5a1c", "#38874b", "#ad3d66", "#7759b3", "#8a6d1a", "#1c8585", "#9b4a94", "#5d6978", "#b0483a",
    "#4f7d2c",
)  # fmt: skip
_AXIS = {
    "labelColor": TEXT, "titleColor": TEXT, "tickColor": _LINE, "domainColor": _LINE, "gridColor": "#eceef1",
    "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 160, "titleLimit": 420,
}  # fmt: skip
_LEGEND = {
    "labelColor": TEXT, "titleColor": TEXT, "labelFontSize": 11, "titleFontSize": 12,
    "titleFontWeight": "normal", "labelLimit": 160, "titleLimit": 200,
}  # fmt: skip

CONFIG: dict[str, Any] = {
    "aria": False,  # a page reads the words beside the picture
    "background": GROUND,
    "font": "sans-serif",
    "padding": 10,
    "view": {"stroke": None},
    "axis": _AXIS,
    "legend": _LEGEND,
    "header": {"labelColor": TEXT, "titleColor": TEXT, "labelLimit": 160, "titleLimit": 420},
    "title": {
        "color": TEXT, "subtitleColor": TEXT, "anchor": "start", "fontSize": 14, "subtitleFontSize": 11,
        "fontWeight": "bold", "offset": 12,
    },
    "range": {"category": list(PALETTE), "heatmap": ["#dfe9f5", "#123f73"], "ramp": ["#dfe9f5", "#123f73"]},
    "mark": {"color": PALETTE[0]},
}  # fmt: skip
