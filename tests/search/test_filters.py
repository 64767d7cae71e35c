"""Searches that are narrowed by facts, indexes by words alone, and indexes whose vectors are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter import search
from reyn_jupyter.search.action_records import Record, RecordError
from reyn_jupyter.search.embedders.embedder import Embedder
from reyn_jupyter.search.metadata import Between, FilterError
from reyn_jupyter.search.vector_store import VectorStore

PAPERS = [
    {
        "id": "a",
        "name": "growth of towns",
        "metadata": {"year": 1999, "language": "en", "tags": ["city", "people"]},
    },
    {
        "id": "b",
        "name": "growth of trees",
        "metadata": {"year": 2005, "language": "en", "tags": ["plant"], "open": True},
    },
    {
        "id": "c",
        "name": "growth of debts",
        "metadata": {"year": 2011, "language": "de", "open": False, "draft": None},
    },
    {"id": "d", "name": "growth of nothing"},
]


class Letters(Embedder):
    """Counts letters, and how many texts it was given."""

    key, dimension = "letters", 26

    def __init__(self) -> None:
        super().__init__("letters")
        self.embedded = 0

    def embed(self, texts: Any) -> np.ndarray:
        self.embedded += len(texts)
        rows = np.array([[1 + text.count(chr(97 + n)) for n in range(26)] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("embedder", [None, Letters()])
@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({}, "abcd"),
        ({"language": "en"}, "ab"),
        ({"language": ["en", "de"]}, "abc"),
        ({"language": {"fr"}}, ""),
        ({"year": Between(2000, 2011)}, "bc"),
        ({"year": Between(low=2006)}, "c"),
        ({"year": Between(high=1999.5)}, "a"),
        ({"tags": "plant"}, "b"),
        ({"tags": {"people", "plant"}}, "ab"),
        ({"language": "en", "year": Between(2000)}, "b"),
        ({"open": True}, "b"),
        ({"open": 1}, ""),
        ({"language": Between("a", "dz")}, "c"),
        ({"year": Between("a")}, ""),
        ({"year": []}, ""),
    ],
)
def test_a_search_stays_within_what_fits_every_condition(where: Any, ids: str, embedder: Any) -> None:
    index = search.build(PAPERS, embedder)
    found = index.search("growth", where=where)
    assert {each for each, _ in found} == set(ids)
    assert index.answer("growth", where=where).hits == tuple(found) or not ids


def test_a_limit_counts_what_is_left_after_the_filter() -> None:
    records = [
        {"id": str(n), "name": "growth", "description": "x" * n, "metadata": {"n": n}} for n in range(50)
    ]
    assert [each for each, _ in search.build(records, None).search("growth", 1, where={"n": 37})] == ["37"]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (
            {"yaer": 3},
            r"no record has the key 'yaer'; did you mean 'year'\? There are draft, language, open, tags, year",
        ),
        (
            {"year": None},
            r"year=None: give a text, a number, True or False, a list of them, or Between\(low, high\)",
        ),
        ({"year": {"low": 3}}, "Between"),
        ({"year": float("nan")}, "give a text, a number"),
        ("year=3", "give a mapping"),
    ],
)
def test_a_filter_that_no_record_could_be_asked_is_an_error(where: Any, said: str) -> None:
    with pytest.raises(FilterError, match=said):
        search.build(PAPERS, None).search("growth", where=where)


def test_a_filter_over_records_without_metadata_says_so() -> None:
    with pytest.raises(FilterError, match="no record has metadata, so none has 'year'"):
        search.build([{"id": "a", "name": "growth"}], None).search("growth", where={"year": 3})


@pytest.mark.parametrize("ends", [(), (None, None), (1, "a"), (True, None), (float("nan"),)])
def test_a_range_without_a_sense_is_refused(ends: Any) -> None:
    with pytest.raises(FilterError, match="give a low or a high end"):
        Between(*ends)


@pytest.mark.parametrize(
    "metadata", [3, {"a": {}}, {"a": [[1]]}, {3: "a"}, {"a": float("nan")}, {"a": object()}]
)
def test_metadata_that_is_no_fact_is_refused_with_its_record(metadata: Any) -> None:
    with pytest.raises(RecordError, match="Record 'x': metadata"):
        Record("x", "name", metadata=metadata)


FACT = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, 2.0]), st.sampled_from("abc"), st.booleans())
FACTS = st.dictionaries(st.sampled_from("pq"), st.one_of(FACT, st.lists(FACT, max_size=3)), max_size=2)
RANGE = st.one_of(
    st.builds(Between, st.integers(-3, 3)), st.builds(Between, st.just(-1), st.integers(-3, 3)),
    st.builds(Between, st.none(), st.sampled_from("abc")),
)  # fmt: skip
CONDITION = st.one_of(FACT, st.lists(FACT, max_size=3), RANGE)


def fits(value: Any, condition: Any) -> bool:
    """Say it in the plainest way."""
    several = value if isinstance(value, list) else [value]
    if isinstance(condition, Between):
        ends = [end for end in (condition.low, condition.high) if end is not None]
        alike = [
            each
            for each in several
            if (isinstance(each, str) == isinstance(ends[0], str)) and not isinstance(each, bool)
        ]
        return any(
            (condition.low is None or each >= condition.low)
            and (condition.high is None or each <= condition.high)
            for each in alike
        )
    wanted = condition if isinstance(condition, list) else [condition]
    return any(
        each == other and isinstance(each, bool) == isinstance(other, bool)
        for each in several
        for other in wanted
    )


@settings(max_examples=200, deadline=None)
@given(
    st.lists(FACTS, min_size=1, max_size=12), st.dictionaries(st.sampled_from("pq"), CONDITION, max_size=2)
)
def test_a_filter_gives_what_brute_force_gives(facts: list[Any], where: Any) -> None:
    records = [Record(str(n), f"growth {n}", metadata=each) for n, each in enumerate(facts)]
    index = search.build(records, None)
    if any(all(key not in each for each in facts) for key in where):
        with pytest.raises(FilterError):
            index.search("growth", 99, where=where)
        return
    expected = {
        record.id
        for record in records
        if all(key in record.metadata and fits(record.metadata[key], value) for key, value in where.items())
    }
    assert {each for each, _ in index.search("growth", 99, where=where)} == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text("abcdefgh ", min_size=1, max_size=12).filter(str.strip), min_size=1, max_size=10),
    st.randoms(use_true_random=False),
    st.text("abcdefgh ", max_size=10),
)
def test_a_ranking_by_words_is_the_same_in_any_order_of_the_records(
    names: list[str], chance: Any, query: str
) -> None:
    records = [Record(f"{n:02}", name, metadata={"n": n}) for n, name in enumerate(names)]
    mixed = records[:]
    chance.shuffle(mixed)
    one, other = search.build(records, None), search.build(mixed, None)
    assert one.lexical_only and one.search(query, 99) == other.search(query, 99) == one.search(query, 99)
    assert one.search(query, 99, where={"n": Between(0)}) == one.search(query, 99)


def test_an_index_whose_vectors_are_kept_embeds_only_what_is_new(tmp_path: Path) -> None:
    first, second = Letters(), Letters()
    one = search.build(PAPERS, first, store=tmp_path, name="papers")
    again = search.build([*PAPERS, {"id": "e", "name": "winter"}], second, store=tmp_path, name="papers")
    assert first.embedded > 0 and second.embedded < first.embedded
    assert again.vectors_held == 5 and not again.lexical_only
    fresh = search.build(PAPERS, Letters())
    assert one.search("growth of trees") == fresh.search("growth of trees")
    neighbour = search.build(
        [{"id": "x", "name": "summer"}], Letters(), store=VectorStore(tmp_path), name="notes"
    )
    third = Letters()
    search.build(PAPERS, third, store=str(tmp_path), name="papers")
    assert third.embedded == 0 and neighbour.vectors_held == 1
