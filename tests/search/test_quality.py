"""How good the ranking is on labelled requests that it was not tuned on: floors, not speeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from reyn_jupyter.search.embedders.packaged import weights_folder
from tests.benchmarks._retrieval_catalogs import OTHER, REMOVED
from tests.benchmarks._retrieval_sets import (
    NAMES,
    REPORTED,
    TUNING,
    Remembering,
    indexed,
    load,
    ndcg,
    read_by_hand,
    without,
)

if TYPE_CHECKING:
    from reyn_jupyter.search.ranking.index import Index
    from tests.benchmarks._retrieval_sets import LabelledSet, Request

EVERY = 6  # of the reported half: enough to tell a broken ranking from a sound one


@pytest.fixture(scope="module")
def embedder() -> Remembering:
    if weights_folder() is None:
        pytest.skip("the packaged weights are not installed")
    return Remembering()


@pytest.fixture(scope="module")
def tools(embedder: Remembering) -> tuple[LabelledSet, Index]:
    found = load("metatool")
    return found, indexed(found.records, embedder)


def _some(labelled: LabelledSet, every: int = EVERY) -> list[Request]:
    return labelled.half(REPORTED)[::every]


def test_requests_find_their_tools(tools: tuple[LabelledSet, Index]) -> None:
    labelled, index = tools
    values = [ndcg([hit for hit, _ in index.search(each.text)], each.gold) for each in _some(labelled)]
    assert np.mean(values) > 0.70


def test_words_alone_find_functions_among_thousands() -> None:
    labelled = load("bfcl")
    index = indexed(labelled.records, None)
    values = [ndcg([hit for hit, _ in index.search(each.text)], each.gold) for each in _some(labelled)]
    assert np.mean(values) > 0.72


def test_both_legs_are_better_than_either(tools: tuple[LabelledSet, Index], embedder: Remembering) -> None:
    labelled, index = tools
    words = index.updated(index.records)
    chosen = _some(labelled)
    ours, lexical = (
        np.mean([ndcg([hit for hit, _ in each.search(r.text)], r.gold) for r in chosen])
        for each in (index, words)
    )
    vectors = embedder.embed([r.text for r in chosen])
    plain = embedder.embed([record.description or record.name for record in labelled.records])
    order = np.argsort(-(vectors @ plain.T), axis=1)
    ids = [record.id for record in labelled.records]
    dense = np.mean([ndcg([ids[p] for p in row[:10]], r.gold) for row, r in zip(order, chosen, strict=True)])
    assert ours > dense > lexical


def test_requests_of_another_catalog_are_called_weak_far_more_often(tools: tuple[LabelledSet, Index]) -> None:
    labelled, index = tools
    own, strange = _some(labelled), _some(load("bfcl"))
    kept = np.mean([index.answer(each.text).weak for each in own])
    refused = np.mean([index.answer(each.text).weak for each in strange])
    assert kept < 0.15 and refused > kept + 0.12


def test_confidence_falls_when_the_needed_tool_is_taken_away(
    tools: tuple[LabelledSet, Index], embedder: Remembering
) -> None:
    labelled, index = tools
    chosen = _some(labelled)
    there = np.array([index.answer(each.text).confidence for each in chosen])
    gone = np.array([without(index, each).answer(each.text).confidence for each in chosen])
    assert there.mean() > gone.mean() + 0.08
    gold = frozenset().union(*chosen[0].gold)
    never = indexed([record for record in labelled.records if record.id not in gold], embedder)
    assert gone[0] == pytest.approx(never.answer(chosen[0].text).confidence)


def test_a_weak_answer_names_categories_and_keeps_its_hits_when_words_were_found(
    tools: tuple[LabelledSet, Index],
) -> None:
    _, index = tools
    asked = "Refactor the garbage collector's write barrier assembly for the exotic chip family"
    answer = index.answer(asked)
    assert answer.weak and answer.hits and answer.confidence < 0.5
    assert 0 < len(answer.nearest_categories) <= 3
    unheard = index.answer("xqzvb wqjkh")
    assert unheard.weak and unheard.hits == () and unheard.nearest_categories


def test_both_sets_are_whole_and_no_reported_request_needs_an_action_of_the_tuning_half() -> None:
    for name, actions, requests, in_neither in zip(NAMES, (2_724, 199), (1_250, 2_000), (65, 0), strict=True):
        labelled = load(name)
        assert (len(labelled.records), len(labelled.requests)) == (actions, requests)
        tuned = {record.id for record in labelled.actions(TUNING)}
        reported = {record.id for record in labelled.actions(REPORTED)}
        for half, held, others in ((TUNING, tuned, reported), (REPORTED, reported, tuned)):
            assert all(need <= held for request in labelled.half(half) for need in request.gold)
            assert not held & others
        assert tuned | reported == {record.id for record in labelled.records}
        assert requests - len(labelled.half(TUNING)) - len(labelled.half(REPORTED)) == in_neither
        ids = {record.id for record in labelled.records}
        assert all(need <= ids for request in labelled.requests for need in request.gold)


def test_requests_read_by_hand_are_those_of_the_sets_in_both_halves() -> None:
    bfcl, tools = (load(name) for name in NAMES)
    for catalog, asked, asking, read in (
        (tools, OTHER, bfcl, 260),
        (bfcl, REMOVED, bfcl, 140),
        (tools, REMOVED, tools, 140),
    ):
        verdicts = read_by_hand(catalog.name, asked)
        assert len(verdicts) == read and set(verdicts.values()) == {"yes", "in part", "no"}
        assert all(any(each.id in verdicts for each in asking.half(half)) for half in (TUNING, REPORTED))
        assert verdicts.keys() <= {each.id for each in asking.requests}
