"""Runs of plans: order, failures, retries, skips, the deadline, the preview, and what is said at the end."""

from __future__ import annotations

import secrets
import threading
from typing import Any

import pytest

from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.sessions.assembly import ENGINE
from tests.support.trusting import trust
from tests.support.waiting import clock_of, until
from tests.workflows.acceptance.test_utilities import alive
from tests.workflows.acceptance.workshop import (
    DONE,
    ECHO,
    FAILED,
    FAILS,
    FAILS_ONCE,
    LATE,
    LOG,
    LOGS,
    LOGS_AND_FAILS,
    PENDING,
    SKIPPED,
    SLEEPS,
    STEP_FIELDS,
    TEXT,
    Json,
    Workshop,
    closed,
    code_of,
    error_code,
    gives,
    is_done_text,
    opened,
    plan_of,
    skill_call,
    statuses,
    step,
    steps_of,
)


@pytest.fixture
def bench(workshop: Workshop) -> Workshop:
    """A workshop with utilities that work, fail, and leave traces."""
    takes = opened(log=LOG, required=["log"])
    workshop.write("echo", ECHO, idempotency="safe")
    workshop.write("fails", FAILS, idempotency="unsafe")
    workshop.write("logs", LOGS, input_schema=takes, output_schema=opened(text=TEXT))
    for idempotency in ("safe", "unsafe", "unknown"):
        workshop.write(f"{idempotency}-fails", LOGS_AND_FAILS, input_schema=takes, idempotency=idempotency)
        workshop.write(f"{idempotency}-fails-once", FAILS_ONCE, input_schema=takes, idempotency=idempotency)
    trust(workshop.session)
    return workshop


def echo(step_id: str, inputs: dict[str, Any] | None = None, **more: Any) -> Json:
    return step(step_id, "echo.run", inputs, **more)


# Every status with its exit code


def test_executed_is_zero(bench: Workshop) -> None:
    run = bench.execute(echo("a"), echo("b", depends_on=["a"]))
    assert (run["status"], run["exit_code"], run["missing"]) == ("executed", 0, [])
    assert statuses(run) == {"a": DONE, "b": DONE}


def test_a_run_has_all_its_fields_and_so_have_its_steps(bench: Workshop) -> None:
    run = bench.execute(echo("a", {"n": 1}))
    assert {"run_id", "status", "exit_code", "steps", "outputs", "text", "missing"} <= set(run)
    got = steps_of(run)["a"]
    assert set(STEP_FIELDS) <= set(got)
    assert (got["capability"], got["tool"], got["attempts"]) == ("echo.run", "echo@1.0.0", 1)
    assert (got["outputs"], got["error"]) == ({"echo": {"n": 1}}, None)


def test_preview_is_zero_and_runs_nothing(bench: Workshop) -> None:
    run = bench.execute(step("a", "logs.run", {"log": "log"}), dry_run=True)
    assert (run["status"], run["exit_code"]) == ("preview", 0)
    assert bench.log() == 0 and not (bench.root / "log").exists()


def test_a_preview_shows_argv_and_inputs_of_every_step(bench: Workshop) -> None:
    entry = {"type": "python", "command": "main.py", "args": ["--fast", "two words"]}
    bench.add("words", ECHO, entrypoint=entry)
    run = bench.execute(
        step("a", "words.run", {"asked": "request.inputs.who", "list": [1]}),
        echo("b", {"from": "steps.a.outputs.echo"}),
        inputs={"who": "Ada"},
        dry_run=True,
    )
    rows = steps_of(run)
    assert rows["a"]["argv"][-2:] == ["--fast", "two words"] and rows["a"]["argv"][-3].endswith("main.py")
    assert rows["a"]["inputs"] == {"asked": "Ada", "list": [1]}
    assert rows["b"]["inputs"] == {"from": "steps.a.outputs.echo"}, "what is not known yet stays a reference"


