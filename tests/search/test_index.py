"""The index: exact names first, filters, languages, vectors that are missing, odd requests, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.search import build
from reyn_jupyter.search.action_records import Record, RecordError
from reyn_jupyter.search.embedders.packaged import PackagedMiniLM, weights_folder
from reyn_jupyter.search.ranking import dense
from reyn_jupyter.search.ranking.index import Index
from reyn_jupyter.search.ranking.tokens import runs

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORDS = (
    Record(
        "file__read",
        "file__read",
        "Read a text file.",
        {"type": "object", "properties": {"path": {"type": "string"}}},
        "file",
    ),
    Record("file__grep", "file__grep", "Search the files of the workspace for a pattern.", {}, "file"),
    Record("web__search", "web__search", "Search the web.", {}, "web"),
    Record("web__fetch", "web__fetch", "Read a page of the web as text.", {}, "web"),
    Record("mail", "sendMailMessage", "", {}, "office"),
    Record("weather", "get_current_weather", "Tells how warm it is, and whether it rains.", {}, "world"),
    Record("売上", "売上高集計", "月別の売上高を集計して表にする。", {}, "office"),
    Record("отчёт", "sales_report_ru", "Составляет ежемесячные отчёты о продажах по регионам.", {}, "office"),
)


@pytest.fixture(scope="module")
def embedder() -> PackagedMiniLM:
    folder = weights_folder()
    if folder is None:
        pytest.skip("the packaged weights are not installed")
    return PackagedMiniLM(folder)


@pytest.fixture(scope="module")
def index(embedder: PackagedMiniLM) -> Index:
    return build(RECORDS, embedder)


def _ids(found: Sequence[tuple[str, float]]) -> list[str]:
    return [each for each, _ in found]


WORDS = ["read", "file", "list", "invoice", "table", "user", "job", "plan", "note", "audit"]


def _forms(words: Sequence[str]) -> list[str]:
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    pascal = "".join(word.capitalize() for word in words)
    turned = "_".join([*words[1:], words[0]])
    return ["_".join(words), "-".join(words), ".".join(words), " ".join(words), camel, pascal, turned]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=2, max_size=3, unique=True), st.data())
def test_a_name_in_any_form_comes_first(words: list[str], data: st.DataObject) -> None:
    named = data.draw(st.sampled_from(_forms(words)))
    asked = data.draw(st.sampled_from(_forms(words)))
    noise = [
        Record("n1", "other", " ".join(words) * 5),
        Record("n2", f"{words[0]}_something", " ".join(words)),
        Record("n3", "_".join([*words, "more"]), " ".join(words)),
    ]
    index = Index([*noise, Record("it", named, "Nothing to see.")])
    assert _ids(index.search(asked))[0] == "it"
    assert not index.answer(asked).weak


@pytest.mark.parametrize("asked", ["file__read", "read", "file.read", "FileRead", "read_file", "READ FILE"])
def test_qualified_and_bare_names_come_first(index: Index, asked: str) -> None:
    assert _ids(index.search(asked))[0] == "file__read"


def test_the_very_name_stands_before_other_forms_of_it() -> None:
    index = Index([Record("1", "ReadFile"), Record("2", "file_read"), Record("3", "read_file")])
    assert _ids(index.search("read_file")) == ["3", "1", "2"]


def test_the_very_name_stands_before_a_longer_one_that_ends_with_it() -> None:
    index = Index(
        [
            Record("1", "get_date"),
            Record("2", "event.get_date", "get date get date"),
            Record("3", "calendar__get_date", "get date"),
        ]
    )
    for asked in ("get_date", "GetDate", "get date"):
        found = _ids(index.search(asked))
        assert found[0] == "1" and set(found) == {"1", "2", "3"}, asked


def test_a_name_with_one_misspelt_word_stands_before_what_shares_more_words() -> None:
    index = Index(
        [
            Record("it", "statistics.variance", "Nothing to see."),
            Record("n1", "statistics", "Statistics: variance, statistics of statistics."),
            Record("n2", "variances", "Statistics on variances and statistics."),
        ]
    )
    for asked in ("statistics.varance", "StatisticsVarianec", "sttaistics-variance", "variance_statistixs"):
        assert _ids(index.search(asked))[0] == "it", asked
    assert _ids(index.search("how do I get statistics of the varance"))[0] != "it"
    assert _ids(index.search("statistics.zzyzx"))[0] == "n1"
    short = Index([Record("read", "file__read"), Record("edit", "file__edit"), Record("отчёт", "отчёт")])
    assert _ids(short.search("file__raed"))[0] == "read"
    assert _ids(short.search("raed")) == [] and short.answer("отччёт").hits[0][0] == "отчёт"


def test_scores_descend_within_one_and_equal_ones_stand_by_id() -> None:
    index = Index([Record(each, "same_name", "the same text") for each in "cabd"])
    found = index.search("text that is the same", 4)
    assert sorted(_ids(found)[1:]) == _ids(found)[1:] and _ids(found)[0] == "a"
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)


def test_a_category_filter_holds_before_ranking(index: Index) -> None:
    assert set(_ids(index.search("search the web", 10, categories=["file"]))) == {"file__read", "file__grep"}
    assert _ids(index.search("web__search", 1, categories=["web"])) == ["web__search"]
    assert "web__search" not in _ids(index.search("web__search", 10, categories={"file"}))
    assert index.search("search", categories=[]) == [] == index.search("search", categories=["nothing"])


def test_meaning_finds_what_no_word_does(index: Index) -> None:
    assert _ids(index.search("do I need an umbrella outside?"))[0] == "weather"
    assert _ids(index.search("write to my colleague by email"))[0] == "mail"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("売上を集計したい", "売上"),
        ("月別売上", "売上"),
        ("отчет о продажах за месяц", "отчёт"),
        ("ежемесячный отчёт по региону", "отчёт"),
    ],
)
def test_japanese_and_russian_requests_find(index: Index, asked: str, found: str) -> None:
    assert _ids(index.search(asked))[0] == found
    assert _ids(Index(RECORDS).search(asked))[0] == found


def test_inflected_and_mistyped_words_find_without_a_model() -> None:
    index = Index(RECORDS)
    assert index.lexical_only and index.vectors_held == 0
    assert _ids(index.search("searching patterns"))[0] == "file__grep"
    assert _ids(index.search("curent wether"))[0] == "weather"
    assert _ids(index.search("sendmail"))[0] == "mail"
    assert index.search("umbrella") == []


def test_empty_descriptions_and_schemas_are_indexed(embedder: PackagedMiniLM) -> None:
    index = build([Record("a", "rotate_image"), Record("b", "pay_invoice", "", {})], embedder)
    assert _ids(index.search("settle a bill")) == ["b", "a"]
    odd = {"properties": {"a": True, "b": {"description": 7, "items": {"properties": {"needle": {}}}}}}
    assert _ids(Index([Record("x", "thing", "", odd)]).search("needle")) == ["x"]
    assert Index([]).search("anything") == [] and build([], embedder).answer("anything").weak


def test_records_without_a_vector_yet_are_found_by_their_words(
    index: Index, embedder: PackagedMiniLM
) -> None:
    vectors = np.full((len(RECORDS), 384), np.nan, np.float32)
    full = np.stack([embedder.embed([record.description or record.name])[0] for record in RECORDS])
    vectors[2:] = full[2:]
    half = Index(RECORDS, vectors, embedder)
    assert half.vectors_held == len(RECORDS) - 2 and not half.lexical_only
    found = half.search("read a text file", 8)
    assert _ids(found)[0] == "file__read"
    assert len(found) == len(RECORDS) and all(np.isfinite(score) for _, score in found)


def test_no_vectors_at_all_is_search_by_words(embedder: PackagedMiniLM) -> None:
    nothing = Index(RECORDS, np.full((len(RECORDS), 384), np.nan, np.float32), embedder)
    assert nothing.lexical_only
    assert nothing.search("search the web") == Index(RECORDS).search("search the web")


def test_vectors_of_another_shape_are_refused() -> None:
    with pytest.raises(RecordError, match=r"\(2, 384\) do not fit 8 records"):
        Index(RECORDS, np.zeros((2, 384), np.float32))


@pytest.mark.parametrize("asked", ["", "   ", "?!… —", "___", "\n\t"])
def test_a_request_without_words_finds_nothing(index: Index, asked: str) -> None:
    assert index.search(asked) == []
    assert index.answer(asked).weak and index.answer(asked).hits == ()


def test_an_index_and_its_answers_show_what_they_hold() -> None:
    made = Index([{"id": "a", "name": "read_file"}, {"id": "b", "name": "send_mail"}])
    assert repr(made) == "Index(2 records, by words alone)"
    table = made.answer("send a mail").df
    assert list(table.columns) == ["id", "score"] and table["id"].tolist() == ["b"]
    assert made.answer("").df.empty


@pytest.mark.parametrize("asked", [5, None, ["read", "a", "file"]])
def test_a_request_that_is_no_text_is_refused(index: Index, asked: object) -> None:
    with pytest.raises(TypeError, match="a query is a text"):
        index.search(asked)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a query is a text"):
        index.answer(asked)  # type: ignore[arg-type]


def test_a_huge_request_is_answered(index: Index) -> None:
    huge = "please search the web " * 20_000 + "x" * 100_000
    with pytest.warns(
        UserWarning, match=r"Only the beginning of the query was looked up, 1,\d\d\d of its 540,000"
    ):
        assert "web__search" in _ids(index.search(huge))[:2]
    answer = index.answer(huge)
    assert not answer.weak and answer.note.startswith("Only the beginning of the query was looked up")
    assert index.answer("search the web").note == ""


def test_an_index_tells_of_the_records_of_which_only_the_beginning_is_searched(
    embedder: PackagedMiniLM,
) -> None:
    short, long = Record("a", "short"), Record("b", "long", "words " * 400)
    longest = Record("c", "longest", "words " * 2_000)
    assert build([short, long], None).shortened == ()
    said = (
        "Of 1 of 3 records only the beginning is searched: by words the first 8,000 characters of a text\\."
    )
    with pytest.warns(UserWarning, match=said):
        assert build([short, long, longest], None).shortened == ("c",)
    with pytest.warns(UserWarning, match="Of 2 of 3 records .*, by meaning the first 2,000"):
        assert build([short, long, longest], embedder).shortened == ("b", "c")


def test_text_that_no_encoding_carries_is_searched(index: Index) -> None:
    assert _ids(index.search("search \ud800 the web"))[0] == "web__search"
    assert build([Record("a", "x\ud800", "\udfff")], index.embedder).size == 1


@pytest.mark.parametrize("limit", [0, -1])
def test_no_room_means_no_hits(index: Index, limit: int) -> None:
    assert index.search("search the web", limit) == []


def test_copies_step_back_behind_what_says_something_else(embedder: PackagedMiniLM) -> None:
    copies = [Record(f"c{i}", "find_hotel", "Find a hotel in a city.") for i in range(4)]
    found = _ids(
        build([*copies, Record("other", "book_hotel", "Book a room in a hotel.")], embedder).search("hotel")
    )
    assert set(found[:2]) == {"c0", "other"} and found[2:] == ["c1", "c2", "c3"]


def test_searches_from_many_threads_agree(embedder: PackagedMiniLM) -> None:
    asked = ["search the web", "read a text", "отчёт", "売上", "curent wether", "email a friend"] * 5
    index = build(RECORDS, embedder)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(index.search, asked))
    alone = build(RECORDS, embedder)
    assert found == [alone.search(each) for each in asked]


_record = st.builds(
    lambda name, text, parameter: (name, text, {"properties": {parameter: {}}} if parameter else {}),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("_".join),
    st.lists(st.sampled_from([*WORDS, "売上高", "отчёты", "getURL"]), max_size=5).map(" ".join),
    st.sampled_from(["", "path", "userName"]),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(_record, max_size=6), st.lists(_record, max_size=6), st.lists(st.sampled_from(WORDS), min_size=1)
)
def test_an_updated_index_is_one_built_afresh(
    before: list[tuple[str, str, dict[str, object]]],
    added: list[tuple[str, str, dict[str, object]]],
    asked: list[str],
) -> None:
    old = [Record(f"o{i}", *each) for i, each in enumerate(before)]
    kept = old[::2] + [Record(f"n{i}", *each) for i, each in enumerate(added)]
    first = Index(old)
    seen = first.search(" ".join(asked))
    fresh, updated = Index(kept), first.updated(kept)
    for query in (" ".join(asked), asked[0] + "x", "売上", "user_name"):
        assert updated.search(query) == fresh.search(query)
        assert updated.answer(query) == fresh.answer(query)
    assert first.search(" ".join(asked)) == seen


def test_an_updated_index_takes_new_vectors(embedder: PackagedMiniLM, index: Index) -> None:
    vectors = embedder.embed([record.description or record.name for record in RECORDS])
    moved = index.updated(RECORDS[::-1], vectors[::-1])
    assert moved.vectors_held == len(RECORDS)
    assert moved.search("how warm is it") == Index(RECORDS[::-1], vectors[::-1], embedder).search(
        "how warm is it"
    )


def test_a_large_catalog_ranks_as_a_small_one_does(
    embedder: PackagedMiniLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = embedder.embed([record.description or record.name for record in RECORDS])
    small = Index(RECORDS, vectors, embedder)
    monkeypatch.setattr(dense, "TURNED", 0)  # rows are then read as they lie, in a file perhaps
    large = Index(RECORDS, vectors, embedder)
    for asked in ("how warm is it", "отчёт", "write to a colleague"):
        near, far = small.search(asked), large.search(asked)
        assert _ids(near) == _ids(far)
        assert np.allclose([score for _, score in near], [score for _, score in far], atol=1e-5)


@given(st.text(st.characters(max_codepoint=127)))
def test_runs_of_plain_text_are_those_of_any_text(text: str) -> None:
    assert runs(f"é {text}") == ["é", *runs(text)]


def test_a_handful_of_actions_is_told_from_an_answer(embedder: PackagedMiniLM) -> None:
    few = build([Record("1", "read_file", "Read a text file."), Record("2", "pay_invoice")], embedder)
    assert few.answer("walk the dog").weak
    assert not few.answer("settle the bill of March").weak
