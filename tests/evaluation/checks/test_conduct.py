"""What checks say of made-up names, of edits, errors and refusals, and of the state of the world afterwards."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from reyn_jupyter.evaluation.checks.text_match import says
from reyn_jupyter.evaluation.plan.scenario import Expected
from reyn_jupyter.evaluation.trial.trial import FileFact
from tests.evaluation.checks.check_support import (
    EDITS_A,
    READ,
    READS_A,
    RIGHT,
    accepts,
    call,
    grade,
    invoked,
    listed,
    needs,
    scenario,
    trial,
    unanswerable,
)

# -- names -----------------------------------------------------------------------------------------------------------

SPLIT = {
    "malformed": "malformed_name",
    "unknown": "unknown_name",
    "hidden": "hidden_name",
    "not_installed": "hidden_name",
    "stale": "stale_name",
}


@pytest.mark.parametrize("problem", list(SPLIT))
@pytest.mark.parametrize("wrapper", ["invoke_action", "describe_action", "file.read"])
def test_a_made_up_name_fails_its_own_kind_alone(problem: str, wrapper: str) -> None:
    tried = trial(listed(), call(2, wrapper, name="file__raed", problem=problem, ok=False, args={}))
    fails = {name for name in {*SPLIT.values(), "hallucinated_name"} if grade(name, tried).kind == "fail"}
    assert fails == {SPLIT[problem], "hallucinated_name"}


def test_a_gated_guess_and_an_unreadable_call_have_no_name_to_judge() -> None:
    gated = invoked(1, "made__up", problem="gated", ok=False)
    unreadable = invoked(1, None, problem="malformed", ok=False, args='{"action_name": "fi')
    category = call(1, "list_actions", problem="stale", ok=False)
    for tried in (trial(gated), trial(unreadable), trial(category), trial()):
        assert grade("hallucinated_name", tried).kind == "na"
    assert grade("hallucinated_name", trial(gated, RIGHT)).kind == "pass"


def test_a_name_that_was_repaired_was_made_up() -> None:
    tried = trial(listed(), invoked(2, flags=("repaired",)))
    assert grade("hallucinated_name", tried).kind == "fail"
    assert grade("forgiven", tried).value == 1


def test_an_action_called_as_a_tool_has_its_right_name() -> None:
    salvaged = call(2, "file__read", name=READ, flags=("salvaged",), args={"path": "a.md"}, ok=True)
    tried = trial(listed(), salvaged)
    assert grade("hallucinated_name", tried).kind == "pass"
    assert grade("chain", tried, READS_A).kind == "pass"
    assert grade("forgiven", tried).value == 1


# -- conduct ---------------------------------------------------------------------------------------------------------


def test_an_edit_is_an_edit_and_a_rewrite_is_not() -> None:
    edit = invoked(2, "file__edit", args={"path": "./a.md"})
    write = invoked(3, "file__write", args={"path": "/tmp/w/a.md", "content": "two"})
    new = invoked(3, "file__write", args={"path": "new.md", "content": "two"})
    assert grade("used_edit_not_write", trial(listed(), edit), EDITS_A).kind == "pass"
    assert grade("used_edit_not_write", trial(listed(), edit, new), EDITS_A).kind == "pass"
    assert grade("used_edit_not_write", trial(listed(), edit, write), EDITS_A).kind == "fail"
    assert grade("used_edit_not_write", trial(answer="Done."), EDITS_A).kind == "fail"
    assert grade("used_edit_not_write", trial(edit), READS_A).kind == "na"
    created = needs(accepts("file__edit", path=("new.md",)), workspace={"a.md": "one"})
    assert grade("used_edit_not_write", trial(edit), created).kind == "na"


def test_an_edit_of_another_file_is_not_the_edit_and_a_copy_elsewhere_is_no_rewrite() -> None:
    other = invoked(2, "file__edit", args={"path": "b.md"})
    edit = invoked(3, "file__edit", args={"path": "a.md"}, ok=False)
    copy = invoked(4, "file__write", args={"path": "backup/a.md", "content": "one"})
    assert grade("used_edit_not_write", trial(other), EDITS_A).kind == "fail"
    assert grade("used_edit_not_write", trial(other, edit, copy), EDITS_A).kind == "pass"
    both = needs(accepts("file__edit", path=("a.md",)), workspace={"a.md": "one", "b.md": "two"})
    assert grade("used_edit_not_write", trial(other), both).kind == "fail"


def test_recovery_needs_an_error_a_later_success_and_the_task() -> None:
    error = invoked(2, ok=False, error="busy", args={"path": "a.md"})
    again = invoked(3, args={"path": "a.md"})
    beside = invoked(2, args={"path": "a.md"})
    other = invoked(3, "file__list")
    assert grade("recovered_after_error", trial(listed(), RIGHT), READS_A).kind == "na"
    assert grade("recovered_after_error", trial(listed(), error, again), READS_A).kind == "pass"
    for tried in (trial(error), trial(error, other), trial(beside, error)):
        assert grade("recovered_after_error", tried, READS_A).kind == "fail"
    wrong = trial(error, invoked(3, args={"path": "b.md"}))
    assert grade("recovered_after_error", wrong, READS_A).kind == "fail"


def test_to_abstain_is_to_attempt_nothing_and_to_say_something() -> None:
    task = unanswerable(says=("cannot|no action",))
    name = "abstained_when_unanswerable"
    assert grade(name, trial(listed(), answer="I cannot do that."), task).kind == "pass"
    assert (
        grade(name, trial(invoked(1, problem="gated", ok=False), answer="No action fits."), task).kind
        == "pass"
    )
    for tried in (
        trial(listed(), answer=" "),
        trial(listed(), answer="It is 20 degrees."),
        trial(listed(), invoked(2), answer="I cannot do that."),
        trial(invoked(1, "made__up", problem="unknown", ok=False), answer="I cannot do that."),
        trial(answer="I cannot.", files={"a.md": FileFact(text="x", changed=True)}),
    ):
        assert grade(name, tried, task).kind == "fail"
    assert grade(name, trial(answer="I cannot."), READS_A).kind == "na"
    assert grade(name, trial(listed(), answer=" "), unanswerable()).kind == "fail"


def test_neither_always_refusing_nor_always_calling_decides_rightly() -> None:
    refuses, calls = trial(answer="I cannot."), trial(listed(), RIGHT, answer="Done.")
    assert [grade("decided_rightly", refuses, task).kind for task in (unanswerable(), READS_A)] == [
        "pass",
        "fail",
    ]
    assert [grade("decided_rightly", calls, task).kind for task in (unanswerable(), READS_A)] == [
        "fail",
        "pass",
    ]
    assert grade("attempted_when_answerable", refuses, READS_A).kind == "fail"
    assert grade("attempted_when_answerable", calls, READS_A).kind == "pass"
    assert grade("attempted_when_answerable", calls, unanswerable()).kind == "na"
    assert grade("attempted_when_answerable", refuses, scenario()).kind == "na"
    unread = trial(invoked(1, None, problem="malformed", ok=False, args="{"))
    assert grade("attempted_when_answerable", unread, READS_A).kind == "fail"


# -- the task --------------------------------------------------------------------------------------------------------


def state(fact: FileFact | None, **expected: Any) -> str:
    task = scenario(expected=(Expected(path="a.md", **expected),))
    files = {} if fact is None else {"a.md": fact}
    return grade("task_done", trial(answer="Done.", files=files), task).kind


def test_the_state_of_a_file_decides() -> None:
    text = FileFact(text="one two", changed=True)
    digest = hashlib.sha256(b"one two").hexdigest()
    assert state(text, text="one two", contains=("one",), lacks=("three",)) == "pass"
    assert state(text, text="one") == "fail"
    assert state(text, contains=("three",)) == "fail"
    assert state(text, lacks=("two",)) == "fail"
    assert state(text, unchanged=True) == "fail"
    assert state(replace_fact(text, changed=False), unchanged=True) == "pass"
    assert state(text, exists=False) == "fail"
    assert state(FileFact(exists=False, changed=True), exists=False) == "pass"
    assert state(FileFact(exists=False)) == "fail"
    assert state(FileFact(sha256=digest), text="one two", contains=("two",)) == "pass"
    assert state(FileFact(sha256="0"), text="one two") == "fail"


def replace_fact(fact: FileFact, **changes: Any) -> FileFact:
    return fact.model_copy(update=changes)


def test_files_words_and_steps_must_all_hold() -> None:
    task = needs(accepts(path=("a.md",)), says=("12|twelve",))
    assert grade("task_done", trial(RIGHT, answer="There are Twelve."), task).kind == "pass"
    assert grade("task_done", trial(RIGHT, answer="There are 112."), task).kind == "fail"
    assert grade("task_done", trial(answer="There are 12."), task).kind == "fail"
    assert grade("task_done", trial(answer="12"), scenario()).kind == "na"


def test_an_unanswerable_task_is_done_by_abstaining() -> None:
    assert grade("task_done", trial(answer="No action fits."), unanswerable()).kind == "pass"
    assert grade("task_done", trial(RIGHT, answer="Done."), unanswerable()).kind == "fail"


@pytest.mark.parametrize(
    ("answer", "text", "there"),
    [
        ("It is 12.", "12", True),
        ("It is 12, or so", "12", True),
        ("It is 1.12", "12", False),
        ("It is 12.5", "12", False),
        ("It is 12,000", "12", False),
        ("North\n  East", "north east", True),
        ("v1.2 is out", "v1.2", True),
        ("v1.25 is out", "v1.2", False),
        ("anything", "", False),
    ],
)
def test_a_number_is_found_only_as_a_whole(answer: str, text: str, there: bool) -> None:
    assert says(answer, text) is there


@pytest.mark.parametrize(
    ("answer", "text", "stands"),
    [
        ("It is 2,294.", "2294", True),
        ("Notice: **6** months", "6 months", True),
        ("60.00 EUR", "60", True),
        ("six\u2011month", "six-month", True),
        ("the key `log\\_level`", "log_level", True),
        ("cafe\u0301", "café", True),
        ("item 12, then 13", "12", True),
        ("fourteen", "four", False),
        ("12,000", "12", False),
        ("version 2.7.0", "2.7", False),
        ("1.12", "12", False),
        ("-5", "5", False),
        ("It changed by \u22125.", "5", False),
        ("It changed by -5.", "-5", True),
        ("3-5 days", "5", True),
        ("- 5 apples", "5", True),
    ],
)
def test_how_an_answer_is_set_makes_no_difference_and_what_it_says_does(
    answer: str, text: str, stands: bool
) -> None:
    assert says(answer, text) is stands
