"""A turn of the router, whole: what is sent, what runs, what the history holds, how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.models.base import ModelError, Response, Usage
from reyn_jupyter.models.scripted import call, raw_call
from tests.router.router_support import invoke, results, session, valid_history


def test_list_invoke_answer(workspace: Path) -> None:
    s = session(
        workspace,
        call("list_actions", category=["file"]),
        invoke("file__read", path="notes.txt"),
        "Three lines.",
    )
    trace = s.ask("what is in notes.txt?")
    assert (trace.status, trace.answer) == ("ok", "Three lines.")
    assert [c.label for c in trace.calls] == ["list_actions", "file__read"]
    assert results(s.model.requests[-1])[1] == "first line\nsecond line\nthird line\n"
    assert all(valid_history(request) for request in s.model.requests)


def test_every_tool_call_leaves_one_resolved_and_one_finished_event(workspace: Path) -> None:
    calls = [
        call("list_actions"),
        call("describe_action", action_name="file__read"),
        invoke("file__read", path="notes.txt"),
        invoke("file__nope"),
        raw_call("invoke_action", "{not json"),
        call("inspect", blob_id="../../etc/passwd"),
        call("file__list", path="."),
        call("made_up"),
    ]
    trace = session(workspace, calls, "done").ask("go")
    kinds = [type(event).__name__ for event in trace.events]
    assert kinds.count("ActionResolved") == kinds.count("ActionFinished") == len(calls)
    problems = [c.resolved.problem for c in trace.calls]
    assert problems == [None, None, None, "unknown", "malformed", None, None, "malformed"]
    assert [c.resolved.flags for c in trace.calls][6] == ("salvaged",)


def test_malformed_arguments_are_answered_with_the_parse_error_and_the_raw_head(workspace: Path) -> None:
    s = session(workspace, raw_call("invoke_action", '{"action_name": "file__read", '), "sorry")
    s.ask("go")
    answer = json.loads(results(s.model.requests[-1])[0])
    assert "not valid JSON" in answer["error"]
    assert answer["received"].startswith('{"action_name"')


@pytest.mark.parametrize("arguments", ["[1]", '"text"', "3", "null", "true", "[" * 100_000])
def test_arguments_that_are_no_object_are_refused(workspace: Path, arguments: str) -> None:
    s = session(workspace, raw_call("invoke_action", arguments), "sorry")
    assert s.ask("go").calls[0].resolved.problem == "malformed"


def test_a_near_miss_is_answered_with_suggestions_and_not_run(workspace: Path) -> None:
    s = session(
        workspace,
        call("file.write", path="x", content="y"),
        invoke("file__read_file", path="notes.txt"),
        "no",
    )
    trace = s.ask("go")
    assert [c.ok for c in trace.calls] == [False, False]
    first, second = (json.loads(text) for text in results(s.model.requests[-1]))
    assert "file__write" in first["suggestions"]
    assert "file__read" in second["suggestions"]
    assert not (workspace / "x").exists()


def test_repair_runs_an_unambiguous_near_miss_to_a_reading_action_only(workspace: Path) -> None:
    config = {"router": {"repair": True}}
    s = session(
        workspace,
        [invoke("file__read_file", path="notes.txt"), invoke("file__write_file", path="x", content="y")],
        "done",
        config=config,
    )
    read, write = s.ask("go").calls
    assert read.ok and "repaired" in read.resolved.flags and read.label == "file__read"
    assert not write.ok and not (workspace / "x").exists()


def test_default_api_prefixes_are_dropped(workspace: Path) -> None:
    s = session(workspace, invoke("default_api.file__read", path="notes.txt"), "done")
    assert s.ask("go").calls[0].label == "file__read"


def test_identical_reads_of_one_round_run_once_and_are_both_recorded(workspace: Path) -> None:
    s = session(workspace, [invoke("file__read", path="notes.txt")] * 3, "done")
    trace = s.ask("go")
    assert [("merged" in c.resolved.flags) for c in trace.calls] == [False, True, True]
    assert len(set(results(s.model.requests[-1]))) == 1 and len(results(s.model.requests[-1])) == 3


def test_a_write_is_a_barrier_between_equal_reads(workspace: Path) -> None:
    read = invoke("file__read", path="notes.txt")
    s = session(workspace, [read, invoke("file__write", path="notes.txt", content="new"), read], "done")
    s.ask("go", approve="all")
    before, _, after = results(s.model.requests[-1])
    assert before.startswith("first line") and after == "new"


def test_five_thousand_calls_in_one_completion_are_bounded_and_answered(workspace: Path) -> None:
    s = session(workspace, [invoke("file__read", path="notes.txt")] * 5000, "done")
    trace = s.ask("go")
    assert trace.status == "ok"
    assert sum(1 for c in trace.calls if c.ok) == 50
    assert any("4,950" in note for note in trace.ended.notes)
    assert valid_history(s.model.requests[-1])


def test_a_model_that_never_stops_meets_the_step_limit_and_sums_up(workspace: Path) -> None:
    def again(request: Any) -> Any:
        return "Summed up." if request.tool_choice == "none" else invoke("file__read", path="notes.txt")

    s = session(workspace, otherwise=again)
    trace = s.ask("go", max_steps=3)
    assert (trace.status, trace.answer) == ("limit", "Summed up.")
    assert len(trace.steps) == 4
    assert s.model.requests[-1].tool_choice == "none"


def test_an_empty_completion_is_nudged_once_and_then_said(workspace: Path) -> None:
    s = session(workspace, "", "after the nudge")
    assert s.ask("go").answer == "after the nudge"
    twice = session(workspace, "", "   ").ask("go")
    assert twice.status == "error" and "returned nothing" in str(twice.error)


def test_a_model_error_ends_the_turn_in_plain_words_and_keeps_the_history_valid(workspace: Path) -> None:
    error = ModelError("auth", "The key was refused.", "Set OPENAI_API_KEY.")
    s = session(workspace, invoke("file__read", path="notes.txt"), error, "again")
    trace = s.ask("go")
    assert trace.payload == {"error": "The key was refused.", "hint": "Set OPENAI_API_KEY."}
    assert s.ask("and now?").answer == "again"
    assert valid_history(s.model.requests[-1])


def test_budgets_stop_a_run_and_keep_what_there_is(workspace: Path) -> None:
    costly = Response(
        tool_calls=(invoke("file__read", path="notes.txt"),),
        usage=Usage(100, 10),
        cost=0.05,
        finish_reason="tool_calls",
    )
    s = session(workspace, costly, costly, costly, "never")
    trace = s.ask("go", budget=0.09)
    assert trace.status == "limit" and "0.09" in str(trace.error)
    assert trace.cost == pytest.approx(0.10)
    assert len(trace.calls) == 2


def test_a_session_token_limit_holds_over_turns(workspace: Path) -> None:
    reply = Response("ok", usage=Usage(100, 0), cost=0.0)
    s = session(workspace, reply, reply, reply, config={"router": {"limits": {"session_tokens": 150}}})
    assert [s.ask("go").status for _ in range(3)] == ["ok", "ok", "limit"]


def test_a_handler_that_fails_is_an_answer_not_the_end(workspace: Path) -> None:
    s = session(workspace, invoke("file__read", path="missing.txt"), "It is not there.")
    trace = s.ask("go")
    assert trace.answer == "It is not there." and trace.calls[0].ok is False
    assert set(json.loads(results(s.model.requests[-1])[0])) == {"error", "hint", "blob"}


def test_without_anyone_to_ask_a_write_is_denied_and_said(workspace: Path) -> None:
    s = session(workspace, invoke("file__write", path="new.txt", content="x"), "denied")
    trace = s.ask("go")
    assert not (workspace / "new.txt").exists()
    assert trace.calls[0].decision is not None, trace.calls[0].finished
    assert trace.calls[0].decision.by == "nobody"
    assert "nobody" in results(s.model.requests[-1])[0]


def test_the_model_cannot_widen_its_permissions_through_another_entrance(workspace: Path) -> None:
    config = {"permissions": {"deny": ["file__write"]}}
    ways = [
        invoke("file__write", path="n.txt", content="x"),
        call("file__write", path="n.txt", content="x"),
        call("default_api.file__write", path="n.txt", content="x"),
        raw_call(
            "invoke_action", json.dumps({"action_name": "file__write", "path": "n.txt", "content": "x"})
        ),
    ]
    trace = session(workspace, ways, "no", config=config).ask("go", approve="all")
    assert [c.ok for c in trace.calls] == [False] * 4
    assert all(c.decision.decision == "denied" for c in trace.calls)
    assert not (workspace / "n.txt").exists()


def test_secrets_reach_neither_model_nor_log_but_files_get_the_very_bytes(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "hunter2-hunter2")
    (workspace / "notes.txt").write_text("the key is hunter2-hunter2\n")
    s = session(
        workspace,
        invoke("file__read", path="notes.txt"),
        invoke("file__write", path="copy.txt", content="hunter2-hunter2"),
        "it is hunter2-hunter2",
        store="files",
    )
    trace = s.ask("my key is hunter2-hunter2", approve="all")
    sent = json.dumps([request.wire for request in s.model.requests])
    kept = "".join(path.read_text() for path in (workspace / ".reyn" / "runs").iterdir())
    assert "hunter2" not in sent and "hunter2" not in kept and "hunter2" not in trace.answer
    assert (workspace / "copy.txt").read_text() == "hunter2-hunter2"


def test_the_conversation_goes_on_and_a_new_one_starts_afresh(workspace: Path) -> None:
    s = session(workspace, "one", "two", "three")
    s.ask("first")
    s.ask("second")
    assert [m.content for m in s.model.requests[1].messages[1:]] == ["first", "one", "second"]
    s.ask("third", new=True)
    assert [m.content for m in s.model.requests[2].messages[1:]] == ["third"]


def sent(s: Any) -> list[str]:
    """What the last request held besides the system's word."""
    return [message.content for message in s.model.requests[-1].messages[1:]]


