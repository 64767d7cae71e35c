"""Regular expressions that may take forever: what repeats within what repeats.

Invariant: one pass over the pattern, which is never compiled. A repetition whose turns are kept apart by something that
has to be there, as in `(\\d+,)*`, is fine.
"""

from __future__ import annotations

import re

_LONGEST = 10_000  # characters of a pattern that are looked at
_OPENING = re.compile(r"\((?:\?(?:P?<[A-Za-z_]\w*>|P=\w+|[aiLmsux-]*:|[=!>:]|<[=!]|[aiLmsux]+(?=\)))?)?")
_REPEAT = re.compile(r"[*+]|\{\d*,\d*\}|\{\d+\}|\?")


class _Group:
    """What is open: does something in it repeat without a bound, and has something to be there beside it?"""

    __slots__ = ("atomic", "fixed", "fixed_now", "repeats", "repeats_now")

    def __init__(self, atomic: bool) -> None:
        self.atomic = atomic
        self.repeats = self.fixed = False  # of a branch that was ambiguous; of all of them
        self.repeats_now = self.fixed_now = False  # of the branch that is read

    def end_branch(self) -> None:
        self.repeats = self.repeats or (self.repeats_now and not self.fixed_now)
        self.repeats_now = self.fixed_now = False


def has_nested_quantifiers(pattern: str) -> bool:
    """Return whether a pattern repeats something that repeats already, so that one text can be cut in very many ways.

    >>> [has_nested_quantifiers(each) for each in (r"(a+)+$", r"(.*)*", r"(\\d+,)*", r"[a+]+", r"\\(a+\\)+")]
    [True, True, False, False, False]
    """
    if len(pattern) > _LONGEST:
        return False
    groups = [_Group(False)]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "(":
            opening = _OPENING.match(pattern, at)
            at = opening.end() if opening is not None else at + 1
            groups.append(_Group(opening is not None and opening.group() == "(?>"))
            continue
        if character == "|":
            groups[-1].end_branch()
            at += 1
            continue
        inner: _Group | None = None
        if character == ")":
            if len(groups) == 1:
                return False
            inner = groups.pop()
            inner.end_branch()
            at += 1
        else:
            at = _end_of_class(pattern, at) if character == "[" else at + 1 + (character == "\\")
        text, unbounded, at = _quantifier(pattern, at)
        repeats = inner is not None and inner.repeats and not inner.atomic
        if repeats and unbounded:
            return True
        if unbounded or repeats:
            groups[-1].repeats_now = True
        elif character not in "^$" and not text.startswith(("?", "*", "{0")):
            groups[-1].fixed_now = True
    return False


def _quantifier(pattern: str, at: int) -> tuple[str, bool, int]:
    """Return the quantifier that stands at a place, whether it has no bound and goes back, and where it ends."""
    found = _REPEAT.match(pattern, at)
    if found is None:
        return "", False, at
    text, at = found.group(), found.end()
    unbounded = text in ("*", "+") or text.endswith(",}")
    if pattern[at : at + 1] == "+":  # possessive: it never goes back
        return text, False, at + 1
    return text, unbounded, at + (pattern[at : at + 1] == "?")


def _end_of_class(pattern: str, at: int) -> int:
    at += 2 if pattern[at + 1 : at + 2] == "^" else 1
    if pattern[at : at + 1] == "]":
        at += 1
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1
