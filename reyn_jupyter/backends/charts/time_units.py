"""Units that dates are grouped by: how SQL cuts a moment, how a bucket is called, which buckets lie between two.

Invariant: SQL and Python call a bucket the same, in English, so that a bucket without rows has its place.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reyn_jupyter.backends.charts.chart_request import TimeUnit

MOST_BUCKETS = 400
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SECONDS: dict[TimeUnit, float] = {
    "hour": 3600, "day": 86400, "week": 604800, "month": 2.6e6, "quarter": 7.8e6, "year": 3.15e7,
}  # fmt: skip
_USUAL: dict[TimeUnit, float] = {"hour": 72, "day": 92, "month": 121}  # buckets that a chart shows by itself


def bucket_sql(expression: str, unit: TimeUnit) -> tuple[str, str]:
    """Return the SQL of a bucket's order and of its label."""
    if unit == "weekday":
        return f"isodow({expression})", f"strftime({expression}, '%a')"
    start = f"date_trunc('{unit}', {expression})"
    labels = {
        "year": f"strftime({start}, '%Y')",
        "quarter": f"strftime({start}, '%Y Q') || quarter({start})",
        "month": f"strftime({start}, '%b %Y')",
        "hour": f"strftime({start}, '%Y-%m-%d %H:00')",
    }
    return start, labels.get(unit, f"strftime({start}, '%Y-%m-%d')")


def usual_unit(first: datetime, last: datetime) -> TimeUnit:
    """Return the finest unit that makes few buckets of a span."""
    span = (last - first).total_seconds()
    return next((unit for unit, most in _USUAL.items() if span / _SECONDS[unit] <= most), "year")


def coarser(unit: TimeUnit, first: datetime, last: datetime) -> TimeUnit:
    """Return the unit, or the next one under which a span has no more buckets than are drawn."""
    if unit == "weekday":
        return unit
    span, units = (last - first).total_seconds(), list(_SECONDS)
    fitting = [each for each in units[units.index(unit) :] if span / _SECONDS[each] <= MOST_BUCKETS]
    return fitting[0] if fitting else "year"


def labels_between(first: datetime, last: datetime, unit: TimeUnit) -> list[str]:
    """Return the labels of all buckets from the one of `first` to the one of `last`, those without rows too."""
    if unit == "weekday":
        return list(_WEEKDAYS)
    start = _floor(first, unit)
    labels: list[str] = []
    while start <= last and len(labels) <= 2 * MOST_BUCKETS:
        labels.append(_label(start, unit))
        following = _next(start, unit)
        if following is None:
            break
        start = following
    return labels


def _floor(moment: datetime, unit: TimeUnit) -> datetime:
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "day":
        return day
    month = {"month": day.month, "quarter": day.month - (day.month - 1) % 3}.get(unit, 1)
    return day.replace(month=month, day=1)


def _next(start: datetime, unit: TimeUnit) -> datetime | None:
    try:
        if unit in ("hour", "day", "week"):
            return start + timedelta(seconds=_SECONDS[unit])
        month = start.month + {"month": 1, "quarter": 3}.get(unit, 12)
        return start.replace(year=start.year + (month - 1) // 12, month=(month - 1) % 12 + 1)
    except (OverflowError, ValueError):
        return None  # after the last year that there is


def _label(start: datetime, unit: TimeUnit) -> str:
    match unit:
        case "year":
            return f"{start.year:04}"
        case "quarter":
            return f"{start.year:04} Q{(start.month + 2) // 3}"
        case "month":
            return f"{_MONTHS[start.month - 1]} {start.year:04}"
        case "hour":
            return f"{start:%Y-%m-%d %H:00}"
        case _:
            return f"{start:%Y-%m-%d}"