def test_a_run_with_skips_is_zero_with_a_warning(bench: Workshop) -> None:
    run = bench.execute(step("a", "fails.run", on_failure="skip"), echo("b"))
    assert (run["status"], run["exit_code"]) == ("completed_with_skips", 0)
    assert "a fails.run" in run["text"] and "skip" in run["text"].lower()


def test_a_failed_step_is_one(bench: Workshop) -> None:
    run = bench.execute(echo("a"), step("b", "fails.run", depends_on=["a"]), echo("c", depends_on=["b"]))
    assert (run["status"], run["exit_code"]) == ("execution_failed", 1)
    assert statuses(run) == {"a": DONE, "b": FAILED, "c": PENDING}
    assert error_code(run, "b") == "tool_failed" and "the pipe is broken" in str(steps_of(run)["b"]["error"])


# The other statuses: partial-complete in test_gaps, unroutable in test_router, blocked_by_policy in test_policy.


# The text at the end


def test_what_is_done_is_said_with_the_operations_in_order(bench: Workshop) -> None:
    text = bench.execute(echo("a"), echo("b", depends_on=["a"]))["text"]
    assert is_done_text(text) and text.index("a echo.run") < text.index("b echo.run")


def test_what_is_not_done_is_said_with_what_was_executed_and_what_is_missing(bench: Workshop) -> None:
    run = bench.execute(echo("a"), step("b", "fails.run", depends_on=["a"]), echo("c", depends_on=["b"]))
    text = run["text"]
    assert not is_done_text(text)
    assert [each for each in ("a echo.run", "b fails.run", "c echo.run") if each not in text] == []
    assert (
        "b" in str(run["missing"])
        and "c echo.run" in str(run["missing"])
        and "a echo.run" not in str(run["missing"])
    )


# Order


def test_steps_run_after_those_that_they_depend_on_wherever_they_stand(bench: Workshop) -> None:
    run = bench.execute(
        echo("d", {"b": "steps.b.outputs.echo", "c": "steps.c.outputs.echo"}),
        echo("c", {"a": "steps.a.outputs.echo"}),
        echo("b", {"a": "steps.a.outputs.echo"}),
        echo("a", {"n": 1}),
    )
    of_a = {"a": {"n": 1}}
    assert steps_of(run)["d"]["outputs"] == {"echo": {"b": of_a, "c": of_a}}


# Shows that it runs by a process of its own, and waits for a file of the test.
MEETS = gives(
    '{"met": go.exists()}',
    "import subprocess, time\nfrom pathlib import Path\n"
    "running = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', inputs['mark']])\n"
    "go = Path(inputs['signals']) / 'go'\nend = time.monotonic() + 250\n"
    "while not go.exists() and time.monotonic() < end:\n    time.sleep(0.02)\nrunning.kill()\n",
)
SIGNALS = {"type": "string", "format": "readable-path"}


def test_outputs_stand_in_the_order_of_the_plan_whichever_step_ended_first(bench: Workshop) -> None:
    run = bench.execute(echo("z", depends_on=["a"]), echo("a"))
    assert list(run["outputs"]) == ["z", "a"]


def test_independent_branches_run_side_by_side(bench: Workshop) -> None:
    """Each of the two waits until both have begun."""
    bench.add("meets", MEETS, input_schema=opened(signals=SIGNALS))
    (bench.root / "signals").mkdir()
    marks = [f"meets-{secrets.token_hex(8)}" for _ in range(2)]

    def let_go() -> None:
        until(lambda: all(map(alive, marks)))
        (bench.root / "signals" / "go").touch()

    watching = threading.Thread(target=let_go)
    watching.start()
    run = bench.execute(
        *(step(f"s{at}", "meets.run", {"signals": "signals", "mark": mark}) for at, mark in enumerate(marks))
    )
    watching.join()
    assert [each["outputs"] for each in run["steps"]] == [{"met": True}] * 2


