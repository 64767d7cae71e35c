"""The file of a run is whole at each moment, holds no secret, and is what a run goes on from."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
from reyn_jupyter.support.secrets import Redactor
from reyn_jupyter.workflows.execution.executor import RunLimits, execute_plan, unstarted_run
from reyn_jupyter.workflows.execution.run_file import RunFile
from reyn_jupyter.workflows.execution.workflow_run import WorkflowRun
from reyn_jupyter.workflows.planning.plan import WorkflowPlan, WorkflowStep, read_plan
from reyn_jupyter.workflows.workflow_error import WorkflowError
from tests.support.processes import environment
from tests.workflows.execution.execution_support import Steps, graphs
from tests.workflows.execution.kill_program import MOMENTS, PLAN, run_plan

Outputs = Mapping[str, Any]


def journal(workspace: Path) -> list[str]:
    file = workspace / "journal"
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_at_any_moment_leaves_a_file_from_which_the_run_goes_on(moment: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.workflows.execution.kill_program", str(tmp_path), "killed", moment],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    run_file = RunFile(tmp_path, "killed")
    if moment == MOMENTS[0]:
        with pytest.raises(WorkflowError, match="no run killed"):
            run_file.read()
        assert run_plan(tmp_path, "killed").status == "executed"
        return
    before = run_file.read()
    was_done = {name for name, each in before.steps.items() if each.status == "done"}
    under_way = {name for name, each in before.steps.items() if each.status == "running"}
    begun = {line.split()[1] for line in journal(tmp_path) if line.startswith("begin")}
    # Whatever began is in the file, and what the file calls done has ended.
    assert begun <= was_done | under_way
    assert {f"end {name}" for name in was_done} <= set(journal(tmp_path))
    if under_way - {"b"}:
        with pytest.raises(WorkflowError, match="may have done") as caught:
            run_plan(tmp_path, "killed", resume=True)
        assert caught.value.details == {"steps": sorted(under_way)}
        assert run_file.read().steps == before.steps
        run = run_plan(tmp_path, "killed", resume=True, force=True)
    else:
        run = run_plan(tmp_path, "killed", resume=True)
    assert run.status == "executed"
    assert run.outputs["c"] == {"text": "oneabc", "file": "c.txt"}
    assert {each.step_id for each in run.steps if each.carried} == was_done
    lines = journal(tmp_path)
    assert all(lines.count(f"begin {name}") == 1 for name in {"a", "b", "c"} - under_way)
    assert not list(tmp_path.glob("state/runs/.*.part"))


def test_what_was_done_is_run_again_where_its_inputs_its_tool_or_its_files_are_others(tmp_path: Path) -> None:
    run_plan(tmp_path, "run")

    def resumed(**options: Any) -> list[str]:
        (tmp_path / "journal").unlink()
        (tmp_path / "journal").touch()
        assert run_plan(tmp_path, "run", resume=True, **options).status == "executed"
        return [line.split()[1] for line in journal(tmp_path) if line.startswith("begin")]

    assert resumed() == []
    (tmp_path / "b.txt").write_text("somebody else's")
    assert resumed() == ["b"]
    assert resumed(digest_of=lambda step: "another" if step.step_id == "b" else "") == ["b"]
    assert resumed() == ["b"]
    other = dataclasses.replace(PLAN, request_inputs={"text": "two"})
    assert resumed(plan=other) == ["a", "b", "c"]
    assert resumed(plan=other) == []


def test_a_result_that_is_lost_is_made_again_only_where_that_is_safe_and_stays_known_as_done(
    tmp_path: Path,
) -> None:
    run_plan(tmp_path, "run")
    (tmp_path / "a.txt").unlink()
    for _ in range(2):
        run = run_plan(tmp_path, "run", resume=True)
        assert (run.status, run.steps[0].status) == ("execution_failed", "failed")
        assert {each.status for each in RunFile(tmp_path, "run").read().steps.values()} == {"done"}
    assert journal(tmp_path).count("begin a") == 1
    assert run_plan(tmp_path, "run", resume=True, force=True).status == "executed"
    assert journal(tmp_path).count("begin a") == 2
    assert journal(tmp_path).count("begin c") == 1


@settings(max_examples=40)
@given(graphs())
def test_any_run_that_failed_goes_on_and_does_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[WorkflowPlan, dict[str, int], int]
) -> None:
    made, failures, width = case
    workspace = tmp_path_factory.mktemp("w")
    limits = RunLimits(600, max_tool_retries=0, max_parallel=width)
    first, second = Steps(failures), Steps()

    async def both() -> tuple[WorkflowRun, WorkflowRun]:
        begun = await execute_plan(made, call_step=first, limits=limits, run_file=RunFile(workspace, "run"))
        file = RunFile(workspace, "run")
        assert {name: each.status for name, each in file.read().steps.items()} == {
            each.step_id: each.status for each in begun.steps
        }
        return begun, await execute_plan(made, call_step=second, limits=limits, run_file=file, resume=True)

    begun, resumed = asyncio.run(both())
    done = {each.step_id for each in begun.steps if each.status == "done"}
    assert resumed.status == "executed"
    assert {each.step_id for each in resumed.steps if each.carried} == done
    assert sorted(second.calls) == sorted({each.step_id for each in made.steps} - done)
    assert {name: each["file"] for name, each in resumed.outputs.items()} == {
        each.step_id: f"{each.step_id}.bin" for each in made.steps
    }


def test_a_failed_run_goes_on_from_its_last_good_step_and_its_plan_can_be_read_from_its_file(
    tmp_path: Path,
) -> None:
    broken = tmp_path / "c.txt"
    broken.mkdir()
    assert run_plan(tmp_path, "run").status == "execution_failed"
    broken.rmdir()
    kept = read_plan(RunFile(tmp_path, "run").read().plan)
    assert kept.steps == PLAN.steps
    run = run_plan(tmp_path, "run", resume=True, plan=kept)
    assert run.status == "executed"
    assert [line for line in journal(tmp_path) if line.startswith("begin")] == [
        "begin a",
        "begin b",
        "begin c",
        "begin c",
    ]


def test_a_plan_that_may_not_run_any_more_takes_nothing_from_the_run_that_it_would_go_on_with(
    tmp_path: Path,
) -> None:
    run_plan(tmp_path, "run")
    before = (tmp_path / "state/runs/run.json").read_bytes()
    unserved = dataclasses.replace(
        PLAN, steps=(*PLAN.steps[:2], dataclasses.replace(PLAN.steps[2], tool=None))
    )
    assert run_plan(tmp_path, "run", resume=True, plan=unserved).status == "partial-complete"
    assert unstarted_run(PLAN, "blocked_by_policy", RunFile(tmp_path, "run")).exit_code == 4
    assert (tmp_path / "state/runs/run.json").read_bytes() == before


async def test_a_run_is_run_by_one_process_at_a_time_and_begun_once(tmp_path: Path) -> None:
    one = WorkflowPlan("one", steps=(WorkflowStep("a", action="test__wait"),))
    here, go_on = asyncio.Event(), asyncio.Event()

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Outputs:
        here.set()
        await go_on.wait()
        return {}

    first = asyncio.ensure_future(execute_plan(one, call_step=call, run_file=RunFile(tmp_path, "run")))
    await here.wait()
    for resume in (False, True):
        with pytest.raises(WorkflowError, match="under way"):
            await execute_plan(one, call_step=call, run_file=RunFile(tmp_path, "run"), resume=resume)
    go_on.set()
    assert (await first).status == "executed"
    with pytest.raises(WorkflowError, match="already"):
        await execute_plan(one, call_step=call, run_file=RunFile(tmp_path, "run"))


async def test_secrets_are_not_in_the_file_and_outputs_that_held_one_are_not_taken_for_whole(
    tmp_path: Path,
) -> None:
    redactor = Redactor({"DEMO_API_KEY": "correct-horse-battery"})
    made = WorkflowPlan(
        "secret",
        request_text="use correct-horse-battery",
        steps=(
            WorkflowStep("a", action="test__a", inputs={"token": "correct-horse-battery"}, retries=True),
            WorkflowStep("b", action="test__b", inputs={"token": "steps.a.outputs.token"}, retries=True),
        ),
    )
    given = []

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Outputs:
        given.append((step.step_id, inputs["token"]))
        if step.step_id == "b" and len(given) < 3:
            raise WorkflowError("correct-horse-battery is wrong", "", "tool_failed", {"retryable": False})
        return {"token": "correct-horse-battery"}

    run_file = RunFile(tmp_path, "run", redact=redactor.value)
    assert (await execute_plan(made, call_step=call, run_file=run_file)).status == "execution_failed"
    assert "correct-horse" not in run_file.path.read_text()
    run = await execute_plan(made, call_step=call, run_file=run_file, resume=True)
    assert run.status == "executed"
    # The first step ran again, since the file has no whole result of it; the second was given the secret itself.
    assert given == [(name, "correct-horse-battery") for name in ("a", "b", "a", "b")]
    assert "correct-horse" not in run_file.path.read_text()


async def test_large_outputs_lie_in_blobs_and_come_back_for_a_resume(tmp_path: Path) -> None:
    blobs = FsBlobStore(tmp_path / "blobs")
    made = WorkflowPlan(
        "large",
        steps=(
            WorkflowStep("a", action="test__a"),
            WorkflowStep("b", action="test__b", inputs={"text": "steps.a.outputs.text"}),
        ),
    )
    calls: list[tuple[str, int]] = []

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Outputs:
        calls.append((step.step_id, len(inputs.get("text", ""))))
        if step.step_id == "b" and len(calls) < 3:
            raise WorkflowError("Not yet.", "", "tool_failed")
        return {"text": "я" * 200_000}

    def file() -> RunFile:
        return RunFile(tmp_path, "run", store=blobs.store_bytes, load=blobs.load_bytes)

    await execute_plan(made, call_step=call, run_file=file())
    assert file().path.stat().st_size < 5_000
    run = await execute_plan(made, call_step=call, run_file=file(), resume=True)
    assert (run.status, calls) == ("executed", [("a", 0), ("b", 200_000), ("b", 200_000)])
    stored = file().read().steps["a"]
    assert await file().outputs_of(stored) == {"text": "я" * 200_000}
    assert await RunFile(tmp_path, "run").outputs_of(stored) is None


async def test_outputs_that_cannot_be_stored_end_the_run_and_their_step_stays_known_as_done(
    tmp_path: Path,
) -> None:
    made = WorkflowPlan(
        "large",
        steps=(WorkflowStep("a", action="test__a"), WorkflowStep("b", action="test__b", depends_on=("a",))),
    )
    calls: list[str] = []

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Outputs:
        calls.append(step.step_id)
        return {"text": "x" * 100_000}

    async def store(data: bytes) -> str:
        raise OSError("No space left on device")

    run_file = RunFile(tmp_path, "run", store=store)
    run = await execute_plan(made, call_step=call, run_file=run_file)
    assert (run.status, calls) == ("execution_failed", ["a"])
    assert "No space left" in run.problem
    assert run_file.read().steps["a"].status == "done"
    assert run_file.path.stat().st_size < 5_000
    # Whether the step may run twice is not known, so that is asked about, and not decided.
    run = await execute_plan(made, call_step=call, run_file=RunFile(tmp_path, "run"), resume=True)
    assert (run.status, calls) == ("execution_failed", ["a"])
    run = await execute_plan(made, call_step=call, run_file=RunFile(tmp_path, "run"), resume=True, force=True)
    assert (run.status, calls) == ("executed", ["a", "a", "b"])


async def test_an_interrupt_between_the_end_of_a_step_and_its_record_waits_for_the_record(
    tmp_path: Path,
) -> None:
    storing, go_on = asyncio.Event(), asyncio.Event()

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Outputs:
        return {"text": "x" * 100_000}

    async def store(data: bytes) -> str:
        storing.set()
        await go_on.wait()
        return "a-blob"

    made = WorkflowPlan("one", steps=(WorkflowStep("a", action="test__a"),))
    run_file = RunFile(tmp_path, "run", store=store)
    running = asyncio.ensure_future(execute_plan(made, call_step=call, run_file=run_file))
    await storing.wait()
    running.cancel()
    asyncio.get_running_loop().call_later(0.01, go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await running
    stored = run_file.read()
    assert (stored.status, stored.steps["a"].status) == ("interrupted", "done")
    assert stored.steps["a"].outputs_blob == "a-blob"


@contextmanager
def full_disk(size: int = 0) -> Iterator[None]:
    """Let files of this process grow to so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_on_a_full_disk_no_step_begins_that_the_file_does_not_know(tmp_path: Path) -> None:
    calls: list[str] = []
    made = WorkflowPlan(
        "full",
        steps=(
            WorkflowStep("a", action="test__a"),
            WorkflowStep("b", action="test__b", inputs={"text": "steps.a.outputs.text"}),
        ),
    )

    size = 50_000

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Outputs:
        calls.append(step.step_id)
        return {"text": "x" * size}

    with full_disk():
        run = await execute_plan(made, call_step=call, run_file=RunFile(tmp_path, "none"))
    assert (run.status, calls, run.missing) == ("execution_failed", [], ("a test__a", "b test__b"))
    assert "cannot be written" in run.problem
    assert "cannot be written" in run.text

    run_file = RunFile(tmp_path, "half")
    with full_disk(10_000):
        run = await execute_plan(made, call_step=call, run_file=run_file)
    assert (run.status, calls) == ("execution_failed", ["a"])
    assert [each.status for each in run.steps] == ["done", "not_run"]
    # The file is the last whole one: the first step was under way, which a resume has to ask about.
    assert run_file.read().steps["a"].status == "running"

    calls, size = [], 5_000  # room for the outputs of the first, and none for the inputs of the second
    with full_disk(10_000):
        run = await execute_plan(made, call_step=call, run_file=RunFile(tmp_path, "later"))
    assert (run.status, calls) == ("execution_failed", ["a"])
    assert [each.status for each in run.steps] == ["done", "not_run"]
    stored = RunFile(tmp_path, "later").read().steps
    assert [stored[name].status for name in ("a", "b")] == ["done", "waiting"]
    assert not list(tmp_path.glob("state/runs/.*.part"))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"format": 99}',
        b'{"format": 1, "run_id": "run", "status": "executed", "plan": {}, "steps": [1]}',
        b'{"format": 1, "run_id": "run", "status": "fine", "plan": {}, "steps": []}',
        b'{"format": 1, "run_id": "run", "status": "executed", "plan": {}, "steps": [{"step_id": "a"}]}',
        (
            b'{"format": 1, "run_id": "run", "status": "executed", "plan": {}, "steps": [{"step_id": "a", '
            b'"status": "done", "attempts": [{}]}]}'
        ),
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_an_error_and_nothing_runs(content: bytes, tmp_path: Path) -> None:
    run_file = RunFile(tmp_path, "run")
    run_file.path.parent.mkdir(parents=True)
    run_file.path.write_bytes(content)
    with pytest.raises(WorkflowError, match="The file of the run run cannot be read") as caught:
        run_plan(tmp_path, "run", resume=True)
    assert caught.value.code == "validation"
    assert run_file.path.read_bytes() == content
    assert journal(tmp_path) == []


