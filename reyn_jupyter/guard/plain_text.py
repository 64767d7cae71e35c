"""Text from anywhere, made safe to put before a person in a terminal or a prompt.

Invariant: what comes out holds no character that moves the cursor, changes colours, reverses the reading
direction or cannot be seen; each is shown as its escape instead, so that nothing can pass for something
else.
"""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t")


def visible(text: str, *, one_line: bool = False) -> str:
    r"""The text with every control, bidirectional or invisible character written as an escape.

    Args:
        text: anything.
        one_line: escape line breaks and tabs too.

    >>> visible("safe\x1b[2K\rDone \u202etxt.exe")
    'safe\\x1b[2K\\x0dDone \\u202etxt.exe'
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or (character in _KEPT and not one_line) else _escape(character)
        for character in text
    )


def clipped(text: str, most: int) -> str:
    """The text, or its head and tail around what was left out, so that neither end is pushed out of sight."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = max(1, most - head - 1)
    return f"{text[:head]}…{text[-tail:]}"


def _escape(character: str) -> str:
    if unicodedata.category(character) == "Zs":  # an odd space is still a space
        return " "
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
