"""Charts: from what a call asks for, over rows that SQL computes, to a Vega-Lite spec, a picture and words."""

from __future__ import annotations
