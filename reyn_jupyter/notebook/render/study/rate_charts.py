"""Rates and differences as charts whose figures stand beside them in words.

Invariant: a variant that was tried has a row, whether anything of it could be graded or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reyn_jupyter.evaluation.results.report import format_figure
from reyn_jupyter.evaluation.statistics.arms import significant
from reyn_jupyter.evaluation.statistics.rates import Mean, Rate
from reyn_jupyter.notebook.render.blocks import Block, Interval, Intervals, Tone
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.plan.scenario import Source
    from reyn_jupyter.evaluation.results.comparison import Comparison
    from reyn_jupyter.evaluation.results.report import Figure, Report
    from reyn_jupyter.evaluation.statistics.paired import Difference
    from reyn_jupyter.notebook.render.value_text import Look

_WINS = {True: ["better"], False: ["worse"]}
PERCENT = tuple((share, f"{100 * share:.0f} %") for share in (0.0, 0.25, 0.5, 0.75, 1.0))
POINT_TICKS = tuple(
    (share, f"{100 * share:+.0f}".replace("-", "−").replace("+0", "0"))
    for share in (-1.0, -0.5, 0.0, 0.5, 1.0)
)


def percent(found: Rate) -> str:
    """Return a rate and its interval: ``36 % (26 to 47)``."""
    return f"{100 * found.estimate:.0f} % ({100 * found.low:.0f} to {100 * found.high:.0f})"


def beside(text: str, source: Source) -> str:
    """Return what stands beside a figure, with its source where that is no real model and not said already.

    >>> beside("36 %", "simulated"), beside("offline", "offline")
    ('36 % · simulated', 'offline')
    """
    return text if source in ("real", text) else f"{text} · {source}"


def measured(found: Rate | Mean) -> str:
    """Return a rate or a mean, with its interval."""
    if isinstance(found, Rate):
        return percent(found)
    text = f"{significant(found.estimate)} a trial"
    if found.low is None or found.high is None:
        return text
    return f"{text} ({significant(found.low)} to {significant(found.high)})"


def tone_of(source: Source) -> Tone:
    """Return the tone of a bar: what no real model did is grey."""
    return "plain" if source == "real" else "muted"


def legend(level: float, reference: str = "") -> str:
    """Return what the marks of a chart mean."""
    return f"lines: {100 * level:.0f} % intervals" + (f"; ring: {reference}" if reference else "")


def rates(report: Report, look: Look) -> list[Block]:
    """Return the primary check's rate of every variant, those too of which nothing could be graded."""
    shown = [found[report.evidence.primary] for found in report.figures.values()]
    known = [figure.found for figure in shown if figure.found is not None]
    if not known or shown[0].check.numeric:
        return []
    true = "the true rate, from the simulator's table" if any(f.truth is not None for f in shown) else ""
    rows = tuple(_rate_row(figure, look) for figure in shown)
    said_ = legend(known[0].level, true)
    return [Intervals(shown[0].check.title, rows, (0.0, 1.0), PERCENT, bars=True, legend=said_)]


def _rate_row(figure: Figure, look: Look) -> Interval:
    found = figure.found
    detail = []
    if found is not None:
        detail.append(f"{count(found.trials, 'trial')}, {count(found.scenarios, 'scenario')}")
    detail += [f"true {100 * figure.truth:.0f} %"] if figure.truth is not None else []
    detail += [f"{figure.missing} missing"] if figure.missing else []
    detail += [f"n/a {figure.not_applicable}"] if figure.not_applicable else []
    detail += [figure.source] if figure.source != "real" else []
    return Interval(
        look.line(figure.variant, 60), format_figure(figure),
        None if found is None else found.estimate, None if found is None else found.low,
        None if found is None else found.high, " · ".join(detail), figure.truth, tone_of(figure.source),
    )  # fmt: skip


