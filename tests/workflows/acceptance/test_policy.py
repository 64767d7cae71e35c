"""The policy of capabilities: what it allows, what it limits, who writes it, and that a typo allows nothing."""

from __future__ import annotations

from typing import Any

import pytest

from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.workflows.planning.plan import read_plan
from tests.support.trusting import trust
from tests.workflows.acceptance.workshop import (
    ECHO,
    LOG,
    LOGS,
    LOGS_AND_FAILS,
    Json,
    Notebook,
    Workshop,
    model_plan,
    model_step,
    opened,
    problems_of,
    step,
    workflow_file,
)  # fmt: skip


@pytest.fixture
def logs(workshop: Workshop) -> Workshop:
    workshop.add("logs", LOGS, capabilities=["drive.upload", "drive.list", "drives.list", "tg.scrape"],
                 input_schema=opened(log=LOG))  # fmt: skip
    return workshop


def doing(capability: str, step_id: str = "a", **more: Any) -> Json:
    return step(step_id, capability, {"log": "log"}, **more)


def allows(workshop: Workshop, capability: str) -> bool:
    return workshop.judge(doing(capability))["status"] == "allowed"


def test_without_a_policy_every_capability_is_allowed(logs: Workshop) -> None:
    found = logs.judge(doing("drive.upload"))
    assert (found["status"], found["violations"]) == ("allowed", [])


def test_an_empty_list_of_what_is_allowed_means_all(logs: Workshop) -> None:
    logs.policy(allowed_capabilities=[])
    assert allows(logs, "drive.upload")


RULES: list[tuple[dict[str, Any], dict[str, bool]]] = [
    (
        {"allowed_capabilities": ["drive.upload"]},
        {"drive.upload": True, "drive.list": False, "tg.scrape": False},
    ),
    ({"allowed_capabilities": ["drive.*"]}, {"drive.upload": True, "drive.list": True, "drives.list": False}),
    ({"allowed_capabilities": ["*.list"]}, {"drive.list": True, "drives.list": True, "drive.upload": False}),
    ({"allowed_capabilities": ["*"]}, {"drive.upload": True, "tg.scrape": True}),
    ({"denied_capabilities": ["drive.*"]}, {"drive.upload": False, "drives.list": True, "tg.scrape": True}),
    ({"denied_capabilities": ["*"]}, {"drive.upload": False, "tg.scrape": False}),
    (
        {"allowed_capabilities": ["drive.*"], "denied_capabilities": ["drive.upload"]},
        {"drive.upload": False, "drive.list": True, "tg.scrape": False},
    ),
    ({"allowed_capabilities": ["drive.upload"], "denied_capabilities": ["*"]}, {"drive.upload": False}),
]


@pytest.mark.parametrize("number", range(len(RULES)))
def test_lists_and_patterns_decide_and_a_denial_wins(logs: Workshop, number: int) -> None:
    rules, expected = RULES[number]
    logs.policy(**rules)
    assert {each: allows(logs, each) for each in expected} == expected


def test_a_violation_says_step_capability_and_reason(logs: Workshop) -> None:
    logs.policy(denied_capabilities=["drive.*"])
    found = logs.judge(doing("tg.scrape"), doing("drive.list", "b"))
    assert found["status"] == "blocked_by_policy"
    (violation,) = found["violations"]
    assert (violation["step_id"], violation["capability"]) == ("b", "drive.list")
    assert "drive.*" in violation["reason"]


def test_every_violation_is_said(logs: Workshop) -> None:
    logs.policy(denied_capabilities=["drive.*"])
    found = logs.judge(doing("drive.list"), doing("drive.upload", "b"))
    assert [each["step_id"] for each in found["violations"]] == ["a", "b"]


def test_the_answer_says_the_policy_in_force_and_where_it_lies(logs: Workshop) -> None:
    logs.policy(max_steps=3)
    found = logs.judge(doing("tg.scrape"))
    assert found["policy"]["max_steps"] == 3
    assert "policy.yaml" in str(found["sources"])


def test_the_limits_that_nobody_set_are_those_of_the_specification(logs: Workshop) -> None:
    policy = logs.judge(doing("tg.scrape"))["policy"]
    expected = {"max_steps": 10, "max_tool_retries": 1, "max_run_seconds": 600, "max_llm_calls": 1}
    assert {key: policy[key] for key in expected} == expected
    assert policy["require_idempotent_for_auto"] is False


def test_a_blocked_plan_ends_as_such_and_nothing_ran(logs: Workshop) -> None:
    logs.policy(denied_capabilities=["drive.*"])
    run = logs.execute(doing("tg.scrape"), doing("drive.list", "b"))
    assert (run["status"], run["exit_code"]) == ("blocked_by_policy", 4)
    assert logs.log() == 0 and "drive.list" in run["text"]


# Limits


def test_ten_steps_are_the_most(logs: Workshop) -> None:
    ten = [doing("tg.scrape", f"s{number}") for number in range(10)]
    assert logs.judge(*ten)["status"] == "allowed"
    found = logs.judge(*ten, doing("tg.scrape", "s10"))
    assert found["status"] == "blocked_by_policy" and "max_steps" in str(found["violations"])


