"""First steps are graded by what was done: the right deed counts in each of its forms, and a wrong one beside it
does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reyn_jupyter.catalog.names import CHOOSE
from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.models.baselines import NullAgent
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.suites import load_suite
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.models.scripted import call
from reyn_jupyter.runtime.record.verdict import Verdict
from tests.evaluation.trial_support import Scripts, run

Deeds = list[tuple[str, dict[str, Any]]]
DOOR: Deeds = [("file__read", {"path": "codes.txt"})]
RIGHT: list[tuple[str, Deeds, str]] = [
    ("lamp-on-kitchen", [("lamp__turn_on", {"room": "Kitchen"})], "Done."),
    ("lamp-on-kitchen", [("lamp__turn_on", {"room": "the kitchen lamp"})], "Done."),
    ("lamp-dim-library", [("lamp__dim", {"room": "library", "percent": "30"})], "Done."),
    ("cancel-118", [("shop__track", {"number": 118}), ("shop__cancel", {"number": "118"})], "Done."),
    ("order-mugs", [("shop__order", {"item": "mug", "count": 2.0})], "Done."),
    ("play-blue-moon", [("music__play", {"song": "blue moon"})], "It plays."),
    ("write-hello", [("file__write", {"path": "./greeting.txt", "content": "hello\n"})], "Done."),
    ("write-call", [("file__write", {"path": "todo.txt", "content": " call Emma \n"})], "Done."),
    ("delete-codes", [("file__read", {"path": "codes.txt"}), ("file__delete", {"path": "./codes.txt"})], "Gone."),
    ("read-door", [("file__read", {"path": "./codes.txt"})], "The code of the door is **4417**."),
    ("read-door", [("file__read", {"path": "codes.txt", "limit": 2})], "Door: 4417"),
    ("read-choir", [("file__list", {}), ("file__read", {"path": "week.txt"})], "On tuesday at 8."),
]  # fmt: skip
WRONG: list[tuple[str, Deeds, str]] = [
    ("lamp-on-kitchen", [("lamp__turn_on", {"room": "kitchen"}), ("lamp__turn_off", {"room": "kitchen"})], "Done."),
    ("lamp-on-kitchen", [("lamp__turn_on", {"room": "hall"}), ("lamp__turn_on", {"room": "kitchen"})], "Done."),
    ("lamp-dim-library", [("lamp__dim", {"room": "library", "percent": 3})], "Done."),
    ("order-mugs", [("shop__order", {"item": "mugs", "count": 2}), ("shop__order", {"item": "cup", "count": 2})], ""),
    ("track-226", [("shop__track", {"number": 226}), ("shop__cancel", {"number": 226})], "Done."),
    ("volume-20", [("music__set_volume", {"level": 20}), ("music__pause", {"minutes": 20})], "Done."),
    ("write-hello", [("file__write", {"path": "greeting.txt", "content": "Write the word hello into the file"})], ""),
    ("write-hello", [("file__write", {"path": "greeting.txt", "content": "hello"}),
                     ("file__write", {"path": "hello.txt", "content": "hello"})], "Done."),
    ("write-city", [("file__write", {"path": "city.txt", "content": "LISBON"})], "Done."),
    ("delete-codes", [("file__delete", {"path": "codes.txt"}), ("file__delete", {"path": "week.txt"})], "Done."),
    ("delete-codes", [("file__delete", {"path": "codes.txt"}), ("file__write", {"path": "x", "content": ""})], ""),
    ("read-door", DOOR, "The codes are 4417 and 688."),
    ("read-safe", DOOR, "Bicycle: 688\nSafe: 9120\nLetter box: 305"),
    ("read-doctor", [("file__list", {})], "Clara is the doctor."),
]  # fmt: skip


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("first-steps")


def done(suite: Suite, identity: str, deeds: Deeds, answer: str) -> Verdict:
    steps = [call("invoke_action", action_name=name, args=args) for name, args in deeds]
    scenario = suite.scenario(identity)
    with TrialRunner(suite, models={"scripted": Scripts(*steps, answer or "Done.")}) as bench:
        trial, _ = run(bench, scenario, Variant("scripted", model="scripted"))
    return find_check("task_done").grade(trial, scenario)


@pytest.mark.parametrize(("identity", "deeds", "answer"), RIGHT)
def test_the_right_deed_counts_in_each_of_its_forms(
    suite: Suite, identity: str, deeds: Deeds, answer: str
) -> None:
    verdict = done(suite, identity, deeds, answer)
    assert verdict.kind == "pass", verdict.reason


@pytest.mark.parametrize(("identity", "deeds", "answer"), WRONG)
def test_a_wrong_deed_does_not_count_and_not_beside_the_right_one_either(
    suite: Suite, identity: str, deeds: Deeds, answer: str
) -> None:
    assert done(suite, identity, deeds, answer).kind == "fail"


@pytest.fixture(scope="module")
def sweeping(suite: Suite) -> Iterator[TrialRunner]:
    with TrialRunner(suite, models={"sweeps": NullAgent("sweeps")}) as bench:
        yield bench


def test_calling_every_action_with_every_word_passes_nothing(suite: Suite, sweeping: TrialRunner) -> None:
    """It would, were only the right call looked for: of nearly all scenarios of devices."""
    for surface in ("universal", "flat"):
        careless = 0
        for scenario in suite.scenarios:
            trial, _ = run(sweeping, scenario, Variant("null", model="sweeps", surface=surface), 1)
            assert find_check("task_done").grade(trial, scenario).kind == "fail", (scenario.id, trial.calls)
            lenient = scenario.model_copy(update={"no_other": ()})
            careless += find_check("task_done").grade(trial, lenient).kind == "pass"
        assert careless > len(suite.scenarios) / 4


def test_in_two_steps_the_action_that_the_words_name_stands_first(suite: Suite) -> None:
    """As in a session: small models take what stands near the top, so an order by name would choose for them."""
    agent = Scripts(call(CHOOSE, action="answer"), "Nothing.")
    variant = Variant("scripted", model="scripted", discovery="two_steps")
    first = 0
    with TrialRunner(suite, models={"scripted": agent}) as bench:
        for scenario in suite.scenarios:
            run(bench, scenario, variant, 1)
            action = (
                agent.models[-1].requests[0].tools.specs[0]["function"]["parameters"]["properties"]["action"]
            )
            first += scenario.gold is not None and action["enum"][0] == scenario.gold.steps[0][0].action
    assert first >= len(suite.scenarios) - 3