def estimate_rows(
    found: Mapping[str, Rate | Mean], sources: Mapping[str, Source], missing: Mapping[str, int], look: Look
) -> tuple[Interval, ...]:
    """Return a rate for each variant of a run, in its order from the beginning on, so that nothing moves while it
    goes on."""
    rows = []
    for variant in dict.fromkeys((*sources, *found)):
        rate, source = found.get(variant), sources.get(variant, "real")
        detail = count(rate.trials if rate is not None else 0, "trial")
        detail += f", {missing[variant]} missing" if missing.get(variant) else ""
        row = Interval(look.line(variant, 60), "no graded trial", None, detail=beside(detail, source))
        if isinstance(rate, Rate):
            row = replace(row, text=percent(rate), estimate=rate.estimate, low=rate.low, high=rate.high)
        rows.append(replace(row, tone=tone_of(source)))
    return tuple(rows)


def differences(comparisons: Sequence[Comparison], look: Look) -> list[Block]:
    """Return the difference of each comparison; of a single one, that of each family too."""
    if not comparisons:
        return []
    first = comparisons[0]
    same = all(found.a == first.a for found in comparisons)
    rows: list[Interval] = []
    for found in comparisons:
        b, a = look.line(found.b, 60), look.line(found.a, 60)
        rows.append(_difference_row(b if same else f"{b} − {a}", found.difference, found, _tone(found)))
        if (
            len(comparisons) == 1
        ):  # among several, their families would push the whole ones out of the display
            rows += [
                _difference_row(f"· {look.line(family, 60)}", each, found, "muted")
                for family, each in found.families.items()
            ]
    true = "the true difference" if any(found.truth is not None for found in comparisons) else ""
    numeric = first.check.numeric
    caption = f"Difference {f'from {look.line(first.a, 60)} ' if same else ''}in {first.check.title}"
    caption += "" if numeric else ", points"
    axis, ticks = _numeric_axis(rows) if numeric else ((-1.0, 1.0), POINT_TICKS)
    said_ = legend(first.difference.level, true)
    return [Intervals(caption, tuple(rows), axis, ticks, zero=0.0, legend=said_)]


def _numeric_axis(rows: Sequence[Interval]) -> tuple[tuple[float, float], tuple[tuple[float, str], ...]]:
    values = [each for row in rows for each in (row.estimate, row.low, row.high) if each is not None]
    bound = max(map(abs, values), default=0.0) or 1.0
    return (-bound, bound), tuple((share * bound, significant(share * bound)) for share in (-1.0, 0.0, 1.0))


def _difference_row(label: str, difference: Difference, found: Comparison, tone: Tone) -> Interval:
    shares = not found.check.numeric
    whole = difference is found.difference
    detail = _WINS[found.winner == found.b] if whole and found.winner is not None else []
    detail = [*detail, count(difference.pairs, "pair")]
    if whole and found.e_value is not None:
        detail.append(f"e-value {found.e_value:,.3g}")
    elif whole and (p := found.p) is not None:
        corrected = " (Holm)" if found.adjusted_p is not None else ""
        detail.append(f"p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}{corrected}")
    others = [source for source in dict.fromkeys(found.sources) if source != "real"]
    detail += [" and ".join(others)] if others else []
    return Interval(
        label, gap(difference, shares), difference.estimate, difference.low, difference.high, " · ".join(detail),
        found.truth if whole else None, tone,
    )  # fmt: skip


def gap(difference: Difference, shares: bool) -> str:
    """Return a difference and its interval: ``+31 (+18 to +43)`` points, or figures."""
    show = points if shares else significant
    if difference.low is None or difference.high is None:
        return show(difference.estimate)
    return f"{show(difference.estimate)} ({show(difference.low)} to {show(difference.high)})"


def _tone(found: Comparison) -> Tone:
    return "plain" if found.winner is None else "good" if found.winner == found.b else "bad"


def points(share: float) -> str:
    text = f"{100 * share:+.0f}".replace("-", "−")
    return "0" if text in ("+0", "−0") else text
