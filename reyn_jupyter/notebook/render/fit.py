"""How much of a view fits: a budget in bytes, shared fairly.

Invariant: what `fit` returns never passes its limit. Blocks that are small enough are whole; the others share what is
left in equal parts, so that one huge block never swallows its neighbours. A block that is left out is "".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

LEAST = 160  # bytes; where a fair share is less, the first blocks are shown whole and the others not at all


def byte_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def fair(sizes: Sequence[int], limit: int) -> list[int]:
    """What each of some sizes gets of a limit: the small ones all they need, the large ones equal parts.

    >>> fair([10, 500, 900], 410)
    [10, 200, 200]
    """
    shares = [0] * len(sizes)
    left = max(0, limit)
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    for done, place in enumerate(order):
        shares[place] = min(sizes[place], left // (len(order) - done))
        left -= shares[place]
    return shares


def fit(blocks: Sequence[T], limit: int | None, render: Callable[[T, int | None], str]) -> list[str]:
    """Each block rendered, all together within `limit` bytes (None: no limit).

    `render(block, limit)` must keep to its limit, returning "" when nothing sensible fits.
    """
    whole = [render(block, None) for block in blocks]
    if limit is None:
        return whole
    sizes = [byte_size(text) for text in whole]
    if sum(sizes) <= limit:
        return whole
    shares = fair(sizes, limit)
    if max(shares) < LEAST:
        kept = leading(whole, limit)
        return whole[:kept] + [""] * (len(whole) - kept)
    return [
        text if size <= share else render(block, share)
        for text, size, share, block in zip(whole, sizes, shares, blocks, strict=True)
    ]


def leading(parts: Sequence[str], limit: int) -> int:
    """How many of the first parts fit within a limit."""
    used = 0
    for place, part in enumerate(parts):
        used += byte_size(part)
        if used > limit:
            return place
    return len(parts)
