"""Words and how alike they are: stems, identifier parts, and the few everyday synonyms of table columns.

Invariant: everything here is a pure function of text, linear in its length, and the same in every process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_IRREGULAR = {
    "people": "person", "children": "child", "men": "man", "women": "woman", "indices": "index", "mice": "mouse",
    "data": "data", "series": "series", "species": "species", "news": "news", "bought": "buy", "sold": "sell",
    "kept": "keep", "paid": "pay", "spent": "spend", "axes": "axis", "memories": "memory", "movies": "movie",
}  # fmt: skip

# Words that carry no condition: a question may use them without their naming a column, a value or a table.
_FILLER_TEXT = """
a an the this that these those there here it its is are was were be been being am do does did doing done has
have had having of in on at to for from with within as into and but so such please pls could
can would will shall should may might must i me my we us our you your he she they their what which who
whom whose how when where what's whats that's there's it's who's how's i'd i'm let's all any some every
together give gives get got show shows tell find compute calculate work out want
need know see look just also now thanks thank hello hi hey ok okay i.e e.g ie eg
according ones only yet come comes came make makes overall altogether row rows
line lines entry entries table tables frame
frames dataframe dataframes dataset data csv file files sheet spreadsheet number result results figure
figures answer about quick quickly question observation observations record records
"""
FILLER = frozenset(_FILLER_TEXT.split())  # fmt: skip

# Groups of words that people use for one another when they mean a column; symmetric inside a group.
CONCEPTS: tuple[frozenset[str], ...] = tuple(
    frozenset(group.split())
    for group in (
        "price cost fee expensive cheap charge pricey",
        "mass weight heavy light kg g gram kilogram",
        "length long short duration minute hour day page mm cm",
        "height tall high",
        "year date old new recent early late age young",
        "area m2 size surface",
        "kwh energy electricity consumption usage power",
        "quantity qty unit piece",
        "number n count",
        "amount amt",
        "revenue turnover income",
        "name title label",
        "sex gender",
        "city town",
        "since joined registered started",
        "birth born",
        "sold sell sale sales",
        "temperature temp",
        "speed fast slow velocity",
    )
)

# Words of `CONCEPTS` that also say which rows are meant: beside a column they are not a second name of it.
_ADJECTIVES_TEXT = """
expensive cheap pricey heavy light long short tall high old new recent early late young fast slow
"""
ADJECTIVES = frozenset(_ADJECTIVES_TEXT.split())

# Values that stand for one another in small coded columns.
CODES: dict[str, tuple[str, ...]] = {
    "female": ("f", "w", "woman"), "male": ("m", "man"), "woman": ("f", "female"), "man": ("m", "male"),
    "true": ("yes", "y", "1"), "false": ("no", "n", "0"), "yes": ("y", "true"), "no": ("n", "false"),
}  # fmt: skip


def stem(word: str) -> str:
    """A word without its plural ending: ``visits`` → ``visit``, ``categories`` → ``category``.

    >>> stem("Boxes"), stem("glass")
    ('box', 'glass')
    """
    low = word.lower().removesuffix("'s").removesuffix("’s")
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if len(low) > 4 and low.endswith("ies"):
        return low[:-3] + "y"
    if len(low) > 4 and low.endswith(("xes", "zes", "ches", "shes", "sses")):
        return low[:-2]
    if len(low) > 3 and low.endswith("s") and not low.endswith(("ss", "us", "is")):
        return low[:-1]
    return low


def parts(identifier: str) -> tuple[str, ...]:
    """The stems inside a name or a sentence, split at ``_``, ``-``, dots, spaces and camelCase.

    >>> parts("unitPrice"), parts("late_fee")
    (('unit', 'price'), ('late', 'fee'))
    """
    return tuple(stem(part) for part in _PART.findall(identifier))


def content_stems(text: str) -> tuple[str, ...]:
    """The stems of a text that are no filler, each once, in order."""
    kept = dict.fromkeys(part for part in parts(text) if part not in FILLER and len(part) > 1)
    return tuple(kept)


def alike(left: str, right: str) -> bool:
    """Return whether two stems are the same word, as in ``smoke`` and ``smoker``: a long common beginning."""
    if left == right:
        return True
    common = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        common += 1
    return common >= 4 and common >= 0.75 * max(len(left), len(right))


def one_letter_off(left: str, right: str) -> bool:
    """Return whether two words of five letters or more differ by one letter: left out, added, changed or swapped.

    >>> one_letter_off("amout", "amount"), one_letter_off("late", "date")
    (True, False)
    """
    if min(len(left), len(right)) < 5 or abs(len(left) - len(right)) > 1 or left == right:
        return False
    start = next(
        (i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
    )
    a, b = left[start:], right[start:]
    return a[1:] == b or a == b[1:] or a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def same_concept(left: str, right: str) -> bool:
    """Return whether two stems may name the same kind of column."""
    return any(left in group and right in group for group in CONCEPTS)


def overlap(wanted: Iterable[str], offered: Iterable[str]) -> float:
    """Return how many of the wanted stems are among the offered ones, 0–1."""
    wanted, offered = tuple(wanted), tuple(offered)
    if not wanted:
        return 0.0
    return sum(any(alike(want, offer) for offer in offered) for want in wanted) / len(wanted)
