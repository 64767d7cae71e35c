"""Untrusted text, made safe to look at in a page, a terminal, a prompt.

Invariant: what `visible` returns draws nothing but itself: no control character, no ANSI escape, no bidirectional
override and no invisible letter passes; each is replaced by a mark that shows it. Applied twice it changes nothing
more. The front end marks the same characters in the same way (`labextension/src/views/dom/h.ts`).
"""

from __future__ import annotations

import re
import unicodedata

# C0 and C1 controls but newline and tab; soft hyphen; bidi marks, embeddings, overrides, isolates; zero-width space,
# word joiner and other invisible operators; byte-order mark; Hangul fillers; surrogates; interlinear marks; tags.
# The zero-width joiners stay: emoji and Persian need them, and they reorder nothing.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_CONTROL_PICTURES = 0x2400


def visible(text: str) -> str:
    """Return the text with every hidden character shown: ESC as ␛, an override as ⟨U+202E⟩.

    Newlines and tabs stay. A text without such a character comes back as the same object.

    >>> visible("safe\\x1b[2K\\rDone \\u202etxt.exe")
    'safe␛[2K␍Done ⟨U+202E⟩txt.exe'
    """
    return _HIDDEN.sub(_mark_match, text)


def printable(text: str, *, one_line: bool = True) -> str:
    """Return the text with everything shown that `str.isprintable` refuses, for names that a person decides about.

    Stricter than `visible`: the zero-width joiners are marked too, since two names that look the same must not
    differ, and an odd space becomes a plain one.

    Args:
        text: anything.
        one_line: mark line breaks and tabs too.

    >>> printable("orders\\u200d.csv\\n")
    'orders⟨U+200D⟩.csv␊'
    """
    if text.isprintable():
        return visible(text)
    kept = "" if one_line else "\n\t"
    return visible("".join(c if c.isprintable() or c in kept else _mark(c) for c in text))


def _mark_match(match: re.Match[str]) -> str:
    return _mark(match.group())


def _mark(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    if unicodedata.category(character) == "Zs":  # an odd space is still a space
        return " "
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