@pytest.mark.parametrize(("most", "runs"), [(0, 1), (1, 2), (3, 4)])
def test_retries_of_a_step_are_limited(workshop: Workshop, most: int, runs: int) -> None:
    workshop.add("fails", LOGS_AND_FAILS, input_schema=opened(log=LOG), idempotency="safe")
    workshop.policy(max_tool_retries=most)
    trust(workshop.session)  # or it could only narrow
    workshop.execute(step("a", "fails.run", {"log": "log"}, on_failure="retry"))
    assert workshop.log() == runs


def test_no_call_of_a_model_is_made_where_none_is_allowed(workshop: Workshop) -> None:
    workshop.policy(max_llm_calls=0)
    workshop.session.parts.model = model = ScriptedModel(model_plan(model_step("a.b")))
    result = workshop.skill("request-router", text="Compose a symphony about the sea")
    assert model.requests == []
    assert not result.ok or result.value["status"] == "unroutable"
    assert "max_llm_calls" in str(result.payload) + str(result.value if result.ok else "")


@pytest.mark.parametrize(("idempotency", "status"), [
    ("safe", "allowed"), ("unsafe", "blocked_by_policy"), ("unknown", "blocked_by_policy"),
])  # fmt: skip
def test_what_is_not_safe_to_repeat_can_be_kept_from_running_by_itself(
    workshop: Workshop, idempotency: str, status: str
) -> None:
    workshop.add("echo", idempotency=idempotency)
    workshop.policy(require_idempotent_for_auto=True)
    found = workshop.judge(step("a", "echo.run"))
    assert found["status"] == status
    assert status == "allowed" or "idempotent" in str(found["violations"])


# Typos


TYPOS: list[tuple[Any, str]] = [
    ({"denied_capabilites": ["drive.*"]}, "denied_capabilities"),
    ({"deny": ["drive.*"]}, "deny"),
    ({"max_step": 3}, "max_steps"),
    ({"allowed_capabilities": "drive.*"}, "allowed_capabilities"),
    ({"denied_capabilities": {"drive.*": True}}, "denied_capabilities"),
    ({"denied_capabilities": [7]}, "denied_capabilities"),
    ({"denied_capabilities": None}, "denied_capabilities"),
    ({"denied_capabilities": ["drive"]}, "drive"),
    ({"max_steps": "ten"}, "max_steps"),
    ({"max_steps": True}, "max_steps"),
    ({"max_steps": -1}, "max_steps"),
    ({"max_steps": 2.5}, "max_steps"),
    ({"max_run_seconds": 0}, "max_run_seconds"),
    ({"max_run_seconds": float("inf")}, "max_run_seconds"),
    ({"max_tool_retries": -1}, "max_tool_retries"),
    ({"max_llm_calls": "1"}, "max_llm_calls"),
    ({"require_idempotent_for_auto": "yes please"}, "require_idempotent_for_auto"),
    ("", "policy.yaml"),
    ("- drive.*", "policy.yaml"),
    ("denied_capabilities: [", "policy.yaml"),
    ("max_steps: 3\nmax_steps: 300", "max_steps"),
    ("a: &a [x]\nb: *a", "policy.yaml"),
    ("!!python/object/apply:os.system ['touch pwn']", "policy.yaml"),
]


@pytest.mark.parametrize("number", range(len(TYPOS)), ids=[str(rules)[:40] for rules, _ in TYPOS])
def test_a_typo_is_an_error_and_never_means_that_all_is_allowed(logs: Workshop, number: int) -> None:
    rules, named = TYPOS[number]
    logs.text("policy.yaml", rules)
    judged = logs.skill("policy-engine", plan={"plan_id": "p", "steps": [doing("tg.scrape")]})
    assert judged.code == "policy_invalid"
    said = problems_of(judged)
    assert "policy.yaml" in said and named in said
    assert logs.refused(doing("tg.scrape")).code == "policy_invalid"
    assert logs.log() == 0 and [*logs.root.rglob("pwn")] == []


def test_a_policy_that_cannot_be_read_stops_execution(logs: Workshop) -> None:
    (logs.root / "policy.yaml").mkdir()
    assert logs.refused(doing("tg.scrape")).code == "policy_invalid"
    assert logs.log() == 0


def test_a_typo_in_the_persons_own_policy_stops_execution_too(logs: Workshop) -> None:
    logs.own_policy(denied_capabilites=["tg.*"])
    assert logs.refused(doing("tg.scrape")).code == "policy_invalid"
    assert logs.log() == 0


# Two policies and two systems of permission: the stricter wins


def test_the_workspace_can_only_narrow_what_the_person_says(logs: Workshop) -> None:
    logs.own_policy(allowed_capabilities=["drive.*"], max_steps=2)
    logs.policy(allowed_capabilities=["drive.upload", "tg.*"], max_steps=500)
    assert [allows(logs, each) for each in ("drive.upload", "drive.list", "tg.scrape")] == [
        True,
        False,
        False,
    ]
    assert logs.judge(doing("drive.upload"))["policy"]["max_steps"] == 2


