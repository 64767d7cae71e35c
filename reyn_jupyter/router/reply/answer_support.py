"""Whether an answer says what nothing in its conversation says, and whether it was given without a look.

What is looked at are numbers, names of files and words in quotes: those of the answer that stand neither in a result
nor in what the person wrote, in this turn or before. That finds what a model made up, and cannot find what it got wrong
with the right numbers. A number that the model worked out by itself (a sum, a share) is found too, though it may be
right: that is why the answer is asked for once more, and then kept and marked, and never taken away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.catalog.names import SEPARATOR
from reyn_jupyter.models.base import Message
from reyn_jupyter.runtime.record.events import ActionFinished
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.support.text import enumerate_words, shorten

SMALL = 10  # whole numbers below are places in a list, or a count that anyone sees
MOST_NAMED = 5  # claims that are named
_LONGEST = 60  # characters of a claim that are shown
_ANSWER = 20_000  # characters of an answer that are looked at
_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
# 1,234 and 12,34,567 are one number each; "12, 34" and "2019 2020" are two.
_NUMBER = re.compile(
    r"(?<![\w.])(?:\d{1,3}(?:(?:,\d{2})+,\d{3}|(?:[,_ ]\d{3})+)|\d[\d_]*)(?:\.\d+)?(?!\w|\.\d)"
)
_GROUPING = re.compile(r"[,_ ]")
_DIGITS = 15  # behind the point, beyond which a float has none
_FILE = re.compile(r"(?<![\w./:@-])(?:[\w-]+/)*[\w-]+(?:\.[\w-]+)*\.[A-Za-z][A-Za-z0-9]{0,4}(?![\w/])")
_QUOTED = re.compile(r"\"([^\"\n]{3,200})\"|“([^”\n]{3,200})”")
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.m", "p.m"})
_WORD = re.compile(r"[\w.-]+")
_WORDS = 60  # of a request that are looked up


@dataclass(frozen=True)
class Doubt:
    """Why an answer is asked for again: what the model is told, and what the person is, where it answers so again."""

    question: str
    note: str


def doubt_of(answer: str, before: Sequence[Message], turn: Sequence[Message], run: Run) -> Doubt | None:
    """Return why an answer is to be asked for again; None where nothing speaks against it.

    Args:
        before: the history that the model was sent.
        turn: the messages of the turn, the person's text first.
        run: the turn, whose record says which calls worked, and whose catalog says what there is.
    """
    done = [event for event in run.log.events if isinstance(event, ActionFinished) and event.ok]
    looked = list(dict.fromkeys(event.name or event.wrapper for event in done if event.name or event.sources))
    if not looked and (data := _data_named(turn[0].content, run)):
        named = enumerate_words([repr(each) for each in data[:MOST_NAMED]])
        return Doubt(
            f"(Nothing was looked at in this turn, but the request names {named}. Make the call that reads it, then "
            "answer from its result.)",
            f"asked to look at {named} first, the model answered without (router.weak.check_support)",
        )
    claims = unsupported(answer, [message.content for message in (*before, *turn)])
    if not claims:
        return None
    named, it = enumerate_words([shorten(each, _LONGEST) for each in claims[:MOST_NAMED]]), "them"
    if len(claims) == 1:
        it = "it"
    found = f"Results of {enumerate_words(looked)} stand above." if looked else "No call of this turn worked."
    return Doubt(
        f"(No result says {named}. {found} Answer again with what they say and nothing else; where they do not say "
        "it, make the call that does, or say that it is not known.)",
        f"no result says {named}: the model may have made {it} up or worked {it} out (router.weak.check_support)",
    )


def unsupported(answer: str, texts: Iterable[str]) -> list[str]:
    """Return the numbers, file names and quoted words of an answer that stand in none of the texts, in their order.

    Code in fences is not looked at, nor are whole numbers below 10. A number counts as said where it is one of a text
    rounded, a share of 1 in per cent, or how many lines or entries a text has.

    >>> unsupported('All 42 rows of "orders" are in a.csv.', ["orders.csv: 41 rows", "orders"])
    ['42', 'a.csv']
    >>> unsupported("The mean is 3.14, of 1,200.", ["3.14159", "1200"])
    []
    """
    prose = _BLOCK.sub(" ", answer[:_ANSWER])
    listed = list(texts)
    said = "\n".join(listed)
    folded = " ".join(said.replace("\\", "").casefold().split())
    files = [match[0] for match in _FILE.finditer(prose) if match[0] not in _ABBREVIATIONS]
    quoted = [match[1] or match[2] for match in _QUOTED.finditer(prose)]
    claims = [each for each in files if each.rpartition("/")[2].casefold() not in folded]
    claims += [f'"{each}"' for each in quoted if _bare(each) not in folded and not _is_number(each)]
    numbers = [match[0].strip(" ,_") for match in _NUMBER.finditer(_FILE.sub(" ", prose))]
    if numbers:
        known = {value for match in _NUMBER.finditer(said) for value in (*_parts(match[0]), _value(match[0]))}
        known |= {float(text.count("\n") + bool(text.strip())) for text in listed}
        known |= {float(text.count("\n")) for text in listed}
        known |= {float(size) for text in listed for size in _lengths(text)}
        numbers_said = _Numbers(frozenset(each for each in known if each is not None), said)
        claims += [each for each in numbers if not numbers_said.has(each)]
    found = {claim: _place(prose, claim) for claim in claims}
    return sorted(found, key=lambda claim: found[claim])


def _place(text: str, claim: str) -> int:
    return max(text.find(claim.strip('"')), 0)


def _bare(text: str) -> str:
    return " ".join(text.replace("\\", "").casefold().split()).strip(" .,;:!?")


def _is_number(text: str) -> bool:
    return _value(text) is not None


def _value(text: str) -> float | None:
    try:
        return float(text.translate({ord(mark): None for mark in ", _"}))
    except ValueError:
        return None


def _parts(number: str) -> list[float | None]:
    """Return the numbers that one with groups may be as well: 100,200 stands in a list too."""
    parts = _GROUPING.split(number)
    return [_value(each) for each in parts] if len(parts) > 1 else []


class _Numbers:
    """The numbers that texts say.

    Args:
        known: all of them.
        said: the texts.
    """

    def __init__(self, known: frozenset[float], said: str) -> None:
        self._known, self._said = known, said
        # Digits behind the point → the numbers rounded to them, and so as per cent.
        self._rounded: dict[int, frozenset[float]] = {}

    def has(self, number: str) -> bool:
        """Return whether a number of an answer is among them, is one rounded, or needs no support."""
        digits = min(len(number.partition(".")[2]), _DIGITS)
        if number in self._said or self._holds(_value(number), digits):
            return True
        parts = _parts(number)
        return bool(parts) and all(self._holds(each, digits) for each in parts)

    def _holds(self, value: float | None, digits: int) -> bool:
        if value is None or (value < SMALL and value == int(value)) or value in self._known:
            return True
        if digits not in self._rounded:
            self._rounded[digits] = frozenset(
                round(each, digits) for known in self._known for each in (known, 100 * known)
            )
        return value in self._rounded[digits]


def _lengths(text: str) -> Iterator[int]:
    """Return how many entries the lists of a JSON result have."""
    if not text.lstrip().startswith(("{", "[")):
        return
    try:
        value: Any = json.JSONDecoder().raw_decode(text.lstrip())[0]
    except (ValueError, RecursionError):
        return
    held = [value]
    while held:
        each = held.pop()
        if isinstance(each, list):
            yield len(each)
        if isinstance(each, list | dict):
            held += each if isinstance(each, list) else list(each.values())


def _data_named(request: str, run: Run) -> list[str]:
    """Return the files and resources of the catalog that a request names."""
    words = [word.strip(".-") for word in _WORD.findall(request)[:_WORDS]]
    parts = run.snapshot.category_names
    there = [
        word
        for word in words
        if any(
            (action := run.snapshot.named(f"{part}{SEPARATOR}{word}")) is not None
            and action.canonical_default is not None
            for part in parts
        )
    ]
    files = [match[0] for match in _FILE.finditer(request) if match[0] not in _ABBREVIATIONS]
    return list(dict.fromkeys([*files, *there]))
