"""Catalogs of every size, and requests that have an answer in them or none: what the decision is tuned and measured on.

Invariants: what a seed draws is always the same, and a request is only ever of the half that was asked for. Catalogs of
the tuning half hold actions of that half alone, this package's included, and no fresh request to them.

Catalogs: both sets whole; 10 to 160 of their actions, mixed or from a few subjects, as servers bring them; the default
catalog of a session, alone and with such actions. Against requests that have an answer stand those whose actions were
not drawn, the answerable ones without their actions, the other set's, and everyday ones.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.action_records import Record
from tests.benchmarks._retrieval_sets import (
    REPORTED,
    LabelledSet,
    Remembering,
    Request,
    indexed,
    load,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reyn_jupyter.search.ranking.confidence import RankingFeatures
    from reyn_jupyter.search.ranking.index import Index, SearchAnswer

SIZES, ADDED, DRAWS = (10, 20, 40, 80, 160), (10, 30, 80), 6
WHOLE, DEFAULT = 5.0, 3.0  # what a whole catalog, and the default one, weighs against a kind of drawn ones
MOST = 30  # requests of one kind for a drawn catalog
FEW = 10  # everyday requests for a catalog that is not made for them
ALIKE = 8  # actions of one subject, at least

HERE, ABSENT, REMOVED, OTHER, NONE = "answerable", "not drawn", "removed", "other set's", "everyday"


@dataclass(frozen=True)
class Group:
    """Requests of one kind for one catalog.

    Attributes:
        kind: of catalog; `share` is its weight.
        asked: HERE where an answer is there; otherwise why there is none.
    """

    kind: str
    share: float
    index: Index
    asked: str
    requests: tuple[Request, ...]

    def features(self) -> list[RankingFeatures]:
        found = (self._asked(request).features(request.text) for request in self.requests)
        return [each for each in found if each is not None]

    def answers(self) -> list[SearchAnswer]:
        return [self._asked(request).answer(request.text) for request in self.requests]

    def _asked(self, request: Request) -> Index:
        return without(self.index, request) if self.asked == REMOVED else self.index


def default_set() -> LabelledSet:
    """The actions that a new session has, and everyday requests; those that none of them can answer need nothing."""
    from reyn_jupyter import Session

    with tempfile.TemporaryDirectory() as folder:
        actions = Session(folder, store=None).catalog.actions
    records = tuple(
        Record(each.name.text, each.name.text, each.description, each.input_schema)
        for each in actions
        if not each.name.text.startswith(("variable__", "function__"))  # those are the benchmark's own
    )
    return replace(load("everyday", records), name="default", siblings=load("fresh", ()).requests)


def groups(
    sets: Sequence[LabelledSet],
    default: LabelledSet,
    embedder: Remembering,
    half: int,
    *,
    words: bool = False,
) -> Iterator[Group]:
    """All groups of one half of the requests; with `words` over indexes without vectors."""
    drawing = _Drawing(embedder, half, words)
    fits = [request for request in default.half(half) if request.gold]
    nothing = [request for request in default.half(half) if not request.gold]
    built_in = default.records if half == REPORTED else default.actions(half)
    for own, other in (sets, sets[::-1]):
        index = drawing.index(own.records if half == REPORTED else own.actions(half))
        mine, strange = own.half(half), other.half(half)
        for asked, requests in ((HERE, mine), (REMOVED, mine), (OTHER, strange)):
            yield Group(f"{own.name}, whole", WHOLE, index, asked, tuple(requests))
        for size in SIZES:
            for alike in (False, True):
                kind = f"{own.name}, {size} {'alike' if alike else 'mixed'}"
                for _ in range(DRAWS):
                    index = drawing.index(drawing.some(own, size, alike=alike))
                    yield from drawing.about(kind, index, own)
                    yield Group(kind, 1, index, OTHER, drawing.few(strange))
                    yield Group(kind, 1, index, NONE, drawing.few(fits, FEW))
    index = drawing.index(built_in)
    for asked, requests in ((HERE, fits), (REMOVED, fits), (NONE, nothing)):
        yield Group("default", DEFAULT, index, asked, tuple(requests))
    for each in sets:
        yield Group("default", DEFAULT, index, OTHER, drawing.few(each.half(half), 2 * MOST))
    for added in ADDED:
        kind = f"default and {added}"
        for draw in range(DRAWS):
            own = sets[draw % 2]
            index = drawing.index((*built_in, *drawing.some(own, added, alike=draw % 4 > 1)))
            yield from drawing.about(kind, index, own)
            yield Group(kind, 1, index, HERE, tuple(fits))
            yield Group(kind, 1, index, REMOVED, drawing.few(fits))
            yield Group(kind, 1, index, NONE, drawing.few(nothing))


class _Drawing:
    """Draws catalogs and requests."""

    def __init__(self, embedder: Remembering, half: int, words: bool) -> None:
        self._rng = np.random.default_rng(half)
        self._embedder, self._half, self._words = embedder, half, words

    def index(self, records: Sequence[Record]) -> Index:
        return indexed(records, None if self._words else self._embedder)

    def few(self, requests: Sequence[Request], most: int = MOST) -> tuple[Request, ...]:
        return tuple(requests[place] for place in self._rng.permutation(len(requests))[:most])

    def some(self, own: LabelledSet, size: int, *, alike: bool) -> list[Record]:
        """Actions of a half of a set: half of them are needed by a request; or each with those most like it."""
        held = own.actions(self._half)
        needed = frozenset().union(*(need for r in own.half(self._half) for need in r.gold))
        asked_for = [record for record in held if record.id in needed]
        if not alike:
            first = self._pick(asked_for, size // 2)
            return first + self._pick([r for r in held if r not in first], size - len(first))
        vectors = self._embedder.vectors(held)
        subjects = max(1, min(4, size // ALIKE))
        chosen: dict[int, None] = {}
        for seed in self._pick(asked_for, subjects):
            nearest = np.argsort(-(vectors @ vectors[held.index(seed)]), kind="stable")
            fresh = [place for place in nearest.tolist() if place not in chosen]
            chosen |= dict.fromkeys(fresh[: -(-size // subjects)])
        return [held[place] for place in list(chosen)[:size]]

    def about(self, kind: str, index: Index, own: LabelledSet) -> Iterator[Group]:
        """A set's requests for an index that holds a part of it."""
        held = {record.id for record in index.records}
        there = [request for request in own.half(self._half) if held & frozenset().union(*request.gold)]
        absent = [request for request in own.half(self._half) if request not in there]
        yield Group(kind, 1, index, HERE, self.few(there))
        yield Group(kind, 1, index, REMOVED, self.few(there))
        yield Group(kind, 1, index, ABSENT, self.few(absent))

    def _pick(self, records: Sequence[Record], count: int) -> list[Record]:
        return [records[place] for place in self._rng.permutation(len(records))[:count]]
