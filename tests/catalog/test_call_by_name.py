"""Calls of an action by its name within another call, as a server's tools are called."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import (
    CalledAction,
    CalledRule,
    Category,
    Entry,
    Operation,
    Purity,
    Resources,
    Tool,
)
from reyn_jupyter.catalog.call_by_name import PreparedCall, prepare_call
from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from tests.catalog.samples import TEXT, WHOLE, echo, no_entries, schema

CALL = schema("tool", arguments={"type": "object"})
ISSUE = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "properties": {"title": TEXT, "number": WHOLE, "rows": {"type": "array", "x-reference": ["any"]}},
    "required": ["title"],
    "additionalProperties": False,
}


def by_entry(args: dict[str, Any]) -> CalledAction | None:
    return CalledAction(f"mcp.tool__{args['tool']}", "tool", "arguments")


def snapshot(rule: CalledRule = by_entry) -> CatalogSnapshot:
    call = Operation("call", "Call a tool by name.", CALL, Tool("call_mcp", echo, Purity.NETWORK), calls=rule)
    tools = Resources(
        Tool("run_mcp", echo, Purity.NETWORK), lambda e, a: {"tool": e, **a}, "call it", no_entries
    )
    entries = [
        Entry("git.create_issue", "Create an issue.", ISSUE),
        Entry("git.status", "Status.", {}, open_schema=True),
    ]
    return CatalogSnapshot.build(
        [Category("mcp", "Call tools.", (call,)), Category("mcp.tool", "Tools.", (), tools)],
        {"mcp.tool": entries},
    )


def prepared(args: Any, rule: CalledRule = by_entry, forgive: bool = True) -> PreparedCall:
    made = snapshot(rule)
    action = made.get(ActionName("mcp", "call"))
    assert action is not None
    return prepare_call(made, action, args, forgive=forgive)


def test_the_inner_arguments_are_held_to_the_schema_of_the_action_that_is_named() -> None:
    found = prepared({"tool": "git.create_issue", "arguments": {"titel": "x", "number": "no"}})
    assert {fault["path"]: fault["message"] for fault in found.prepared.invalid} == {
        "/arguments/titel": "unknown argument; did you mean 'title'?",
        "/arguments/number": "must be an integer, not the string 'no'",
        "/arguments/title": "is required",
    }
    assert (found.action.name.text, found.held_by) == ("mcp.tool__git.create_issue", "arguments")


def test_they_are_repaired_like_any_others() -> None:
    for inner in ({"title": "x", "number": "5"}, '{"title": "x", "number": "5"}'):
        found = prepared({"tool": "git.create_issue", "arguments": inner}).prepared
        assert found.args == {"tool": "git.create_issue", "arguments": {"title": "x", "number": 5}}
        assert (found.invalid, found.flags) == ([], ("coerced",))
    assert prepared(
        {"tool": "git.create_issue", "arguments": {"title": "x", "number": "5"}}, forgive=False
    ).prepared.invalid


def test_none_at_all_are_checked_too() -> None:
    (fault,) = prepared({"tool": "git.create_issue"}).prepared.invalid
    assert fault == {"path": "/arguments/title", "message": "is required"}
    assert prepared({"tool": "git.status"}).prepared.args == {"tool": "git.status"}
    assert prepared({"tool": "git.status", "arguments": {"any": 1}}).prepared.invalid == []


def test_a_name_that_leads_nowhere_is_answered_in_the_words_of_the_call() -> None:
    (fault,) = prepared({"tool": "git.creat_issue", "arguments": {}}).prepared.invalid
    assert fault["path"] == "/tool"
    assert fault["message"].endswith("Did you mean git.create_issue or git.status?")


def test_references_stand_where_the_inner_schema_asks_for_them() -> None:
    rows = {"$var": "orders"}
    fine = prepared({"tool": "git.create_issue", "arguments": {"title": "x", "rows": rows}})
    assert fine.prepared.invalid == []
    wrong = prepared({"tool": "git.create_issue", "arguments": {"title": rows}})
    assert [fault["path"] for fault in wrong.prepared.invalid] == ["/arguments/title"]
    whole = prepared({"tool": "git.create_issue", "arguments": rows})
    assert whole.prepared.invalid


def test_faults_of_the_call_itself_come_first() -> None:
    found = prepared({"tol": "git.create_issue", "arguments": {"titel": 1}})
    assert [fault["path"] for fault in found.prepared.invalid][:1] == ["/tol"]
    assert (found.action.name.text, found.held_by) == ("mcp__call", None)


def fails(args: dict[str, Any]) -> CalledAction | None:
    raise RuntimeError("secret detail")


def gives_text(args: dict[str, Any]) -> Any:
    return "git.create_issue"


@pytest.mark.parametrize("rule", [fails, gives_text])
def test_a_rule_that_fails_is_told_as_the_fault_of_its_category(rule: CalledRule) -> None:
    (fault,) = prepared({"tool": "x"}, rule).prepared.invalid
    assert "its rule for calls by name" in fault["message"] and "secret detail" not in fault["message"]


def test_a_rule_may_have_nothing_to_check() -> None:
    assert prepared({"tool": "x", "arguments": {"a": 1}}, lambda args: None).prepared.invalid == []


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["title", "$var", "a"]), inner)
    ),
    max_leaves=5,
)


@given(st.sampled_from(["git.create_issue", "git.status", "", "call", 5]), ANYTHING)
def test_nothing_is_raised_whatever_is_sent(tool: Any, arguments: Any) -> None:
    assert isinstance(prepared({"tool": tool, "arguments": arguments}).prepared.invalid, list)
