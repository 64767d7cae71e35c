from __future__ import annotations

from difflib import get_close_matches

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import Entry, Purity
from reyn_jupyter.catalog.ranking import rank
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.catalog.suggest import suggest, unambiguous
from reyn_jupyter.support.text import nearest
from tests.catalog.samples import ENTRIES, file_category, of_size, published, skill_category

PUBLISHED = published()
LARGE = of_size(6_000)
SMALL_FILES = CatalogSnapshot.build([file_category(), skill_category()], {"skill": ENTRIES["skill"]})


@pytest.mark.parametrize("snapshot", [PUBLISHED, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    ("given_name", "meant"),
    [
        ("file.write", "file__write"),
        ("file__read_file", "file__read"),
        ("FileRead", "file__read"),
        ("file_read", "file__read"),
        ("read_files", "file__read"),
        ("File__Read", "file__read"),
        ("fil__read", "file__read"),
        ("file__raed", "file__read"),
        ("file:grep", "file__grep"),
    ],
)
def test_a_near_miss_finds_what_was_meant_first(
    snapshot: CatalogSnapshot, given_name: str, meant: str
) -> None:
    assert suggest(snapshot, given_name)[0] == meant


@pytest.mark.parametrize(
    ("given_name", "meant"),
    [
        ("skill__report_00421", "skill__report_000421"),
        ("skill.report.004210", "skill__report_004210"),
        ("report_005999", "skill__report_005999"),
        ("skil__report_000007", "skill__report_000007"),
    ],
)
def test_a_shortlist_still_finds_the_one_among_thousands(given_name: str, meant: str) -> None:
    assert meant in suggest(LARGE, given_name)


@given(st.text(alphabet="abcfilerd_.", max_size=12))
def test_without_shared_words_the_order_is_that_of_difflib(word: str) -> None:
    names = ["web__fetch", "table__query", "mcp__drop_server", "rag_corpus__x"]
    theirs = get_close_matches(word, names, n=3, cutoff=0.4)
    ours = rank(word, names)
    assert set(theirs) <= set(ours) or len(ours) == 3


@pytest.mark.parametrize("mistyped", ["table__qeury", "tabel__query", "table__quer"])
def test_beside_what_is_surely_meant_no_name_that_only_shares_letters(mistyped: str) -> None:
    assert rank(mistyped, ["table__query", "variable__d", "variable__weather", "file__read"]) == [
        "table__query"
    ]


def test_nothing_near_suggests_nothing() -> None:
    assert suggest(PUBLISHED, "ыыыыыыыы") == []


def test_capitals_do_not_hide_a_name() -> None:
    assert rank("SKILL__FOO", ["skill__foo", "skill__bar"])[0] == "skill__foo"


def test_suggestions_are_on_offer() -> None:
    assert "exec__run" not in suggest(PUBLISHED, "exec__rum", limit=50)
    assert "exec__run" in suggest(published("bubblewrap"), "exec__rum")


@pytest.mark.parametrize("name", ["file.read", "file__read_file", "read_file", "FileRead", "file_read"])
def test_a_near_miss_of_a_reading_action_can_be_repaired(name: str) -> None:
    action = unambiguous(SMALL_FILES, name)
    assert action is not None
    assert action.name.text == "file__read"


@pytest.mark.parametrize(
    "name", ["file.write", "FileDelete", "fil__read", "file__raed", "read", "", "x" * 100_000]
)
def test_what_writes_or_is_mistyped_or_vague_is_not_repaired(name: str) -> None:
    assert unambiguous(SMALL_FILES, name) is None


def test_what_two_actions_could_mean_is_not_repaired() -> None:
    reading = [Entry(entry, "Reads.", {}, purity=Purity.READ) for entry in ("a_b", "b_a")]
    one, two = (CatalogSnapshot.build([skill_category()], {"skill": reading[:n]}) for n in (1, 2))
    assert unambiguous(one, "skill.a.b") is not None
    assert unambiguous(two, "skill.a.b") is None


def test_the_nearest_word_is_found_or_none() -> None:
    assert nearest("pth", ["path", "limit"]) == "path"
    assert nearest("Path", ["path", "limit"]) == "path"
    assert nearest("zzz", ["path", "limit"]) is None
    assert nearest("x" * 1_000_000, ["path"]) is None
