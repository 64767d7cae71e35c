"""Prompt, mandates, discovery, surfaces: what a model is told and what the loop enforces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.catalog.action import Category, Entry, Operation, Purity, Resources, Tool
from reyn_jupyter.catalog.names import WRAPPERS, ActionName
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.scripted import ScriptedModel, call
from tests.router.router_support import invoke, results, session

OFF = {"action_retrieval": {"embedding_class": None}}  # nobody embeds ten thousand actions meanwhile
OBJECT = {"type": "object", "properties": {}, "additionalProperties": False}


async def nothing(args: Any, context: Any) -> str:
    return "done"


def many(count: int) -> tuple[Category, ...]:
    """Two categories with `count` actions in all."""
    tool = Tool("echo", nothing, Purity.PURE)

    async def entries() -> list[Entry]:
        return [Entry(f"thing-{number}", f"Thing number {number}.", OBJECT) for number in range(count - 1)]

    one = Operation("go", "Go somewhere.", OBJECT, tool)
    things = Resources(tool, lambda entry, args: args, "look at it", entries)
    return (
        Category("errand", "run errands", (one,)),
        Category("things", "things to look at", resources=things),
    )


def system(s: Any) -> str:
    return str(s.model.requests[-1].messages[0].content)


def test_no_action_name_stands_in_the_prompt_or_in_any_tool(workspace: Path) -> None:
    for tier in ("light", "standard", "strong"):
        s = session(workspace, "hi", tier=tier)
        s.ask("hello")
        text = system(s) + json.dumps(s.model.requests[-1].tools.specs)
        assert len(s.catalog.actions) > 10
        assert [str(a.name) for a in s.catalog.actions if str(a.name) in text] == []


def test_prompt_and_tools_have_the_same_length_at_20_and_at_10_000_actions(workspace: Path) -> None:
    sizes = []
    for count in (20, 10_000):
        s = session(workspace, "hi", categories=many(count), config=OFF)  # with search: test_router_search.py
        s.ask("hello")
        assert len(s.catalog.actions) == count
        sizes.append((len(system(s)), len(json.dumps(s.model.requests[-1].tools.specs))))
    assert sizes[0] == sizes[1]


def test_the_sections_stand_in_order_and_the_dynamic_part_is_last(workspace: Path) -> None:
    s = session(workspace, "hi", tier="light")
    s.ask("hello")
    headings = ["# Identity", "## Capabilities", "## Action categories", "## Behaviour", "## Now"]
    places = [system(s).index(heading) for heading in headings]
    assert places == sorted(places)
    assert all(f"- {category.name}: {category.capability}" in system(s) for category in s.catalog.categories)


def test_everything_before_the_dynamic_part_is_byte_identical_from_turn_to_turn(workspace: Path) -> None:
    s = session(workspace, invoke("file__list", path="."), "a", "b", tier="light")
    s.ask("one")
    s.ask("two")
    prefixes = {request.messages[0].content.partition("## Now")[0] for request in s.model.requests}
    tools = {request.tools.digest for request in s.model.requests}
    assert len(prefixes) == 1 and len(tools) == 1


@pytest.mark.parametrize(
    ("config", "count"),
    [({}, 3), ({"reinforcement": 1}, 1), ({"reinforcement": 5}, 5), ({"mandate": "none"}, 0)],
)
def test_the_list_first_mandate_stands_as_often_as_it_is_reinforced(
    workspace: Path, config: dict[str, Any], count: int
) -> None:
    s = session(workspace, "hi", tier="light", config={"router": config})
    s.ask("hello")
    mandates = [line for line in system(s).splitlines() if "list_actions" in line and "first" in line]
    assert len(mandates) == count and len({line.lstrip("- ") for line in mandates}) <= 1
    assert all("MUST be list_actions" in line for line in mandates)


def test_a_reminder_says_the_mandate_once_and_the_rest_in_fewer_words(workspace: Path) -> None:
    s = session(workspace, "hi", tier="light", config={"router": {"reinforce_with": "reminder"}})
    trace = s.ask("hello")
    assert system(s).count("MUST be list_actions") == 1
    assert system(s).count("list_actions comes first") == 2
    assert "list-first: explicit ×3 (reminders)" in trace.started.mandates


ENUMERATES, GENERIC = "before reading, writing, or editing anything", "before any other tool"
IN_PLACE = "the action that edits in place"


@pytest.mark.parametrize(
    ("router", "said", "unsaid"),
    [
        ({"mandate": "explicit"}, [ENUMERATES], [GENERIC]),
        ({"mandate": "generic"}, [GENERIC], [ENUMERATES, "writing, or editing"]),
        ({"edit_rule": "must"}, [f"MUST use {IN_PLACE}, NOT"], ["file__edit", "prefer"]),
        ({"edit_rule": "reasoned"}, [f"prefer {IN_PLACE}, since"], ["file__edit", "MUST use"]),
        ({"edit_rule": "none"}, [], [IN_PLACE]),
        (
            {"edit_rule": "must", "names": "shown"},
            ["Edits MUST use file__edit, NOT file__write."],
            [IN_PLACE],
        ),
        ({"edit_rule": "reasoned", "names": "shown"}, ["prefer file__edit, since"], ["MUST use"]),
        ({"surface": "flat"}, [IN_PLACE], ["list_actions"]),
    ],
)
def test_each_wording_says_what_its_setting_names(
    workspace: Path, router: dict[str, Any], said: list[str], unsaid: list[str]
) -> None:
    s = session(workspace, "hi", tier="light", config={"router": router})
    s.ask("hello")
    assert [part for part in said if part not in system(s)] == []
    assert [part for part in unsaid if part in system(s)] == []


def test_without_schemas_neither_a_listing_nor_the_gate_shows_any_and_a_description_does(
    workspace: Path,
) -> None:
    steps = [
        invoke("file__red", path="x"),
        call("list_actions", category=["file"]),
        call("describe_action", action_name="file__read"),
    ]
    s = session(workspace, *steps, "done", tier="light", config={"router": {"list_schemas": False}})
    s.ask("go")
    gated, listed, described = (json.loads(text) for text in results(s.model.requests[-1]))
    assert not any("input_schema" in item for answer in (gated, listed) for item in answer["items"])
    assert described["input_schema"]["required"] == ["path"]
    assert "input schema" not in str(s.model.requests[0].tools.specs[0])


@pytest.mark.parametrize(
    ("tier", "router", "reads_first", "most"),
    [
        ("standard", {}, False, 20),
        ("light", {}, True, 20),
        ("light", {"listing_order": "name", "listing_limit": 3}, False, 3),
        ("standard", {"listing_order": "reads_first", "listing_limit": 3}, True, 3),
    ],
)
def test_a_listing_begins_with_what_only_reads_for_the_light_tier_or_where_it_is_asked_for(
    workspace: Path, tier: str, router: dict[str, Any], reads_first: bool, most: int
) -> None:
    steps = [call("list_actions"), call("list_actions", category=["file"], limit=20), "done"]
    s = session(workspace, *steps, tier=tier, config={"router": router})
    s.ask("go")
    whole, files = map(json.loads, results(s.model.requests[-1]))
    for listing in (whole, files):
        assert len(listing["items"]) == min(most, listing["total"])
        names = [ActionName.parse(item["qualified_name"]) for item in listing["items"]]
        risky = [not s.catalog.get(name).purity.repeatable for name in names]
        assert not reads_first or risky == sorted(risky)
    assert (files["items"][0]["qualified_name"] == "file__delete") is not reads_first
    own = s.list_actions("file").payload["items"]
    assert own[0]["qualified_name"] == "file__delete", "a person's listing goes by name"


def test_mandates_are_on_for_the_light_tier_and_off_for_the_others(workspace: Path) -> None:
    found = {}
    for tier in ("light", "standard", "strong"):
        s = session(workspace, "hi", tier=tier)
        trace = s.ask("hello")
        found[tier] = ("MUST" in system(s), bool(trace.started.mandates))
    assert found == {"light": (True, True), "standard": (False, False), "strong": (False, False)}


def test_names_shown_puts_every_name_into_the_prompt_and_into_the_edit_rule(workspace: Path) -> None:
    s = session(workspace, "hi", tier="light", config={"router": {"names": "shown"}})
    s.ask("hello")
    assert all(str(action.name) in system(s) for action in s.catalog.actions)
    assert "MUST use file__edit" in system(s)


def test_the_gate_answers_a_guess_with_the_listing_of_the_nearest_category(workspace: Path) -> None:
    guess = invoke("file__write_text", path="x", content="y")
    s = session(workspace, guess, invoke("file__read", path="notes.txt"), "done", tier="light")
    trace = s.ask("go")
    gated, run = trace.calls
    assert (gated.resolved.problem, run.ok) == ("gated", True)
    listing = json.loads(results(s.model.requests[-1])[0])
    assert {item["qualified_name"].partition("__")[0] for item in listing["items"]} == {"file"}
    assert all("input_schema" in item for item in listing["items"])


def test_a_listing_opens_the_gate_for_the_whole_conversation(workspace: Path) -> None:
    read = invoke("file__read", path="notes.txt")
    s = session(workspace, call("list_actions"), "ok", read, "done", tier="light")
    s.ask("look around")
    assert s.ask("now read").calls[0].ok


@pytest.mark.parametrize(
    "guess", [call("file__read", path="notes.txt"), call("describe_action", action_name="file__read")]
)
def test_the_gate_stops_salvaged_calls_and_descriptions_too(workspace: Path, guess: Any) -> None:
    s = session(workspace, guess, "done", tier="light")
    assert s.ask("go").calls[0].resolved.problem == "gated"
    assert "file__read" in results(s.model.requests[-1])[0]


def test_forced_discovery_asks_for_list_actions_on_the_first_call_only(workspace: Path) -> None:
    s = session(workspace, call("list_actions"), "ok", "later")
    s.ask("go", discovery="forced")
    s.ask("go on", discovery="forced")
    assert [request.tool_choice for request in s.model.requests] == ["list_actions", "auto", "auto"]


REFUSED = ModelError("tool_choice", "The provider takes no choice of a tool.")
THRICE = (REFUSED, REFUSED, REFUSED)  # each form of a forced choice


def choices(of: Any) -> list[str]:
    return [request.tool_choice for request in of.model.requests]


def not_forced(trace: Any) -> list[str | None]:
    return [step.requested.not_forced for step in trace.steps]


def test_a_provider_that_takes_no_forced_choice_is_asked_without_and_it_is_said(workspace: Path) -> None:
    s = session(workspace, *THRICE, call("list_actions"), "done")
    trace = s.ask("go", discovery="forced")
    assert choices(s) == ["list_actions", "required", "auto", "auto", "auto"]
    assert trace.status == "ok" and trace.answer == "done" and "cannot be told" in str(trace.ended.notes)
    assert not_forced(trace) == [None, None, None, "list_actions", None]
    other = session(workspace, ModelError("bad_request", "no such parameter: tool_choice"), "done")
    assert other.ask("go", discovery="forced").status == "error"
    prompted = session(workspace, REFUSED, "done")
    assert prompted.ask("go").status == "error"


def test_a_refused_choice_is_remembered_for_that_model_as_long_as_the_session_lasts(workspace: Path) -> None:
    s = session(workspace, *THRICE, "one", "two", "three")
    s.ask("go", discovery="forced")
    again = s.ask("go on", discovery="forced")
    fresh = s.ask("start afresh", discovery="forced", new=True)
    assert choices(s) == ["list_actions", "required", "auto", "auto", "auto", "auto"]
    for trace in (again, fresh):
        assert not_forced(trace) == ["list_actions"] and "cannot be told" in str(trace.ended.notes)
    other = ScriptedModel(call("list_actions"), "four", label="another")
    s.ask("and you?", discovery="forced", model=other)
    assert [request.tool_choice for request in other.requests] == ["list_actions", "auto"]
    later = session(workspace, call("list_actions"), "five")
    later.ask("go", discovery="forced")
    assert choices(later) == ["list_actions", "auto"]


def test_a_refused_choice_costs_no_step_and_its_run_can_be_replayed(workspace: Path) -> None:
    s = session(workspace, *THRICE, "done", config={"router": {"limits": {"max_steps": 1}}})
    trace = s.ask("go", discovery="forced")
    assert (trace.status, trace.answer) == ("ok", "done")
    assert s.replay(trace.run).answer == "done"
    assert s.replay(s.ask("again", discovery="forced", model=ScriptedModel("free")).run).answer == "free"


def test_constrained_names_are_those_just_listed(workspace: Path) -> None:
    config = {"router": {"constrain_names": True}}
    s = session(workspace, call("list_actions", category=["file"]), "ok", config=config)
    s.ask("go")

    def names(request: Any) -> Any:
        spec = next(t for t in request.tools.specs if t["function"]["name"] == "invoke_action")
        return spec["function"]["parameters"]["properties"]["action_name"].get("enum")

    first, second = s.model.requests
    assert names(first) is None
    assert names(second) and all(name.startswith("file__") for name in names(second))


def test_the_flat_surface_offers_every_action_as_its_own_tool(workspace: Path) -> None:
    s = session(workspace, call("file__read", path="notes.txt"), "done", tier="light")
    trace = s.ask("go", surface="flat")
    names = s.model.requests[0].tools.names
    assert "file__read" in names and "inspect" in names and "invoke_action" not in names
    assert trace.calls[0].ok and trace.calls[0].resolved.flags == ()
    assert "list_actions" not in system(s)


def test_universal_wrappers_disabled_means_flat(workspace: Path) -> None:
    s = session(workspace, "hi", config={"action_retrieval": {"universal_wrappers_enabled": False}})
    s.ask("hello")
    assert "file__read" in s.model.requests[0].tools.names


@pytest.mark.parametrize(("limit", "flat"), [(100_000, True), (10, False)])
def test_auto_is_flat_while_all_definitions_fit(workspace: Path, limit: int, flat: bool) -> None:
    s = session(
        workspace, "hi", "ho", config={"router": {"surface": "auto", "limits": {"flat_tokens": limit}}}
    )
    s.ask("hello")
    assert ("file__read" in s.model.requests[0].tools.names) is flat


def test_auto_is_decided_once_a_conversation(workspace: Path) -> None:
    wide = [False]
    tool = Tool("echo", nothing, Purity.PURE)

    async def entries() -> list[Entry]:
        return [Entry(f"thing-{n}", "A thing. " * 20, OBJECT) for n in range(500 if wide[0] else 1)]

    things = Resources(tool, lambda entry, args: args, "look at it", entries)
    made = Category("things", "things to look at", resources=things, revision=lambda: wide[0])
    config = {"router": {"surface": "auto"}, **OFF}
    s = session(workspace, "a", "b", "c", categories=(made,), config=config)
    s.ask("first")
    wide[0] = True
    s.ask("second")
    s.ask("third", new=True)
    first, second, third = (request.tools.names for request in s.model.requests)
    assert "list_actions" not in first and "list_actions" not in second
    assert "list_actions" in third and len(third) < 10


def test_the_hot_list_offers_the_most_used_actions_directly_and_leaves_listings_alone(
    workspace: Path,
) -> None:
    s = session(workspace, "hi", config={"action_retrieval": {"hot_list_n": 3}})
    for _ in range(4):
        s.invoke_action("file__grep", {"pattern": "line", "path": "."})
    before = [row["qualified_name"] for row in s.list_actions("file").rows]
    s.ask("hello")
    names = s.model.requests[0].tools.names
    assert "file__grep" in names and len(names) == len(WRAPPERS) + 3
    assert before == sorted(before)


def test_places_of_the_hot_list_that_no_use_has_filled_go_to_reads_alone(workspace: Path) -> None:
    s = session(workspace, "hi", "done", config={"action_retrieval": {"hot_list_n": 50}})
    s.ask("hello")
    direct = set(s.model.requests[0].tools.names) - set(WRAPPERS)
    reads = {action.name.text for action in s.catalog.actions if action.purity.repeatable}
    assert direct == reads and "file__delete" not in direct
    s.invoke_action("file__write", {"path": "new.txt", "content": "x"})
    s.ask("again", new=True)
    assert set(s.model.requests[1].tools.names) - set(WRAPPERS) == reads | {"file__write"}


def test_the_hot_list_encodes_names_and_leaves_out_what_is_hidden(workspace: Path) -> None:
    shown = [True]
    tool = Tool("echo", nothing, Purity.PURE)
    go = Operation("go", "Go somewhere.", OBJECT, tool)
    made = (
        Category("agent.peer", "go", (go,)),
        Category("lab", "go", (go,), hidden=lambda: None if shown[0] else "shut"),
    )
    config = {"action_retrieval": {"hot_list_n": 1}}
    s = session(workspace, "hi", call("agent_peer__go"), "done", categories=made, config=config)
    for name in ("lab__go", "lab__go", "agent.peer__go"):
        s.invoke_action(name, {})
    s.ask("hello")
    assert "lab__go" in s.model.requests[-1].tools.names
    shown[0] = False
    trace = s.ask("again", new=True)
    names = s.model.requests[-1].tools.names
    assert "agent_peer__go" in names and "lab__go" not in names
    assert trace.calls[0].ok and trace.calls[0].resolved.name == "agent.peer__go"


def test_the_search_asks_for_a_capability_and_not_for_data(workspace: Path) -> None:
    s = session(workspace, "hi")
    s.build_embeddings()
    s.ask("hello")
    search = next(
        t["function"] for t in s.model.requests[0].tools.specs if t["function"]["name"] == "search_actions"
    )
    query = search["parameters"]["properties"]["query"]["description"]
    assert "What the action should do" in query and "not the data" in query
    assert search["parameters"]["required"] == ["query"]


def test_without_a_store_there_is_no_inspect_and_results_go_in_full(workspace: Path) -> None:
    (workspace / "big.txt").write_text("y" * 5000)
    s = session(workspace, invoke("file__read", path="big.txt"), "done", store=None)
    s.ask("go")
    assert "inspect" not in s.model.requests[0].tools.names
    assert results(s.model.requests[-1]) == ["y" * 5000]


def test_the_hint_about_hidden_search_comes_once_a_conversation(workspace: Path) -> None:
    steps = (call("list_actions"), call("list_actions", category=["file"]), "done")
    s = session(workspace, *steps, config={"action_retrieval": {"embedding_class": None}})
    s.ask("go")
    first, second = (json.loads(text) for text in results(s.model.requests[-1]))
    assert "null" in first["search_hint"]["reason"] and "install" not in first["search_hint"]
    assert "search_hint" not in second
    assert "search_actions" not in s.model.requests[0].tools.names


def test_a_large_result_reaches_the_model_as_a_summary_and_can_be_inspected(workspace: Path) -> None:
    (workspace / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    seen: dict[str, str] = {}

    def look(request: Any) -> Any:
        summary = results(request)[-1]
        seen["blob"] = summary.partition("[blob:")[2].partition("]")[0]
        return call("inspect", blob_id=seen["blob"], selector="lines:500-501")

    s = session(workspace, invoke("file__read", path="long.txt"), look, "done")
    trace = s.ask("go")
    assert results(s.model.requests[-1])[1].startswith("line 500\nline 501")
    assert trace.calls[0].finished.blob == seen["blob"]
    assert s.blobs.rows[0]["run"] == trace.run
