"""Exact replacement of text within text.

Invariant: the old string is found as it stands, character for character, or nothing is changed; a refusal
says how many places match and on which lines.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

_MOST_LINES = 10  # line numbers that a refusal names
_HINT_LINES = 2000  # lines compared to find the nearest one
_HINT_CHARACTERS = 200  # of a line, in a comparison and in a hint


class EditError(ValueError):
    """The text was not changed: `matches` places match. `hint` says what to do next."""

    def __init__(self, message: str, hint: str, matches: int) -> None:
        super().__init__(message)
        self.hint = hint
        self.matches = matches


@dataclass(frozen=True)
class Edited:
    """The new text, and on which lines (from 1) of the old text the replacements begin."""

    text: str
    lines: tuple[int, ...]


def replace(text: str, old: str, new: str, *, every: bool = False) -> Edited:
    """Put `new` in place of `old`, which must occur once (or, with `every`, at least once).

    >>> replace("a = 1\\nb = 2\\n", "b = 2", "b = 3")
    Edited(text='a = 1\\nb = 3\\n', lines=(2,))

    Raises:
        EditError: no match, several matches, or nothing to change.
    """
    if old == new:
        raise EditError("old_string and new_string are the same", "There is nothing to change.", 1)
    lines = _line_numbers(text, positions(text, old))
    if not lines:
        raise EditError("old_string does not occur (0 matches)", nearest(text, old), 0)
    if len(lines) > 1 and not every:
        named = ", ".join(map(str, lines[:_MOST_LINES])) + (", …" if len(lines) > _MOST_LINES else "")
        raise EditError(
            f"old_string occurs {len(lines)} times, on lines {named}",
            "Add lines around it until it is the only match, or set replace_all to true.",
            len(lines),
        )
    return Edited(text.replace(old, new), tuple(lines))


def positions(text: str, old: str) -> list[int]:
    """Where `old` begins, without overlaps."""
    found: list[int] = []
    at = text.find(old) if old else -1
    while at >= 0:
        found.append(at)
        at = text.find(old, at + len(old))
    return found


def _line_numbers(text: str, places: list[int]) -> list[int]:
    numbers: list[int] = []
    line, last = 1, 0
    for place in places:
        line += text.count("\n", last, place)
        last = place
        numbers.append(line)
    return numbers


def nearest(text: str, old: str) -> str:
    """Where in `text` something like `old` is, as a hint for one who quoted it wrongly."""
    if "\r\n" in text and "\r" not in old and old.replace("\n", "\r\n") in text:
        return "The lines of this file end with \\r\\n: write the line ends in old_string and new_string so."
    if " ".join(old.split()) in " ".join(text.split()):
        return "Its words occur with other spaces or line ends: copy the text exactly as it was read."
    wanted = next((line.strip() for line in old.split("\n") if line.strip()), "")[:_HINT_CHARACTERS]
    lines = text.split("\n", _HINT_LINES)[:_HINT_LINES]
    shortened = [line.strip()[:_HINT_CHARACTERS] for line in lines]
    close = difflib.get_close_matches(wanted, [line for line in shortened if line], n=1, cutoff=0.6)
    if close:
        return f"The nearest line is {shortened.index(close[0]) + 1}: {close[0]!r}. Copy the text exactly."
    return "Read the file first and copy the text exactly, without line numbers."
