"""Workflows kept as files are read with every problem at once, judged by their bytes, and come back as written."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.workflows.execution.executor import execute_plan
from reyn_jupyter.workflows.execution.workflow_file import (
    Workflow,
    parse_workflow,
    read_workflows,
    write_workflow,
)
from reyn_jupyter.workflows.planning.plan import WorkflowStep
from reyn_jupyter.workflows.planning.references import escape_literal
from reyn_jupyter.workflows.workflow_error import WorkflowError

TEXT = """
description: Downloads a video and uploads it.
inputs:
  properties:
    url: {type: string}
    folder: {type: string, default: Videos}
  required: [url]
steps:
  - step_id: fetch
    capability: youtube.download
    inputs: {url: request.inputs.url}
    on_failure: retry
  - step_id: upload
    capability: drive.upload
    inputs: {file_path: steps.fetch.outputs.file_path, folder: request.inputs.folder}
outputs:
  link: steps.upload.outputs.link
  from: request.inputs.url
"""


def problems_of(text: str, file: str = "skills/to-drive.yaml") -> dict[str, str]:
    with pytest.raises(WorkflowError) as caught:
        parse_workflow(text.encode(), file)
    assert caught.value.code == "plan_invalid"
    assert {each["file"] for each in caught.value.details["problems"]} == {file}
    return {each["path"]: each["message"] for each in caught.value.details["problems"]}


async def test_a_workflow_runs_with_its_inputs_and_defaults_and_gives_what_it_names() -> None:
    workflow = parse_workflow(TEXT.encode(), "skills/to-drive.yaml")
    plan = workflow.plan({"url": "steps.upload.outputs.link"})
    assert [(each.step_id, each.on_failure, each.needed_steps) for each in plan.steps] == [
        ("fetch", "retry", ()),
        ("upload", "fail", ("fetch",)),
    ]

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> dict[str, Any]:
        if step.step_id == "fetch":
            return {"file_path": f"{inputs['url']}.mp4"}
        return {"link": f"{inputs['folder']}/{inputs['file_path']}"}

    served = dataclasses.replace(
        plan, steps=tuple(dataclasses.replace(each, tool="t@1.0.0") for each in plan.steps)
    )
    run = await execute_plan(served, call_step=call)
    # What a person gives stays text, even where it looks like a reference.
    assert workflow.result(run, {"url": "steps.upload.outputs.link"}) == {
        "link": "Videos/steps.upload.outputs.link.mp4",
        "from": "steps.upload.outputs.link",
    }


def test_inputs_that_are_missing_or_unknown_are_named_at_once() -> None:
    workflow = parse_workflow(TEXT.encode(), "skills/to-drive.yaml")
    with pytest.raises(WorkflowError) as caught:
        workflow.plan({"ulr": "x"})
    assert caught.value.code == "validation"
    assert [each["path"] for each in caught.value.details["problems"]] == ["/url", "/ulr"]
    assert "did you mean 'url'" in str(caught.value)


def test_every_problem_of_a_file_is_told_with_its_place() -> None:
    wrong = TEXT.replace("    capability: youtube.download\n", "")
    wrong = wrong.replace("request.inputs.folder", "request.inputs.floder")
    wrong = wrong.replace("link: steps.upload.outputs.link", "link: steps.uplod.outputs.link")
    found = problems_of(wrong)
    assert set(found) == {"/steps/0", "/steps/1/inputs/folder"}
    assert "did you mean 'folder'" in found["/steps/1/inputs/folder"]
    assert set(problems_of(TEXT.replace("steps.upload.outputs.link", "steps.uplod.outputs.link"))) == {
        "/outputs/link"
    }
    assert set(problems_of(TEXT.replace(", default: Videos", ""))) == {"/steps/1/inputs/folder"}
    assert set(problems_of(TEXT.replace("type: string}", "$ref: '#/x'}"))) == {"/inputs"}
    assert set(problems_of(TEXT + "setps: []\n")) == {"/setps"}
    assert set(problems_of("steps: []\ndescription: short\n")) == {"/steps", "/description"}
    assert set(problems_of(TEXT, "skills/policy-engine.yaml")) == {"/name"}
    assert set(problems_of(TEXT, "skills/To Drive.yaml")) == {"/name"}
    assert set(problems_of("name: other\n" + TEXT)) == {"/name"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "description: [",
        "a: &a [x]\nb: [*a, *a, *a]\n" * 2,
        "description: !!python/object/apply:os.system [touch pwn]\n",
        "x: " + "[" * 100 + "]" * 100,
        "a: &a [1]\n" + "".join(f"k{at}: &k{at} [*{(at and f'k{at - 1}') or 'a'}, *a]\n" for at in range(300)),
        "description: a\0b\n",
    ],
    ids=range(8),
)  # fmt: skip
def test_a_hostile_or_broken_file_is_a_problem_and_nothing_more(text: str) -> None:
    assert problems_of(text)


def test_files_are_listed_with_their_problems_and_judged_by_the_bytes_that_were_read(tmp_path: Path) -> None:
    assert read_workflows(tmp_path) == ()
    folder = tmp_path / "skills"
    folder.mkdir()
    (folder / "to-drive.yaml").write_text(TEXT)
    (folder / "broken.yaml").write_text("steps: 1")
    (folder / "notes.txt").write_text("no workflow")
    (tmp_path / "elsewhere.yaml").write_text(TEXT)
    (folder / "link.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    (folder / "folder.yaml").mkdir()
    asked: list[tuple[bytes, str]] = []

    def is_trusted(content: bytes, name: str) -> bool:
        asked.append((content, name))
        return content == TEXT.encode()

    found = read_workflows(tmp_path, is_trusted)
    assert [(each.name, each.trusted, each.problem is None) for each in found] == [
        ("broken", False, False),
        ("folder", False, False),
        ("link", False, False),
        ("to-drive", True, True),
    ]
    assert asked == [(TEXT.encode(), "skills/to-drive.yaml")]
    (folder / "to-drive.yaml").write_text(TEXT + "# changed\n")
    assert not read_workflows(tmp_path, is_trusted)[-1].trusted
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "skills").symlink_to(folder)
    assert not any(each.workflow for each in read_workflows(linked, is_trusted))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from(["no", "1e3", "2024-01-01", "=", "<<", "~", "0x1f", "request.inputs.x", "steps.a.outputs", " "]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(value=VALUES)
def test_whatever_json_a_step_is_given_comes_back_from_its_file_or_is_refused(
    value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    workspace = tmp_path_factory.mktemp("w")
    step = WorkflowStep("a", action="test__a", inputs={"value": escape_literal(value)})
    made = Workflow("made", "Written by a test.", {}, (step,), {"value": escape_literal(value)})
    try:
        file = write_workflow(workspace, made)
    except WorkflowError as error:
        assert "YAML" in str(error)
        return
    read = read_workflows(workspace)[0]
    assert read.problem is None
    assert read.workflow is not None
    assert read.workflow == file.workflow
    assert read.workflow.steps == (step,)
    assert read.content == file.content


def test_a_file_is_replaced_only_where_that_is_said_and_a_workflow_that_is_none_is_not_written(
    tmp_path: Path,
) -> None:
    workflow = parse_workflow(TEXT.encode(), "skills/to-drive.yaml")
    assert not write_workflow(tmp_path, workflow).trusted
    with pytest.raises(WorkflowError, match="already"):
        write_workflow(tmp_path, workflow)
    write_workflow(tmp_path, workflow, replace=True)
    with pytest.raises(WorkflowError, match="no step 'x'"):
        write_workflow(
            tmp_path,
            Workflow(
                "bad", "Written by a test.", workflow.inputs, workflow.steps, {"a": "steps.x.outputs.y"}
            ),
        )
    with pytest.raises(WorkflowError, match="is no workflow"):
        write_workflow(tmp_path, Workflow("../bad", "Written by a test.", workflow.inputs, workflow.steps))
    assert [each.name for each in (tmp_path / "skills").iterdir()] == ["to-drive.yaml"]
