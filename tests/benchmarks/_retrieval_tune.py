"""Fits the constants of `search/ranking/confidence.py` on the tuning halves, and shows what each of the others does."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from reyn_jupyter.search import embedding_texts
from reyn_jupyter.search.ranking import dense, lexical
from reyn_jupyter.search.ranking.confidence import ConfidenceModel
from tests.benchmarks._retrieval_catalogs import HERE, default_set, groups
from tests.benchmarks._retrieval_own import asked, own_set, threshold_of
from tests.benchmarks._retrieval_sets import TUNING, LabelledSet, Remembering, indexed, ndcg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reyn_jupyter.search.ranking.index import Index
    from tests.benchmarks._retrieval_sets import Request

RIDGE = 1e-3
HALF = 2  # every so many records keep their vector where what stands in for one is tried
SMALL = 60  # records up to which a catalog counts as small here
Tried = tuple[ModuleType, str, tuple[Any, ...]]
SWEPT: tuple[Tried, ...] = (
    (dense, "LEXICAL_WEIGHT", (0.03, 0.04, 0.045, 0.05, 0.06)),
    (dense, "CENTRED_FROM", (0, 10, 40)),
    (dense, "COPY", (0.7, 0.8, 0.9)),
    (dense, "COPY_PENALTY", (0.0, 0.05, 0.1, 0.2)),
    (lexical, "K1", (1.2, 2.0, 3.0)),
    (lexical, "FIELD_WEIGHTS", tuple(np.array([name, 1.0, 1.0, 1.0]) for name in (1.0, 2.0, 3.0, 5.0))),
    (lexical, "FIELD_LENGTHS", tuple(np.array([each / 3, each, each, each]) for each in (0.1, 0.3, 0.7))),
    (
        embedding_texts,
        "WEIGHTS",
        ((0.5, 1.0, 0.3), (0.0, 1.0, 0.0), (0.25, 1.0, 0.3), (1.0, 1.0, 0.3), (0.5, 1.0, 0.6)),
    ),
)
STOOD_IN: tuple[Tried, ...] = (
    (dense, "GUESSED", (1.0, 1.5, 2.0, 3.0)),
    (dense, "MOST_GUESSED", (0.6, 0.8, 1.0)),
)


def sweeps(sets: Sequence[LabelledSet], embedder: Remembering) -> None:
    """Print what each constant of the ranking does to NDCG@10 on the tuning halves, the others as they are."""
    small = [
        group
        for group in groups(sets, default_set(), embedder, TUNING)
        if group.asked == HERE and group.index.size <= SMALL
    ]

    def measured(half: bool) -> str:
        shown = []
        for each in sets:
            index = indexed(each.records, embedder)
            shown.append(
                f"{each.name} {_mean_ndcg(_halved(index) if half else index, each.half(TUNING)):.4f}"
            )
        found = [_mean_ndcg(indexed(each.index.records, embedder), each.requests) for each in small]
        return "  ".join(shown) + ("" if half else f"  {len(small)} small catalogs {np.mean(found):.4f}")

    for half, tried in ((False, SWEPT), (True, STOOD_IN)):
        for module, name, values in tried:
            chosen = getattr(module, name)
            for value in values:
                setattr(module, name, value)
                mark = "  (chosen)" if np.allclose(value, chosen) else ""
                print(f"{name:15}{value!s:28}{measured(half)}{mark}", flush=True)
            setattr(module, name, chosen)


def _mean_ndcg(index: Index, requests: Sequence[Request]) -> float:
    return float(np.mean([ndcg([hit for hit, _ in index.search(r.text)], r.gold) for r in requests]))


def _halved(index: Index) -> Index:
    """The same index, a part of its records without a vector, as while one is built."""
    vectors = index.embedder.vectors(index.records)
    vectors[np.arange(len(vectors)) % HALF > 0] = np.nan
    return index.updated(index.records, vectors)


def decisions(sets: Sequence[LabelledSet], embedder: Remembering) -> None:
    """Print the two models of `search/ranking/confidence.py`, fitted anew, their thresholds by the rule."""
    own = own_set()
    for name, words in (("BOTH_LEGS", False), ("WORDS_ONLY", True)):
        model = fit(sets, embedder, words=words)
        index = indexed(own.records, None if words else embedder)
        found = [index.features(request.text) for request in asked(own)]
        threshold = threshold_of([0.0 if each is None else model.confidence(each) for each in found])
        shown = ", ".join(f"{weight:.4g}" for weight in model.weights)
        print(f"{name} = ConfidenceModel({model.constant:.4g}, ({shown}), {threshold:.4g})", flush=True)


def fit(sets: Sequence[LabelledSet], embedder: Remembering, *, words: bool) -> ConfidenceModel:
    """A model but for its threshold. Every kind of catalog weighs what it is given, half for what has an answer."""
    drawn = groups(sets, default_set(), embedder, TUNING, words=words)
    found = [(group, features) for group in drawn if (features := group.features())]
    counts: dict[tuple[str, str], int] = {}
    for group, features in found:
        key = group.kind, group.asked
        counts[key] = counts.get(key, 0) + len(features)
    against = {kind: sum(other == kind for other, _ in counts) - 1 for kind, _ in counts}
    rows, labels, shares = [], [], []
    for group, features in found:
        weight = group.share * (1 if group.asked == HERE else 1 / against[group.kind])
        rows += [each.row() for each in features]
        labels += [group.asked == HERE] * len(features)
        shares += [weight / counts[group.kind, group.asked]] * len(features)
    table, right, share = np.array(rows), np.array(labels), np.array(shares)
    return _logistic(table, right, share)


def _logistic(rows: np.ndarray, labels: np.ndarray, shares: np.ndarray) -> ConfidenceModel:
    """Ridge logistic regression by Newton's method, over standardised features."""
    centre, spread = rows.mean(0), np.maximum(rows.std(0), 1e-9)
    x = np.column_stack([np.ones(len(rows)), (rows - centre) / spread])
    shares = shares / shares.sum()
    beta = np.zeros(x.shape[1])
    penalty = RIDGE * np.r_[0.0, np.ones(rows.shape[1])]
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ beta))
        gradient = x.T @ (shares * (labels - p)) - penalty * beta
        curvature = (x.T * (shares * p * (1 - p))) @ x + np.diag(penalty + 1e-12)
        beta = beta + np.linalg.solve(curvature, gradient)
    slopes = beta[1:] / spread
    return ConfidenceModel(float(beta[0] - slopes @ centre), tuple(float(each) for each in slopes), 0.5)