def test_no_id_leads_elsewhere_and_no_link_is_followed(tmp_path: Path) -> None:
    for run_id in ("../x", "a/b", ".hidden", "x" * 65, "a b", "a\n"):
        with pytest.raises(WorkflowError, match="is no id of a run"):
            RunFile(tmp_path, run_id)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "state").symlink_to(elsewhere)
    run = run_plan(workspace, "run")
    assert run.status == "execution_failed"
    assert list(elsewhere.iterdir()) == []


def test_an_artifact_is_a_file_of_the_workspace_and_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("of somebody else")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "link.txt").symlink_to(outside)
    (workspace / "file.txt").write_text("text")
    os.mkfifo(workspace / "pipe")
    paths = ["file.txt", "link.txt", "../outside.txt", str(outside), "pipe", "nowhere", "nul\0"]
    found = RunFile(workspace).artifacts(paths)
    assert [(each.path, each.size) for each in found if each.sha256] == [("file.txt", 4)]


def test_what_is_in_state_is_kept_out_of_version_control_and_for_people_to_read(tmp_path: Path) -> None:
    run_plan(tmp_path, "run")
    assert (tmp_path / "state/.gitignore").read_text() == "*\n"
    data = json.loads((tmp_path / "state/runs/run.json").read_text())
    assert [data["run_id"], data["status"], data["exit_code"]] == ["run", "executed", 0]
    assert [each["outputs"]["text"] for each in data["steps"]] == ["onea", "oneab", "oneabc"]
    assert (tmp_path / "state/runs/run.json").stat().st_mode & 0o777 == 0o600
