"""Policies: read whole or refused, the stricter of two, and what they forbid of a plan."""

from __future__ import annotations

import pytest

from reyn_jupyter.workflows.planning.plan import WorkflowPlan, WorkflowStep
from reyn_jupyter.workflows.planning.policy import (
    DEFAULT_POLICY,
    CapabilityPolicy,
    forbidden,
    load_policy,
    read_policy,
    stricter,
    violations,
)
from reyn_jupyter.workflows.workflow_error import WorkflowError


def plan_of(*operations, llm_calls=0):
    steps = (
        WorkflowStep(f"s{at}", action=each) if "__" in each else WorkflowStep(f"s{at}", each)
        for at, each in enumerate(operations)
    )
    return WorkflowPlan("p", steps=tuple(steps), llm_calls=llm_calls)


def violated(plan, **fields):
    found = violations(plan, read_policy(fields, "policy.yaml"), lambda step: step.step_id == "s0")
    return [(each.step_id, each.capability) for each in found]


def test_the_defaults_are_those_of_the_specification():
    assert read_policy({}, "policy.yaml") == DEFAULT_POLICY
    limits = (10, 1, 600, 1, False)
    assert limits == (
        DEFAULT_POLICY.max_steps,
        DEFAULT_POLICY.max_tool_retries,
        DEFAULT_POLICY.max_run_seconds,
        DEFAULT_POLICY.max_llm_calls,
        DEFAULT_POLICY.require_idempotent_for_auto,
    )


def test_a_denial_wins_over_what_is_allowed_and_letter_case_is_no_way_around_it():
    plan = plan_of("drive.upload", "youtube.download", "drive.delete")
    assert violated(plan, allowed_capabilities=["drive.*"], denied_capabilities=["*.delete"]) == [
        ("s1", "youtube.download"),
        ("s2", "drive.delete"),
    ]
    assert violated(plan_of("drive.upload"), denied_capabilities=["Drive.*"]) == [("s0", "drive.upload")]
    assert violated(plan) == []


def test_an_action_is_judged_by_its_name_and_by_what_it_serves():
    plan = plan_of("file__read", "utility__uploader")
    assert violated(plan, denied_capabilities=["file.*"]) == [("s0", "file__read")]
    policy = CapabilityPolicy(denied_capabilities=("drive.*",))
    served = {"utility__uploader": ("drive.upload",), None: ("drive.delete",)}
    plan = WorkflowPlan("p", steps=(*plan.steps, WorkflowStep("s2", "tg.scrape")))
    found = violations(plan, policy, lambda step: True, serves=lambda step: served.get(step.action, ()))
    assert [each.step_id for each in found] == ["s1"]
    assert "drive.*" in found[0].reason


def test_limits_of_steps_and_model_calls_are_limits_of_the_whole_plan():
    plan = plan_of("a.b", "a.b", "a.b", llm_calls=2)
    assert violated(plan, max_steps=2) == [(None, ""), (None, "")]
    assert violated(plan, max_llm_calls=2) == []
    assert violated(plan, max_llm_calls=2, require_idempotent_for_auto=True) == [("s1", "a.b"), ("s2", "a.b")]


@pytest.mark.parametrize(
    ("data", "path", "words"),
    [
        ({"denied_capabilites": ["drive.*"]}, "/denied_capabilites", "did you mean 'denied_capabilities'"),
        ({"denied_capabilities": "drive.*"}, "/denied_capabilities", "a list is needed"),
        ({"denied_capabilities": ["drive"]}, "/denied_capabilities/0", "drive.*"),
        ({"denied_capabilities": ["drive__upload"]}, "/denied_capabilities/0", "'drive.upload'"),
        ({"denied_capabilities": ["drive.upload, x.y"]}, "/denied_capabilities/0", "no pattern"),
        ({"allowed_capabilities": None}, "/allowed_capabilities", "a list is needed"),
        ({"max_steps": "3"}, "/max_steps", "a whole number"),
        ({"max_steps": True}, "/max_steps", "a whole number"),
        ({"max_steps": -1}, "/max_steps", "at least 0"),
        ({"max_run_seconds": 0}, "/max_run_seconds", "more than 0"),
        ({"max_run_seconds": float("nan")}, "/max_run_seconds", "finite"),
        ({"require_idempotent_for_auto": "no"}, "/require_idempotent_for_auto", "on or off"),
        (None, "", "mapping"),
        (["drive.*"], "", "mapping"),
    ],
)
def test_a_policy_with_a_slip_is_an_error(data, path, words):
    with pytest.raises(WorkflowError) as caught:
        read_policy(data, "policy.yaml")
    assert caught.value.code == "policy_invalid"
    [problem] = caught.value.details["problems"]
    assert problem["path"] == path and problem["file"] == "policy.yaml" and words in problem["message"]


def test_of_two_policies_the_stricter_holds_in_every_point():
    one = read_policy({"allowed_capabilities": ["drive.*", "video.*"], "max_steps": 5}, "one")
    other = read_policy(
        {"allowed_capabilities": ["*.upload"], "denied_capabilities": ["x.y"], "max_run_seconds": 5.5},
        "other",
    )
    both = stricter(one, other)
    assert both.max_steps == 5 and both.max_run_seconds == 5.5
    assert forbidden(both, ["drive.upload"]) is None
    assert (
        forbidden(both, ["drive.delete"]) and forbidden(both, ["youtube.upload"]) and forbidden(both, ["x.y"])
    )


def test_a_workspace_narrows_alone_and_the_person_may_raise_the_defaults(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("REYN_CONFIG_DIR", str(home))
    assert load_policy(tmp_path).policy == DEFAULT_POLICY
    (tmp_path / "policy.yaml").write_text("max_steps: 500\nmax_tool_retries: 0\n")
    narrowed = load_policy(tmp_path).policy
    assert (narrowed.max_steps, narrowed.max_tool_retries) == (10, 0)
    (home / "policy.yaml").write_text("max_steps: 100\ndenied_capabilities: [drive.*]\n")
    both = load_policy(tmp_path)
    assert (both.policy.max_steps, both.policy.max_tool_retries) == (100, 0)
    assert both.sources == (str(home / "policy.yaml"), "policy.yaml")
    (tmp_path / "policy.yaml").write_text("denied_capabilities: []\n")
    assert forbidden(load_policy(tmp_path).policy, ["drive.upload"])


@pytest.mark.parametrize(
    "text", ["max_stepz: 3", "", "# max_steps: 3", "- a", "a: [", "a: &x [*x]", "max_steps: 1\nmax_steps: 2"]
)
def test_a_broken_file_of_either_stops_everything(tmp_path, monkeypatch, text):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("REYN_CONFIG_DIR", str(home))
    for place in (tmp_path, home):
        (place / "policy.yaml").write_text(text)
        with pytest.raises(WorkflowError) as caught:
            load_policy(tmp_path)
        assert caught.value.code == "policy_invalid" and "policy.yaml" in str(caught.value)
        (place / "policy.yaml").unlink()


def test_a_link_in_place_of_the_file_is_an_error(tmp_path):
    (tmp_path / "real.yaml").write_text("")
    (tmp_path / "policy.yaml").symlink_to(tmp_path / "real.yaml")
    with pytest.raises(WorkflowError):
        load_policy(tmp_path)