def test_no_more_run_side_by_side_than_the_limit(bench: Workshop) -> None:
    most = 2
    made = Workshop(bench.root, {"workflows": {"at_once": most}})
    counts = gives(
        '{"seen": seen}',
        "import os, time\nfrom pathlib import Path\nown = Path(inputs['log']) / inputs['me']\nown.touch()\n"
        "seen = 0\nfor _ in range(10):\n    seen = max(seen, len(os.listdir(inputs['log'])))\n    time.sleep(0.02)\n"
        "own.unlink()\n",
    )
    made.add("counts", counts, input_schema=opened(log=LOG))
    run = made.execute(*(step(f"s{n}", "counts.run", {"log": "log", "me": f"s{n}"}) for n in range(5)))
    assert run["status"] == "executed" and max(each["outputs"]["seen"] for each in run["steps"]) <= most
    made.close()


def test_a_failure_in_one_branch_leaves_what_another_has_done(bench: Workshop) -> None:
    run = bench.execute(step("a", "logs.run", {"log": "log"}), step("b", "fails.run", depends_on=["a"]))
    assert run["status"] == "execution_failed" and steps_of(run)["a"]["outputs"] == {"text": "logged"}


# Retries only where it is safe


@pytest.mark.parametrize(
    ("idempotency", "retries", "runs"),
    [
        ("safe", False, 2),
        ("unsafe", False, 1),
        ("unknown", False, 1),
        ("unsafe", True, 2),
        ("unknown", True, 2),
    ],
)
def test_a_step_is_tried_again_only_where_that_is_safe_or_the_step_says_so(
    bench: Workshop, idempotency: str, retries: bool, runs: int
) -> None:
    run = bench.execute(
        step("a", f"{idempotency}-fails.run", {"log": "log"}, on_failure="retry", retries=retries)
    )
    assert (bench.log(), steps_of(run)["a"]["attempts"], run["status"]) == (runs, runs, "execution_failed")


def test_a_second_attempt_that_goes_well_is_a_success(bench: Workshop) -> None:
    run = bench.execute(
        step("a", "safe-fails-once.run", {"log": "log"}, on_failure="retry"), echo("b", depends_on=["a"])
    )
    assert run["status"] == "executed" and steps_of(run)["a"]["attempts"] == 2


def test_a_step_that_shall_fail_is_not_tried_again(bench: Workshop) -> None:
    bench.execute(step("a", "safe-fails.run", {"log": "log"}, on_failure="fail"))
    assert bench.log() == 1


def test_inputs_that_do_not_fit_are_not_tried_again(bench: Workshop) -> None:
    bench.add("strict", LOGS, input_schema=closed(log=LOG, n={"type": "number"}), idempotency="safe")
    run = bench.execute(step("a", "strict.run", {"log": "log", "n": "three"}, on_failure="retry"))
    assert error_code(run, "a") == "validation" and steps_of(run)["a"]["attempts"] == 1 and bench.log() == 0


# Skips


def test_what_needs_a_missing_output_is_skipped_and_the_rest_runs(bench: Workshop) -> None:
    run = bench.execute(
        step("a", "fails.run", on_failure="skip"),
        echo("b", {"x": "steps.a.outputs.y"}),
        echo("c", {"x": "steps.b.outputs.echo"}),
        echo("d"),
    )
    assert statuses(run) == {"a": SKIPPED, "b": SKIPPED, "c": SKIPPED, "d": DONE} or statuses(run) == {
        "a": FAILED, "b": SKIPPED, "c": SKIPPED, "d": DONE,
    }  # fmt: skip
    assert run["status"] == "completed_with_skips"


def test_a_skipped_step_keeps_its_error(bench: Workshop) -> None:
    run = bench.execute(step("a", "fails.run", on_failure="skip"))
    assert error_code(run, "a") == "tool_failed"


# One deadline


