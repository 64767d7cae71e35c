"""Charts of every shape: what a study shows, and values that no axis was made for."""

from __future__ import annotations

import sys
from dataclasses import replace

from hypothesis import strategies as st

from reyn_jupyter.notebook.render.blocks import (
    Block,
    Fold,
    Interval,
    Intervals,
    Notice,
    Pair,
    Paragraph,
    Point,
    Scatter,
    Section,
    Span,
    View,
)

HOSTILE = '"><script>window.ran=1</script>\u202e\x1b[31m <b>&amp;'
PERCENT = ((0.0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %"))
POINTS = ((-0.5, "−50"), (0.0, "0"), (0.5, "+50"))

RATES = Intervals(
    "lists first",
    (
        Interval("base", "36 % (26 to 47)", 0.36, 0.26, 0.47, "90 trials", 0.4),
        Interval("generic-1x", "12 % (3 to 42)", 0.12, 0.03, 0.42, "24 trials · simulated", tone="muted"),
        Interval("explicit-3x", "100 % (86 to 100)", 1.0, 0.86, 1.0, tone="good"),
        Interval("one trial", "0 %", 0.0),
    ),
    (0.0, 1.0),
    PERCENT,
    bars=True,
    legend="the mark: the true rate",
    more="12 more variants: .df",
)
DIFFERENCES = Intervals(
    "Difference, points",
    (
        Interval("b − a", "+31 (+12 to +48)", 0.31, 0.12, 0.48, "40 pairs · p = 0.004", 0.3, "good"),
        Interval("c − a", "−20 (−44 to +9)", -0.2, -0.44, 0.09, tone="bad"),
        Interval("far", "+90 (−90 to +120)", 0.9, -0.9, 1.2, tone="warn"),
        Interval("below", "−70", -0.7, reference=0.8),
    ),
    (-0.5, 0.5),
    POINTS,
    zero=0.0,
)
COSTS = Scatter(
    "Cost",
    (
        Point("base", "36 % at 1,200 tokens", 1200.0, 0.36, 0.26, 0.47),
        Point("twin of base", "37 % at 1,200 tokens", 1200.0, 0.37, 0.27, 0.48, "info"),
        Point("a variant whose name is longer than a label may be", "80 %", 1900.0, 0.8, 0.7, 0.9, "good"),
        Point("変種", "9 %", 300.0, 0.09),
        Point("beyond", "4,000 tokens", 4000.0, 1.4),
    ),
    "tokens per trial",
    "lists first",
    (0.0, 2000.0),
    (0.0, 1.0),
    ((0.0, "0"), (1000.0, "1,000"), (2000.0, "2,000")),
    PERCENT,
)
PAIR = Pair(
    "base",
    "explicit-3x",
    (Notice("passed", "good"), Paragraph((Span("listed, then read"),))),
    (Notice("failed", "bad"), RATES),
)


def hostile(block: Intervals = RATES) -> Intervals:
    row = Interval(HOSTILE, HOSTILE, 0.5, 0.1, 0.9, HOSTILE)
    return Intervals(HOSTILE, (row, *block.rows), block.axis, ((0.5, HOSTILE),), legend=HOSTILE, more=HOSTILE)


SAMPLES: dict[str, tuple[Block, ...]] = {
    "rates": (RATES,),
    "differences": (DIFFERENCES,),
    "no rows and no ticks": (Intervals("", (), (0.0, 1.0)),),
    "bare": (Intervals("", (Interval("done", "40 %", 0.4, tone="info"),), (0.0, 1.0), bars=True),),
    "costs": (COSTS,),
    "nothing measured yet": (
        Intervals(
            "", (Interval("a", "no graded trial", None, detail="0 trials"),), (0.0, 1.0), PERCENT, bars=True
        ),
    ),
    "figures beside": (replace(COSTS, figures=False),),
    "no points": (Scatter("", (), "x", "y", (0.0, 1.0), (0.0, 1.0)),),
    "side by side": (PAIR,),
    "within others": (Section("Section", (Fold((Span("Fold"),), blocks=(RATES, COSTS)),)),),
    "hostile": (hostile(),),
}


def sample(name: str) -> View:
    return View("report", name, (), (), SAMPLES[name], ".df")


_numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-2, 2),
    st.sampled_from([0.0, -0.0, 5e-324, sys.float_info.max, -sys.float_info.max]),
)
_texts = st.one_of(st.text(max_size=12), st.just(HOSTILE))
_axes = st.tuples(_numbers, _numbers).map(sorted).filter(lambda ends: ends[0] < ends[1]).map(tuple)
_ticks = st.lists(st.tuples(_numbers, _texts), max_size=4).map(tuple)
_tones = st.sampled_from(["plain", "good", "bad", "warn", "info", "muted"])
_maybe = st.none() | _numbers

intervals = st.builds(
    Intervals,
    _texts,
    st.lists(
        st.builds(Interval, _texts, _texts, _maybe, _maybe, _maybe, _texts, _maybe, _tones), max_size=5
    ).map(tuple),
    _axes,
    _ticks,
    _maybe,
    st.booleans(),
    _texts,
    _texts,
)
scatters = st.builds(
    Scatter,
    _texts,
    st.lists(st.builds(Point, _texts, _texts, _numbers, _numbers, _maybe, _maybe, _tones), max_size=5).map(
        tuple
    ),
    _texts,
    _texts,
    _axes,
    _axes,
    _ticks,
    _ticks,
    st.booleans(),
)
