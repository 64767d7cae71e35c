from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reyn_jupyter.catalog.action import Category, Entry, Operation, Purity, Resources, Tool
from reyn_jupyter.catalog.dispatch import CatalogError, ToolRegistry
from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.catalog.taxonomy import TAXONOMY, in_order
from tests.catalog.samples import (
    ENTRIES,
    TEXT,
    echo,
    file_category,
    of_size,
    published,
    published_categories,
    schema,
    skill_category,
)


def test_actions_stand_in_the_order_of_their_names() -> None:
    texts = [action.name.text for action in published().actions]
    assert texts == sorted(texts)
    assert len(texts) == len(set(texts)) == len(published())


def test_each_category_is_one_range() -> None:
    snapshot = published()
    for name, positions in snapshot.ranges.items():
        assert {snapshot.actions[i].name.category for i in positions} <= {name}
        assert len(positions) == snapshot.counts[name]


def test_categories_keep_the_order_of_the_taxonomy_and_foreign_ones_follow() -> None:
    foreign = Category("aardvark", "Foreign.")
    snapshot = CatalogSnapshot.build([foreign, *published_categories("bubblewrap")], ENTRIES)
    assert list(snapshot.category_names) == [
        *(name for name in TAXONOMY if name in snapshot.slices),
        "aardvark",
    ]
    assert in_order(["zebra", "file", "skill"]) == ["skill", "file", "zebra"]


def test_the_taxonomy_knows_twenty_kinds() -> None:
    assert len(TAXONOMY) == 20


def test_a_hidden_category_is_kept_aside() -> None:
    hidden, shown = published("noop"), published("bubblewrap")
    assert "exec" not in hidden.counts
    assert hidden.get(ActionName("exec", "run")) is None
    assert not [action for action in hidden if action.name.category == "exec"]
    assert shown.counts["exec"] == 1


def test_replacing_entries_builds_one_slice_and_leaves_the_old_snapshot_alone() -> None:
    before = published()
    after = before.replace("skill", [Entry("bar", "Do bar.", schema())])
    assert [name for name, part in after.slices.items() if part is not before.slices[name]] == ["skill"]
    assert after.get(ActionName("skill", "bar")) is not None
    assert before.get(ActionName("skill", "bar")) is None
    assert before.get(ActionName("skill", "foo")) is not None
    assert list(after.slices) == list(before.slices)


def test_replacing_looks_at_visibility_again() -> None:
    visible = True
    category = replace(skill_category(), hidden=lambda: None if visible else "It is not set up.")
    snapshot = CatalogSnapshot.build([category], {"skill": ENTRIES["skill"]})
    visible = False
    assert snapshot.counts == {"skill": 2}
    assert snapshot.replace("skill", ENTRIES["skill"]).counts == {}


def test_the_hash_moves_with_every_part_of_a_face_and_with_nothing_else() -> None:
    def built(**changes: Any) -> str:
        entry = replace(Entry("foo", "Do foo.", schema("topic")), **changes)
        return CatalogSnapshot.build([skill_category()], {"skill": [entry]}).hash

    assert built() == built()
    others = [
        built(entry="fo"),
        built(description="Do bar."),
        built(input_schema=schema("topics")),
        built(purity=Purity.READ),
    ]
    assert len({built(), *others}) == 5


def test_the_hash_covers_what_is_offered() -> None:
    assert published("bubblewrap").hash != published(None).hash


def test_an_entry_may_narrow_the_purity_of_its_tool() -> None:
    entry = Entry("safe", "Only looks.", schema(), purity=Purity.READ)
    snapshot = CatalogSnapshot.build([skill_category()], {"skill": [entry]})
    assert snapshot.actions[0].purity is Purity.READ


def test_two_categories_may_share_one_target() -> None:
    assert published().tools["recall"].name == "recall"


def test_entries_may_be_written_in_any_script() -> None:
    entries = [Entry(text, "…", schema()) for text in ("会議 メモ", "встречи", "a b", "x__y", "👩‍💻")]
    snapshot = CatalogSnapshot.build([skill_category()], {"skill": entries})
    assert all(ActionName.parse(action.name.text) == action.name for action in snapshot)


def test_a_description_that_utf8_cannot_carry_is_mended() -> None:
    snapshot = CatalogSnapshot.build([skill_category()], {"skill": [Entry("x", "bad \ud800 text", schema())]})
    assert snapshot.actions[0].description == "bad \ufffd text"


TOOL = Tool("t", echo, Purity.READ)


def good(**changes: Any) -> Operation:
    return replace(Operation("go", "Go.", schema("path"), TOOL), **changes)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"properties": {"x": value}}
    return {"type": "object", **value}


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {"type": "object", "properties": {}}
    value["properties"]["self"] = value
    return value


