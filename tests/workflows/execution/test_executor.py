"""Plans are run in order and within their limits, and what each step came to is told as it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from reyn_jupyter.runtime.deadline import deadlines_paused
from reyn_jupyter.workflows.execution.executor import (
    FIRST_WAIT,
    ExecutionEvent,
    RunLimits,
    execute_plan,
    unstarted_run,
)
from reyn_jupyter.workflows.execution.run_file import RunFile
from reyn_jupyter.workflows.planning.plan import Gap, WorkflowPlan, WorkflowStep
from reyn_jupyter.workflows.workflow_error import WorkflowError
from tests.support.waiting import LoopClock
from tests.workflows.execution.execution_support import Steps, failure, graphs, plan, step


async def test_outputs_reach_the_steps_that_refer_to_them_and_values_that_look_like_references_stay_text(
    tmp_path: Path,
) -> None:
    steps = Steps()
    run = await execute_plan(
        plan(
            step("upload", {"file": "steps.fetch.outputs.file", "to": "request.inputs.folder"}),
            step(
                "fetch", {"url": {"$value": "steps.upload.outputs.file"}, "name": "; rm -rf x $(touch pwn)"}
            ),
            request_inputs={"folder": "steps.fetch.outputs.file"},
        ),
        call_step=steps,
        run_file=RunFile(tmp_path),
    )
    assert (run.status, run.exit_code, steps.calls) == ("executed", 0, ["fetch", "upload"])
    assert steps.inputs == {
        "fetch": {"url": "steps.upload.outputs.file", "name": "; rm -rf x $(touch pwn)"},
        "upload": {"file": "fetch.bin", "to": "steps.fetch.outputs.file"},
    }
    assert run.text == "The task is done.\nDone:\n  upload test.upload\n  fetch test.fetch"


async def test_of_a_plan_with_gaps_nothing_runs(tmp_path: Path) -> None:
    gap = Gap("tg.scrape", "no_capability_match", "No utility has it.", {}, "tg-scrape", {}, {}, "high", "b")
    steps = Steps()
    for lacking in (
        plan(step("a"), step("b"), gaps=(gap,), status="partial-complete"),
        plan(step("a"), WorkflowStep("b", "tg.scrape")),
    ):
        run_file = RunFile(tmp_path)
        run = await execute_plan(lacking, call_step=steps, run_file=run_file)
        assert (run.status, run.exit_code, steps.calls) == ("partial-complete", 2, [])
        assert run.missing[0] == "a test.a"
        assert run_file.read().status == "partial-complete"
    empty = await execute_plan(plan(status="unroutable"), call_step=steps)
    assert (empty.status, empty.exit_code) == ("unroutable", 3)
    blocked = unstarted_run(plan(step("a")), "blocked_by_policy", problem="The policy denies test.a.")
    assert (blocked.exit_code, blocked.missing) == (4, ("a test.a",))
    assert "denies" in blocked.text


async def test_a_plan_that_is_none_is_refused_before_anything_runs() -> None:
    steps = Steps()
    for wrong in (
        plan(step("a", {"x": "steps.b.outputs.x"}), step("b", {"x": "steps.a.outputs.x"})),
        plan(step("a"), step("a")),
        plan(step("a", {"x": "steps.nowhere.outputs.x"})),
    ):
        with pytest.raises(WorkflowError) as caught:
            await execute_plan(wrong, call_step=steps)
        assert caught.value.code == "plan_invalid"
        assert caught.value.details["problems"]
    assert steps.calls == []


async def test_a_step_is_tried_again_only_where_that_is_safe_or_the_plan_says_so() -> None:
    limits = RunLimits(max_tool_retries=2)
    waits: list[float] = []

    def listen(event: ExecutionEvent) -> None:
        waits.extend([event.wait] if event.kind == "step_retried" else [])

    async def tries(one: WorkflowStep, error: WorkflowError | int, *, safe: bool = False) -> int:
        steps = Steps({"a": error})
        run = await execute_plan(
            plan(one), call_step=steps, limits=limits, is_safe=lambda step: safe, on_event=listen
        )
        assert len(run.steps[0].attempts) == len(steps.calls)
        return len(steps.calls)

    assert await tries(step("a"), 9) == 1
    assert await tries(step("a"), 9, safe=True) == 1
    again = "retry"
    assert await tries(step("a", on_failure=again), 9) == 1
    assert await tries(step("a", on_failure=again), 9, safe=True) == 3
    assert await tries(step("a", on_failure=again), 1, safe=True) == 2
    assert await tries(step("a", on_failure=again, retries=True), 9) == 3
    assert await tries(step("a", on_failure=again), failure("validation"), safe=True) == 1
    assert await tries(step("a", on_failure="retry"), failure(retryable=False)) == 1
    # Waits are drawn from a bound that doubles: half a second, then one.
    assert all(0 <= wait <= bound for wait, bound in zip(waits[:2], (0.5, 1.0), strict=True))
    assert len(set(waits)) == len(waits)


async def test_the_bound_of_a_wait_doubles_and_what_is_drawn_below_it_differs() -> None:
    async def waits() -> list[float]:
        heard: list[float] = []

        async def fail(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> dict[str, Any]:
            raise failure()

        await execute_plan(
            plan(step("a", on_failure="retry", retries=True)), call_step=fail, limits=RunLimits(60, 3),
            on_event=lambda event: heard.append(event.wait) if event.kind == "step_retried" else None,
        )  # fmt: skip
        return heard

    drawn = await asyncio.gather(*(waits() for _ in range(12)))
    for each in drawn:
        assert len(each) == 3 and all(wait <= FIRST_WAIT * 2**at for at, wait in enumerate(each))
    first, _, third = (set(column) for column in zip(*drawn, strict=True))
    assert len(first) > 1 and max(third) > FIRST_WAIT


async def test_a_wait_that_would_outlast_the_run_is_not_begun() -> None:
    clock = LoopClock()

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Mapping[str, Any]:
        clock.advance(seconds - 1e-9)
        raise failure()

    run = await execute_plan(
        plan(step("a", retries=True)), call_step=call, limits=RunLimits(60, max_tool_retries=5)
    )
    assert (run.status, len(run.steps[0].attempts)) == ("execution_failed", 1)


async def test_one_deadline_holds_for_the_whole_run_and_each_try_gets_what_remains(tmp_path: Path) -> None:
    clock = LoopClock()
    left, ended = [], []

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Mapping[str, Any]:
        left.append(round(seconds))
        if step.step_id == "slow":
            asyncio.get_running_loop().call_soon(clock.advance, 100)
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(step.step_id)
        clock.advance(60)
        return {}

    run_file = RunFile(tmp_path)
    run = await execute_plan(
        plan(step("quick"), step("slow", depends_on=("quick",)), step("last", depends_on=("slow",))),
        call_step=call,
        limits=RunLimits(max_run_seconds=100),
        run_file=run_file,
        is_safe=lambda step: True,
    )
    assert (run.status, run.exit_code, left, ended) == ("execution_failed", 1, [100, 40], ["slow"])
    assert [each.status for each in run.steps] == ["done", "timed_out", "not_run"]
    assert run.steps[1].error is not None
    assert run.steps[1].error["code"] == "tool_timeout"
    assert run.missing == ("slow test.slow", "last test.last")
    stored = run_file.read()
    assert {name: each.status for name, each in stored.steps.items()} == {
        "quick": "done",
        "slow": "timed_out",
        "last": "not_run",
    }


async def test_the_time_of_a_run_stands_still_while_a_step_waits_for_the_person() -> None:
    clock = LoopClock()
    left = []

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Mapping[str, Any]:
        left.append(round(seconds))
        with deadlines_paused():
            clock.advance(1_000)
            await asyncio.sleep(0.01)
        return {}

    run = await execute_plan(
        plan(step("a"), step("b", depends_on=("a",))), call_step=call, limits=RunLimits(max_run_seconds=100)
    )
    assert (run.status, left) == ("executed", [100, 100])


async def test_a_step_that_ignores_its_end_is_let_go_and_changes_nothing_any_more(tmp_path: Path) -> None:
    clock = LoopClock()
    go_on, over = asyncio.Event(), asyncio.Event()

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Mapping[str, Any]:
        loop = asyncio.get_running_loop()
        loop.call_soon(clock.advance, 100)
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                loop.call_soon(clock.advance, 100)
        over.set()
        return {"late": True}

    run_file = RunFile(tmp_path)
    run = await execute_plan(plan(step("a")), call_step=call, limits=RunLimits(100), run_file=run_file)
    assert (run.status, run.steps[0].status) == ("execution_failed", "timed_out")
    written = run_file.path.read_bytes()
    go_on.set()
    await over.wait()
    await asyncio.sleep(0.01)
    assert run_file.path.read_bytes() == written


async def test_a_skipped_step_takes_along_what_needs_it_and_nothing_else() -> None:
    steps = Steps({"b": 9})
    run = await execute_plan(
        plan(
            step("a"),
            step("b", on_failure="skip"),
            step("c", {"x": "steps.b.outputs.file"}),
            step("d", depends_on=("c",)),
            step("e", depends_on=("a",)),
        ),
        call_step=steps,
    )
    assert (run.status, run.exit_code) == ("completed_with_skips", 0)
    assert [each.status for each in run.steps] == ["done", "skipped", "skipped", "skipped", "done"]
    assert sorted(steps.calls) == ["a", "b", "e"]
    assert run.text.startswith("The task is partly done: 3 of 5 steps were skipped.")
    assert run.missing == ("b test.b", "c test.c", "d test.d")


async def test_a_failure_begins_nothing_further_and_lets_what_is_under_way_end() -> None:
    go_on = asyncio.Event()
    calls = []

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Mapping[str, Any]:
        calls.append(step.step_id)
        if step.step_id == "fails":
            asyncio.get_running_loop().call_soon(go_on.set)
            raise failure()
        await go_on.wait()
        return {"x": 1}

    run = await execute_plan(
        plan(step("fails"), step("beside"), step("later", depends_on=("beside",))), call_step=call
    )
    assert [each.status for each in run.steps] == ["failed", "done", "not_run"]
    assert (calls, run.outputs) == (["fails", "beside"], {"beside": {"x": 1}})


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (None, "tool_invalid_output"),
        ({"x": {1, 2}}, "tool_invalid_output"),
        ({"x": float("nan")}, "tool_invalid_output"),
    ],
)
async def test_what_gives_no_json_object_has_failed(given: Any, code: str) -> None:
    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Mapping[str, Any]:
        return given

    run = await execute_plan(plan(step("a")), call_step=call)
    assert run.steps[0].error is not None
    assert (run.status, run.steps[0].error["code"], run.outputs) == ("execution_failed", code, {})


async def test_a_surprise_in_a_step_is_a_failure_of_that_step() -> None:
    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Mapping[str, Any]:
        raise TimeoutError("of its own") if step.step_id == "a" else ZeroDivisionError("division by zero")

    run = await execute_plan(
        plan(step("a", on_failure="skip", retries=True), step("b", retries=True)), call_step=call
    )
    assert [(each.error or {})["message"] for each in run.steps] == [
        "TimeoutError: of its own",
        "ZeroDivisionError: division by zero",
    ]
    assert [len(each.attempts) for each in run.steps] == [1, 1]


async def test_an_interrupt_ends_what_is_under_way_writes_it_and_goes_on_up(tmp_path: Path) -> None:
    started, ended = asyncio.Event(), []

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Mapping[str, Any]:
        if step.step_id == "a":
            return {}
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(step.step_id)
        return {}

    run_file = RunFile(tmp_path)
    task = asyncio.ensure_future(
        execute_plan(
            plan(step("a"), step("b", depends_on=("a",)), step("c", depends_on=("b",))),
            call_step=call,
            run_file=run_file,
        )
    )
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    stored = run_file.read()
    assert (stored.status, ended) == ("interrupted", ["b"])
    assert [each.status for each in stored.steps.values()] == ["done", "interrupted", "not_run"]


async def test_listeners_hear_each_step_begin_and_end_in_the_order_of_the_run() -> None:
    heard: list[tuple[str, str, str]] = []

    def listen(event: ExecutionEvent) -> None:
        step = event.step
        heard.append((event.kind, step.step_id if step else "", step.status if step else ""))

    await execute_plan(
        plan(step("a"), step("b", depends_on=("a",))), call_step=Steps({"b": 1}), on_event=listen
    )
    assert heard == [
        ("run_started", "", ""),
        ("step_started", "a", "running"),
        ("step_ended", "a", "done"),
        ("step_started", "b", "running"),
        ("step_ended", "b", "failed"),
        ("run_ended", "", ""),
    ]


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_any_graph_runs_in_order_and_each_step_ends_as_what_it_needs_lets_it(
    case: tuple[WorkflowPlan, dict[str, int], int],
) -> None:
    made, failures, width = case
    steps = Steps(failures)
    ended: list[str] = []

    def listen(event: ExecutionEvent) -> None:
        if event.kind == "step_ended" and event.step is not None and event.step.status == "done":
            ended.append(event.step.step_id)
        if event.kind == "step_started" and event.step is not None:
            assert set(made.step(event.step.step_id).needed_steps) <= set(ended)

    limits = RunLimits(600, max_tool_retries=0, max_parallel=width)
    run = asyncio.run(execute_plan(made, call_step=steps, limits=limits, on_event=listen))
    states = {each.step_id: each for each in run.steps}
    assert steps.most_under_way <= width
    assert len(steps.calls) == len(set(steps.calls))
    for each in made.steps:
        state, broken = states[each.step_id], failures[each.step_id] > 0
        needed = {states[at].status for at in each.needed_steps}
        if state.status == "done":
            assert needed <= {"done"}
            assert not broken
        elif state.status == "skipped":
            assert ("skipped" in needed) != (each.step_id in steps.calls)
        elif state.status == "failed":
            assert broken
            assert each.on_failure != "skip"
        else:
            assert state.status == "not_run"
            assert run.status == "execution_failed"
    counted = {each.status for each in run.steps}
    expected = (
        "execution_failed"
        if counted & {"failed", "not_run"}
        else "completed_with_skips"
        if "skipped" in counted
        else "executed"
    )
    assert run.status == expected
    assert set(run.outputs) == {name for name, each in states.items() if each.status == "done"}
    assert len(run.missing) == sum(each.status != "done" for each in run.steps)
    json.dumps(run.as_json())
