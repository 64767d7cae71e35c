"""Traps that other evaluation tools fell into, each named after the one that did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.evaluation.checks import CHECKS
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import Expected
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.statistics.paired import difference
from reyn_jupyter.evaluation.trial.trial import FileFact
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.cassettes.cassette import CassettePlayer, CassetteRecorder
from reyn_jupyter.models.scripted import ScriptedModel, call, raw_call
from reyn_jupyter.runtime.record.events import ModelRequested
from tests.evaluation.checks.check_support import accepts, grade, invoked, listed, needs, trial, unanswerable
from tests.evaluation.trial_support import Scripts, bench, run, scenario, suite

PLAIN = Variant("plain", model="scripted")


def forecast_tool() -> Catalog:
    """A tool whose arguments are all optional, so that its schema takes a call without any."""
    properties = {"city": {"type": "string"}, "days": {"type": "integer"}}
    parameters = {"type": "object", "properties": properties, "required": []}
    return Catalog.from_records(
        [{"id": "f", "name": "forecast", "description": "Weather.", "parameters": parameters}]
    )


@pytest.mark.parametrize("args", [{}, {"city": "Rome"}, {"days": 3}])
def test_tau2_a_call_that_omits_its_arguments_does_not_match(args: dict[str, Any]) -> None:
    task = needs(accepts("tool__forecast", city=("Rome",), days=(3,)), catalog="tools")
    script = (call("list_actions"), call("invoke_action", action_name="tool__forecast", args=args), "Done.")
    made = TrialRunner(suite(task, catalogs={"tools": forecast_tool}), models={"scripted": Scripts(*script)})
    tried, _ = run(made, task, PLAIN)
    assert tried.calls[-1].ok, "the tool itself takes the call"
    assert grade("right_action", tried, task).kind == "pass"
    for check in ("arguments_correct", "chain", "task_done"):
        verdict = grade(check, tried, task)
        assert verdict.kind == "fail" and "was left out" in verdict.reason


def test_deepeval_no_call_at_all_scores_nothing() -> None:
    task = scenario()
    tried, _ = run(bench(task, models={"scripted": Scripts("The notes say hello.")}), task, PLAIN)
    assert tried.calls == () and "hello" in tried.answer
    kinds = {name: found.grade(tried, task).kind for name, found in CHECKS.items() if not found.numeric}
    assert kinds.pop("came_to_end") == "pass"  # its turn did end
    assert "pass" not in kinds.values(), kinds
    for check in ("first_call_is", "right_action", "chain", "attempted_when_answerable", "task_done"):
        assert kinds[check] == "fail"


def test_bfcl_a_parse_error_is_no_correct_refusal() -> None:
    task = unanswerable()
    scripts = {
        "abstains": ("No action fits.",),
        "looks": (call("list_actions"), "No action fits."),
        "unreadable": (raw_call("invoke_action", '{"action_name": "file__re'), "No action fits."),
        "unreadable tool": (raw_call("file__read", "path=notes.md"), "No action fits."),
        "silent": ("", ""),
        "down": (ModelError("unavailable", "The host is down."),),
    }
    made = bench(task, models={name: Scripts(*script) for name, script in scripts.items()})
    found = {}
    for name in scripts:
        tried, _ = run(made, task, Variant(name, model=name))
        kinds = {
            grade(check, tried, task).kind
            for check in ("abstained_when_unanswerable", "decided_rightly", "task_done")
        }
        assert len(kinds) == 1
        found[name] = kinds.pop()
    assert found == {
        "abstains": "pass",
        "looks": "pass",
        "unreadable": "fail",
        "unreadable tool": "fail",
        "silent": "fail",
        "down": "na",
    }


def test_promptfoo_every_repeat_asks_the_model() -> None:
    task = scenario(prompts={"natural": "What do the notes say?"}, says=())
    agent = Scripts("The same words.")
    made = bench(task, models={"scripted": agent})
    keys = set()
    for repeat in range(3):
        _, events = run(made, task, PLAIN, repeat)
        keys |= {event.key for event in events if isinstance(event, ModelRequested)}
    assert [len(model.requests) for model in agent.models] == [1, 1, 1]
    assert len(keys) == 3, "equal requests of different repeats must not be taken for one"


def test_promptfoo_a_recording_gives_each_repeat_its_own_answer(tmp_path: Path) -> None:
    task = scenario(prompts={"natural": "What do the notes say?"}, says=())
    path = tmp_path / "cassette.jsonl"
    answers = ["first", "second", "third"]
    recorder = CassetteRecorder(ScriptedModel(*answers, label="m"), path, lambda text: False)
    made = bench(task, models={"m": recorder})
    variant = Variant("plain", model="m")
    assert [run(made, task, variant, repeat)[0].answer for repeat in range(3)] == answers
    played = bench(task, models={"m": CassettePlayer(path, lambda text: False)})
    assert [run(played, task, variant, repeat)[0].answer for repeat in (2, 0, 1)] == [
        "third",
        "first",
        "second",
    ]
    beyond, _ = run(played, task, variant, 3)
    assert beyond.outcome == "error" and beyond.error is not None and "repeat" in beyond.error


def test_pydantic_evals_what_was_not_recorded_is_not_a_failure() -> None:
    task = scenario(expected=(Expected(path="notes.md", text="new\n"),), says=())
    read = invoked(2, args={"path": "notes.md"})
    unrecorded = trial(listed(), read, answer="Done.")
    unread = trial(listed(), read, answer="Done.", files={"notes.md": FileFact(changed=True)})
    wrong = trial(listed(), read, answer="Done.", files={"notes.md": FileFact(text="old\n")})
    kinds = [grade("task_done", tried, task).kind for tried in (unrecorded, unread, wrong)]
    assert kinds == ["na", "na", "fail"]
    assert grade("task_done", trial(answer="Done."), task).kind == "fail", "a step that was not done is known"
    assert grade("cost", unrecorded).kind == "na"


def test_pydantic_evals_a_host_that_is_down_is_neither_failure_nor_success() -> None:
    task = scenario()
    down = bench(task, models={"scripted": Scripts(*(ModelError("unavailable", "Down."),))})
    tried, _ = run(down, task, PLAIN)
    assert tried.outcome == "error"
    assert {found.grade(tried, task).kind for found in CHECKS.values()} == {"na"}


def test_lm_eval_paired_data_gets_a_paired_test() -> None:
    """Six of forty scenarios are won and none is lost: 60 % against 75 %, which no unpaired test can tell apart."""
    from scipy.stats import binomtest, fisher_exact

    before = {f"s{number}": {0: float(number < 24)} for number in range(40)}
    after = {f"s{number}": {0: float(number < 30)} for number in range(40)}
    other = {
        f"s{number}": {0: float(number >= 10)} for number in range(40)
    }  # as many passes, on other scenarios
    paired, crossed = difference(before, after), difference(before, other)
    assert (paired.a_only, paired.b_only) == (0, 6)
    assert paired.p == pytest.approx(binomtest(6, 6).pvalue) and paired.p < 0.05
    assert fisher_exact([[24, 16], [30, 10]]).pvalue > 0.2
    assert crossed.estimate == pytest.approx(paired.estimate)
    assert crossed.p is not None and crossed.p > 0.2, "the pairs decide, not the totals"
