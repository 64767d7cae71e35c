"""Corpora: indexing beside the bare model, an unchanged folder, recall beside numpy, order beside words or meaning.

Indexing is the whole way, from files to vectors on the disk; its peer embeds the very same passages, already in memory,
with sentence-transformers on one thread. Both take turns. Figures are medians of CPU time on one thread. Recall is the
whole call on a corpus on the disk; its limit is one product of the vectors with the query's and its best ten.
Order is measured on labelled sets of functions, each of them a passage: no labelled set of documents lies here.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from reyn_jupyter.corpora.corpus import vectors_key
from reyn_jupyter.corpora.document import Document, DocumentSection
from reyn_jupyter.corpora.passages import Passage
from reyn_jupyter.corpora.recall import recall
from reyn_jupyter.search.embedders.embedder import MINI
from reyn_jupyter.search.embedders.local import LocalEmbedder, one_thread
from reyn_jupyter.search.embedders.packaged import KEY
from reyn_jupyter.search.embedders.sentence import SentenceTransformerEmbedder
from reyn_jupyter.sessions.access.session_embedder import SessionEmbedder
from tests.benchmarks._retrieval_sets import NAMES, Remembering, load, ndcg
from tests.corpora.corpora_support import Shelf

PASSAGES, ROUNDS = 96, 3
FILES = 10_000
SIZES = (10_000, 100_000)
QUERIES = 40
DOCS = Path(__file__).parents[2] / "reyn_jupyter" / "docs"


def main() -> None:
    asyncio.run(_indexing())
    asyncio.run(_unchanged())
    for size in SIZES:
        _recall(size)
    for name in NAMES:
        asyncio.run(_order(name))


def _words() -> list[str]:
    return " ".join(path.read_text("utf-8") for path in sorted(DOCS.glob("*.md"))).split()


async def _indexing() -> None:
    """Print passages a second of indexing and of the bare model."""
    import torch

    torch.set_num_threads(1)
    model = SentenceTransformerEmbedder(MINI)
    rng, words = random.Random(1), _words()
    ours, bare = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for number in range(PASSAGES // 4):
                sections = (f"## Part {part}\n\n{' '.join(rng.choices(words, k=130))}\n" for part in range(4))
                (root / f"n{number}.md").write_text(f"# Note {number}\n\n" + "\n".join(sections), "utf-8")
            heavy = LocalEmbedder(KEY, 384, None, lambda: model)
            loading = heavy.load()
            assert loading is not None
            loading.result()
            shelf = Shelf(root, SessionEmbedder(lambda heavy=heavy: heavy, {}))  # type: ignore[misc]
            began = time.process_time()
            outcome = await shelf.index("notes", ".")
            ours.append(outcome.embedded / (time.process_time() - began))
            texts = [each.passage.embedded for each in shelf.corpus("notes").file.passages()]
            began = time.process_time()
            model.embed(texts)
            bare.append(len(texts) / (time.process_time() - began))
    here, there = statistics.median(ours), statistics.median(bare)
    print(
        f"indexing          {here:8.1f} passages/s   bare model {there:8.1f}/s   {here / there:6.1%} of it (aim 95 %)"
    )


async def _unchanged() -> None:
    """Print what it takes to look through a folder in which nothing changed."""
    with tempfile.TemporaryDirectory() as folder:
        root, words, rng = Path(folder), _words(), random.Random(2)
        for number in range(FILES):
            place = root / f"d{number % 100}"
            place.mkdir(exist_ok=True)
            (place / f"n{number}.md").write_text(
                f"# {number}\n\n{' '.join(rng.choices(words, k=40))}", "utf-8"
            )
        shelf = Shelf(root)
        first = await _timed(shelf)
        again = [await _timed(shelf) for _ in range(3)]
        wall, cpu = (statistics.median(each[place] for each in again) for place in (0, 1))
        print(
            f"{FILES:,} files        {first[0]:8.2f} s first, then unchanged {wall:.2f} s, {cpu:.2f} s CPU (limit 2 s)"
        )


async def _timed(shelf: Shelf) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    await shelf.index("all", ".")
    return time.perf_counter() - wall, time.process_time() - cpu


def _recall(size: int) -> None:
    """Print the median of a recall from a corpus of so many passages, and of numpy's product alone."""
    rng, words = random.Random(3), _words()
    vectors = np.random.default_rng(4).standard_normal((size, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        corpus = Shelf(Path(folder)).corpus("all")
        corpus.folder.make()
        passages = [Passage(" ".join(rng.choices(words, k=100)), (f"Part {n % 50}",)) for n in range(size)]
        with corpus.file.batch():
            for first in range(0, size, 100):
                name = f"d{first // 1000}/n{first}.md"
                corpus.file.replace(
                    name,
                    "markdown",
                    {"year": 2000 + first // 100 % 20},
                    "",
                    (1, 1, 1, 1),
                    passages[first : first + 100],
                )
        for first in range(0, size, 2000):
            rows = zip(passages[first : first + 2000], vectors[first : first + 2000], strict=True)
            corpus.vectors.add(vectors_key("m"), {passage.digest: row for passage, row in rows})
        began = time.process_time()
        corpus.load("m")
        loaded = time.process_time() - began
        asked = [(" ".join(rng.choices(words, k=6)), vectors[rng.randrange(size)]) for _ in range(QUERIES)]
        whole = _median(
            asked, lambda text, row: recall([corpus], text, 10, None, row, "m", lambda path: True)
        )
        where = {"year": {"min": 2010}}
        narrowed = _median(
            asked, lambda text, row: recall([corpus], text, 10, where, row, "m", lambda path: True)
        )
        alone = _median(asked, lambda text, row: np.argpartition(vectors @ row, -10)[-10:])
        print(
            f"recall {size:>8,}   {whole:8.1f} ms of CPU, filtered {narrowed:.1f} ms   numpy alone {alone:.1f} ms   "
            f"loaded in {loaded:.1f} s"
        )


def _median(asked: Sequence[tuple[str, np.ndarray]], work: Callable[[str, np.ndarray], object]) -> float:
    times = []
    with one_thread():
        for text, row in asked:
            began = time.process_time()
            work(text, row)
            times.append(time.process_time() - began)
    return 1000 * statistics.median(times)


async def _order(name: str) -> None:
    """Print NDCG@10 of words, of meaning and of both on a labelled set, over all of its requests."""
    labelled = load(name)
    rows = [f"{record.name}\n{record.description}" for record in labelled.records]
    sections = tuple(DocumentSection(text, (), "row", number) for number, text in enumerate(rows, 1))
    model = Remembering()
    embedder = LocalEmbedder(model.key, model.dimension, lambda: model, None)
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(Path(folder), SessionEmbedder(lambda: embedder, {}))
        await shelf.index("set", frames={"rows": Document("frame", sections)})
        corpus = shelf.corpus("set")
        stored = corpus.file.passages()
        vectors = model.embed([each.passage.embedded for each in stored])
        ids = [labelled.records[each.passage.first - 1].id for each in stored]
        asked = model.embed([request.text for request in labelled.requests])
        scores: dict[str, list[float]] = {"words": [], "meaning": [], "both": []}
        for request, row in zip(labelled.requests, asked, strict=True):
            for way, vector in (("words", None), ("both", row)):
                hits = recall([corpus], request.text, 10, None, vector, model.key, lambda path: True).hits
                found = [labelled.records[hit.stored.passage.first - 1].id for hit in hits]
                scores[way].append(ndcg(found, request.gold))
            best = np.argsort(-(vectors @ row), kind="stable")[:10]
            scores["meaning"].append(ndcg([ids[place] for place in best], request.gold))
    said = ", ".join(f"{way} {statistics.mean(each):.3f}" for way, each in scores.items())
    print(f"NDCG@10 {name:<10}{said}   ({len(rows):,} passages, {len(labelled.requests):,} requests)")


if __name__ == "__main__":
    main()
