"""A forced call of a tool: in every form that there is, against servers that keep to one of them or to none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.models import fake_provider
from reyn_jupyter.evaluation.models.fake_provider import FakeProvider
from reyn_jupyter.models.base import Response, ToolCall
from reyn_jupyter.models.scripted import call
from tests.router.router_support import invoke, session

FORCED = {
    "router": {"discovery": "forced", "weak": {"check_support": False}},  # which would ask once more
    "action_retrieval": {"embedding_class": None},
}


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with fake_provider.serve() as server:
        yield server


def forms(trace: Any) -> list[str | None]:
    return [step.requested.choice_form for step in trace.steps]


@pytest.mark.parametrize(
    ("model", "tried"),
    [
        ("forces_named", ["named"]),
        ("forces_alone", ["named", "alone"]),
        ("forces_schema", ["named", "alone", "schema"]),
        ("refuses_named", ["named", "alone"]),
    ],
)
def test_a_choice_is_forced_by_the_first_form_that_the_server_keeps_to(
    workspace: Path, provider: FakeProvider, model: str, tried: list[str]
) -> None:
    s = reyn.Session(workspace, model=provider.model(model), store="memory", config=FORCED)
    trace = s.ask("What is in notes.txt?")
    again = s.ask("And now?", new=True)

    assert forms(trace) == [*tried, None]
    assert forms(again) == [tried[-1], None]
    for one in (trace, again):
        assert [each.resolved.wrapper for each in one.calls] == ["list_actions"]
        assert (one.status, one.answer) == ("ok", "Done.")
        assert not any(step.requested.not_forced for step in one.steps)


def test_a_choice_that_no_form_forces_is_none_and_said_to_be(workspace: Path, provider: FakeProvider) -> None:
    s = reyn.Session(workspace, model=provider.model("forces_nothing"), store="memory", config=FORCED)
    trace = s.ask("What is in notes.txt?")
    again = s.ask("And now?")

    assert forms(trace) == ["named", "alone", "schema", None]
    assert [step.requested.not_forced for step in trace.steps] == [None, None, None, "list_actions"]
    assert [step.requested.not_forced for step in again.steps] == ["list_actions"]
    assert trace.answer == again.answer == "I think it is on Tuesday."
    assert trace.calls == () and "cannot be told" in str(trace.ended.notes)


def test_an_answer_by_the_schema_is_the_call_in_record_history_and_replay(
    workspace: Path, provider: FakeProvider
) -> None:
    s = reyn.Session(workspace, model=provider.model("forces_schema"), store="memory", config=FORCED)
    trace = s.ask("What is in notes.txt?")

    replied = trace.steps[2].replied
    assert (replied.text, [each["name"] for each in replied.tool_calls]) == ("", ["list_actions"])
    assert s.replay(trace.run).answer == "Done."


def test_what_a_model_called_in_place_of_the_forced_tool_is_not_run(workspace: Path) -> None:
    other = invoke("file__read", path="notes.txt")
    s = session(workspace, other, call("list_actions"), "done")
    trace = s.ask("go", discovery="forced")

    assert [each.resolved.wrapper for each in trace.calls] == ["list_actions"]
    assert forms(trace) == ["named", "alone", None]


def test_a_reply_that_was_cut_off_says_nothing_about_the_provider(workspace: Path) -> None:
    cut = Response(text="I will", finish_reason="length")
    s = session(workspace, cut, cut, cut, "one", call("list_actions"), "two")
    s.ask("go", discovery="forced")
    s.ask("go on", discovery="forced", new=True)

    assert [request.tool_choice for request in s.model.requests][4:] == ["list_actions", "auto"]


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "list_actions", "arguments": {"category": ["file", "file", "file"',
        '{\n  "category": ["file", "file", "file"',
    ],
)
def test_a_call_that_the_model_runs_on_in_is_its_own_fault_and_not_the_providers(
    workspace: Path, text: str
) -> None:
    cut = Response(text=text, finish_reason="length")
    s = session(workspace, cut, cut, cut, "one")
    trace = s.ask("go", discovery="forced")

    assert forms(trace) == ["named", "alone", "schema", None]
    assert all(step.requested.not_forced is None for step in trace.steps)
    assert any("cut off at its output limit" in note for note in trace.ended.notes)


@pytest.mark.parametrize("text", ["[]", '{"category": 3}', '{"nonsense": 1}', "no JSON"])
def test_an_answer_that_does_not_fit_the_schema_is_no_call(workspace: Path, text: str) -> None:
    s = session(
        workspace, "no", "no", text, Response(tool_calls=(ToolCall("x", "list_actions", "{}"),)), "done"
    )
    trace = s.ask("go", discovery="forced")

    assert forms(trace) == ["named", "alone", "schema", None, None]
    assert trace.steps[3].requested.not_forced == "list_actions"
