"""A dry run shows commands and inputs of every step, and the summary of a run says what was done and what was not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reyn_jupyter.workflows.execution.dry_run import dry_run
from reyn_jupyter.workflows.execution.summary import summary_text
from reyn_jupyter.workflows.execution.workflow_run import StepRun
from reyn_jupyter.workflows.planning.plan import Gap, WorkflowPlan, WorkflowStep


def test_a_dry_run_shows_every_step_with_what_is_known_of_it_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = WorkflowPlan(
        "a-plan",
        request_inputs={"folder": "Videos; rm -rf x"},
        steps=(
            WorkflowStep(
                "upload",
                "drive.upload",
                tool="uploader@1.0.0",
                inputs={"file": "steps.fetch.outputs.file", "to": "request.inputs.folder"},
            ),
            WorkflowStep("fetch", "youtube.download", tool="loader@1.0.0", inputs={"url": "https://x.test/"}),
            WorkflowStep("note", action="memory__remember", inputs={"text": "$(touch pwn)"}),
        ),
    )
    shown = dry_run(plan, lambda step: ("sh", f"{step.step_id}.sh") if step.tool else None)
    assert [(each.step.step_id, each.argv, each.layer) for each in shown.steps] == [
        ("fetch", ("sh", "fetch.sh"), 0),
        ("note", None, 0),
        ("upload", ("sh", "upload.sh"), 1),
    ]
    assert shown.steps[2].inputs == {"file": "steps.fetch.outputs.file", "to": "Videos; rm -rf x"}
    assert (shown.run.status, shown.run.exit_code) == ("preview", 0)
    assert list(tmp_path.iterdir()) == []
    json.dumps(shown.as_json())


def test_a_dry_run_of_a_plan_with_gaps_says_that_it_would_not_run() -> None:
    gap = Gap("tg.scrape", "no_capability_match", "No utility has it.", {}, "tg-scrape", {}, {}, "high", "a")
    plan = WorkflowPlan("p", steps=(WorkflowStep("a", "tg.scrape"),), gaps=(gap,), status="partial-complete")
    shown = dry_run(plan)
    assert (shown.run.status, shown.run.exit_code, len(shown.steps)) == ("partial-complete", 2, 1)
    assert shown.run.missing == ("a tg.scrape",)


def test_the_summary_names_what_was_done_and_what_was_not_and_shows_text_of_programs_as_text() -> None:
    done = StepRun("step-1", "youtube.download", status="done")
    failed = StepRun(
        "step-2",
        "drive.upload",
        status="failed",
        error={"code": "tool_failed", "message": "no room \x1b[31m" + "x" * 1_000},
    )
    text = summary_text("execution_failed", [done, failed, StepRun("step-3", "mail.send", status="not_run")])
    lines = text.splitlines()
    assert lines[:3] == ["The task is not done.", "Done:", "  step-1 youtube.download"]
    assert lines[3] == "Not done:"
    assert lines[4].startswith("  step-2 drive.upload: no room ")
    assert "\x1b" not in text
    assert len(lines[4]) < 400
    assert lines[5] == "  step-3 mail.send"