def test_a_cell_that_runs_again_is_sent_what_stands_above_it_and_says_so(workspace: Path) -> None:
    s = session(workspace, "a", "b", "c", "b2")
    for number, prompt in enumerate(("first", "second", "third")):
        s.ask(prompt, cell=f"cell-{number}")
    trace = s.ask("second, better", cell="cell-1")
    assert sent(s) == ["first", "a", "second, better"]
    assert [row["prompt"] for row in s.history.rows] == ["first", "second, better", "third"]
    (note,) = [note for note in trace.ended.notes if "again" in note]
    assert note.startswith("asked again as turn 2: 1 turn before it went along, 1 later turn did not")


def test_running_all_cells_again_sends_each_the_turns_above_it_once(workspace: Path) -> None:
    s = session(workspace, "a", "b", "c", "a2", "b2", "c2", "d")
    for again in ("", " again"):
        for number, prompt in enumerate(("first", "second", "third")):
            s.ask(prompt + again, cell=f"cell-{number}")
            if again:
                above = ["first again", "a2", "second again", "b2"][: 2 * number]
                assert sent(s) == [*above, prompt + again]
    s.ask("fourth", cell="cell-3")
    assert sent(s) == ["first again", "a2", "second again", "b2", "third again", "c2", "fourth"]


