"""The words of a question about a table, sorted into what they do: aggregate, group, compare, order, or name.

Invariant: every token of the prompt becomes exactly one `Unit`, in order, so that later steps can insist that
each word was understood.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from reyn_jupyter.models.offline.lexicon import FILLER
from reyn_jupyter.models.offline.prompt_tokens import Prompt, Token

UnitKind = Literal[
    "aggregate", "extreme", "group", "compare", "between", "order", "distinct", "top", "times", "period", "month",
    "not", "or", "missing", "duplicate", "share", "contain", "number", "unit", "date", "quoted", "path", "word",
    "symbol",
]  # fmt: skip


DIMENSIONS = (
    {"mg": 0.001, "g": 1.0, "gram": 1.0, "kg": 1000.0, "kilogram": 1000.0},
    {"lb": 1.0, "pound": 1.0},
    {"mm": 0.001, "cm": 0.01, "m": 1.0, "meter": 1.0, "metre": 1.0, "km": 1000.0},
    {"mile": 1.0},
    {"ms": 0.001, "s": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0},
)
UNITS = {unit + end for dimension in DIMENSIONS for unit in dimension for end in ("", "s")}
_WORDS_OF_NUMBERS = "two three four five six seven eight nine ten eleven twelve"
_SCALES = {"k": 1_000, "m": 1_000_000}
_SCALED = re.compile(r"(\d{1,12})([km])")
NUMBER_WORDS = {"zero": 0} | {word: number for number, word in enumerate(_WORDS_OF_NUMBERS.split(), start=2)}


@dataclass(frozen=True)
class Unit:
    """One piece of a question: what it does, what it says, and the tokens that it came from.

    `doubtful` words usually carry no meaning, but could be values of the table: `US`, `AS`, "flights by us".
    """

    kind: UnitKind
    value: str
    tokens: tuple[Token, ...]
    doubtful: bool = False

    @property
    def text(self) -> str:
        return " ".join(token.text for token in self.tokens)

    @property
    def number(self) -> int | float | None:
        """The value of a number in figures, as `5k`, or in a word from two to twelve; None for anything else."""
        if self.tokens[0].kind != "word":
            return self.tokens[0].number
        scaled = _SCALED.fullmatch(self.value)
        return int(scaled.group(1)) * _SCALES[scaled.group(2)] if scaled else NUMBER_WORDS.get(self.value)


@dataclass(frozen=True)
class Extreme:
    """An adjective that asks for the ends of a column.

    Attributes:
        direction: which end; None if the column decides it, as for `oldest` (`direction_of`).
        concept: the kind of column it is about; "" for any.
    """

    direction: Literal["max", "min"] | None
    concept: str = ""


def _phrases(kind: UnitKind, **values: str) -> dict[tuple[str, ...], tuple[UnitKind, str]]:
    return {
        tuple(phrase.split()): (kind, value) for value, text in values.items() for phrase in text.split("|")
    }


_ENDS = ("oldest", "newest", "youngest", "latest", "earliest", "best", "worst", "fastest", "slowest")
_PHRASES: dict[tuple[str, ...], tuple[UnitKind, str]] = {
    **_phrases(
        "aggregate",
        count="how many|number of|total number of|count of|count the|count|counts of|how often|no. of",
        avg="average|mean|avg|on average|averages",
        sum="sum|total|totals|sum of|in total|sum up|add up|how much|grand total",
        median="median",
        stddev="standard deviation|std dev|std|stdev",
        var_samp="variance",
        corr="correlation between|correlation of|correlation",
    ),
    **_phrases("group", by="by|per|for each|for every|each|grouped by|broken down by|split by|in each|group by"),
    **_phrases(
        "compare",
        **{
            ">": "more than|greater than|longer than|higher than|larger than|bigger than|heavier than|older than|over|"
            "above|exceeding|>|taller than|costlier than|later than|after",
            ">=": "at least|no less than|>=|since|from at least",
            "<": "less than|fewer than|shorter than|lower than|smaller than|lighter than|cheaper than|younger than|"
            "under|below|<|earlier than|before",
            "<=": "at most|no more than|up to|until|<=",
            "=": "=|==|equal to|equals|exactly",
            "<>": "!=|not equal to",
        },
    ),
    **_phrases("between", between="between"),
    **_phrases("or", **{"or": "or", "or more": "or more|or above|or higher", "or less": "or less|or fewer|or below"}),
    # What these say holds of every answer: one is enough, both ends belong to a range, letter case does not count.
    **_phrases(
        "word",
        some="at least one|both days included|both included|inclusive|upper or lower case|case insensitive|in any case",
    ),
    **_phrases("missing", null="missing|null|nulls|nan|nans", blank="empty|blank|blanks", none="no"),
    **_phrases("duplicate", rows="duplicate|duplicates|duplicated"),
    **_phrases(
        "share",
        of="percent|percent of|percentage|percentage of|% of|%|share|share of|proportion of|fraction of",
    ),
    **_phrases(
        "contain", text="contain|contains|containing|mention|mentions|mentioning|say|says|saying|with the word"
    ),
    **_phrases(
        "order",
        by="sorted by|ordered by|sort by|ranked by|in order of",
        desc="highest first|largest first|biggest first|descending|in descending order|desc|sorted descending|"
        "most first|"
        "from high to low",
        asc="lowest first|smallest first|ascending|in ascending order|asc|sorted ascending|from low to high|sorted|"
        "in order",
        **{word: f"{word} first" for word in _ENDS},
    ),
    **_phrases(
        "distinct",
        distinct="different|distinct|unique|different values of|distinct values of|unique values of",
    ),
    **_phrases("top", desc="top", first="first", asc="bottom"),
    **_phrases("times", **{"*": "*|×|times|multiplied by", "/": "divided by|/", "+": "+|plus", "-": "minus"}),
    **_phrases(
        "not",
        no="not|without|excluding|ignoring|leaving out|except|except for|other than|apart from|but not|neither|nor"
        "|non -|non|isn't|aren't|wasn't|weren't|don't|doesn't|didn't",
    ),
    **_phrases(
        "period", month="month|months|monthly", year="year|years|yearly", week="week|weeks|weekly",
        day="day|daily",
        quarter="quarter|quarters|quarterly", dayofweek="weekday|weekdays|day of the week",
    ),
}  # fmt: skip

EXTREMES: dict[str, Extreme] = {
    word: Extreme(direction, concept)  # type: ignore[arg-type]
    for direction, concept, words in (
        ("max", "", "maximum max highest largest biggest greatest most"),
        ("min", "", "minimum min lowest smallest least fewest"),
        ("max", "mass", "heaviest"), ("min", "mass", "lightest"),
        ("max", "length", "longest"), ("min", "length", "shortest"),
        ("max", "height", "tallest"), ("min", "height", "lowest-lying"),
        ("max", "price", "dearest priciest costliest"), ("min", "price", "cheapest"),
        ("max", "temperature", "warmest hottest"), ("min", "temperature", "coldest"),
        (None, "time", "oldest earliest newest latest youngest"),
        (None, "speed", "fastest slowest"),
        (None, "", "best worst"),
    )
    for word in words.split()
}  # fmt: skip
_LATE = ("newest", "latest", "youngest")
_YEARS = {"year", "born", "birth", "built", "date", "since", "founded", "released", "yr"}
_DURATIONS = {"time", "duration", "second", "minute", "ms", "latency", "delay", "elapsed", "lap"}
_SPEEDS = {"speed", "velocity", "mph", "kmh", "kph", "knot"}
_HARMS = {"delay", "late", "lateness", "duration", "latency", "error", "loss", "defect", "complaint", "wait"}


def direction_of(word: str, name_parts: Sequence[str], is_date: bool) -> Literal["max", "min"] | None:
    """Return the end of a column that an adjective asks for, or None if the column does not decide it.

    The oldest person has the largest age, but the earliest date of birth; the worst delay is the largest.

    Args:
        word: a key of `EXTREMES`.
        name_parts: stems of the column's name.
        is_date: whether the column holds dates.

    >>> direction_of("oldest", ["age"], False), direction_of("oldest", ["birth", "date"], True)
    ('max', 'min')
    """
    extreme, named = EXTREMES[word], set(name_parts)
    if extreme.direction is not None:
        return extreme.direction
    if extreme.concept == "time":
        if not is_date and "age" in named:
            return {"oldest": "max", "youngest": "min"}.get(word)  # type: ignore[return-value]
        return ("max" if word in _LATE else "min") if is_date or named & _YEARS else None
    if word in ("fastest", "slowest"):
        large = named & _SPEEDS, not is_date and named & _DURATIONS
        if bool(large[0]) == bool(large[1]):
            return None
        return "max" if bool(large[0]) == (word == "fastest") else "min"
    return ("max" if word == "worst" else "min") if not is_date and named & _HARMS else None


_EXTREME_PHRASES = {
    ("most", "common"): "most", ("most", "frequent"): "most", ("most", "popular"): "most", ("busiest",): "most",
    ("quietest",): "least", ("most", "often"): "most", ("most", "expensive"): "dearest",
    ("least", "expensive"): "cheapest", ("most", "recent"): "latest",
}  # fmt: skip
_MONTH_NAMES = (
    "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
    "september sep sept", "october oct", "november nov", "december dec",
)  # fmt: skip
MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, start=1) for name in names.split()}
_ROWS = ("rows", "records", "entries", "lines", "observations")
LONGEST = 4  # tokens in a phrase


def units(prompt: Prompt) -> tuple[Unit, ...]:
    """Sort the tokens of a prompt.

    >>> from reyn_jupyter.models.offline.prompt_tokens import read_prompt
    >>> [(unit.kind, unit.value) for unit in units(read_prompt("mean fee by clinic"))]
    [('aggregate', 'avg'), ('word', 'fee'), ('group', 'by'), ('word', 'clinic')]
    """
    found: list[Unit] = []
    tokens = prompt.tokens
    index = 0
    while index < len(tokens):
        unit = _phrase(tokens, index) or _single(tokens[index], found)
        if unit.kind == "group" and found and found[-1].value in _ROWS and not _counted(found[:-1]):
            found[-1] = Unit("aggregate", "count", found[-1].tokens)  # "rows per clinic"
        if tokens[index].lower in UNITS and _measured(found):
            found.append(Unit("unit", tokens[index].lower, tokens[index : index + 1]))
            index += 1
            continue
        found.append(unit)
        index += len(unit.tokens)
    mixed = not prompt.text.isupper()
    return tuple(
        _doubted(unit, found[at + 1 : at + 2], found[max(0, at - 1) : at], mixed)
        for at, unit in enumerate(found)
    )


def _measured(before: Sequence[Unit]) -> bool:
    """Return whether a unit of measurement may follow: behind a number that something is compared with."""
    if len(before) < 2 or before[-1].kind != "number":
        return False
    return before[-2].kind in ("compare", "between") or [unit.kind for unit in before[-4:-2]] == [
        "between",
        "number",
    ]


_ARTICLES = ("a", "an", "the")
_NO_NOUNS = frozenset(
    ("in", "of", "is", "are", "was", "were", "from", "for", "and", "by", "on", "with", "has", "vs")
)


def _doubted(unit: Unit, following: Sequence[Unit], before: Sequence[Unit], mixed: bool) -> Unit:
    """Return a word without a meaning as what it may be: an article without a noun is a name or a value."""
    word = unit.tokens[0].text
    capital = mixed and len(word) > 1 and word.isupper()
    if unit.kind == "or" and capital and before and before[0].value in ("in", "of", "from", "for", "is", "="):
        return replace(unit, kind="word", doubtful=True)
    if unit.kind != "word" or unit.value not in FILLER:
        return unit
    if unit.value in _ARTICLES and (
        not following
        or following[0].kind in ("symbol", "or", "compare", "group")
        or following[0].value in _NO_NOUNS
    ):
        return replace(unit, kind="quoted")
    led = bool(before) and (
        before[0].kind in ("group", "compare") or before[0].value in ("for", "of", "from", "is", "are")
    )
    return (
        replace(unit, doubtful=True) if capital or (led and unit.value in ("us", "it", "me", "he")) else unit
    )


def _counted(before: Sequence[Unit]) -> bool:
    """Return whether what follows is counted already: `number of rows per clinic`."""
    return bool(before) and (before[-1].kind, before[-1].value) == ("aggregate", "count")


def _phrase(tokens: Sequence[Token], index: int) -> Unit | None:
    for length in range(LONGEST, 0, -1):
        piece = tuple(tokens[index : index + length])
        if len(piece) < length or any(token.kind not in ("word", "symbol") for token in piece):
            continue
        key = tuple(token.lower for token in piece)
        if key in _EXTREME_PHRASES:
            return Unit("extreme", _EXTREME_PHRASES[key], piece)
        if key in _PHRASES:
            kind, value = _PHRASES[key]
            return Unit(kind, value, piece)
        if length == 1 and key[0] in EXTREMES:
            return Unit("extreme", key[0], piece)
    return None


def _single(token: Token, before: Sequence[Unit]) -> Unit:
    if token.kind == "word" and (token.lower in NUMBER_WORDS or _SCALED.fullmatch(token.lower)):
        return Unit("number", token.lower, (token,))
    if (
        token.kind == "word"
        and token.lower in MONTHS
        and (token.lower != "may" or _after_preposition(before))
    ):
        return Unit("month", str(MONTHS[token.lower]), (token,))
    return Unit(token.kind, token.lower if token.kind == "word" else token.text, (token,))


def _after_preposition(before: Sequence[Unit]) -> bool:
    """Return whether `may` stands where a month does: after a preposition, a number or another month."""
    words = ("in", "of", "during", "for", "and", "or", "to", "from")
    return bool(before) and (
        before[-1].value in words or before[-1].kind in ("number", "compare", "between", "month")
    )


def asks(found: Sequence[Unit]) -> bool:
    """Return whether a text plainly asks for something computed from a table: an aggregate, an extreme, the top so
    many.
    """
    top = any(
        unit.kind == "top" and found[min(index + 1, len(found) - 1)].kind == "number"
        for index, unit in enumerate(found)
    )
    return top or any(unit.kind in ("aggregate", "extreme", "duplicate", "share") for unit in found)


def may_ask(found: Sequence[Unit]) -> bool:
    """Return whether a text may ask for it: a grouping or a comparison, which other texts have too."""
    kinds = ("group", "compare", "between", "distinct", "order", "contain", "not")
    words = ("negative", "positive")
    return any(
        unit.kind in kinds or unit.value in words or (unit.kind == "missing" and unit.value != "none")
        for unit in found
    )
