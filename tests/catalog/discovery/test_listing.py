from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import Entry
from reyn_jupyter.catalog.discovery.listing import describe_action, list_actions
from reyn_jupyter.catalog.resolve import find
from reyn_jupyter.catalog.size_budget import encoded_size
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.catalog.taxonomy import REDIRECTS
from tests.catalog.samples import ENTRIES, file_category, of_size, published, schema, skill_category

PUBLISHED = published()
NAMES = [action.name.text for action in PUBLISHED]
REPORTS = of_size(300)


def names(answer: dict[str, Any]) -> list[str]:
    return [item["qualified_name"] for item in answer["items"]]


def test_a_listing_of_everything_is_alphabetical_and_brief() -> None:
    answer = list_actions(PUBLISHED)
    assert names(answer) == NAMES[:20]
    assert all(set(item) == {"qualified_name", "short_description"} for item in answer["items"])
    assert answer["total"] == len(NAMES)
    assert answer["next_offset"] == 20
    assert answer["categories"] == PUBLISHED.counts
    assert list(answer) == ["items", "total", "next_offset", "categories"]


def test_a_narrowed_listing_carries_what_describing_would() -> None:
    answer = list_actions(PUBLISHED, ["file"])
    assert answer["total"] == 7
    assert answer["categories"] == {"file": 7}
    assert "next_offset" not in answer
    for item in answer["items"]:
        described = describe_action(PUBLISHED, item["qualified_name"])
        assert {key: value for key, value in described.items() if key != "metadata"} == item


def test_schemas_can_be_kept_out() -> None:
    item = list_actions(PUBLISHED, ["file"], schemas=False)["items"][0]
    assert set(item) == {"qualified_name", "short_description"}


def test_an_empty_category_list_means_everything() -> None:
    assert list_actions(PUBLISHED, []) == list_actions(PUBLISHED) == list_actions(PUBLISHED, None)


@pytest.mark.parametrize("category", ["file", ["file", "file"], [" file "], '["file"]', ("file",)])
def test_one_category_may_come_in_several_shapes(category: object) -> None:
    assert list_actions(PUBLISHED, category) == list_actions(PUBLISHED, ["file"])


def all_pages(snapshot: CatalogSnapshot, limit: int, **arguments: Any) -> list[str]:
    found: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = list_actions(snapshot, offset=offset, limit=limit, **arguments)
        assert encoded_size(answer) <= 8192
        found += names(answer)
        offset = answer.get("next_offset")
    return found


@given(
    st.integers(1, 130),
    st.lists(st.sampled_from(PUBLISHED.category_names), max_size=4),
    st.sampled_from([None, "re", "list", "file", "__", "zzz"]),
)
def test_paging_shows_everything_once_in_order(limit: int, category: list[str], text: str | None) -> None:
    found = all_pages(PUBLISHED, limit, category=category, filter=text)
    wanted = [name for name in NAMES if not category or name.partition("__")[0] in category]
    if text is not None:
        wanted = [action.name.text for action in naive(PUBLISHED, text) if action.name.text in wanted]
    assert found == wanted


@pytest.mark.parametrize("text", [None, "e"])
def test_what_only_reads_may_come_first_and_a_page_may_be_short(text: str | None) -> None:
    whole = list_actions(PUBLISHED, None, text, limit=100)
    first = list_actions(PUBLISHED, None, text, limit=100, reads_first=True)
    reads = [name for name in names(whole) if find(PUBLISHED, name).purity.repeatable]
    others = [name for name in names(whole) if name not in reads]
    assert reads and others and names(first) == reads + others != names(whole)
    page = list_actions(PUBLISHED, None, text, limit=100, reads_first=True, most=2)
    assert names(page) == names(first)[:2] and page["next_offset"] == 2
    paged = all_pages(PUBLISHED, 7, filter=text, reads_first=True)
    assert paged == names(first)


def folded(text: str) -> str:
    return re.sub(r"[-_ ]+", " ", text.casefold())


def naive(snapshot: CatalogSnapshot, text: str) -> list[Any]:
    needle = folded(text.strip())
    return [a for a in snapshot if needle in folded(a.name.text) or needle in folded(a.short_description)]


