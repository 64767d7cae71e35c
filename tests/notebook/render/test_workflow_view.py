"""Plans and their runs as views: states in words, gaps with what closes them, files, and the same on every host."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.notebook.render.blocks import Chart, Commands, View
from reyn_jupyter.notebook.render.hosts.html import HTML_BYTES
from reyn_jupyter.notebook.render.workflow_view import MOST_DRAWN
from reyn_jupyter.sessions.workflows.plan_run import PlanRun
from reyn_jupyter.workflows.execution.workflow_run import StepArtifact, StepAttempt, StepRun, WorkflowRun
from reyn_jupyter.workflows.planning.coverage import request_gap
from reyn_jupyter.workflows.planning.plan import Gap, WorkflowPlan, WorkflowStep
from tests.notebook.render.samples import ALLOWED, Reader
from tests.notebook.render.workflow_samples import workflow_objects

FETCH = WorkflowStep("step-1", "youtube.download", tool="youtube-downloader@1.0.0", inputs={"url": "a"})
STORE = WorkflowStep("step-2", "drive.upload", inputs={"file_path": "steps.step-1.outputs.file_path"})
GAP = Gap(
    "drive.upload",
    "no_capability_match",
    "No utility declares it.",
    {},
    "drive-upload",
    {},
    {},
    "high",
    "step-2",
)
PLAN = WorkflowPlan("p", "fetch it\nand store it", {}, (FETCH, STORE), (GAP,), "partial-complete")
WHOLE = WorkflowPlan("p", "fetch and store", {}, (FETCH, STORE))


def text_of(shown: object) -> str:
    return to_text(view(shown))


def chart_of(shown: View) -> Chart:
    (chart,) = [block for block in shown.blocks if isinstance(block, Chart)]
    return chart


def picture_of(shown: View) -> str:
    return base64.b64decode(chart_of(shown).data).decode()


def run_of(status: Any, *steps: StepRun, text: str = "It is over.", **more: Any) -> PlanRun:
    return PlanRun(WHOLE, WorkflowRun("run-1", status, steps, {}, text, **more), ("a line",))


def test_a_gap_that_is_no_capability_has_no_line_that_could_not_work() -> None:
    words = request_gap("sing it, loudly", "No rule takes it.")
    shown = view(WorkflowPlan("p", "sing it, loudly", {}, (), (words, GAP), "unroutable"))
    (commands,) = [block for block in shown.blocks if isinstance(block, Commands)]
    assert commands.lines == ("%reyn scaffold drive.upload",)


def test_a_plan_shows_what_serves_each_step_and_what_waits_for_what() -> None:
    shown = view(WHOLE)
    assert "youtube-downloader@1.0.0" in picture_of(shown) and picture_of(shown).count("marker-end") == 1
    assert chart_of(shown).words == (
        "step-1: youtube.download (ready); step-2: drive.upload (ready) after step-1"
    )
    assert "[complete]" in to_text(shown) and "2 steps" in to_text(shown)


def test_a_gap_is_seen_in_the_picture_and_has_its_reason_and_the_line_that_closes_it() -> None:
    shown = view(PLAN)
    text = to_text(shown)
    assert "Plan: fetch it and store it  [partial-complete]" in text  # on one line
    assert "no_capability_match" in text and "1 gap" in text
    assert ">gap</text>" in picture_of(shown)
    (close,) = [block for block in shown.blocks if isinstance(block, Commands)]
    assert close.lines == ("%reyn scaffold drive.upload",)


def test_what_is_no_capability_is_not_offered_to_be_scaffolded() -> None:
    gap = Gap("translate it", "invalid_capability", "It is none.", {}, "translate", {}, {}, "high")
    shown = view(WorkflowPlan("p", "translate it", {}, (), (gap,), "unroutable", ("Configure a model.",)))
    assert [block for block in shown.blocks if isinstance(block, Commands)] == []
    assert "Configure a model." in to_text(shown)


def test_a_run_says_its_states_its_files_and_how_long_each_step_took() -> None:
    done = StepRun(
        "step-1", "youtube.download", status="done", outputs={"file_path": "runs/talk.mp4"},
        attempts=(StepAttempt(0.0, 1.5),), artifacts=(StepArtifact("runs/talk.mp4", "0" * 64, 3),),
    )  # fmt: skip
    failed = StepRun("step-2", "drive.upload", status="failed", error={"message": "the pipe is broken"})
    shown = view(run_of("execution_failed", done, failed, seconds=2.0))
    text = to_text(shown)
    assert "plan of 2 steps, 1 done" in text and "the policy allows it" in text
    assert "step-2 drive.upload: the pipe is broken" in text
    assert "done · 1.50 s" in picture_of(shown) and "[execution failed]" in text
    assert "Files\n" in text and "runs/talk.mp4" in text
    assert "%reyn dispatch --resume run-1" in text and "It is over." in text


def test_a_run_that_is_whole_has_nothing_to_go_on_with() -> None:
    assert "--resume" not in text_of(run_of("executed", StepRun("step-1", "a.b", status="done")))


def test_a_dry_run_says_each_command_once() -> None:
    step = StepRun(
        "step-1", "youtube.download", status="preview", inputs={"url": "a"}, reason="python main.py"
    )
    text = text_of(run_of("preview", step, text="A preview: nothing ran.\nWould run:\n  step-1"))
    assert text.count("Would run") == 1 and 'step-1: python main.py  <  {"url": "a"}' in text
    assert "nothing ran" in text.splitlines()[1]


def test_a_policy_that_forbids_is_said_first() -> None:
    shown = view(run_of("blocked_by_policy", problem="'drive.upload' is denied."))
    assert "[blocked by policy]" in to_text(shown) and "the policy forbids it" in to_text(shown)
    assert "'drive.upload' is denied." in str(shown.blocks[0])


@pytest.mark.parametrize("kind", ["plan", "plan_run"])
def test_texts_of_others_are_text_on_a_page_and_in_the_picture(kind: str) -> None:
    shown = view(workflow_objects("</svg></pre><script>alert(1)</script>\x1b[2J")[kind])
    page = Reader(to_html(shown))
    assert {tag for tag, _ in page.tags} <= ALLOWED.keys() | {"style"} and "\x1b" not in page.text
    assert "<script" not in picture_of(shown) and "\x1b" not in picture_of(shown) + to_text(shown)


def test_a_long_plan_is_a_table_within_the_bounds_of_a_view() -> None:
    steps = tuple(
        WorkflowStep(f"s{at}", "a.b", inputs={"text": "x" * 5_000}) for at in range(MOST_DRAWN + 40)
    )
    shown = view(WorkflowPlan("p", "all of it", {}, steps))
    assert chart_of(shown).mime == "" and len(chart_of(shown).table.rows) == len(steps)
    assert len(to_html(shown).encode()) <= HTML_BYTES
    assert "and 40 more" in chart_of(shown).words
