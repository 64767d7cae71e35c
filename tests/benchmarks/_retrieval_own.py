"""This package's own catalog, with requests that were written before the texts of its actions were read.

Invariant: nothing of the ranking was tuned on these; the threshold of the weak mark alone is set on them, and its rates
are those of actions that it was not set on. The weights of the decision saw everyday requests to half of the actions:
`unseen` are the requests to the others.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.action_records import Record
from reyn_jupyter.search.ranking import confidence
from tests.benchmarks._retrieval_intervals import area_interval, mean_interval, shown
from tests.benchmarks._retrieval_sets import (
    REPORTED,
    LabelledSet,
    Remembering,
    Request,
    indexed,
    load,
    reciprocal_rank,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reyn_jupyter.search.ranking.index import Index

FALSE_MARKS = 0.10  # of answerable requests, that the threshold may mark weak
FOLDS = 5
LANGUAGES = ("de", "fr", "ja", "ru", "es")


def own_set() -> LabelledSet:
    """A session with a data frame, a function and a peer, and what it hides until it is switched on.

    Requests that none of its actions can answer need nothing.
    """
    import pandas as pd

    import reyn_jupyter as reyn

    @reyn.action
    def discount(price: float, percent: float) -> float:
        """Compute a price less a discount.

        Args:
            price: before the discount.
            percent: what is taken off.
        """
        return price * (1 - percent / 100)

    variables = {"df": pd.DataFrame({"city": ["Oslo"], "sales": [3]}), "discount": discount}
    peers = {"peers": {"reviewer": {"url": "http://127.0.0.1:9/"}}}
    with tempfile.TemporaryDirectory() as folder:
        catalog = reyn.Session(folder, store="memory", namespace=variables, config=peers).catalog
    found = {
        each.name.text: Record(each.name.text, each.name.text, each.description, each.input_schema)
        for each in catalog.actions
    }
    for name, part in catalog.slices.items():
        for each in part.category.operations if part.hidden else ():
            full = f"{name}__{each.entry}"
            found[full] = Record(full, full, each.description, each.input_schema)
    siblings = load("everyday", ()).requests
    return replace(load("fresh", tuple(found.values())), name="own", siblings=siblings, held_out=True)


def unseen(labelled: LabelledSet) -> list[Request]:
    """The requests in English whose actions the weights of the decision were not fitted on."""
    return replace(labelled, held_out=False).half(REPORTED)


def asked(labelled: LabelledSet, language: str = "en", *, answerable: bool = True) -> list[Request]:
    """The requests in a language, those with an answer or those without."""
    return [r for r in labelled.requests if r.language == language and bool(r.gold) == answerable]


def threshold_of(sure: Sequence[float]) -> float:
    """The highest threshold below which at most `FALSE_MARKS` of the answerable requests lie."""
    return float(np.sort(sure)[int(FALSE_MARKS * len(sure))])


def report(embedder: Remembering) -> None:
    """Print the threshold by the rule, its rates on actions that it was not set on, and languages by class."""
    own = own_set()
    fits, nothing = asked(own), asked(own, answerable=False)
    groups = [own.cluster(request) for request in fits]
    none = [request.id for request in nothing]
    for name, index in (("both legs", indexed(own.records, embedder)), ("words", indexed(own.records, None))):
        model = confidence.WORDS_ONLY if name == "words" else confidence.BOTH_LEGS
        above = np.array([_sure(index, request) for request in fits])
        below = np.array([_sure(index, request) for request in nothing])
        print(f"own, {name}: AUC {shown(area_interval(above, below, groups, none))}")
        new = {request.id for request in unseen(own)}
        kept, gone = ([request.id in new for request in requests] for requests in (fits, nothing))
        some = [group for group, keep in zip(groups, kept, strict=True) if keep]
        other = [each for each, keep in zip(none, gone, strict=True) if keep]
        area = area_interval(above[kept], below[gone], some, other)
        print(f"  on the reported half, {sum(kept)} and {sum(gone)} requests: {shown(area)}")
        rule, lost, caught = threshold_of(above), np.zeros(len(fits)), np.zeros(len(nothing))
        fold = {group: at % FOLDS for at, group in enumerate(sorted(set(groups)))}
        of = np.array([fold[group] for group in groups])
        for left_out in range(FOLDS):
            least = threshold_of(above[of != left_out])
            lost[of == left_out] = above[of == left_out] < least
            caught += (below < least) / FOLDS
        marked = above < model.threshold
        print(f"  threshold by the rule {rule:.4f}; on actions that it was not set on, weak:")
        print(f"  answerable {shown(mean_interval(lost, groups))}, not {shown(mean_interval(caught, none))}")
        print(f"  shipped {model.threshold}: {marked.mean():.3f}, {(below < model.threshold).mean():.3f}")
    _languages(own, embedder)


def _sure(index: Index, request: Request) -> float:
    return index.answer(request.text).confidence


def _languages(own: LabelledSet, embedder: Remembering) -> None:
    from reyn_jupyter.config.settings import MULTILINGUAL
    from reyn_jupyter.search import build
    from reyn_jupyter.search.embedders.universal import UniversalSentenceEncoder

    classes = (
        ("local-mini", indexed(own.records, embedder)),
        ("multilingual", build(own.records, UniversalSentenceEncoder(MULTILINGUAL))),
        ("words", indexed(own.records, None)),
    )
    for name, index in classes:
        every = {each: [(r, _rank(index, r)) for r in asked(own, each)] for each in ("en", *LANGUAGES)}
        pooled = [pair for each in LANGUAGES for pair in every[each]]
        row = mean_interval([rank for _, rank in pooled], [own.cluster(r) for r, _ in pooled])
        means = "  ".join(
            f"{each} {np.mean([rank for _, rank in found]):.2f}" for each, found in every.items()
        )
        print(f"MRR, {name:13}{means}   the five: {shown(row)}")


def _rank(index: Index, request: Request) -> float:
    return reciprocal_rank([hit for hit, _ in index.search(request.text)], request.gold)
