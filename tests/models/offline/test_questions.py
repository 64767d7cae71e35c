"""The 150 questions of somebody who did not know the grammar: none is answered wrongly, and nothing is changed."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache

import pytest

from tests.models.offline.grading import Outcome
from tests.models.offline.harness import Desk
from tests.models.offline.question_grading import (
    QuestionAnswer,
    grade_question,
    is_answerable,
    is_held_out,
    questions,
)
from tests.models.offline.question_tables import question_world

# Of those with an answer. The manual counts two fewer right: there nobody consents to remember something.
RATES = {"right": 69, "abstained": 59, "wrong": 0}


@cache
def outcomes() -> dict[str, Outcome]:
    """Every question over the stand-in, each in a conversation of its own."""
    world, untouched = question_world(), question_world()
    found = {}
    for question in questions():
        desk = Desk(world)
        talk = desk.ask(question["question"])
        queries = [call["args"] for _, call in talk.calls if call.get("action_name") == "table__query"]
        rows = None
        if queries:
            frame = desk.query(queries[-1])
            rows = json.loads(frame.to_json(orient="values", date_format="iso", double_precision=15))
        frames = (world.variables, untouched.variables)
        changed = desk.files != untouched.files or not all(
            frames[0][name].equals(frames[1][name]) for name in frames[1]
        )
        found[question["id"]] = grade_question(question, QuestionAnswer(talk.text, rows, changed))
    return found


def test_there_are_150_questions_and_a_third_was_held_out() -> None:
    listed = questions()
    assert len({q["id"] for q in listed}) == len({q["question"] for q in listed}) == len(listed) == 150
    assert sum(is_held_out(question) for question in listed) == 50


def test_no_question_is_answered_wrongly() -> None:
    assert [q["question"] for q in questions() if outcomes()[q["id"]] == "wrong"] == []


def test_the_rates_are_those_that_are_known() -> None:
    counted = Counter(outcomes()[question["id"]] for question in questions() if is_answerable(question))
    assert {outcome: counted[outcome] for outcome in RATES} == RATES


TWO = [["a", 1], ["b", 2]]


@pytest.mark.parametrize(
    ("gold", "rows", "outcome"),
    [
        ({"type": "number", "value": 5, "tolerance": 0}, [[5]], "right"),
        ({"type": "number", "value": 5, "tolerance": 0}, [[5.2]], "wrong"),
        ({"type": "number", "value": 5}, [[5], [6]], "wrong"),
        ({"type": "choice", "value": "March", "not": ["May"]}, [["2026-03", 9.0]], "right"),
        ({"type": "choice", "value": "Lamp", "not": ["Desk Lamp"]}, [["Desk Lamp", 9.0]], "wrong"),
        ({"type": "table", "rows": 2, "must_contain": TWO, "ordered": True}, TWO[::-1], "wrong"),
        ({"type": "table", "rows": 2, "must_contain": TWO, "ordered": False}, TWO[::-1], "right"),
        ({"type": "decline"}, [[5]], "wrong"),
    ],
)
def test_an_answer_is_graded_by_its_rows(
    gold: dict[str, object], rows: list[list[object]], outcome: Outcome
) -> None:
    assert grade_question({"gold": [gold]}, QuestionAnswer("The answer is here.", rows)) == outcome


def test_a_refusal_is_right_only_where_there_is_no_answer() -> None:
    refusal = QuestionAnswer("I cannot answer that: no column says so.")
    assert grade_question({"gold": [{"type": "decline"}]}, refusal) == "right"
    assert grade_question({"gold": [{"type": "number", "value": 1}]}, refusal) == "abstained"


def test_a_change_is_wrong_whatever_was_said() -> None:
    refusal = QuestionAnswer("I cannot answer that: no column says so.", changed=True)
    assert grade_question({"gold": [{"type": "decline"}]}, refusal) == "wrong"
