"""Untrusted text, made safe to look at in a page, a terminal, a prompt.

Invariant: what `visible` returns draws nothing but itself: no control character, no ANSI escape, no bidirectional
override and no invisible letter passes; each is replaced by a mark that shows it. Applied twice it changes nothing
more. What is invisible is decided by properties of Unicode (general category, Default_Ignorable_Code_Point), not by
what somebody thought of; the front end marks the same characters in the same way (`labextension/src/views/dom/h.ts`).
"""

from __future__ import annotations

import re

# Cc but newline and tab, Cs, Zl, Zp.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
# The property Default_Ignorable_Code_Point (DerivedCoreProperties.txt): `unicodedata` does not know it.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# The rest of Cf, without the signs that Arabic and others draw around a number (Prepended_Concatenation_Mark).
_FORMATS = "\ufff9-\ufffb\U00013430-\U0001343f"
# What no property names: letters and symbols that are drawn empty (Braille, Khitan, Egyptian, a musical null notehead).
_BLANKS = "\u2800\U00013441\U00013442\U00016fe4\U0001d159"
_CLASS = f"{_CONTROLS}{_IGNORABLE}{_FORMATS}{_BLANKS}"
_HIDDEN = re.compile(f"[{_CLASS}]")
# Where a hidden character has its proper work: an emoji of several parts or in colour, a keycap, a joiner of Persian
# or Indic letters, a variant of an ideograph. One such character after one that is seen; a row of them is a message.
_SEEN = f"[^\x00-\xa8{_CLASS}]"
_IDEOGRAPH = "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_PROPER = (
    f"{_IDEOGRAPH}[\U000e0100-\U000e01ef]|{_SEEN}(?:\ufe0f\u200d?|[\ufe0e\u200c\u200d])|[#*0-9]\ufe0f\u20e3"
)
_PROPER_OR_HIDDEN = re.compile(f"({_PROPER})|[{_CLASS}]")
_CONTROL_PICTURES = 0x2400


def visible(text: str) -> str:
    """Return the text with every hidden character shown: ESC as ␛, an override as ⟨U+202E⟩.

    Newlines and tabs stay, and so do joiners and variation selectors where a script or an emoji needs them. A text
    without a hidden character comes back as the same object.

    >>> visible("safe\\x1b[2K\\rDone \\u202etxt.exe")
    'safe␛[2K␍Done ⟨U+202E⟩txt.exe'
    """
    if _HIDDEN.search(text) is None:
        return text
    return _PROPER_OR_HIDDEN.sub(lambda match: match[1] or _mark(match[0]), text)


def printable(text: str) -> str:
    """Return the text with all marked that is not drawn or not drawn as itself, for what a person decides about.

    Stricter than `visible`: joiners, variation selectors, every space but the plain one, unassigned and private
    characters are marked too, line breaks and tabs among them, since two names that look the same must not differ.

    >>> printable("orders\\u200d.csv\\n")
    'orders⟨U+200D⟩.csv␊'
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else _mark(c) for c in text)
    return _HIDDEN.sub(lambda match: _mark(match[0]), text)


_RTL = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
# What stands behind letters that run from right to left, up to the next letter of either direction.
_BEHIND_RTL = re.compile(rf"(?<=[{_RTL}])(?:[^\w{_RTL}]|[\d_])+(?=([{_RTL}])?)")


def printable_path(text: str) -> str:
    """Return `printable` text of a path or name in which no two different ones are drawn alike.

    Beside letters that run from right to left, digits and signs change places when they are drawn: ``א/1`` and ``1/א``
    look the same. Where that may be, a mark stands for the first of these characters and keeps both sides apart.

    >>> printable_path("x/\u05d0/1.csv"), printable_path("1/\u05d0.csv")
    ('x/א⟨U+002F⟩1.csv', '1/א.csv')
    """

    def kept_apart(match: re.Match[str]) -> str:
        run = match[0]
        moves = any(character.isdigit() for character in run) or (match[1] and run.strip(" "))
        return _mark(run[0]) + run[1:] if moves else run

    return _BEHIND_RTL.sub(kept_apart, printable(text))


def _mark(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
