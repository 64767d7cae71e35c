"""Words about names, numbers and texts, as every sentence that a person or a model reads makes them."""

from __future__ import annotations


def clip_middle(text: str, most: int) -> str:
    """Return the text, or its head and tail around what was left out, so that neither end is pushed out of sight."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = max(1, most - head - 1)
    return f"{text[:head]}…{text[-tail:]}"
