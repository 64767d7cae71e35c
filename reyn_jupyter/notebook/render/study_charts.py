"""Rates and differences as charts whose figures stand beside them in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reyn_jupyter.evaluation.report import said
from reyn_jupyter.evaluation.statistics.arms import significant
from reyn_jupyter.evaluation.statistics.rates import Mean, Rate
from reyn_jupyter.notebook.render import figures
from reyn_jupyter.notebook.render.model import Block, Interval, Intervals, Tone

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.comparison import Comparison
    from reyn_jupyter.evaluation.report import Figure, Report
    from reyn_jupyter.evaluation.scenario import Source
    from reyn_jupyter.evaluation.statistics.paired import Difference
    from reyn_jupyter.notebook.render.untrusted import Look

PERCENT = tuple((share, f"{100 * share:.0f} %") for share in (0.0, 0.25, 0.5, 0.75, 1.0))
POINT_TICKS = tuple(
    (share, f"{100 * share:+.0f}".replace("-", "−").replace("+0", "0"))
    for share in (-1.0, -0.5, 0.0, 0.5, 1.0)
)


def percent(found: Rate) -> str:
    """A rate and its interval: ``36 % (26 to 47)``."""
    return f"{100 * found.estimate:.0f} % ({100 * found.low:.0f} to {100 * found.high:.0f})"


def beside(text: str, source: Source) -> str:
    """What stands beside a figure, with its source where that is no real model."""
    return text if source == "real" else f"{text} · {source}"


def measured(found: Rate | Mean) -> str:
    """A rate or a mean, with its interval."""
    if isinstance(found, Rate):
        return percent(found)
    text = f"{significant(found.estimate)} a trial"
    if found.low is None or found.high is None:
        return text
    return f"{text} ({significant(found.low)} to {significant(found.high)})"


def rates(report: Report, look: Look) -> list[Block]:
    primary = report.evidence.primary
    shown = [figures_[primary] for figures_ in report.figures.values() if figures_[primary].found is not None]
    if not shown or shown[0].check.numeric:
        return []
    rows = tuple(_rate_row(figure, look) for figure in shown)
    legend = (
        "the mark: the true rate, from the simulator's table"
        if any(f.truth is not None for f in shown)
        else ""
    )
    return [Intervals(shown[0].check.title, rows, (0.0, 1.0), PERCENT, bars=True, legend=legend)]


def _rate_row(figure: Figure, look: Look) -> Interval:
    found = figure.found
    assert found is not None
    detail = [f"{figures.count(found.trials, 'trial')}, {figures.count(found.scenarios, 'scenario')}"]
    detail += [f"{figure.missing} missing"] if figure.missing else []
    detail += [f"n/a {figure.not_applicable}"] if figure.not_applicable else []
    detail += [figure.source] if figure.source != "real" else []
    text = said(figure) if figure.truth is None else f"{said(figure)}, true {100 * figure.truth:.0f} %"
    return Interval(
        look.line(figure.variant, 60), text, found.estimate, found.low, found.high, " · ".join(detail), figure.truth,
        "plain" if figure.source == "real" else "muted",
    )  # fmt: skip


def differences(comparisons: Sequence[Comparison], look: Look) -> list[Block]:
    if not comparisons:
        return []
    numeric = comparisons[0].check.numeric
    rows: list[Interval] = []
    for found in comparisons:
        label = f"{look.line(found.b, 60)} − {look.line(found.a, 60)}"
        rows.append(_difference_row(label, found.difference, found, _tone(found)))
        if (
            len(comparisons) == 1
        ):  # among several, their families would push the whole ones out of the display
            rows += [
                _difference_row(f"· {look.line(family, 60)}", each, found, "muted")
                for family, each in found.families.items()
            ]
    legend = "the mark: the true difference" if any(found.truth is not None for found in comparisons) else ""
    caption = f"Difference in {comparisons[0].check.title}"
    if numeric:
        bound = (
            max(
                (abs(value) for row in rows for value in (row.estimate, row.low or 0.0, row.high or 0.0)),
                default=1.0,
            )
            or 1.0
        )
        ticks = tuple((share * bound, significant(share * bound)) for share in (-1.0, 0.0, 1.0))
        return [Intervals(caption, tuple(rows), (-bound, bound), ticks, zero=0.0, legend=legend)]
    return [Intervals(f"{caption}, points", tuple(rows), (-1.0, 1.0), POINT_TICKS, zero=0.0, legend=legend)]


def _difference_row(label: str, difference: Difference, found: Comparison, tone: Tone) -> Interval:
    shares = not found.check.numeric
    text = points(difference.estimate) if shares else significant(difference.estimate)
    if difference.low is not None and difference.high is not None:
        bounds = (points(each) if shares else significant(each) for each in (difference.low, difference.high))
        text += f" ({' to '.join(bounds)})"
    whole = difference is found.difference
    p = found.p
    detail = [figures.count(difference.pairs, "pair")]
    if whole and found.e_value is not None:
        detail.append(f"e-value {found.e_value:,.3g}")
    if whole and p is not None:
        detail.append(
            f"p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}{' (Holm)' if found.adjusted_p is not None else ''}"
        )
    detail += [found.mark.removesuffix(": ")] if found.mark else []
    reference = found.truth if whole else None
    return Interval(
        label, text, difference.estimate, difference.low, difference.high, " · ".join(detail), reference, tone
    )


def _tone(found: Comparison) -> Tone:
    return "plain" if found.winner is None else "good" if found.winner == found.b else "bad"


def points(share: float) -> str:
    text = f"{100 * share:+.0f}".replace("-", "−")
    return "0" if text in ("+0", "−0") else text