@given(st.text(alphabet="rReEpoOtT -_\n0aб", min_size=1, max_size=6).filter(str.strip))
def test_the_filter_is_a_substring_of_name_or_short_description(text: str) -> None:
    answer = list_actions(REPORTS, filter=text, limit=100)
    wanted = naive(REPORTS, text)
    assert answer["total"] == len(wanted)
    assert names(answer) == [action.name.text for action in wanted][: len(answer["items"])]
    assert sum(answer["categories"].values()) == answer["total"]


@pytest.mark.parametrize(
    "text", ["REPORT_000012", "report 000012", "report-000012", "report__000012", " report - 000012 "]
)
def test_separators_and_case_make_no_difference(text: str) -> None:
    assert names(list_actions(REPORTS, filter=text)) == ["skill__report_000012"]


def test_a_filter_does_not_reach_from_the_name_into_the_description() -> None:
    assert list_actions(REPORTS, filter="read\nread")["total"] == 0


def test_no_hit_gives_the_nearest_names_and_a_way_on() -> None:
    answer = list_actions(PUBLISHED, filter="file_raed")
    assert answer["items"] == []
    assert answer["total"] == 0
    assert answer["suggestions"][0] == "file__read"
    assert "list_actions(category=" in answer["hint"]


@pytest.mark.parametrize("text", ["data/orders.csv", "x" * 900])
def test_a_path_as_filter_is_told_what_a_filter_is(text: str) -> None:
    assert "never a path" in list_actions(PUBLISHED, filter=text)["hint"]


def test_a_category_as_filter_within_another_is_pointed_to() -> None:
    answer = list_actions(PUBLISHED, ["web"], filter="file")
    assert 'list_actions(category=["file"])' in answer["hint"]


def test_a_page_that_would_grow_too_large_shrinks_and_says_so() -> None:
    entries = [Entry(f"e{i:02d}", "words " * 200, schema("x")) for i in range(30)]
    snapshot = CatalogSnapshot.build([skill_category()], {"skill": entries})
    answer = list_actions(snapshot, ["skill"])
    assert encoded_size(answer) <= 8192
    assert 1 < len(answer["items"]) < 20
    assert answer["next_offset"] == len(answer["items"])
    assert f"offset={len(answer['items'])}" in answer["note"]
    assert len(all_pages(snapshot, 20, category=["skill"])) == 30


def monstrous() -> CatalogSnapshot:
    properties = {f"p{i}": {"type": "string", "description": "漢" * 500} for i in range(500)}
    entries = [
        Entry("huge", "long " * 10_000, {"type": "object", "properties": properties, "required": ["p499"]}),
        Entry("small", "Small.", schema()),
        Entry("wide", "Wide.", schema(kind={"type": "string", "enum": ["v" * 50] * 5_000})),
    ]
    return CatalogSnapshot.build([skill_category()], {"skill": entries})


@pytest.mark.parametrize("name", ["skill__huge", "skill__wide"])
def test_a_monstrous_action_is_shortened_and_still_tells_what_is_required(name: str) -> None:
    snapshot = monstrous()
    described = describe_action(snapshot, name)
    assert encoded_size(described) <= 8192
    assert described["note"]
    if name == "skill__huge":
        assert described["input_schema"]["properties"]["p499"] == {"type": "string"}
        assert described["input_schema"]["required"] == ["p499"]
    assert all_pages(snapshot, 20, category=["skill"]) == ["skill__huge", "skill__small", "skill__wide"]


@pytest.mark.parametrize("offset", [7, 1_000_000, 2**53])
def test_an_offset_past_the_end_is_no_error(offset: int) -> None:
    answer = list_actions(PUBLISHED, ["file"], offset=offset)
    assert answer["items"] == []
    assert answer["total"] == 7
    assert "past the end" in answer["note"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"offset": -1},
        {"offset": 10**5000},
        {"offset": "many"},
        {"offset": True},
        {"offset": 1.5},
        {"offset": float("nan")},
        {"limit": 0},
        {"limit": -5},
        {"limit": [20]},
        {"filter": 5},
        {"filter": ["read"]},
        {"filter": "x" * 1_000_000},
    ],
    ids=lambda arguments: next(iter(arguments)),
)
def test_a_wrong_argument_is_answered(arguments: dict[str, Any]) -> None:
    answer = list_actions(PUBLISHED, **arguments)
    (name,) = arguments
    assert answer["invalid"][0]["path"] == f"/{name}"
    assert name in answer["error"]
    assert answer["hint"]
    assert encoded_size(answer) < 1000


