"""What holds a weak model: repeats, answers that nothing supports, and how much one reply may change."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.scripted import call
from reyn_jupyter.router.reply.answer_support import unsupported
from reyn_jupyter.runtime.record.run_outcome import RunOutcome
from tests.router.router_support import invoke, results, session, valid_history

READ = invoke("file__read", path="notes.txt")


def on(**keys: Any) -> dict[str, Any]:
    return {"router": {"weak": keys}}


def test_a_call_that_has_its_result_is_pointed_to_it_and_then_the_turn_is_closed(workspace: Path) -> None:
    def again(request: Any) -> Any:
        return "Three lines." if request.tool_choice == "none" else READ

    s = session(workspace, otherwise=again, config=on(stop_repeats=True))
    trace = s.ask("what is in it?")
    assert [c.resolved.flags for c in trace.calls] == [(), ("repeated",), ("repeated",)]
    assert (trace.status, trace.answer, trace.outcome) == ("ok", "Three lines.", RunOutcome.FROM_DATA)
    assert trace.ended.helped == {"repeats": 2, "closed": 1}
    assert any("stop_repeats" in note for note in trace.ended.notes)
    first, second, _ = results(s.model.requests[-1])
    assert second.startswith("Not run again: step 1") and first in second
    assert (
        valid_history(s.model.requests[-1])
        and "without another call: what is in it?" in s.model.requests[-1].messages[-1].content
    )


def test_a_listing_is_held_too_without_its_length(workspace: Path) -> None:
    listing = call("list_actions", category=["file"])
    s = session(workspace, listing, listing, "done", config=on(stop_repeats=True))
    s.ask("go")
    first, second = results(s.model.requests[-1])
    assert len(second) < 300 < len(first)


@pytest.mark.parametrize("change", [True, False])
def test_a_read_runs_again_after_a_change_alone(workspace: Path, change: bool) -> None:
    between = (
        invoke("file__write", path="notes.txt", content="new")
        if change
        else invoke("file__read", path="notes.txt", limit=1)
    )
    s = session(workspace, READ, between, READ, "done", config=on(stop_repeats=True))
    s.ask("go", approve="all")
    last = results(s.model.requests[-1])[-1]
    assert last == "new" if change else last.startswith("Not run again")


def test_a_change_is_held_right_behind_itself_alone(workspace: Path) -> None:
    write = invoke("file__write", path="a.txt", content="x")
    s = session(workspace, write, write, READ, write, "done", config=on(stop_repeats=True))
    trace = s.ask("go", approve="all")
    assert [c.resolved.flags for c in trace.calls] == [(), ("repeated",), (), ()]


def test_a_call_held_by_the_gate_runs_when_it_comes_again(workspace: Path) -> None:
    s = session(workspace, READ, READ, "done", tier="light")
    trace = s.ask("go")
    assert [c.ok for c in trace.calls] == [False, True] and trace.calls[1].label == "file__read"


@pytest.mark.parametrize(
    ("tier", "limit", "run"), [("light", None, 1), ("standard", None, 7), ("light", 3, 3)]
)
def test_one_reply_changes_only_so_much(workspace: Path, tier: str, limit: int | None, run: int) -> None:
    writes = [invoke("file__write", path=f"{number}.txt", content="x") for number in range(7)]
    config = {"router": {"discovery": "prompt", "limits": {"writes_per_completion": limit}}}
    s = session(workspace, [READ, *writes], "done", tier=tier, config=config)
    trace = s.ask("go", approve="all")
    assert len(list(workspace.glob("[0-9].txt"))) == run
    assert trace.ended.helped.get("writes_left_out", 0) == 7 - run
    assert [c.resolved.flags for c in trace.calls].count(("left_out",)) == 7 - run
    assert any("writes_per_completion" in note for note in trace.ended.notes) == (run < 7)
    assert valid_history(s.model.requests[-1])


def test_what_no_result_says_is_asked_for_again_and_then_marked(workspace: Path) -> None:
    wrong = 'It has 47 lines, "fourth line" among them.'
    s = session(workspace, READ, wrong, wrong, config=on(check_support=True))
    trace = s.ask("what is in notes.txt?")
    asked = s.model.requests[-1].messages[-1].content
    assert '47 and "fourth line"' in asked and "file__read stand above" in asked
    assert trace.answer == wrong and trace.ended.helped == {"asked_again": 1, "unsupported": 1}
    assert any('no result says 47 and "fourth line"' in note for note in trace.ended.notes)


def test_an_answer_that_is_right_the_second_time_is_not_marked(workspace: Path) -> None:
    s = session(workspace, READ, "It has 47 lines.", "It has three lines.", config=on(check_support=True))
    trace = s.ask("what is in notes.txt?")
    assert trace.answer == "It has three lines." and trace.ended.notes == ()
    assert trace.ended.helped == {"asked_again": 1}


@pytest.mark.parametrize("failure", [[ModelError("connection", "No way there.")], ["", ""]])
def test_an_answer_stands_where_asking_once_more_fails(workspace: Path, failure: list[Any]) -> None:
    config = {"router": {"weak": {"check_support": True}, "limits": {"retries": 0}}}
    trace = session(workspace, READ, "It has 47 lines.", *failure, config=config).ask("what is in notes.txt?")
    assert (trace.status, trace.answer, trace.error) == ("ok", "It has 47 lines.", None)
    assert trace.ended.helped == {"asked_again": 1, "unsupported": 1}
    assert any("no result says 47" in note for note in trace.ended.notes)
    assert any("that failed" in note for note in trace.ended.notes)


def test_an_answer_without_a_look_at_what_was_named_is_asked_for_again(workspace: Path) -> None:
    s = session(workspace, "It is a nice file.", READ, "It is a nice file.", config=on(check_support=True))
    trace = s.ask("is notes.txt nice?")
    assert "'notes.txt'" in s.model.requests[1].messages[-1].content
    assert trace.outcome is RunOutcome.FROM_DATA and trace.ended.helped == {"asked_again": 1}


@pytest.mark.parametrize(
    ("prompt", "steps"),
    [
        ("hello", ["Hello, what can I do?"]),
        ("is notes.txt nice?", [READ, "Yes, it reads well."]),
        ("how long is notes.txt?", [READ, "It has 3 lines."]),
        ("quote notes.txt", [READ, 'It says "second line".']),
        ("show me a loop", ["```python\nfor i in range(77): print('never.said')\n```"]),
    ],
)
def test_an_answer_without_such_claims_is_left_alone(workspace: Path, prompt: str, steps: list[Any]) -> None:
    trace = session(workspace, *steps, config=on(check_support=True)).ask(prompt)
    assert trace.answer == steps[-1] and trace.ended.helped == {} and trace.ended.notes == ()


@pytest.mark.parametrize(
    ("answer", "texts", "claims"),
    [
        ("1,234.5 and 12%", ["1234.5, 0.12"], []),
        ("There are 25 of them.", ['{"names": [' + ", ".join(['"a"'] * 25) + "]}"], []),
        ("See data/a.csv and b.csv.", ["a.csv"], ["b.csv"]),
        ("In 2024 it was 17.", ["2024"], ["17"]),
        ("The counts are 12, 34 and 56.", ['{"a": 12, "b": 34, "c": 56}'], []),
        ("The first is 1,234.", ["[1234, 5678]"], []),
        ("From 2019 2020 on.", ["2019: up\\n2020: down"], []),
        ("They are 100,200 and 12,34,567.", ["100 of 200; 1234567"], []),
        ("Of all 50 %, rounded 124.", ["[10, 0.5, 7, 123.6]"], []),
        ("It is 100,300.", ["100 of 200"], ["100,300"]),
    ],
)
def test_what_counts_as_said(answer: str, texts: list[str], claims: list[str]) -> None:
    assert unsupported(answer, texts) == claims


def test_many_numbers_hold_no_turn_up() -> None:
    answer = " and ".join(f"{number}7.5" for number in range(2_500))
    text = "; ".join(f"{number}.25" for number in range(20_000))
    began = time.process_time()
    assert len(unsupported(answer, [text])) > 400
    assert time.process_time() - began < 20


def test_an_error_is_one_line_with_the_nearest_right_value(workspace: Path) -> None:
    wrong = [
        invoke("file__read", path="note.txt"),
        invoke("file__red", path="notes.txt"),
        invoke("file__read", pth="notes.txt"),
        call("list_actions", category=["fil"]),
    ]
    s = session(workspace, wrong, "sorry", config=on(short_errors=True))
    trace = s.ask("go")
    said = results(s.model.requests[-1])
    for text, near in zip(said, ("notes.txt", "file__read", "'path'", "'file'"), strict=True):
        assert near in text and "\n" not in text and len(text) < 250 and "input_schema" not in text
    assert trace.ended.helped == {"short_errors": 4}
    assert [c.finished.output for c in trace.calls if c.finished] == said


def test_no_nearest_value_names_what_the_rules_deny(workspace: Path) -> None:
    (workspace / "private").mkdir()
    (workspace / "private" / "salaries.txt").write_text("x")
    config = on(short_errors=True) | {"permissions": {"deny": ["file__read(private/**)"]}}
    wrong = [
        invoke("file__read", path="salary.txt"),
        invoke("file__read", path="salaries.tx"),
        invoke("file__list", path="privat"),
    ]
    s = session(workspace, wrong, "sorry", config=config)
    s.ask("go")
    assert not any("salaries.txt" in text or "private" in text for text in results(s.model.requests[-1])[:2])


def test_a_filter_that_matches_nothing_gives_the_page_without_it(workspace: Path) -> None:
    listing = call("list_actions", category=["file"], filter="data/orders.csv")
    s = session(workspace, listing, "done")
    s.ask("go")
    answer = json.loads(results(s.model.requests[-1])[0])
    assert answer["note"].startswith("Nothing matches the filter 'data/orders.csv'")
    assert "file__read" in [item["qualified_name"] for item in answer["items"]]


def test_a_part_of_a_file_says_that_more_follows_and_how_to_get_it(workspace: Path) -> None:
    reads = [
        invoke("file__read", path="notes.txt", limit=1),
        invoke("file__read", path="notes.txt", offset=2, limit=5),
    ]
    s = session(workspace, reads, "done")
    s.ask("go")
    part, rest = results(s.model.requests[-1])
    assert part == "first line\n\n[2 lines left: offset=2 reads on]" and rest == "second line\nthird line\n"


def test_what_a_person_would_type_is_not_told_to_the_model(workspace: Path) -> None:
    s = session(
        workspace, call("list_actions"), "done", config={"action_retrieval": {"embedding_class": None}}
    )
    s.ask("go")
    hint = json.loads(results(s.model.requests[-1])[0])["search_hint"]
    assert list(hint) == ["reason"] and "%reyn" not in hint["reason"]
