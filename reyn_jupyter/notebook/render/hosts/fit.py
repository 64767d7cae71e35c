"""Fit a view into a budget in bytes, shared fairly.

Invariant: what `fit` returns never passes its limit. Blocks that are small enough are whole; the others share what is
left in equal parts, so that one huge block never swallows its neighbours. A block that is left out is "". A report is
read from its beginning, so there the first blocks are whole before the later ones get more than a part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

# Kinds of views that may take several times the usual size: a report comes once a study, not once a call.
ROOMY = frozenset({"report"})
# Kinds of views whose first blocks matter most: where not all fits, these stay whole.
ORDERED = ROOMY | {"doctor"}
LEAST = 160  # bytes; where a fair share is less, the first blocks are shown whole and the others not at all


def byte_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def share_fairly(sizes: Sequence[int], limit: int) -> list[int]:
    """Return what each of some sizes gets of a limit: the small ones all they need, the large ones equal parts.

    >>> share_fairly([10, 500, 900], 410)
    [10, 200, 200]
    """
    shares = [0] * len(sizes)
    left = max(0, limit)
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    for done, place in enumerate(order):
        shares[place] = min(sizes[place], left // (len(order) - done))
        left -= shares[place]
    return shares


def share_in_order(sizes: Sequence[int], limit: int) -> list[int]:
    """Return each size's share where the first matter most: an equal part of half the limit, then all it needs.

    >>> share_in_order([300, 500, 900], 1200)
    [300, 500, 400]
    """
    part = max(0, limit) // (2 * len(sizes)) if sizes else 0
    shares = [min(size, part) for size in sizes]
    left = max(0, limit) - sum(shares)
    for place, size in enumerate(sizes):
        more = min(size - shares[place], left)
        shares[place] += more
        left -= more
    return shares


def fit(
    blocks: Sequence[T], limit: int | None, render: Callable[[T, int | None], str], *, ordered: bool = False
) -> list[str]:
    """Render each block, all together within `limit` bytes (None: no limit).

    `render(block, limit)` must keep to its limit, returning "" when nothing sensible fits. `ordered`: the first blocks
    matter most.
    """
    whole = [render(block, None) for block in blocks]
    if limit is None:
        return whole
    sizes = [byte_size(text) for text in whole]
    if sum(sizes) <= limit:
        return whole
    shares = share_in_order(sizes, limit) if ordered else share_fairly(sizes, limit)
    if max(shares) < LEAST:
        kept = count_leading(whole, limit)
        return whole[:kept] + [""] * (len(whole) - kept)
    return [
        text if size <= share else render(block, share)
        for text, size, share, block in zip(whole, sizes, shares, blocks, strict=True)
    ]


def count_leading(parts: Sequence[str], limit: int) -> int:
    """Return how many of the first parts fit within a limit."""
    used = 0
    for place, part in enumerate(parts):
        used += byte_size(part)
        if used > limit:
            return place
    return len(parts)


def left_out_sentence(titles: Sequence[str]) -> str:
    """Return what stands at the end of a display that had to leave parts out."""
    named = ": " + ", ".join(titles) if titles else ""
    return f"… parts were left out to keep this view small{named}"
