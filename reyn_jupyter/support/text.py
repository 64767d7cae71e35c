"""Parts of the sentences that people and models read: numbers with nouns, names that were meant, cuts.

Invariant: the work is bounded by the number of names, whatever the length of what was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

LONGEST_COMPARED = 100  # characters of a name; difflib's cost grows with the product of the lengths
ALIKE = 0.5  # difflib's ratio from which on a name may be what was meant


def argument_name(pointer: str) -> str:
    """Return the argument that a JSON pointer leads to, as people write it.

    >>> argument_name("/price"), argument_name("/rows/0"), argument_name("")
    ('price', 'rows.0', '')
    """
    return pointer.lstrip("/").replace("/", ".")


def end_sentence(text: str) -> str:
    """Return a text that ends as a sentence does.

    >>> end_sentence("no such file "), end_sentence("Which one?")
    ('no such file.', 'Which one?')
    """
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…", ":")) else f"{text}."


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: ``1 row``, ``1,000 rows``.

    >>> count(1, "trial"), count(1200, "query", "queries")
    ('1 trial', '1,200 queries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def age(seconds: float) -> str:
    """Return how long something lasts or is past, in its largest unit.

    >>> age(7.9), age(130)
    ('7 seconds', '2 minutes')
    """
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return count(int(seconds // size), unit)
    return count(max(0, int(seconds)), "second")


def nearest_names(given: object, names: Iterable[str], most: int = 3, *, cutoff: float = ALIKE) -> list[str]:
    """Return the names that were probably meant, best first, whatever their case.

    Args:
        given: what was written.
        names: what there is.
        most: how many at most.
        cutoff: the ratio of `difflib` from which on a name is near; more where names share long parts.

    >>> nearest_names("explicite", ["none", "generic", "explicit"])
    ['explicit']
    """
    from difflib import get_close_matches

    by_folded: dict[str, str] = {}
    for name in names:
        by_folded.setdefault(name[:LONGEST_COMPARED].casefold(), name)
    wanted = str(given)[:LONGEST_COMPARED].casefold()
    return [by_folded[found] for found in get_close_matches(wanted, by_folded, most, cutoff)]


def nearest(given: object, names: Iterable[str], *, cutoff: float = ALIKE) -> str | None:
    """Return the one name that was probably meant, or None.

    >>> nearest("pth", ["path", "limit"])
    'path'
    """
    return next(iter(nearest_names(given, names, 1, cutoff=cutoff)), None)


def did_you_mean(names: Sequence[str]) -> str:
    """Return the sentence that offers names, or nothing where there are none.

    >>> did_you_mean(["file__read", "file__edit", "file__grep"]), did_you_mean([])
    ('Did you mean file__read, file__edit or file__grep?', '')
    """
    return f"Did you mean {enumerate_words(names, 'or')}?" if names else ""


def meant_clause(given: object, names: Iterable[str]) -> str:
    """Return the end of a sentence that offers the nearest name, or nothing where none is near.

    >>> meant_clause("explicite", ["none", "generic", "explicit"])
    "; did you mean 'explicit'?"
    """
    near = nearest(given, names)
    return f"; did you mean {near!r}?" if near is not None else ""


class MeantClauses:
    """Offer the nearest name for the first faults of a text, and none after them: each is a look at every name.

    Args:
        most: how many are offered.

    >>> meant = MeantClauses(1)
    >>> meant("pth", ["path"]), meant("pth", ["path"])
    ("; did you mean 'path'?", '')
    """

    def __init__(self, most: int = 20) -> None:
        self._left = most

    def __call__(self, given: object, names: Iterable[str]) -> str:
        """Return what `meant_clause` gives, or nothing where that was asked often enough."""
        self._left -= 1
        return meant_clause(given, names) if self._left >= 0 else ""


_FOR_PEOPLE = re.compile(r"pip install|%reyn|%env |--approve|hf download")
_TO_TYPE = re.compile(r"pipinstall|%reyn|%env|--approve|hfdownload")  # of a text's letters and signs alone
_NO_SIGN = re.compile(r"[^a-z%-]+")
_CLAUSE_END = re.compile(r"(?<=[.?!;])\s+")


def for_models(text: str) -> str:
    """Return a text without what tells a person what to type: a model cannot, and copies it.

    >>> for_models("Search by meaning is off: nothing embeds; pip install x adds it. Use a listing.")
    'Search by meaning is off: nothing embeds. Use a listing.'
    """
    return split_advice(text)[0]


def split_advice(text: str) -> tuple[str, str]:
    """Return what a text of ours says, and apart from it what it tells a person to type; "" where it tells nothing.

    Never of a text that quotes a program, a server or a model: their words would pass for ours.

    >>> split_advice("Charts need altair, which is not installed: pip install 'reyn-jupyter[charts]'")
    ('Charts need altair, which is not installed.', "pip install 'reyn-jupyter[charts]'")
    >>> split_advice("Try again later; %reyn mcp log files shows what it wrote.")
    ('Try again later.', '%reyn mcp log files shows what it wrote.')
    """
    if not _FOR_PEOPLE.search(text):
        return text, ""
    lines = [_split_line(line) for line in text.split("\n")]
    told = "\n".join(kept for kept, typed in lines if kept or not typed)
    return told, " ".join(typed for _, typed in lines if typed)


def tells_to_type(value: object) -> bool:
    """Return whether a text anywhere in JSON may tell a person what to type, however it is spelled.

    >>> tells_to_type({"plan": ["type %re\u200byn trust"]}), tells_to_type({"path": "a.txt"})
    (True, False)
    """
    pending, seen = [value], set[int]()
    while pending:
        each = pending.pop()
        if id(each) in seen:  # a handler's own value may hold itself
            continue
        seen.add(id(each))
        if isinstance(each, str):
            if _TO_TYPE.search(_NO_SIGN.sub("", each.lower())):
                return True
        elif isinstance(each, Mapping):
            pending += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple):
            pending += each
    return False


def _split_line(line: str) -> tuple[str, str]:
    if not _FOR_PEOPLE.search(line):
        return line, ""
    kept, advice = [], []
    for clause in _CLAUSE_END.split(line):
        found = _FOR_PEOPLE.search(clause)
        if found is None:
            kept.append(clause)
            continue
        head, tail = _parted(clause, found.start())
        kept += [f"{head}."] if head else []
        advice.append(tail)
    told = re.sub(r";(?= [A-Z]|$)", ".", " ".join(kept))
    left_open = told.count("(") - told.count(")")
    if 0 < left_open <= line.count(")") - told.count(")"):  # what closed them went with the advice
        told = f"{told.rstrip('.')}{')' * left_open}."
    return told, " ".join(advice)


def _parted(clause: str, start: int) -> tuple[str, str]:
    """Return what stands before a command and its introduction (": " or " ("), and the rest of the clause."""
    at = max(clause.rfind(": ", 0, start), clause.rfind(" (", 0, start))
    if at <= 0:
        return "", clause
    tail = clause[at + 2 :]
    return clause[:at], tail.rstrip(".").removesuffix(")") if clause[at + 1] == "(" else tail


def enumerate_words(words: Sequence[str], conjunction: str = "and") -> str:
    """Return words as a sentence has them: ``a, b and c``.

    >>> enumerate_words(["a", "b", "c"], "or"), enumerate_words(["a"]), enumerate_words([])
    ('a, b or c', 'a', '')
    """
    return f" {conjunction} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def shorten(text: str, most: int) -> str:
    """Return at most `most` characters of the text; a cut ends with "…". For bytes see `encoding.clip`.

    >>> shorten("one two three", 8), shorten("one", 8)
    ('one two…', 'one')
    """
    return text if len(text) <= most else text[: max(0, most - 1)].rstrip() + "…"


def last_lines(text: str, most: int) -> str:
    """Return the end of a text in whole lines: half a line could be half a secret, which nobody knows as one.

    >>> last_lines("first line\\nsecond\\nthird", 15), last_lines("short", 15), last_lines("x" * 20, 15)
    ('second\\nthird', 'short', '')
    """
    if len(text) <= most:
        return text
    end = text[-most:]
    breaks = [at for mark in "\r\n" if (at := end.find(mark)) >= 0]
    return end[min(breaks) + 1 :].lstrip("\r\n") if breaks else ""


def clip_middle(text: str, most: int) -> str:
    """Return the text, or its head and tail around what was left out, so that neither end is pushed out of sight."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = max(1, most - head - 1)
    return f"{text[:head]}…{text[-tail:]}"