BROKEN = {
    "a name with capitals": Category("Broken", "x"),
    "a name with a separator": Category("bro__ken", "x"),
    "no capability": Category("broken", " "),
    "no operation": Category("broken", "x", ("go",)),  # type: ignore[arg-type]
    "no tool": Category("broken", "x", (good(tool=None),)),
    "no purity": Category("broken", "x", (good(tool=Tool("t", echo, "read")),)),  # type: ignore[arg-type]
    "no handler": Category("broken", "x", (good(tool=Tool("t", None, Purity.READ)),)),  # type: ignore[arg-type]
    "an empty entry": Category("broken", "x", (good(entry=""),)),
    "an entry with a line break": Category("broken", "x", (good(entry="a\nb"),)),
    "an entry with NUL": Category("broken", "x", (good(entry="a\0b"),)),
    "an entry with a lone surrogate": Category("broken", "x", (good(entry="a\ud800"),)),
    "an entry that ends in a blank": Category("broken", "x", (good(entry="go "),)),
    "an entry that is no text": Category("broken", "x", (good(entry=5),)),
    "an endless entry": Category("broken", "x", (good(entry="x" * 1_000_000),)),
    "no description": Category("broken", "x", (good(description=None),)),
    "a schema that is a list": Category("broken", "x", (good(input_schema=[]),)),
    "a schema of another type": Category("broken", "x", (good(input_schema={"type": "string"}),)),
    "properties that are a list": Category("broken", "x", (good(input_schema={"properties": ["x"]}),)),
    "a required that is a text": Category("broken", "x", (good(input_schema={"required": "path"}),)),
    "a schema that is no JSON": Category("broken", "x", (good(input_schema={"default": object()}),)),
    "a schema with NaN": Category("broken", "x", (good(input_schema={"default": float("nan")}),)),
    "a bottomless schema": Category("broken", "x", (good(input_schema=nested(100_000)),)),
    "a cyclic schema": Category("broken", "x", (good(input_schema=cyclic()),)),
    "a huge schema": Category("broken", "x", (good(input_schema={"description": "x" * 2_000_000}),)),
    "the same entry twice": Category("broken", "x", (good(), good())),
    "a failing predicate": Category("broken", "x", (good(),), hidden=lambda: str(1 / 0)),
    "resources that are none": Category("broken", "x", (), "all"),  # type: ignore[arg-type]
    "another's target": Category("broken", "x", (good(tool=Tool("read_file", echo, Purity.EXEC)),)),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_category_is_named_and_the_rest_goes_on_without_it(fault: str) -> None:
    categories = [file_category(), BROKEN[fault]]
    with pytest.raises(CatalogError) as raised:
        CatalogSnapshot.build(categories, {})
    assert raised.value.category == BROKEN[fault].name
    assert len(str(raised.value)) < 700
    rest = [category for category in categories if category.name != raised.value.category]
    assert len(CatalogSnapshot.build(rest, {})) == 7


@pytest.mark.parametrize(
    "entries",
    [
        [Entry("x", "x", schema())] * 2,
        ["x"],
        [Entry("\n", "x", schema())],
        [Entry("x", "x", {"type": 5})],
        None,
    ],
)
def test_broken_live_entries_are_the_fault_of_their_category(entries: Any) -> None:
    with pytest.raises(CatalogError) as raised:
        CatalogSnapshot.build([file_category(), skill_category()], {"skill": entries})
    assert raised.value.category == "skill"


def test_live_entries_need_a_rule_and_an_installed_category() -> None:
    entry = Entry("x", "x", schema())
    for name in ("file", "nowhere"):
        with pytest.raises(CatalogError, match=name):
            CatalogSnapshot.build([file_category()], {name: [entry]})


def test_a_category_is_installed_once() -> None:
    with pytest.raises(CatalogError, match="installed already"):
        CatalogSnapshot.build([file_category(), file_category()], {})


def test_an_entry_must_not_stand_on_an_operation() -> None:
    both = Category("both", "x", (good(),), Resources(TOOL, lambda e, a: a, "run", lambda: None))  # type: ignore[arg-type,return-value]
    with pytest.raises(CatalogError, match="there twice"):
        CatalogSnapshot.build([both], {"both": [Entry("go", "x", schema(x=TEXT))]})


def test_large_and_small_snapshots_answer_alike() -> None:
    small, large = of_size(10), of_size(6_000)
    assert small.get(ActionName("skill", "report_000003")) == large.get(ActionName("skill", "report_000003"))
    assert len(large) == 6_007


def test_the_same_actions_can_be_run_by_other_tools() -> None:
    snapshot = published()
    digest = snapshot.hash

    async def other(arguments: Any, context: Any) -> str:
        return "other"

    tools = ToolRegistry({name: replace(tool, handler=other) for name, tool in snapshot.tools.items()})
    exchanged = snapshot.with_tools(tools)
    assert all(tool.handler is other for tool in exchanged.tools.values())
    assert all(tool.handler is not other for tool in snapshot.tools.values())
    assert exchanged.slices is snapshot.slices and exchanged.hash == digest
    assert exchanged.actions == snapshot.actions
    assert exchanged.replace("skill", ()).tools is tools
