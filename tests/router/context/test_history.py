"""What later turns hold of a turn, and what of it a model is sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.models.base import Message, ToolCall
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.router.context.history import (
    ARGUMENTS,
    CALLS,
    RESULT,
    Disclosure,
    Reader,
    Turn,
    condense,
    history_for,
)
from tests.router.router_support import invoke, results, session, valid_history

TOOLS = ("list_actions", "describe_action", "invoke_action", "inspect")
steps = st.lists(
    st.lists(st.tuples(st.sampled_from(TOOLS), st.integers(0, 3000), st.integers(0, 3000)), max_size=6),
    max_size=6,
)


def messages_of(script: list[list[tuple[str, int, int]]]) -> list[Message]:
    messages = [Message("user", "why?")]
    for step, calls in enumerate(script):
        made = [
            ToolCall(
                f"{step}-{place}", name, json.dumps({"text": "é" * given, "list": list(range(given // 9))})
            )
            for place, (name, given, _) in enumerate(calls)
        ]
        if made:
            messages.append(Message("assistant", "Let me look.", tuple(made)))
            messages += [
                Message("tool", "x" * size, (), each.id)
                for each, (_, _, size) in zip(made, calls, strict=True)
            ]
    return [*messages, Message("assistant", "because")]


@given(steps)
def test_every_call_that_is_left_has_its_result_and_all_of_it_is_bounded(
    script: list[list[tuple[str, int, int]]],
) -> None:
    kept = condense(messages_of(script))
    waiting: list[str] = []
    for message in kept:
        if message.role == "tool":
            assert message.tool_call_id == waiting.pop(0)
            assert len(message.content.encode()) <= RESULT + 120
        else:
            assert not waiting
            waiting = [each.id for each in message.tool_calls]
    called = [each for message in kept for each in message.tool_calls]
    assert not waiting and len(called) <= CALLS
    assert all(isinstance(json.loads(each.arguments), dict) for each in called)
    assert all(len(each.arguments.encode()) <= 2 * ARGUMENTS for each in called)
    assert {each.name for each in called} <= {"invoke_action", "inspect"}
    assert (kept[0].content, kept[-1].content) == ("why?", "because")
    assert condense(kept) == kept


def test_a_later_turn_has_question_answer_and_the_call_but_no_listing_and_no_large_result(
    workspace: Path,
) -> None:
    (workspace / "big.txt").write_text("first words\n" + "row\n" * 190)
    read = invoke("file__read", path="big.txt")
    s = session(workspace, call("list_actions"), read, "Read it.", "again")
    s.ask("read big.txt")
    s.ask("and now?")
    sent = s.model.requests[-1]
    assert valid_history(sent)
    assert [m.role for m in sent.messages] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert (
        "qualified_name" not in str(sent.messages[1:])
        and "file__read" in sent.messages[2].tool_calls[0].arguments
    )
    [kept] = results(sent)
    assert kept.startswith("first words\n[shrunk: ") and "call it again" in kept


def test_a_stored_result_keeps_the_id_by_which_it_is_inspected_later(workspace: Path) -> None:
    (workspace / "big.txt").write_text("needle\n" + "row\n" * 9000)

    def look(request: Any) -> Any:
        blob = results(request)[0].partition("[blob:")[2].partition("]")[0]
        return call("inspect", blob_id=blob, selector="lines:1-1")

    s = session(workspace, invoke("file__read", path="big.txt"), "Read it.", look, "the needle")
    s.ask("read big.txt")
    s.ask("what is its first line?")
    assert "needle" in results(s.model.requests[-1])[-1]


def test_a_model_that_reads_the_last_turns_is_sent_no_others(workspace: Path) -> None:
    model = ScriptedModel(otherwise="fine")
    model.history_turns = 1  # type: ignore[attr-defined]
    s = session(workspace)
    for number in range(4):
        s.ask(f"question {number}", model=model)
    assert [m.content for m in model.requests[-1].messages[1:]] == ["question 2", "fine", "question 3"]


def test_a_large_history_is_said_with_the_way_out(workspace: Path) -> None:
    s = session(workspace, otherwise="ok", config={"router": {"limits": {"history_tokens": 400}}})
    first, second = s.ask("x" * 600), s.ask("more")
    assert not any("--new" in note for note in first.ended.notes)
    assert any("--new" in note for note in second.ended.notes)


def turn(run: str, *, shown: bool = True, hosts: frozenset[str] = frozenset()) -> Turn:
    asked = ToolCall(f"call-{run}", "invoke_action", "{}")
    messages = (
        Message("user", f"question {run}"),
        Message("assistant", "", (asked,)),
        Message("tool", f"rows of {run}", (), asked.id),
        Message("assistant", f"answer {run}"),
    )
    contents = (Disclosure(asked.id, "file", f"{run}.csv", 10),) if shown else ()
    return Turn(run, f"question {run}", messages, shown=contents, hosts=hosts)


def test_only_what_left_before_goes_to_another_machine() -> None:
    turns = [
        turn("home"),
        turn("near", hosts=frozenset({"127.0.0.1:80"})),
        turn("away", hosts=frozenset({"a.org"})),
    ]
    sent = history_for(turns, Reader("b.org"))
    text = "".join(message.content for message in sent.messages)
    assert [each.run for each in sent.withheld] == ["home", "near"] and sent.runs == {"away"}
    assert "rows of away" in text and "rows of home" not in text and "answer near" not in text
    assert "question home" in text and [item.name for item in sent.resent] == ["away.csv"]
    for reader in (Reader(), Reader("localhost:1"), Reader("b.org", local_history=True)):
        assert not history_for(turns, reader).withheld
    assert not history_for(turns, Reader("a.org")).resent
