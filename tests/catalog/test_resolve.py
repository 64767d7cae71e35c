from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import Category, Entry, Tool
from reyn_jupyter.catalog.dispatch import CatalogError
from reyn_jupyter.catalog.resolve import UnknownActionError, bind, find
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.catalog.taxonomy import REDIRECTS
from tests.catalog.samples import (
    ENTRIES,
    file_category,
    published,
    resource_category,
    schema,
    skill_category,
)

PUBLISHED = published()


def target(snapshot: CatalogSnapshot, name: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the tool that runs for a call, and the arguments that it gets."""
    tool, given = bind(snapshot, find(snapshot, name), args)
    return tool.name, given


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("mcp__search_registry", "search_registry_mcp"),
        ("mcp__install_registry", "install_registry_mcp"),
        ("mcp__install_package", "install_package_mcp"),
        ("mcp__install_local", "install_local_mcp"),
        ("mcp__list_servers", "list_servers_mcp"),
        ("mcp__list_tools", "list_tools_mcp"),
        ("mcp__call_tool", "call_mcp_tool"),
        ("mcp__drop_server", "drop_server_mcp"),
        ("file__read", "read_file"),
        ("file__write", "write_file"),
        ("file__delete", "delete_file"),
        ("file__list", "list_file"),
        ("web__search", "search_web"),
        ("web__fetch", "fetch_web"),
        ("memory_operation__remember_shared", "remember_shared_memory"),
        ("memory_operation__remember_agent", "remember_agent_memory"),
        ("memory_operation__forget", "forget_memory"),
        ("reyn_source__read", "read_reyn_source"),
        ("reyn_source__list", "list_reyn_source"),
        ("rag_operation__recall", "recall"),
        ("rag_operation__drop_source", "drop_source_rag"),
    ],
)
def test_an_operation_goes_to_its_target_with_its_arguments(name: str, tool: str) -> None:
    assert target(PUBLISHED, name, {"a": 1}) == (tool, {"a": 1})


@pytest.mark.parametrize(
    ("name", "args", "tool", "tool_args"),
    [
        ("skill__foo", {"topic": "x"}, "invoke_skill", {"name": "foo", "input": {"topic": "x"}}),
        ("agent.peer__alice", {"request": "hi"}, "delegate_to_agent", {"to": "alice", "request": "hi"}),
        ("memory_entry__style", {}, "read_memory_body", {"slug": "style"}),
        (
            "rag_corpus__meetings",
            {"query": "Q3 roadmap", "top_k": 3},
            "recall",
            {"sources": ["meetings"], "query": "Q3 roadmap", "top_k": 3},
        ),
    ],
)
def test_a_resource_goes_to_its_canonical_default(
    name: str, args: dict[str, Any], tool: str, tool_args: dict[str, Any]
) -> None:
    assert target(PUBLISHED, name, args) == (tool, tool_args)


def test_resolving_leaves_the_callers_arguments_alone() -> None:
    args = {"query": "x"}
    target(PUBLISHED, "rag_corpus__meetings", args)
    assert args == {"query": "x"}


def answer(name: Any, snapshot: CatalogSnapshot = PUBLISHED) -> tuple[str, dict[str, Any]]:
    with pytest.raises(UnknownActionError) as raised:
        find(snapshot, name)
    return raised.value.problem, raised.value.payload


def test_an_unknown_name_is_answered_with_what_was_meant() -> None:
    problem, payload = answer("skil__foo")
    assert problem == "unknown"
    assert payload["error"] == "Unknown action 'skil__foo'"
    assert payload["suggestions"][:2] == ["skill__foo", "skill__form"]
    assert "'skil'" in payload["reason"]
    assert "list_actions(category=" in payload["hint"]
    assert list(payload) == ["error", "reason", "suggestions", "hint"]


def test_the_name_of_a_category_is_answered_with_all_that_is_in_it_where_that_is_little() -> None:
    """Weak models take the category for the action; the nearest names would be the first by the alphabet."""
    small = CatalogSnapshot.build([file_category()], {})
    problem, payload = answer("file", small)
    assert problem == "malformed" and payload["reason"] == "'file' is a category, not an action."
    assert payload["suggestions"] == [name.text for name in (each.name for each in small.actions)]
    assert 3 < len(payload["suggestions"]) <= 12
    many = CatalogSnapshot.build(
        [skill_category()], {"skill": [Entry(f"s{n}", "x", schema()) for n in range(13)]}
    )
    _, payload = answer("skill", many)
    assert payload["suggestions"] == []
    assert payload["hint"] == 'Use list_actions(category=["skill"]) to discover the correct name.'


def test_a_misspelt_category_that_is_known_but_not_installed_is_named() -> None:
    small = CatalogSnapshot.build([file_category()], {})
    problem, payload = answer("skil__foo", small)
    assert problem == "unknown" and "not available in this session" in payload["reason"]
    assert "'skill' (workflows" in payload["reason"] and "category=[...]" in payload["hint"]
    assert all(name.startswith("file__") for name in payload["suggestions"])


def test_an_unknown_entry_names_its_category() -> None:
    problem, payload = answer("file__raed")
    assert (problem, payload["suggestions"][0]) == ("unknown", "file__read")
    assert 'list_actions(category=["file"])' in payload["hint"]


def test_a_hidden_action_is_said_to_be_hidden_and_nothing_of_it_is_shown() -> None:
    problem, payload = answer("exec__run")
    assert problem == "hidden"
    assert payload["suggestions"] == []
    assert "not available" in payload["error"]
    assert target(published("bubblewrap"), "exec__run", {"argv": ["ls"]})[0] == "run_exec"


@pytest.mark.parametrize("stale", sorted(REDIRECTS))
def test_a_stale_category_carries_its_redirect(stale: str) -> None:
    problem, payload = answer(f"{stale}__x")
    assert problem == "stale"
    assert payload["redirects"] == {stale: REDIRECTS[stale]}
    assert REDIRECTS[stale] in payload["reason"]


def test_a_stale_category_suggests_from_the_live_one() -> None:
    _, payload = answer("mcp.tool__calltool")
    assert payload["suggestions"][0] == "mcp__call_tool"


def test_a_redirect_names_its_target_even_when_that_is_not_installed() -> None:
    small = CatalogSnapshot.build([file_category()], {})
    problem, payload = answer("mcp.server__git", small)
    assert problem == "stale"
    assert payload["redirects"] == {"mcp.server": "mcp"}
    assert "not installed" in payload["reason"]


def test_an_installed_category_of_a_stale_name_is_no_redirect() -> None:
    own = resource_category("mcp.tool", Tool("own", find, PUBLISHED.actions[0].purity), "run", lambda e, a: a)  # type: ignore[arg-type]
    snapshot = CatalogSnapshot.build([own], {"mcp.tool": [Entry("x", "x", schema())]})
    assert find(snapshot, "mcp.tool__x").name.entry == "x"


def test_a_known_kind_that_is_not_installed_is_said_to_be_that() -> None:
    problem, payload = answer("utility__resize")
    assert problem == "not_installed"
    assert "known but not installed" in payload["reason"]


@pytest.mark.parametrize(
    "name", ["", "nonsense", "file", "__", "file.read", 5, None, ["file__read"], b"file__read"]
)
def test_what_is_no_name_is_malformed(name: object) -> None:
    problem, payload = answer(name)
    assert problem == "malformed"
    assert "list_actions" in payload["hint"]


HOSTILE = [
    "file__" + "x" * 1_000_000,
    "y" * 1_000_000,
    "file__\0",
    "file__a\nb",
    "file__\ud800",
    "\x1b[31m__x",
    "file__<b>",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_is_quoted_short_and_plain(name: str) -> None:
    _, payload = answer(name)
    text = json.dumps(payload, ensure_ascii=False)
    assert len(text.encode("utf-8")) < 1500
    assert not any(char in payload["error"] + payload["reason"] for char in "\0\n\x1b\ud800")


@given(
    st.text() | st.builds("{}__{}".format, st.sampled_from([*PUBLISHED.slices, *REDIRECTS, "web"]), st.text())
)
def test_finding_is_total(name: str) -> None:
    try:
        find(PUBLISHED, name)
    except UnknownActionError as error:
        assert json.dumps(error.payload).encode()
        assert set(error.payload["suggestions"]) <= {action.name.text for action in PUBLISHED}


@given(st.text(), st.dictionaries(st.text(), st.integers()))
def test_resolving_is_total(name: str, args: dict[str, Any]) -> None:
    for text in (name, f"rag_corpus__{name}", "skill__foo"):
        try:
            assert target(PUBLISHED, text, args)[0] in PUBLISHED.tools
        except UnknownActionError:
            assert text != "skill__foo"


@pytest.mark.parametrize("transform", [lambda e, a: a["missing"], lambda e, a: [e]])
def test_a_transform_that_fails_is_the_fault_of_its_category(transform: Any) -> None:
    async def handler(arguments: dict[str, Any], context: object) -> object:
        return None

    broken: Category = resource_category(
        "broken", Tool("t", handler, PUBLISHED.actions[0].purity), "run", transform
    )
    snapshot = CatalogSnapshot.build([broken], {"broken": [Entry("x", "x", schema())]})
    with pytest.raises(CatalogError, match="broken"):
        target(snapshot, "broken__x", {})


def test_every_rule_leads_to_a_tool() -> None:
    snapshot = published("bubblewrap")
    rules = [*snapshot.tables.operations.values(), *snapshot.tables.resources.values()]
    assert {rule.target_tool_name for rule in rules} == set(snapshot.tools)
    assert {action.target_tool_name for action in snapshot} <= set(snapshot.tools)
    assert set(ENTRIES) == set(snapshot.tables.resources)
