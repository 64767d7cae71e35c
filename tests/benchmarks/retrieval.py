"""Search over two labelled sets: NDCG@10 beside each leg and reciprocal rank fusion, the decision, and time.

    python -m tests.benchmarks.retrieval [--cache FILE.npz] [--tune] [--only PART] [--every N]

The halves part actions: none that a reported request needs is among those that are tuned on. `--tune` goes over the
tuning halves: it tries values for each constant of the ranking, and fits those of the decision anew (with `--only
decisions` nothing else, which takes some minutes). `--cache` keeps
vectors between runs, `--only` measures one part. Times are CPU time of one core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.ranking.index import Index
from tests.benchmarks import _retrieval_decisions as deciding
from tests.benchmarks import _retrieval_own as own
from tests.benchmarks import _retrieval_tune as tuning
from tests.benchmarks._retrieval_intervals import mean_interval, shown
from tests.benchmarks._retrieval_sets import (
    NAMES,
    REPORTED,
    LabelledSet,
    Remembering,
    indexed,
    load,
    ndcg,
    reciprocal_rank,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reyn_jupyter.search.action_records import Record

RANKS = 60  # the constant of reciprocal rank fusion: Cormack, Clarke and Büttcher (2009)
WHOLE_AT = 10_000  # actions at which a search is timed with the request's vector


def quality(each: LabelledSet, embedder: Remembering, every: int = 1) -> None:
    """NDCG@10 and MRR of every way to rank on the reported half, and ours less the others, with intervals by action."""
    ours, words = indexed(each.records, embedder), indexed(each.records, None)
    vectors = embedder.vectors(each.records)
    asked = [request for request in each.half(REPORTED) if request.gold][::every]
    clusters = [each.cluster(request) for request in asked]
    print(f"{each.name}: {len(asked)} requests for {len(set(clusters))} actions, of {len(each.records):,}")
    for name, score in (("NDCG@10", ndcg), ("MRR", reciprocal_rank)):
        rows: dict[str, list[float]] = {}
        for request in asked:
            for way, found in _ranked(ours, words, vectors, embedder, request.text).items():
                rows.setdefault(way, []).append(score(found[:10], request.gold))
        for way, values in rows.items():
            less = np.subtract(rows["ours"], values).tolist()
            versus = "" if way == "ours" else f"   ours is {shown(mean_interval(less, clusters), '+')} better"
            print(f"  {name:9}{way:32}{shown(mean_interval(values, clusters))}{versus}")


def _ranked(
    ours: Index, words: Index, vectors: np.ndarray, embedder: Remembering, text: str
) -> dict[str, list[str]]:
    lexical = [hit for hit, _ in words.search(text, 100)]
    order = np.argsort(-(vectors @ embedder.embed([text])[0]), kind="stable")[:100]
    meaning = [words.records[place].id for place in order]
    return {
        "words (BM25F)": lexical,
        "meaning (MiniLM, three views)": meaning,
        "reciprocal rank fusion": _fused(lexical, meaning),
        "ours": [hit for hit, _ in ours.search(text)],
    }


def _fused(*rankings: Sequence[str]) -> list[str]:
    total: dict[str, float] = {}
    for ranking in rankings:
        for rank, each in enumerate(ranking, 1):
            total[each] = total.get(each, 0.0) + 1 / (RANKS + rank)
    return sorted(total, key=lambda each: (-total[each], each))


def speed(sets: Sequence[LabelledSet], embedder: Remembering) -> None:
    """CPU time by size of the catalog: real texts under other names, random vectors; one in a hundred moves."""
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
        start = time.process_time()
        index = Index(records, vectors, embedder)
        built = time.process_time() - start
        moved = [_moved(each) if place % 100 == 0 else each for place, each in enumerate(records)]
        start = time.process_time()
        index = index.updated(moved, vectors)
        updated = time.process_time() - start
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


def _moved(record: Record) -> Record:
    return replace(record, description=f"{record.description} It moved.")


def _times(work: Callable[[str], object], queries: Sequence[str]) -> np.ndarray:
    work(queries[0])
    found = []
    for text in queries:
        start = time.process_time()
        work(text)
        found.append((time.process_time() - start) * 1000)
    return np.array(found)


def _on_one_core() -> None:
    """The speed part in a process whose linear algebra has one thread from the start: a second one waits busily."""
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.benchmarks.retrieval", "--only", "speed"]
    sys.stdout.flush()
    subprocess.run(command, env={**os.environ, **one}, check=True)


def main() -> None:
    """Print the whole table, or with `--tune` the constants."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.retrieval")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--only", choices=("own", "quality", "decisions", "speed"))
    parser.add_argument("--set", choices=NAMES, help="the quality of this set alone")
    parser.add_argument(
        "--every", type=int, default=1, help="take each so many requests alone, for the quality"
    )
    options, _ = parser.parse_known_args()
    sets, embedder = [load(name) for name in NAMES], Remembering(options.cache)
    if options.tune:
        if options.only != "decisions":
            tuning.sweeps(sets, embedder)
        tuning.decisions(sets, embedder)
    else:
        if options.only in (None, "own"):
            own.report(embedder)
            quality(own.own_set(), embedder)
        if options.only in (None, "quality"):
            for each in sets:
                if options.set in (None, each.name):
                    quality(each, embedder, options.every)
        if options.only in (None, "decisions"):
            deciding.decisions(sets, embedder, words=False)
            deciding.decisions(sets, embedder, words=True)
        if options.only == "speed" and os.environ.get("OPENBLAS_NUM_THREADS") == "1":
            speed(sets, embedder)
        elif options.only in (None, "speed"):
            _on_one_core()
    embedder.keep()


if __name__ == "__main__":
    main()
