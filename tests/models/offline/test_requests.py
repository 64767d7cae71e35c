"""The 120 requests: their form, their golds, and the promise that no question without an answer gets one."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests.models.offline.grading import Verdict, grade, requests, wilson
from tests.models.offline.harness import Desk
from tests.models.offline.worlds import WORLDS


@cache
def verdicts() -> dict[str, Verdict]:
    """Every request over the stand-in, each in a conversation of its own."""
    found = {}
    for request in requests():
        world = WORLDS[request["world"]]
        desk = Desk(world)
        for action, arguments in request.get("setup", ()):
            desk.run(action, arguments)
        talk = desk.ask(request["prompt"])
        found[request["id"]] = grade(request, world, talk.text, talk.actions, desk.files.get)
    return found


def test_there_are_120_requests_and_30_of_them_have_no_answer() -> None:
    listed = requests()
    assert (
        len(listed) == len({request["id"] for request in listed}) == len({r["prompt"] for r in listed}) == 120
    )
    assert sum(bool(request["gold"].get("unanswerable")) for request in listed) == 30
    assert Counter(request["part"] for request in listed) == {"development": 60, "held-out": 60}


def test_every_gold_can_be_computed_from_its_world() -> None:
    for request in requests():
        gold = request["gold"]
        if "value" in gold:
            assert WORLDS[request["world"]].gold(gold["value"]) is not None
        assert gold.get("unanswerable") or gold["actions"]


def test_no_request_without_an_answer_gets_one() -> None:
    wrong = [
        request["prompt"]
        for request in requests()
        if request["gold"].get("unanswerable") and verdicts()[request["id"]].outcome == "wrong"
    ]
    assert wrong == []


def test_most_requests_with_an_answer_get_the_right_one() -> None:
    answerable = [request["id"] for request in requests() if not request["gold"].get("unanswerable")]
    right = sum(verdicts()[name].outcome == "right" for name in answerable)
    assert right >= 80, [name for name in answerable if verdicts()[name].outcome != "right"]


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"), [(0, 30, 0.0, 0.1135), (30, 30, 0.8865, 1.0), (81, 90, 0.8208, 0.9465)]
)
def test_intervals_are_those_of_wilson(hits: int, total: int, low: float, high: float) -> None:
    assert wilson(hits, total) == pytest.approx((low, high), abs=5e-4)
