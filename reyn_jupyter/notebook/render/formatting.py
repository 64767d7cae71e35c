"""Figures as people read them: bytes, counts, seconds, money, moments."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from reyn_jupyter.support.text import count

_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")


def size(number: int | float) -> str:
    """Bytes in the largest unit that keeps a digit before the point: ``812 bytes``, ``1.2 KB`` (1 KB = 1,000)."""
    if abs(number) < 1000:
        return count(int(number), "byte")
    value = float(number)
    unit = _UNITS[0]
    for unit in _UNITS:
        if abs(value) < 999.5 or unit == _UNITS[-1]:
            break
        value /= 1000
    return f"{value:.1f} {unit}" if abs(value) < 99.95 else f"{value:.0f} {unit}"


def seconds(number: float) -> str:
    """``0.4 ms``, ``12 ms``, ``1.24 s``, ``2 min 5 s``."""
    if number < 0.0995:
        return f"{number * 1000:.1f} ms" if number < 0.00995 else f"{number * 1000:.0f} ms"
    if number < 60:
        return f"{number:.2f} s"
    minutes, rest = divmod(round(number), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def clock(number: float) -> str:
    """Whole seconds that pass: ``0:07``, ``12:30``, ``1:02:09``."""
    minutes, rest = divmod(int(number), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def money(dollars: float) -> str:
    """US dollars with enough digits to see small ones: ``$0.0031``, ``$1.20``."""
    if dollars == 0:
        return "$0"
    return (
        f"${dollars:,.2f}"
        if abs(dollars) >= 1
        else f"${dollars:.4f}"
        if abs(dollars) >= 0.0001
        else "< $0.0001"
    )


_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def tail(text: str) -> str:
    """The part by which people tell an id from others: ``817c550df4a1``. Every verb takes it. Other text stays."""
    return text[-12:] if _ID.fullmatch(text) else text


def moment(epoch: float) -> str:
    """The time where the kernel is, with its zone: ``2026-01-31 13:00:05 UTC+1``. In a saved notebook it stays true."""
    try:
        local = datetime.fromtimestamp(epoch, UTC).astimezone()
    except (OverflowError, ValueError, OSError):
        return f"{epoch:g}"
    minutes = round((local.utcoffset() or timedelta()).total_seconds() / 60)
    hours, rest = divmod(abs(minutes), 60)
    zone = f"{'-' if minutes < 0 else '+'}{hours}{f':{rest:02}' if rest else ''}" if minutes else ""
    return f"{local:%Y-%m-%d %H:%M:%S} UTC{zone}"
