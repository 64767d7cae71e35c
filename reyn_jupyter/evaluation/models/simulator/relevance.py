"""Find the shown action or category that a text is nearest to, by words alone.

Invariant: pure, and remembered for each text and listing; ties go to the name, so every process chooses alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from reyn_jupyter.evaluation.models.simulator.dialogue_state import SeenAction
from reyn_jupyter.evaluation.models.simulator.stopwords import ASKING, CHANGING, SAME, TRAINED
from reyn_jupyter.models.offline.lexicon import FILLER, content_stems, parts
from reyn_jupyter.models.offline.prompt_tokens import Prompt, read_prompt

Categories = tuple[tuple[str, str], ...]  # name and capability
FITS = 0.12  # of a text's words; what shares less with it does not look as if it fitted
_IN_NAME, _IN_REST = 1.0, 0.5
_TELLING = frozenset().union(*SAME)  # verbs among them that are filler elsewhere
_EDITS = re.compile(r"\b(change|edit|replace)s?\b.{0,40}\b(part|place|existing)\b", re.IGNORECASE)
_WRITES = re.compile(r"\b(write|create|replace)s?\b.{0,60}\bwhole\b|\bcreate a file\b", re.IGNORECASE)


@dataclass(frozen=True)
class Fit:
    """The shown actions that fit a text, best first, and how well the best one does (0 to 1)."""

    ranked: tuple[SeenAction, ...]
    score: float


@lru_cache(8192)
def fit(text: str, items: tuple[SeenAction, ...]) -> Fit:
    """Rank actions by the share of a text's words that their names, then descriptions and parameters, account for."""
    wanted = word_stems(text)
    scored = sorted(
        ((_score(wanted, item), item) for item in items), key=lambda pair: (-pair[0], pair[1].name)
    )
    return Fit(tuple(item for _, item in scored), scored[0][0] if scored else 0.0)


@lru_cache(4096)
def category(text: str, categories: Categories) -> str | None:
    """Return the category whose name and capability are nearest to a text; None when there is none to choose from."""
    if not categories:
        return None
    offered = _untrained(categories) if obscure(text, categories) else categories
    wanted = word_stems(text) | ({"file"} if read_prompt(text).paths else set())

    def nearness(entry: tuple[str, str]) -> float:
        name, capability = entry
        return _share(wanted, _widen(parts(name)), _widen(content_stems(capability)))

    return max(offered, key=nearness)[0]  # the first of equals


@lru_cache(4096)
def obscure(text: str, categories: Categories) -> bool:
    """Return whether a text is about something that no model knows from training.

    It is when a category of a kind that none has met is on offer, none of a known kind shares more words with the
    text, and no file is named.

    >>> offered = (("file", "Read and write files."), ("routine", "Run one of this project's own routines."))
    >>> obscure("Run the routine that recalibrates the gauge", offered), obscure("Read the file", offered)
    (True, False)
    """
    unknown = _untrained(categories)
    if not unknown or read_prompt(text).paths:
        return False
    wanted = word_stems(text)

    def nearest(entries: Iterable[tuple[str, str]]) -> float:
        shares = (
            _share(wanted, frozenset(parts(name)), frozenset(content_stems(line))) for name, line in entries
        )
        return max(shares, default=0.0)

    return nearest(unknown) >= nearest(entry for entry in categories if entry not in unknown)


def _untrained(categories: Categories) -> Categories:
    return tuple(entry for entry in categories if not TRAINED.intersection(parts(entry[0])))


@lru_cache(4096)
def asks_for_a_change(text: str) -> bool:
    """Return whether a text asks to change something that is there.

    >>> asks_for_a_change("Set the port in app.toml to 9000"), asks_for_a_change("What does app.toml hold?")
    (True, False)
    """
    prompt = read_prompt(text)
    return not ASKING.intersection(prompt.words[:1]) and bool(CHANGING & _stems(prompt))


@lru_cache(1024)
def ways_to_change(items: tuple[SeenAction, ...]) -> tuple[SeenAction, SeenAction] | None:
    """Return the action that edits in place and the one that writes whole files, None unless both were shown."""
    edit = next((item for item in items if _is(item, "edit", _EDITS)), None)
    write = next((item for item in items if item is not edit and _is(item, "write", _WRITES)), None)
    return (edit, write) if edit is not None and write is not None else None


def _is(item: SeenAction, word: str, pattern: re.Pattern[str]) -> bool:
    return word in parts(item.known.entry) or (pattern.search(item.known.description) is not None)


@lru_cache(4096)
def word_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's own words that say what is wanted; paths and quoted pieces are values, and left
    out.

    >>> sorted(word_stems("Show me the port in notes/app.toml"))
    ['port', 'show']
    """
    stems = _stems(read_prompt(text))
    return frozenset(stem for stem in stems if len(stem) > 1 and (stem in _TELLING or stem not in FILLER))


def _stems(prompt: Prompt) -> frozenset[str]:
    return frozenset(part for word in prompt.words for part in parts(word))


@lru_cache(8192)
def _words(item: SeenAction) -> tuple[frozenset[str], frozenset[str]]:
    rest = (
        *content_stems(item.known.description),
        *(part for key in item.known.parameters for part in parts(key)),
    )
    return _widen(parts(item.known.entry)), frozenset(rest)


def _score(wanted: frozenset[str], item: SeenAction) -> float:
    return _share(wanted, *_words(item))


def _share(wanted: frozenset[str], name: frozenset[str], rest: frozenset[str]) -> float:
    if not wanted:
        return 0.0
    return (_IN_NAME * len(wanted & name) + _IN_REST * len(wanted & (rest - name))) / len(wanted)


def _widen(words: Iterable[str]) -> frozenset[str]:
    own = frozenset(words)
    return own.union(*(group for group in SAME if own & group))
