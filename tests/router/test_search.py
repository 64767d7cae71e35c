"""Search by meaning in the loop: when it is offered, what it answers, and that it counts as a listing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.catalog.action import Category, Entry, Purity, Resources, Tool
from reyn_jupyter.models.scripted import call
from tests.router.router_support import invoke, results, session, valid_history

OFF = {"action_retrieval": {"embedding_class": None}}
SEARCH = call("search_actions", query="look for words in the text of files")


@pytest.fixture(scope="module", autouse=True)
def warmed(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The first session of a process embeds the built-in actions; how long that takes is not what is tested."""
    session(tmp_path_factory.mktemp("first")).build_embeddings()


def answered(s: Any, place: int = 0) -> dict[str, Any]:
    """What the model got for a call of its last turn."""
    found: dict[str, Any] = json.loads(results(s.model.requests[-1])[place])
    return found


def schema_of(s: Any, tool: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        spec["function"]["parameters"]
        for spec in s.model.requests[-1].tools.specs
        if spec["function"]["name"] == tool
    )
    return found


def many(count: int) -> Category:
    async def handler(args: dict[str, Any], context: Any) -> str:
        return "ran"

    async def entries() -> tuple[Entry, ...]:
        return tuple(Entry(f"job_{n:05}", f"Runs job number {n}.", {"type": "object"}) for n in range(count))

    tool = Tool("invoke_skill", handler, Purity.READ)
    return Category(
        "skill",
        "Run workflows.",
        resources=Resources(tool, lambda entry, args: args, "run the workflow", entries),
    )


def test_what_a_search_finds_can_be_invoked_without_a_description(workspace: Path) -> None:
    found: dict[str, Any] = {}

    def take_the_best(request: Any) -> Any:
        best = json.loads(results(request)[-1])["items"][0]
        found.update(best)
        assert best["input_schema"]["required"] == ["pattern"]
        return invoke(best["qualified_name"], pattern="second")

    s = session(workspace, SEARCH, take_the_best, "done", tier="light")
    trace = s.ask("where is the second line?")
    assert found["qualified_name"] == "file__grep" and list(found) == [
        "qualified_name",
        "description",
        "input_schema",
        "score",
    ]
    search, run = trace.calls
    assert search.ok and run.ok and run.resolved.problem is None
    assert "notes.txt:2:second line" in results(s.model.requests[-1])[-1]
    assert valid_history(s.model.requests[-1])


def test_a_search_opens_the_gate_for_the_whole_conversation(workspace: Path) -> None:
    read = invoke("file__read", path="notes.txt")
    s = session(workspace, SEARCH, "ok", read, "done", tier="light")
    s.ask("look around")
    assert s.ask("now read").calls[0].ok


def test_a_search_that_finds_nothing_opens_no_gate(workspace: Path) -> None:
    nothing = call("search_actions", query="zxqwv", category=["function"])
    s = session(workspace, nothing, invoke("file__read", path="notes.txt"), "done", tier="light")
    _, gated = s.ask("go").calls
    assert answered(s)["items"] == [] and answered(s)["total"] == 0
    assert gated.resolved.problem == "gated"


def test_names_just_found_can_constrain_the_next_call(workspace: Path) -> None:
    config = {"router": {"constrain_names": True}}
    s = session(workspace, call("search_actions", query="read a file", limit=3), "ok", config=config)
    s.ask("go")
    names = schema_of(s, "invoke_action")["properties"]["action_name"]["enum"]
    assert names == [item["qualified_name"] for item in answered(s)["items"]] and len(names) == 3


def test_a_category_narrows_before_it_ranks(workspace: Path) -> None:
    narrowed = call("search_actions", query="look for words in the text of files", category=["reyn_source"])
    s = session(workspace, narrowed, "ok")
    s.ask("go")
    names = [item["qualified_name"] for item in answered(s)["items"]]
    assert names and names[0] == "reyn_source__grep"
    assert {name.partition("__")[0] for name in names} == {"reyn_source"}