def test_only_what_was_learnt_above_counts_when_a_cell_runs_again(workspace: Path) -> None:
    s = session(workspace, "a", [call("list_actions")], "b", "a2")
    s.ask("first", cell="cell-0")
    s.ask("second", cell="cell-1")
    s.ask("first", cell="cell-0")
    assert s.parts.conversation.known_before(1).listed is False
    assert s.parts.conversation.known_before(None).listed is True


def test_an_estimate_for_a_cell_that_would_run_again_counts_what_stands_above_it(workspace: Path) -> None:
    s = session(workspace, "a", "b", "c")
    for number, prompt in enumerate(("first", "second", "third")):
        s.ask(prompt, cell=f"cell-{number}")
    assert dict(s.dry("second", cell="cell-1").facts)["history"].endswith("1 turns")


def test_old_turns_shrink_to_question_and_answer_at_the_budget_and_it_is_said(workspace: Path) -> None:
    (workspace / "big.txt").write_text("x" * 700)
    reads = [invoke("file__read", path="big.txt")]
    steps = [step for number in range(6) for step in (reads, f"answer {number}")]
    s = session(workspace, *steps, config={"router": {"limits": {"history_tokens": 300}}})
    traces = [s.ask(f"question {number}") for number in range(6)]
    assert any("shrank" in note for trace in traces for note in trace.ended.notes)
    last = s.model.requests[-1]
    assert [m.content for m in last.messages[1:3]] == ["question 0", "answer 0"]
    assert "[shrunk: 700 bytes" in results(last)[0] and results(last)[-1] == "x" * 700
    assert valid_history(last)


