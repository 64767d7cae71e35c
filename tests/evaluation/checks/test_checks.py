"""What each check says of a trial, and that a trial of any shape gets a verdict."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import reyn_jupyter
from reyn_jupyter.evaluation.checks import CHECKS, UnknownCheckError, check, find_check, forget
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.suites import load_suite
from reyn_jupyter.evaluation.trial.trial import FileFact, Trial
from reyn_jupyter.runtime.record.call_facts import CallFact
from reyn_jupyter.runtime.record.verdict import Verdict, failed, number, passed
from tests.evaluation.checks.check_support import (
    EDITS_A,
    READ,
    READS_A,
    RIGHT,
    SCENARIOS,
    TRIALS,
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

# -- any trial -------------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(TRIALS, SCENARIOS)
def test_every_check_gives_a_verdict_of_its_kind_for_any_trial(tried: Trial, task: Scenario) -> None:
    for found in CHECKS.values():
        verdict = found.grade(tried, task)
        assert verdict.reason
        assert verdict.kind in (("number", "na") if found.numeric else ("pass", "fail", "na"))
        assert (verdict.value is None) == (verdict.kind == "na")
        if verdict.kind in ("pass", "fail"):
            assert verdict.value == float(verdict.kind == "pass")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(TRIALS, SCENARIOS)
def test_the_parts_of_the_chain_agree_with_the_whole(tried: Trial, task: Scenario) -> None:
    parts = [grade(name, tried, task).kind for name in ("right_action", "arguments_correct")]
    if tried.surface == "universal":
        parts.append(grade("discovered_before_invoke", tried, task).kind)
    whole = grade("chain", tried, task).kind
    assert whole == "na" or (whole == "pass") == (set(parts) == {"pass"})
    assert (whole == "na") == (not task.gold.steps or tried.outcome in ("error", "timeout"))


@pytest.mark.parametrize("name", list(CHECKS))
@pytest.mark.parametrize("outcome", ["error", "timeout"])
def test_a_trial_that_an_error_or_a_timeout_ended_is_never_graded(name: str, outcome: str) -> None:
    tried = trial(listed(), RIGHT, outcome=outcome, answer="done", cost=1.0, error="the host is down")
    for task in (READS_A, unanswerable(), EDITS_A):
        verdict = grade(name, tried, task)
        assert verdict.kind == "na" and "missing" in verdict.reason


def test_a_limit_is_graded_and_fails_the_task() -> None:
    tried = trial(listed(), RIGHT, outcome="limit", answer="Stopped.")
    assert grade("chain", tried, READS_A).kind == "pass"
    assert grade("task_done", tried, READS_A).kind == "fail"
    assert (
        grade("abstained_when_unanswerable", trial(outcome="limit", answer="-"), unanswerable()).kind
        == "fail"
    )


# -- the registry ----------------------------------------------------------------------------------------------------


def test_a_wrong_name_names_the_nearest_check() -> None:
    with pytest.raises(UnknownCheckError, match="did you mean first_call_is"):
        find_check("first_call")
    with pytest.raises(UnknownCheckError, match=r"there are .*task_done"):
        find_check("zzz")


@pytest.fixture
def own_checks() -> Iterator[None]:
    """Checks that a test registers are taken out after it."""
    before = set(CHECKS)
    yield
    for name in set(CHECKS) - before:
        forget(name)


@pytest.mark.usefixtures("own_checks")
def test_a_check_of_ones_own_is_one_function_and_takes_no_name_of_ours() -> None:
    @check("polite", "Does it say please?")
    def says_please(tried: Trial, task: Scenario) -> Verdict:
        return passed("it does") if "please" in tried.answer else failed("it does not")

    assert grade("says_please", trial(answer="please")).kind == "pass"
    assert grade("says_please", trial(outcome="error")).kind == "na"
    with pytest.raises(ValueError, match="give this one another name"):
        check("mine", "Mine?")(_named("task_done"))


@pytest.mark.usefixtures("own_checks")
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_does_not_apply(value: float) -> None:
    @check("ratio", "How many?", numeric=True)
    def ratio(tried: Trial, task: Scenario) -> Verdict:
        return number(value, "a ratio")

    verdict = grade("ratio", trial())
    assert (verdict.kind, verdict.value) == ("na", None) and str(value) in verdict.reason


def _named(name: str) -> Any:
    def grade_it(tried: Trial, task: Scenario) -> Verdict:
        return passed("always")

    grade_it.__name__ = name
    return grade_it


def test_every_check_has_a_title_and_a_sentence_of_its_own() -> None:
    assert len({found.title for found in CHECKS.values()}) == len(CHECKS)
    assert all(found.sentence.endswith((".", "?")) for found in CHECKS.values())


@pytest.mark.usefixtures("own_checks")
def test_the_manual_names_every_check_and_its_example_works() -> None:
    page = (Path(reyn_jupyter.__file__).parent / "docs" / "checks.md").read_text(encoding="utf-8")
    assert set(CHECKS) <= set(re.findall(r"`(\w+)`", page))
    example = next(
        block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "@check" in block
    )
    exec(compile(example, "checks.md", "exec"), {"__name__": "a_notebook"})
    again = invoked(3, args={"path": "a.md"})
    assert [grade("reads_once", trial(*calls)).kind for calls in ((RIGHT,), (RIGHT, again))] == [
        "pass",
        "fail",
    ]


# -- discovery -------------------------------------------------------------------------------------------------------


def test_only_a_listing_lists_first() -> None:
    assert grade("first_call_is", trial(listed(), RIGHT)).kind == "pass"
    assert grade("first_call_is", trial(call(1, "search_actions", ok=True), listed(2))).kind == "fail"
    gated = invoked(1, problem="gated", ok=False)
    assert grade("first_call_is", trial(gated, listed(2))).kind == "fail"


@pytest.mark.parametrize(
    "look", [listed(), call(1, "search_actions", ok=True), invoked(1, problem="gated", ok=False)]
)
def test_a_listing_a_search_and_the_gate_discover(look: CallFact) -> None:
    assert grade("discovered_before_invoke", trial(look, RIGHT)).kind == "pass"
    assert grade("discovered_before_invoke", trial(look)).kind == "na"


def test_a_listing_of_the_same_completion_was_not_seen_yet() -> None:
    assert grade("discovered_before_invoke", trial(listed(1), invoked(1))).kind == "fail"


def test_a_listing_that_failed_discovers_nothing() -> None:
    wrong = call(1, "list_actions", problem="invalid", ok=False)
    assert grade("discovered_before_invoke", trial(wrong, RIGHT)).kind == "fail"


def test_describing_a_guessed_name_is_no_discovery() -> None:
    guessed = call(1, "describe_action", name=READ, ok=True)
    assert grade("discovered_before_invoke", trial(guessed, listed(2), invoked(3))).kind == "fail"
    assert grade("describe_round_trips", trial(guessed, guessed)).value == 2


def test_the_flat_surface_has_nothing_to_list() -> None:
    flat = trial(RIGHT, surface="flat")
    for name in ("first_call_is", "discovered_before_invoke"):
        assert grade(name, flat, READS_A).kind == "na"
    assert grade("chain", flat, READS_A).kind == "pass"


# -- actions and arguments -------------------------------------------------------------------------------------------


def test_the_chain_says_which_link_is_broken() -> None:
    broken = {
        "discovery": trial(RIGHT),
        "right action": trial(listed(), invoked(2, "file__list")),
        "right arguments": trial(listed(), invoked(2, args={"path": "b.md"})),
    }
    for link, tried in broken.items():
        verdict = grade("chain", tried, READS_A)
        assert verdict.kind == "fail" and f"broken at {link}" in verdict.reason
    assert grade("chain", trial(listed(), RIGHT), READS_A).kind == "pass"


def test_without_a_call_the_chain_fails_though_the_arguments_do_not_apply() -> None:
    tried = trial(listed(), answer="Done.")
    assert grade("arguments_correct", tried, READS_A).kind == "na"
    assert grade("chain", tried, READS_A).kind == "fail"


def test_arguments_that_the_schema_refused_are_wrong_until_they_are_put_right() -> None:
    refused = invoked(2, problem="invalid", ok=False, args={"path": 3})
    tried = trial(listed(), refused)
    assert grade("right_action", tried, READS_A).kind == "fail"
    verdict = grade("arguments_correct", tried, READS_A)
    assert verdict.kind == "fail" and "schema" in verdict.reason
    assert grade("arguments_correct", trial(listed(), refused, RIGHT), READS_A).kind == "pass"


def test_of_two_steps_that_were_called_both_must_be_right() -> None:
    both = needs(accepts(path=("a.md",)), accepts(path=("b.md",)))
    b, wrong = invoked(2, args={"path": "b.md"}), invoked(2, args={"path": "c.md"})
    assert grade("arguments_correct", trial(listed(), b, RIGHT), both).kind == "pass"
    assert grade("arguments_correct", trial(listed(), wrong, RIGHT), both).kind == "fail"
    assert grade("arguments_correct", trial(listed(), RIGHT), both).kind == "pass"
    assert grade("right_action", trial(listed(), RIGHT), both).kind == "fail"


def test_a_planned_error_is_not_held_against_the_arguments() -> None:
    planned = invoked(2, ok=False, error="busy, try again", args={"path": "a.md"})
    assert grade("arguments_correct", trial(listed(), planned), READS_A).kind == "pass"
    assert grade("task_done", trial(listed(), planned, answer="x"), READS_A).kind == "fail"


@pytest.mark.parametrize("ok", [False, None])
def test_an_action_that_was_called_and_did_not_work_was_not_done(ok: bool | None) -> None:
    """Nor is it where the arguments may be anything."""
    tried = trial(listed(), invoked(2, ok=ok, error="no such file", args={"path": "a.md"}))
    for task in (READS_A, needs(accepts())):
        verdict = grade("right_action", tried, task)
        assert verdict.kind == "fail" and "no such file" in verdict.reason
        verdict = grade("chain", tried, task)
        assert verdict.kind == "fail" and "broken at result" in verdict.reason


def test_a_right_call_that_failed_and_a_wrong_one_that_worked_are_no_chain() -> None:
    failed_call = invoked(2, ok=False, error="busy", args={"path": "a.md"})
    tried = trial(listed(), failed_call, invoked(3, args={"path": "b.md"}))
    assert grade("right_action", tried, READS_A).kind == "pass"
    assert grade("chain", tried, READS_A).kind == "fail"
    assert (
        grade("chain", trial(listed(), failed_call, invoked(3, args={"path": "a.md"})), READS_A).kind
        == "pass"
    )


# -- what came of it --------------------------------------------------------------------------------------------------


OTHER = invoked(2, args={"path": "b.md"})


@pytest.mark.parametrize(
    ("no_other", "beside", "kind"),
    [
        ((), [OTHER], "pass"),
        (("file__*",), [OTHER], "fail"),
        (("*",), [invoked(2, "shop__order")], "fail"),
        (("file__*",), [invoked(2, "shop__order")], "pass"),
        (("file__read",), [invoked(2, "file__list")], "pass"),
        # What did not work did nothing, and looking at the catalog is no deed.
        (("*",), [invoked(2, args={"path": "b.md"}, ok=False, error="no such file")], "pass"),
        (("*",), [invoked(2, problem="invalid", ok=False, error="path is required")], "pass"),
        (("*",), [call(2, "describe_action", name=READ, ok=True)], "pass"),
        # The right call once more is a matter of how the turn ends.
        (("*",), [RIGHT], "pass"),
    ],
)
def test_a_call_beside_the_accepted_ones_counts_against_the_task_where_the_scenario_forbids_it(
    no_other: tuple[str, ...], beside: list[CallFact], kind: str
) -> None:
    """Before the right call or after it, and in the chain too: whoever calls all makes the right call too."""
    task = READS_A.model_copy(update={"no_other": no_other, "says": ()})
    for calls in ((*beside, RIGHT), (RIGHT, *beside)):
        tried = trial(listed(), *calls)
        assert {grade(name, tried, task).kind for name in ("task_done", "state_reached", "chain")} == {kind}
    assert grade("right_action", trial(listed(), *beside, RIGHT), task).kind == "pass"


@pytest.mark.parametrize(
    ("outer", "kind"),
    [
        (invoked(2, "skill__tidy", inner=(OTHER,)), "fail"),
        # What worked within was done, whatever became of the rest.
        (invoked(2, "skill__tidy", ok=False, error="a later step failed", inner=(OTHER,)), "fail"),
        (invoked(2, "skill__tidy", inner=(invoked(2, "shop__order"),)), "pass"),
        # It did what was asked for, in another way.
        (invoked(2, "skill__tidy", inner=(RIGHT,)), "pass"),
        # How an accepted call works is its own affair.
        (RIGHT.model_copy(update={"inner": (OTHER,)}), "pass"),
    ],
)
def test_what_a_call_did_within_counts_where_the_scenario_forbids_it(outer: CallFact, kind: str) -> None:
    task = READS_A.model_copy(update={"no_other": ("file__*",), "says": ()})
    tried = trial(listed(), outer, RIGHT)
    assert {grade(name, tried, task).kind for name in ("task_done", "state_reached", "chain")} == {kind}


@pytest.mark.parametrize(
    ("no_other", "outer", "kind"),
    [
        (("file__*",), invoked(2, "skill__tidy", unread="its file is gone"), "na"),
        # What is known decides where it is enough.
        (("file__*",), invoked(2, "skill__tidy", inner=(OTHER,), unread="its file is gone"), "fail"),
        (("file__*",), RIGHT.model_copy(update={"unread": "its file is gone"}), "pass"),
        ((), invoked(2, "skill__tidy", unread="its file is gone"), "pass"),
    ],
)
def test_where_nobody_knows_what_a_call_did_within_nothing_says_that_it_did_no_harm(
    no_other: tuple[str, ...], outer: CallFact, kind: str
) -> None:
    task = READS_A.model_copy(update={"no_other": no_other, "says": ()})
    verdicts = [
        grade(name, trial(listed(), outer, RIGHT), task) for name in ("task_done", "state_reached", "chain")
    ]
    assert {each.kind for each in verdicts} == {kind}
    if kind == "na":
        said = "it is not known what skill__tidy called in its turn: its file is gone"
        assert {each.reason for each in verdicts} == {said}


def test_the_chain_names_the_call_that_was_not_asked_for() -> None:
    task = READS_A.model_copy(update={"no_other": ("file__*",)})
    verdict = grade("chain", trial(listed(), OTHER, RIGHT), task)
    assert verdict.reason == "broken at restraint: file__read was called too, with {'path': 'b.md'}"


def test_a_task_is_done_where_the_state_is_reached_and_the_turn_came_to_an_end() -> None:
    right, wrong = (RIGHT,), (invoked(2, "file__list"),)
    for calls, outcome, state, end in (
        (right, "ok", "pass", "pass"),
        (right, "limit", "pass", "fail"),
        (wrong, "ok", "fail", "pass"),
        (wrong, "limit", "fail", "fail"),
    ):
        tried = trial(listed(), *calls, outcome=outcome)
        assert (grade("state_reached", tried, READS_A).kind, grade("came_to_end", tried, READS_A).kind) == (
            state,
            end,
        )
        assert grade("task_done", tried, READS_A).kind == ("pass" if state == end == "pass" else "fail")
    for name in ("state_reached", "came_to_end", "task_done"):
        assert grade(name, trial(RIGHT), scenario()).kind == "na"


LOG = "".join(
    f"08:{minute:02} {'ERROR' if minute in (3, 7) else 'INFO'} worker-{'abc'[minute % 3]} job {minute} done\n"
    for minute in range(20)
)
ASKS = needs(accepts(), workspace={"app.log": LOG}, says=("worker-b",), omits=("worker-a",))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("It was worker-b.", "pass"),
        ("08:07 ERROR worker-b job 7 done", "pass"),  # a line is a quotation
        ("It was one of worker-a, worker-b and worker-c.", "fail"),
        (LOG, "fail"),
        (
            "\n".join(f"app.log:{at}:{line[:18]}…" for at, line in enumerate(LOG.splitlines()) if at % 3),
            "fail",
        ),
        (
            json.dumps({"text": "".join(line for line in LOG.splitlines(True) if "worker-a" not in line)}),
            "fail",
        ),
        (
            "".join(line for line in LOG.splitlines(True) if "worker-a" not in line) + "So it was worker-b.",
            "pass",
        ),
        ("worker-b, " + ", ".join(map(str, range(30))), "fail"),
        (" ".join(sorted(set(re.findall(r"\w+", LOG)) | {"worker-b"})), "fail"),
    ],
)
def test_an_answer_that_holds_everything_that_could_be_meant_says_nothing(answer: str, kind: str) -> None:
    tried = trial(invoked(1), answer=answer)
    assert grade("state_reached", tried, ASKS).kind == kind, grade("state_reached", tried, ASKS).reason


def test_naming_every_candidate_does_not_pass_the_scenario_of_the_lost_lease() -> None:
    task = load_suite("mandates").scenario("grep-lease-lost")
    searched = invoked(2, "file__grep", args={"pattern": "lease lost"})
    files = {path: FileFact(text=text) for path, text in task.workspace.items()}
    every = "The workers are worker-a, worker-b and worker-c."
    for answer, kind in ((every, "fail"), ("It occurs on worker-b and worker-c.", "pass")):
        verdict = grade("task_done", trial(listed(), searched, answer=answer, files=files), task)
        assert verdict.kind == kind, verdict.reason


# -- effort ----------------------------------------------------------------------------------------------------------


def test_effort_is_counted_and_what_is_unknown_is_not_nought() -> None:
    tried = trial(listed(), RIGHT, model_calls=3, prompt_tokens=100, completion_tokens=20, seconds=1.5)
    assert [grade(name, tried).value for name in ("calls", "model_calls", "tokens", "seconds")] == [
        2,
        3,
        120,
        1.5,
    ]
    assert grade("cost", tried).kind == "na"
    assert grade("cost", trial(cost=0.0)).value == 0
    assert grade("tokens", trial(model_calls=1)).kind == "na"


def test_flags_that_put_a_mistake_right_are_counted() -> None:
    tried = trial(invoked(1, flags=("decoded", "coerced", "merged")), invoked(2, flags=("lifted",)))
    assert grade("forgiven", tried).value == 3
