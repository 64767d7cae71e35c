"""Fits the constants of `search/decision.py` on the tuning halves, and prints them.

Catalogs of many sizes are drawn from both sets. A request counts as answerable when an action that it needs is
there; against it stand the same requests without those actions, and requests of the other set.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.decision import Features, Model
from tests.benchmarks._retrieval_sets import TUNING, LabelledSet, Remembering, indexed, ndcg, without

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reyn_jupyter.search.index import Index

SIZES = (30, 100, 400, None)  # records; None is all of them
MOST = 400  # requests of each kind a catalog
WHOLE = 3.0  # how much a whole catalog weighs against a drawn one
LOSS = 0.05  # of answerable requests, that the threshold gives up
RIDGE = 1e-3
WEIGHTS = (0.03, 0.04, 0.045, 0.05, 0.06)


def weights(sets: Sequence[LabelledSet], embedder: Remembering) -> None:
    """Print what the lexical weight does to NDCG@10 on the tuning halves."""
    from reyn_jupyter.search import ranking

    chosen = ranking.LEXICAL_WEIGHT
    for weight in WEIGHTS:
        ranking.LEXICAL_WEIGHT = weight
        shown = []
        for each in sets:
            index = indexed(each.records, embedder)
            found = [ndcg([hit for hit, _ in index.search(r.text)], r.gold) for r in each.half(TUNING)]
            shown.append(f"{each.name} {np.mean(found):.4f}")
        print(f"LEXICAL_WEIGHT {weight:.3f}  {'  '.join(shown)}{'  (chosen)' if weight == chosen else ''}")
    ranking.LEXICAL_WEIGHT = chosen


def decisions(sets: Sequence[LabelledSet], embedder: Remembering) -> None:
    """Print the two models of `decision`, fitted anew."""
    for name, serving in (("BOTH_LEGS", embedder), ("WORDS_ONLY", None)):
        model = fit(sets, serving)
        shown = ", ".join(f"{weight:.4g}" for weight in model.weights)
        print(f"{name} = Model({model.constant:.4g}, ({shown}), {model.threshold:.4g})")


def fit(sets: Sequence[LabelledSet], embedder: Remembering | None) -> Model:
    rng = np.random.default_rng(0)
    rows: list[list[float]] = []
    labels: list[int] = []
    shares: list[float] = []
    whole: list[list[float]] = []
    for each, other in (sets, sets[::-1]):
        for size in SIZES:
            if size is not None and size >= len(each.records):
                continue
            drawn = rng.permutation(len(each.records))[:size]
            index = indexed([each.records[place] for place in sorted(drawn)], embedder)
            for label, found in _examples(index, each, other, rng):
                rows += found
                labels += [label] * len(found)
                weight = (2 if label else 1) * (WHOLE if size is None else 1)
                shares += [weight / max(1, len(found))] * len(found)
                whole += found if label and size is None else []
    model = _logistic(np.array(rows), np.array(labels), np.array(shares))
    confidences = [model.confidence(Features(*row[: len(fields(Features))])) for row in whole]
    return Model(model.constant, model.weights, float(np.quantile(confidences, LOSS)))


def _examples(
    index: Index, own: LabelledSet, other: LabelledSet, rng: np.random.Generator
) -> list[tuple[int, list[list[float]]]]:
    """Rows of features: answerable, needed actions left out, of the other set."""
    held = {record.id for record in index.records}
    answerable = [r for r in own.half(TUNING) if held & frozenset().union(*r.gold)]
    answerable = [answerable[place] for place in rng.permutation(len(answerable))[:MOST]]
    strange = other.half(TUNING)
    strange = [strange[place] for place in rng.permutation(len(strange))[:MOST]]
    groups = (
        (1, [index.features(r.text) for r in answerable]),
        (0, [index.features(r.text, categories=without(index, r)) for r in answerable]),
        (0, [index.features(r.text) for r in strange]),
    )
    return [(label, [each.row() for each in found if each is not None]) for label, found in groups]


def _logistic(rows: np.ndarray, labels: np.ndarray, shares: np.ndarray) -> Model:
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
    return Model(float(beta[0] - slopes @ centre), tuple(float(each) for each in slopes), 0.5)
