"""Search over two labelled sets: NDCG@10 beside each leg and reciprocal rank fusion, the decision, and time.

    python -m tests.benchmarks.retrieval [--cache FILE.npz] [--tune]

Half of each set was tuned on; the other half is reported. `--tune` fits the constants of the package anew from the
tuning halves and prints them. `--cache` keeps vectors between runs, `--only` measures one part. Times are those of one
core with `OPENBLAS_NUM_THREADS=1`.
"""

from __future__ import annotations

import argparse
import re
import time
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.index import Index
from reyn_jupyter.search.vocabulary import parameter_texts
from tests.benchmarks import _retrieval_tune as tuning
from tests.benchmarks._retrieval_sets import (
    NAMES,
    REPORTED,
    TUNING,
    LabelledSet,
    Remembering,
    indexed,
    load,
    ndcg,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reyn_jupyter.search.records import Record

GOALS = {"bfcl": 0.83, "metatool": 0.73}
AREAS = (0.88, 0.75)  # goals of the decision
RANKS = 60  # the constant of reciprocal rank fusion: Cormack, Clarke and Büttcher (2009)
DRAWS = 2_000  # of the paired bootstrap
LOSSES = (0.05, 0.10, 0.20)
WHOLE_AT = 10_000  # actions at which a search is timed with the request's vector


def quality(each: LabelledSet, embedder: Remembering) -> None:
    """NDCG@10 of every way to rank, on both halves, and ours against the others with 95 % intervals."""
    ours, words = indexed(each.records, embedder), indexed(each.records, None)
    ids = [record.id for record in each.records]
    vectors = _vectors(each.records, embedder)
    for half, label in ((TUNING, "tuning half"), (REPORTED, "reported half")):
        rows: dict[str, list[float]] = {}
        for request in each.half(half):
            lexical = [hit for hit, _ in words.search(request.text, 100)]
            plain = vectors @ embedder.embed([request.text])[0]
            meaning = [ids[place] for place in np.argsort(-plain, kind="stable")[:100]]
            ways = {
                "words (BM25F)": lexical,
                "meaning (MiniLM, three views)": meaning,
                "reciprocal rank fusion": _fused(lexical, meaning),
                "ours": [hit for hit, _ in ours.search(request.text)],
            }
            for way, found in ways.items():
                rows.setdefault(way, []).append(ndcg(found, request.gold))
        print(f"{each.name}, {label}: {len(rows['ours'])} requests, {len(ids):,} actions")
        for way, values in rows.items():
            versus = "" if way == "ours" else f"   ours is {_interval(rows['ours'], values)} better"
            goal = f"   goal {GOALS[each.name]}" if way == "ours" else ""
            print(f"  {way:32}{np.mean(values):8.4f}{versus}{goal}")


def _vectors(records: Sequence[Record], embedder: Remembering) -> np.ndarray:
    from reyn_jupyter.search.views import joined, texts_of

    return np.stack([joined(embedder.embed(texts_of(record))) for record in records])


def _fused(*rankings: Sequence[str]) -> list[str]:
    total: dict[str, float] = {}
    for ranking in rankings:
        for rank, each in enumerate(ranking, 1):
            total[each] = total.get(each, 0.0) + 1 / (RANKS + rank)
    return sorted(total, key=lambda each: (-total[each], each))


def _interval(ours: Sequence[float], other: Sequence[float]) -> str:
    rng = np.random.default_rng(0)
    difference = np.array(ours) - np.array(other)
    means = difference[rng.integers(0, len(difference), (DRAWS, len(difference)))].mean(1)
    low, high = np.quantile(means, (0.025, 0.975))
    return f"{difference.mean():+.4f} [{low:+.4f}, {high:+.4f}]"


def decisions(sets: Sequence[LabelledSet], embedder: Remembering | None) -> None:
    """How well answerable requests are told from others, on the reported halves."""
    print(
        f"\nis anything here an answer? ({'words only' if embedder is None else 'both legs'}, reported half)"
    )
    every: list[list[float]] = [[], [], []]
    areas: list[list[float]] = []
    for own, other in (tuple(sets), tuple(sets)[::-1]):
        index = indexed(own.records, embedder)
        mine, strange = own.half(REPORTED), other.half(REPORTED)
        found = [
            [index.answer(r.text).confidence for r in mine],
            [index.answer(r.text).confidence for r in strange],
            [index.answer(r.text, categories=without(index, r)).confidence for r in mine],
        ]
        weak = [np.mean([index.answer(r.text).weak for r in group]) for group in (mine, strange)]
        for all_of, part in zip(every, found, strict=True):
            all_of += part
        areas.append(_decision(own.name, found))
        print(f"    marked weak: {weak[0]:.1%} of answerable, {weak[1]:.1%} of the other set's")
        sharing = _score_above_zero(own.records)
        rates = [np.mean([not sharing(r.text) for r in group]) for group in (mine, strange)]
        print(f"    fastmcp's rule (BM25 above 0) rejects {rates[1]:.1%} at {rates[0]:.1%} loss")
    _decision("pooled", every)
    print("  mean of both sets: AUC " + " and ".join(f"{area:.3f}" for area in np.mean(areas, axis=0)))


def _decision(name: str, found: Sequence[Sequence[float]]) -> list[float]:
    """Print, and return, the areas under the curve of answerable requests against each of the other two kinds."""
    areas = []
    answerable, *others = (np.array(part) for part in found)
    for label, other, goal in zip(
        ("other set's requests", "needed actions removed"), others, AREAS, strict=True
    ):
        areas.append(_auc(answerable, other))
        rates = "  ".join(
            f"{np.mean(other < np.quantile(answerable, loss)):.1%} at {loss:.0%}" for loss in LOSSES
        )
        print(f"  {name:9}{label:24}AUC {areas[-1]:.3f} (goal {goal})   rejected: {rates} loss")
    return areas


def _auc(above: np.ndarray, below: np.ndarray) -> float:
    ordered = np.sort(below)
    left, right = np.searchsorted(ordered, above, "left"), np.searchsorted(ordered, above, "right")
    return float(np.mean((left + right) / 2) / len(below))


def _score_above_zero(records: Sequence[Record]) -> Callable[[str], bool]:
    """fastmcp's search transform keeps every tool whose BM25 score is above 0: one that shares any word."""

    def read(text: str) -> set[str]:
        return set(re.findall(r"[^\W_]{2,}", unicodedata.normalize("NFKC", text).casefold()))

    known = set[str]().union(
        *(read(" ".join((r.name, r.description, *parameter_texts(r.parameters)))) for r in records)
    )
    return lambda text: bool(read(text) & known)


def speed(sets: Sequence[LabelledSet], embedder: Remembering) -> None:
    """Milliseconds by size of the catalog: real texts under other names, random vectors."""
    base = [record for each in sets for record in each.records]
    queries = [request.text for each in sets for request in each.requests[:100]]
    embedder.embed(queries)
    print(
        f"\n{'actions':>9}{'build s':>10}{'updated s':>11}{'ranking p50 ms':>16}{'p95':>8}{'words p95':>11}"
    )
    for size in (1_000, 10_000, 100_000):
        records = [_copy(base[place % len(base)], place) for place in range(size)]
        vectors = np.random.default_rng(0).standard_normal((size, 384)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        start = time.perf_counter()
        index = Index(records, vectors, embedder)
        built = time.perf_counter() - start
        start = time.perf_counter()
        index = index.updated(records, vectors)
        updated = time.perf_counter() - start
        for text in queries:
            index.query_vector(text)
        both, words = _times(index.search, queries), _times(index.updated(records).search, queries)
        shown = f"{built:10.2f}{updated:11.2f}{np.median(both):16.2f}{np.quantile(both, 0.95):8.2f}"
        print(f"{size:9,}{shown}{np.quantile(words, 0.95):11.2f}")
        if size == WHOLE_AT:
            fresh = Index(records, vectors, embedder.model)
            asked = [text for text in queries if len(text.split()) <= 15]
            alone, whole = (
                _times(lambda text: embedder.model.embed([text]), asked),
                _times(fresh.search, asked),
            )
            print(f"{'':9}with the request's vector, {len(asked)} requests of up to 15 words:")
            for label, found in (("the vector", alone), ("the search", whole)):
                print(
                    f"{'':9}  {label}: p50 {np.median(found):.1f} ms, p95 {np.quantile(found, 0.95):.1f} ms"
                )


def _copy(record: Record, place: int) -> Record:
    return replace(record, id=f"{place:06d}", name=f"part{place // 2_923}_{record.name}")


def _times(work: Callable[[str], object], queries: Sequence[str]) -> np.ndarray:
    work(queries[0])
    found = []
    for text in queries:
        start = time.perf_counter()
        work(text)
        found.append((time.perf_counter() - start) * 1000)
    return np.array(found)


def main() -> None:
    """Print the whole table, or with `--tune` the constants."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.retrieval")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--only", choices=("quality", "decisions", "speed"))
    options, _ = parser.parse_known_args()
    sets, embedder = [load(name) for name in NAMES], Remembering(options.cache)
    if options.tune:
        tuning.weights(sets, embedder)
        tuning.decisions(sets, embedder)
    else:
        if options.only in (None, "quality"):
            for each in sets:
                quality(each, embedder)
        if options.only in (None, "decisions"):
            decisions(sets, embedder)
            decisions(sets, None)
        if options.only in (None, "speed"):
            speed(sets, embedder)
    embedder.keep()


if __name__ == "__main__":
    main()