def test_a_denial_in_either_is_a_denial(logs: Workshop) -> None:
    logs.own_policy(denied_capabilities=["tg.*"])
    logs.policy(denied_capabilities=["drive.list"], allowed_capabilities=["*"])
    assert [allows(logs, each) for each in ("drive.upload", "drive.list", "tg.scrape")] == [
        True,
        False,
        False,
    ]


def test_the_lower_limit_holds_and_a_policy_needs_no_trust_to_narrow(logs: Workshop) -> None:
    logs.own_policy(max_tool_retries=0, require_idempotent_for_auto=True)
    logs.policy(max_run_seconds=5, max_tool_retries=9, require_idempotent_for_auto=False)
    policy = logs.judge(doing("tg.scrape"))["policy"]
    assert (policy["max_tool_retries"], policy["max_run_seconds"], policy["require_idempotent_for_auto"]) == (
        0,
        5,
        True,
    )


def test_a_policy_that_allows_grants_nothing_that_a_permission_denies(workspace_denied: Workshop) -> None:
    workspace_denied.policy(allowed_capabilities=["*"])
    run = workspace_denied.execute(step("a", "logs.run", {"log": "log"}))
    assert (run["status"], run["exit_code"]) == ("execution_failed", 1)
    assert workspace_denied.log() == 0


@pytest.fixture
def workspace_denied(workshop: Workshop) -> Any:
    made = Workshop(workshop.root, {"permissions": {"deny": ["utility__logs"]}})
    made.add("logs", LOGS, input_schema=opened(log=LOG))
    yield made
    made.close()


def test_a_permission_that_allows_grants_nothing_that_the_policy_denies(workshop: Workshop) -> None:
    made = Workshop(workshop.root, {"permissions": {"allow": ["utility__*", "skill__*"]}})
    made.add("logs", LOGS, input_schema=opened(log=LOG))
    made.policy(denied_capabilities=["logs.*"])
    assert made.execute(step("a", "logs.run", {"log": "log"}))["status"] == "blocked_by_policy"
    assert made.log() == 0
    made.close()


def test_an_action_in_a_plan_is_judged_by_its_category_and_operation(workshop: Workshop) -> None:
    workshop.policy(denied_capabilities=["file.*"])
    run = workshop.execute(step("a", action="file__write", inputs={"path": "x.txt", "content": "x"}))
    assert run["status"] == "blocked_by_policy" and not (workshop.root / "x.txt").exists()


def test_the_notebook_says_what_the_policy_forbids(notebook: Notebook) -> None:
    notebook.workshop.add("tube", capabilities=["youtube.download"], priority=9)
    notebook.workshop.policy(denied_capabilities=["youtube.*"])
    said = notebook.say('%reyn dispatch --no-llm "Download https://youtu.be/dQw4w9WgXcQ"')
    assert "youtube.download" in said and "policy" in said.lower()


def test_a_dry_run_says_that_the_policy_forbids_it(workshop: Workshop) -> None:
    workshop.add("echo", ECHO)
    workshop.policy(denied_capabilities=["echo.*"])
    shown = workshop.execute(step("a", "echo.run"), dry_run=True)
    assert shown["status"] == "blocked_by_policy" and shown["exit_code"] == 4
    assert "echo.run" in shown["problem"] and shown["steps"][0]["argv"]
    plan = read_plan({"steps": [{"step_id": "a", "capability": "echo.run"}]})
    dry = workshop.session.workflows.execute(plan, dry=True)
    assert [each.status for each in dry.run.steps] == ["not_run"]
    assert workshop.run_files() == []


def test_the_steps_of_a_workflow_that_is_a_step_are_judged_before_anything_runs(workshop: Workshop) -> None:
    workshop.write("echo", ECHO)
    workshop.write("logs", LOGS, capabilities=["drive.upload"], input_schema=opened(log=LOG))
    inner = workflow_file("inner", doing("drive.upload"), outputs={}, takes={})
    outer = workflow_file("outer", step("i", action="skill__inner"), outputs={}, takes={})
    workshop.text("skills/inner.yaml", inner)
    workshop.text("skills/outer.yaml", outer)
    workshop.policy(denied_capabilities=["drive.*"])
    trust(workshop.session)
    steps = (step("a", "echo.run"), step("b", action="skill__outer", depends_on=["a"]))
    for dry in (True, False):
        run = workshop.execute(*steps, dry_run=dry)
        assert run["status"] == "blocked_by_policy"
        assert "Within the workflow inner: " in run["problem"]
        assert "drive.upload" in run["problem"]
    assert workshop.log() == 0
    (found,) = workshop.judge(*steps)["violations"]
    assert (found["step_id"], found["capability"]) == ("b", "drive.upload")
    workshop.policy(denied_capabilities=["tg.*"])
    assert workshop.execute(*steps, dry_run=True)["status"] == "preview"
    assert workshop.execute(*steps)["status"] == "executed"
    assert workshop.log() == 1