def test_the_deadline_is_that_of_the_whole_run(bench: Workshop) -> None:
    mark = f"whole-{secrets.token_hex(8)}"
    bench.write("sleeps", SLEEPS)
    bench.add("meets", MEETS, input_schema=opened(signals=SIGNALS))
    (bench.root / "signals").mkdir()
    bench.policy(max_run_seconds=300)

    def pass_time() -> None:
        until(lambda: alive(f"first {mark}"))
        advance(200)
        (bench.root / "signals" / "go").touch()
        until(lambda: alive(mark))
        advance(200)  # more than is left of the limit, and not more than all of it

    with clock_of(ENGINE.loop) as advance:
        passing = threading.Thread(target=pass_time)
        passing.start()
        run = bench.execute(
            step("a", "meets.run", {"signals": "signals", "mark": f"first {mark}"}),
            step("b", "sleeps.run", {"mark": mark}, depends_on=["a"]),
            echo("c", depends_on=["b"]),
        )
        passing.join()
    assert (run["status"], run["exit_code"], error_code(run, "b")) == ("execution_failed", 1, "tool_timeout")
    assert statuses(run) == {"a": DONE, "b": LATE, "c": PENDING} and alive(mark) == []


def test_a_timeout_is_not_tried_again_when_no_time_is_left(bench: Workshop) -> None:
    bench.add("sleeps", SLEEPS, idempotency="safe")
    bench.policy(max_run_seconds=1, max_tool_retries=5)
    run = bench.execute(step("a", "sleeps.run", on_failure="retry"))
    assert error_code(run, "a") == "tool_timeout" and steps_of(run)["a"]["attempts"] == 1


# Who may run what: permissions hold for each step


def test_a_step_that_is_denied_fails_and_the_others_are_as_they_were(bench: Workshop) -> None:
    made = Workshop(bench.root, {"permissions": {"deny": ["utility__logs"]}})
    run = made.execute(echo("a"), step("b", "logs.run", {"log": "log"}, depends_on=["a"]))
    assert statuses(run) == {"a": DONE, "b": FAILED} and error_code(run, "b") == "permission_denied"
    assert made.log() == 0
    made.close()


def test_a_model_that_runs_a_plan_asks_the_person_for_each_step(bench: Workshop) -> None:
    plan = plan_of(
        step("a", "logs.run", {"log": "log"}),
        step("b", action="file__write", inputs={"path": "x.txt", "content": "x"}),
    )
    bench.answer = "deny"
    bench.turn(skill_call("workflow-executor", plan=plan))
    assert bench.questions != [] and bench.log() == 0 and not (bench.root / "x.txt").exists()
    bench.answer = "once"
    bench.turn(skill_call("workflow-executor", plan=plan))
    asked = {each.action for each in bench.questions}
    assert {"utility__logs", "file__write"} <= asked
    assert bench.log() == 1 and (bench.root / "x.txt").exists()


def test_consent_to_the_executor_is_none_to_its_steps(bench: Workshop) -> None:
    """A rule that allows the executor says nothing of what a plan calls."""
    made = Workshop(bench.root, {"permissions": {"allow": ["skill__workflow-executor"]}}, answer="deny")
    made.turn(skill_call("workflow-executor", plan=plan_of(step("a", "logs.run", {"log": "log"}))))
    assert made.log() == 0 and [each.action for each in made.questions] == ["utility__logs"]
    made.close()


def test_a_model_that_calls_a_utility_asks_and_the_question_shows_the_inputs(bench: Workshop) -> None:
    from tests.workflows.acceptance.workshop import utility_call

    bench.answer = "deny"
    trace, _ = bench.turn(utility_call("logs", log="log"))
    assert code_of(trace) == "permission_denied" and bench.log() == 0
    (question,) = bench.questions
    assert question.action == "utility__logs" and "log" in question.text


def test_each_step_is_a_call_of_the_one_record(bench: Workshop) -> None:
    trace, _ = bench.turn(skill_call("workflow-executor", plan=plan_of(echo("a"), echo("b"))))
    called = [each.label for inner in trace.all_inner for each in inner.calls]
    assert called == ["utility__echo", "utility__echo"]


def test_the_model_is_not_asked_while_a_plan_runs(bench: Workshop) -> None:
    bench.session.parts.model = model = ScriptedModel()
    bench.execute(echo("a"))
    assert model.requests == []