def test_numbers_may_come_as_text_and_a_limit_is_capped() -> None:
    assert list_actions(PUBLISHED, offset="2", limit=3.0) == list_actions(PUBLISHED, offset=2, limit=3)
    assert "at most 100" in list_actions(PUBLISHED, limit=5_000)["note"]


@pytest.mark.parametrize(
    ("category", "words"),
    [
        (["fiel"], "nearest is 'file'"),
        (["exec"], "not available"),
        (["utility"], "not installed"),
        (["mcp.server"], "out of date; it is now 'mcp'"),
        (["dynamic.tool"], "not installed"),
        ([5], "list of category names"),
        ({"file": 1}, "list of category names"),
        (7, "list of category names"),
        ([""], "Unknown category"),
        (["a\nb" * 100_000], "Unknown category"),
    ],
)
def test_a_wrong_category_is_answered_with_the_valid_ones(category: object, words: str) -> None:
    answer = list_actions(PUBLISHED, category)
    assert words in answer["error"]
    assert list(answer) == ["error", "valid_categories", "redirects", "hint"]
    assert answer["valid_categories"] == list(PUBLISHED.category_names)
    assert "exec" not in answer["valid_categories"]
    assert encoded_size(answer) < 2000


@pytest.mark.parametrize("stale", sorted(REDIRECTS))
def test_a_stale_category_is_redirected(stale: str) -> None:
    assert list_actions(PUBLISHED, [stale, "file"])["redirects"] == {stale: REDIRECTS[stale]}


def test_a_hundred_wrong_categories_stay_a_short_answer() -> None:
    assert encoded_size(list_actions(PUBLISHED, [f"wrong{i}" * 50 for i in range(1_000)])) < 3000


def test_the_hint_about_search_is_carried_when_given() -> None:
    hint = {"reason": "x", "install": "y", "status": "z"}
    assert list_actions(PUBLISHED, hint=hint)["search_hint"] == hint
    assert "search_hint" not in list_actions(PUBLISHED)


def test_describing_tells_where_a_call_goes() -> None:
    described = describe_action(PUBLISHED, "rag_corpus__meetings")
    assert described == {
        "qualified_name": "rag_corpus__meetings",
        "description": "Minutes of meetings.",
        "input_schema": ENTRIES["rag_corpus"][0].input_schema,
        "metadata": {
            "target_tool_name": "recall",
            "category": "rag_corpus",
            "purity": "read",
            "canonical_default": "recall from it",
        },
    }
    assert describe_action(PUBLISHED, "file__read")["metadata"]["canonical_default"] is None


@pytest.mark.parametrize("name", ["exec__run", "nothing", "skil__foo", None])
def test_describing_what_is_not_on_offer_is_answered(name: Any) -> None:
    assert {"error", "reason", "suggestions", "hint"} <= set(describe_action(PUBLISHED, name))


def test_short_descriptions_are_one_line_of_at_most_two_hundred_characters() -> None:
    entry = Entry("long", "First   line\nwith more " + "words " * 100 + "\n\nSecond paragraph.", schema())
    snapshot = CatalogSnapshot.build([skill_category()], {"skill": [entry]})
    short = list_actions(snapshot)["items"][0]["short_description"]
    assert len(short) <= 200
    assert short.startswith("First line with more words")
    assert short.endswith("…")


def test_every_answer_is_json() -> None:
    for answer in (list_actions(monstrous(), ["skill"]), describe_action(PUBLISHED, "a\ud800__b")):
        assert json.loads(json.dumps(answer, ensure_ascii=False).encode("utf-8")) == answer


def test_an_empty_catalog_says_so() -> None:
    empty = CatalogSnapshot.build([], {})
    assert list_actions(empty)["note"]
    assert (
        list_actions(CatalogSnapshot.build([file_category(), skill_category()], {}), ["skill"])["total"] == 0
    )