@pytest.mark.parametrize(
    ("arguments", "problem", "said"),
    [
        ({"query": "  "}, "invalid", "query must be a text"),
        ({}, "invalid", "query"),
        ({"query": "x", "category": ["multi_agent"]}, "stale", "agent.peer"),
        ({"query": "x", "category": ["fiel"]}, "invalid", "valid_categories"),
        ({"query": "x", "limit": 0}, "invalid", "limit"),
    ],
)
def test_a_wrong_search_is_answered_with_what_is_accepted(
    workspace: Path, arguments: dict[str, Any], problem: str, said: str
) -> None:
    s = session(workspace, call("search_actions", **arguments), "ok")
    trace = s.ask("go")
    assert trace.calls[0].resolved.problem == problem and not trace.calls[0].ok
    assert said in json.dumps(answered(s))


def test_hidden_from_the_model_it_is_answered_as_such(workspace: Path) -> None:
    s = session(workspace, SEARCH, "ok", config=OFF)
    trace = s.ask("go")
    assert "search_actions" not in s.model.requests[0].tools.names
    assert "search_actions" not in s.model.requests[0].messages[0].content
    assert trace.calls[0].resolved.problem == "hidden"
    assert "list_actions" in answered(s)["hint"] and set(answered(s)["search"]) == {"reason"}


def test_where_it_is_offered_a_listing_carries_no_hint(workspace: Path) -> None:
    s = session(workspace, call("list_actions"), "ok")
    s.ask("go")
    assert "search_actions" in s.model.requests[0].tools.names
    assert "search_hint" not in answered(s)


def test_whether_it_is_offered_does_not_change_within_a_conversation(workspace: Path) -> None:
    s = session(workspace, "one", "two", "three", SEARCH, "four", config=OFF)
    s.ask("first")
    s.configure("action_retrieval.embedding_class", "local-mini")
    s.build_embeddings()
    s.ask("second")
    first, second = s.model.requests
    assert first.tools.names == second.tools.names and "search_actions" not in first.tools.names
    assert first.messages[0].content == second.messages[0].content
    s.ask("third", new=True)
    assert "search_actions" in s.model.requests[-1].tools.names
    s.clear_embeddings()
    s.configure("action_retrieval.embedding_class", None)
    assert s.ask("fourth").calls[0].resolved.problem == "hidden"
    assert "search_actions" in s.model.requests[-1].tools.names


def test_with_search_on_no_name_stands_in_prompt_or_tools_and_their_size_does_not_grow(
    workspace: Path,
) -> None:
    sizes = []
    for count in (20, 3_000):
        s = session(workspace, "hi", categories=[many(count)], config=OFF)
        s.parts.conversation.search = True
        s.ask("hello")
        request = s.model.requests[0]
        told = request.messages[0].content + json.dumps(request.tools.specs)
        assert "search_actions" in request.tools.names and "skill__" not in told
        sizes.append(len(told))
    assert sizes[0] == sizes[1]


def test_an_answer_keeps_to_its_bytes_and_says_so(workspace: Path) -> None:
    config = {"outputs": {"answer_bytes": 2_000}}
    s = session(workspace, call("search_actions", query="change a file", limit=20), "ok", config=config)
    s.ask("go")
    text = results(s.model.requests[-1])[0]
    assert len(text.encode()) <= 2_000 and "2,000 bytes" in answered(s)["note"]
    assert len(answered(s)["items"]) < answered(s)["total"]


def test_a_replay_offers_what_the_run_was_offered(workspace: Path) -> None:
    s = session(
        workspace, SEARCH, invoke("file__read", path="notes.txt"), "done", tier="light", store="files"
    )
    trace = s.ask("go")
    again = s.replay(trace.run)
    assert again.steps[0].requested.tools == trace.steps[0].requested.tools
    assert [made.ok for made in again.calls] == [True, True]
