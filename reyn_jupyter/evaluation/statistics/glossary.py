"""Name the statistics' terms of reports, each with one sentence for somebody who meets it for the first time.

Invariant: the manual's table and what a report shows under its figures are these same sentences.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

# Term → the sentence.
GLOSSARY: Mapping[str, str] = MappingProxyType({
    "pair": "One scenario, once, under both variants.",
    "discordant": "A pair that one variant passes and the other fails; only such pairs tell two variants apart.",
    "95 % CI": "A range made by a rule that holds the true value in 95 of 100 studies.",
    "p": "How often variants that are alike would differ by as much as was seen, or more.",
    "McNemar": "The test of discordant pairs: could a fair coin have split them like this?",
    "sign-flip": "The test over scenarios with repeats: could the difference of each have had the other sign?",
    "Holm": "A correction of p where several comparisons are made, since one of many looks good by chance.",
    "design effect": "How many times more trials it took than independent ones, since repeats resemble each other.",
    "e-value": "Evidence that may be looked at after every scenario: 20 stands for a level of 5 %.",
    "log E": "The logarithm of the e-value; 3.0 stands for a level of 5 %.",
    "power": "The chance that a study of this size finds a difference of the size that is meant.",
    "Brier": "The mean squared error of forecasts; 0 is best.",
    "skill": "How much better forecasts are than always saying what was seen on average; below 0 is worse.",
    "pass^k": "The chance that all of k trials of a scenario pass.",
})  # fmt: skip
_PATTERNS = {
    **{term: re.compile(rf"\b{re.escape(term)}\b", re.IGNORECASE) for term in GLOSSARY},
    "pair": re.compile(r"\bpairs?\b"),
    "95 % CI": re.compile(r"\bCI\b"),
    "p": re.compile(r"\bp (?:[=<]|cannot)"),
    "log E": re.compile(r"\blog e", re.IGNORECASE),
    "e-value": re.compile(r"\be-values?\b", re.IGNORECASE),
    "power": re.compile(r"\bpower\b|with a chance of", re.IGNORECASE),
    "pass^k": re.compile(r"\bpass\^k"),
}


def terms_in(text: str) -> tuple[str, ...]:
    """Return the terms that a text uses, in the order of the glossary.

    Example:
        >>> terms_in("34 v 9 discordant, design effect 1.7")
        ('discordant', 'design effect')
    """
    return tuple(term for term in GLOSSARY if _PATTERNS[term].search(text))