def test_a_prompt_is_literal_whatever_it_holds(workspace: Path) -> None:
    prompt = "{a} {{b}} $x `rm` \"q\" 'q' \N{PARTY POPPER} \u202e " + "z" * 1_000_000
    s = session(workspace, "ok")
    s.ask(prompt)
    assert s.model.requests[0].messages[-1].content == prompt


def test_a_trace_can_be_saved_loaded_and_turned_into_frames(workspace: Path, tmp_path: Path) -> None:
    trace = session(workspace, invoke("file__read", path="notes.txt"), "done").ask("go")
    again = type(trace).load(trace.save(tmp_path / "run.jsonl"))
    assert again.events == trace.events
    assert list(again.call_log["action"]) == ["file__read"]


def test_a_configured_tier_that_is_missing_is_an_error_with_the_line_to_add(workspace: Path) -> None:
    trace = session(workspace, "x").ask("go", model="strong")
    assert trace.status == "error" and "strong" in str(trace.error) and "reyn.yaml" in trace.payload["hint"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("list_action", "list_actions"),
        ("listActions", "list_actions"),
        ("invoke", "invoke_action"),
    ],
)
def test_a_near_miss_of_a_wrapper_is_told_which_one_it_was_after(
    workspace: Path, name: str, meant: str
) -> None:
    s = session(workspace, call(name), "sorry")
    assert s.ask("go").calls[0].resolved.problem == "unknown"
    assert json.loads(results(s.model.requests[-1])[0])["hint"] == f"Did you mean {meant}?"


def test_a_wrapper_is_no_action(workspace: Path) -> None:
    s = session(workspace, invoke("list_actions"), "sorry")
    s.ask("go")
    assert "Call list_actions itself" in results(s.model.requests[-1])[0]


def test_arguments_under_another_name_are_told_where_they_belong(workspace: Path) -> None:
    wrong = raw_call("invoke_action", '{"action_name": "file__read", "arguments": {"path": "notes.txt"}}')
    nameless = raw_call("invoke_action", '{"name": "file__read", "args": {"path": "notes.txt"}}')
    s = session(workspace, [wrong, nameless], "sorry")
    s.ask("go")
    first, second = results(s.model.requests[-1])
    assert "go into args, not into arguments" in first
    assert "action_name is missing" in second


def test_salvaged_calls_decode_string_args_too(workspace: Path) -> None:
    s = session(workspace, raw_call("file__read", '{"args": "{\\"path\\": \\"notes.txt\\"}"}'), "done")
    read = s.ask("go").calls[0]
    assert read.ok and set(read.resolved.flags) == {"salvaged", "decoded"}


def test_what_is_forgiven_in_a_wrappers_own_arguments_is_recorded_too(workspace: Path) -> None:
    calls = [call("list_actions", category="file"), call("list_actions", category='["table"]', limit="2")]
    s = session(workspace, calls, "done")
    one, several = s.ask("go").calls
    assert one.ok and several.ok
    assert one.resolved.flags == several.resolved.flags == ("coerced",)
    strict = session(workspace, calls, "done", config={"router": {"forgive": False}})
    assert [each.resolved.problem for each in strict.ask("go").calls] == ["invalid", "invalid"]
