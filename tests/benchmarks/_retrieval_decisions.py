"""How well requests that have an answer are told from those that have none, in whole catalogs and in small ones."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.ranking.vocabulary import parameter_texts
from tests.benchmarks._retrieval_catalogs import HERE, OTHER, REMOVED, default_set, groups
from tests.benchmarks._retrieval_intervals import area_interval, shown
from tests.benchmarks._retrieval_sets import REPORTED, LabelledSet, Remembering, read_by_hand

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from reyn_jupyter.search.action_records import Record
    from reyn_jupyter.search.ranking.index import SearchAnswer

AREAS = {OTHER: 0.88, REMOVED: 0.75}  # goals of whole catalogs
LOSSES = (0.05, 0.10, 0.20)

Found = dict[str, dict[str, list["SearchAnswer"]]]  # by kind of catalog, then by what was asked


def decisions(
    sets: Sequence[LabelledSet], embedder: Remembering, *, words: bool, half: int = REPORTED
) -> None:
    """Print areas under the ROC curve, what is rejected, and what is marked weak."""
    print(f"\nis anything here an answer? ({'words only' if words else 'both legs'}, half {half})")
    found: Found = {}
    for group in groups(sets, default_set(), embedder, half, words=words):
        found.setdefault(group.kind, {}).setdefault(group.asked, []).extend(group.answers())
    _whole(sets, found, half)
    print("  AUC against answerable requests, and how many are marked weak:")
    for kind, by in found.items():
        shown = [f"{HERE} -, {_weak(by[HERE]):.0%}"]
        shown += [
            f"{asked} {_auc(_sure(by[HERE]), _sure(answers)):.3f}, {_weak(answers):.0%}"
            for asked, answers in by.items()
            if asked != HERE
        ]
        print(f"    {kind:20}{'   '.join(shown)}")
    small = [by for kind, by in found.items() if "whole" not in kind]
    means = {
        asked: np.mean([_weak(by[asked]) for by in small if asked in by])
        for asked in dict.fromkeys(asked for by in small for asked in by)
    }
    print("    small ones, weak:   " + "   ".join(f"{asked} {mean:.1%}" for asked, mean in means.items()))


def _whole(sets: Sequence[LabelledSet], found: Found, half: int) -> None:
    every: dict[str, list[SearchAnswer]] = {}
    means: dict[str, list[float]] = {}
    for own, other in (sets, sets[::-1]):
        by = found[f"{own.name}, whole"]
        for asked, answers in by.items():
            every.setdefault(asked, []).extend(answers)
            if asked != HERE:
                strange = other if asked == OTHER else own
                means.setdefault(asked, []).append(_told(own.name, by[HERE], asked, answers))
                ids = [request.id for request in strange.half(half)]
                kept, gone = ([s.cluster(r) for r in s.half(half)] for s in (own, strange))
                area = area_interval(_sure(by[HERE]), _sure(answers), kept, gone)
                print(f"    95 % interval by action: {shown(area)}")
                _read(by[HERE], dict(zip(ids, answers, strict=True)), read_by_hand(own.name, asked))
        sharing = _score_above_zero(own.records)
        lost, kept = (np.mean([not sharing(r.text) for r in each.half(half)]) for each in (own, other))
        print(f"    fastmcp's rule (BM25 above 0) rejects {kept:.1%} at {lost:.1%} loss")
    for asked in means:
        _told("pooled", every[HERE], asked, every[asked])
    print("  mean of both sets: AUC " + " and ".join(f"{np.mean(each):.3f}" for each in means.values()))


def _told(name: str, here: Sequence[SearchAnswer], asked: str, answers: Sequence[SearchAnswer]) -> float:
    """Print, and return, the area under the curve of answerable requests against others."""
    above, below = _sure(here), _sure(answers)
    area = _auc(above, below)
    rates = "  ".join(f"{np.mean(below < np.quantile(above, loss)):.1%} at {loss:.0%}" for loss in LOSSES)
    print(f"  {name:9}{asked:12}AUC {area:.3f} (goal {AREAS[asked]})   rejected: {rates} loss")
    return area


def _read(here: Sequence[SearchAnswer], found: Mapping[str, SearchAnswer], read: Mapping[str, str]) -> None:
    """Print how many of the requests that count as unanswerable have an answer, and the area without those."""
    known = {request: verdict for request, verdict in read.items() if request in found}
    if not known:
        return
    answered = np.mean([verdict == "yes" for verdict in known.values()])
    rest = [found[request] for request, verdict in known.items() if verdict != "yes"]
    print(
        f"    {len(known)} of them read by hand: {answered:.0%} have an answer here; an oracle's area would be "
        f"{1 - answered / 2:.2f}, ours is {_auc(_sure(here), _sure([found[each] for each in known])):.3f}, and "
        f"{_auc(_sure(here), _sure(rest)):.3f} against the others alone"
    )


def _sure(answers: Sequence[SearchAnswer]) -> np.ndarray:
    return np.array([answer.confidence for answer in answers])


def _weak(answers: Sequence[SearchAnswer]) -> float:
    return float(np.mean([answer.weak for answer in answers]))


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
