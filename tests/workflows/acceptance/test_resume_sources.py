"""A run goes on with what a step gave before only if what the step read is still the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.trusting import trust
from tests.workflows.acceptance.test_utilities import ARTIFACT
from tests.workflows.acceptance.workshop import (
    LOG,
    READ,
    TEXT,
    Json,
    Workshop,
    closed,
    gives,
    opened,
    step,
    steps_of,
    workflow_file,
)

PATH: Json = {"type": "string", "format": "readable-path"}
WAIT = {"action": "file__read", "inputs": {"path": "approved.txt"}}
READS = step("a", action="file__read", inputs={"path": "data.txt"})


@pytest.fixture
def bench(workspace: Path) -> Workshop:
    made = Workshop(workspace, config={"permissions": {"allow": ["**"]}})
    made.text("data.txt", "old contents\n")
    made.text("folder/deep/one.txt", "one")
    return made


def resumed(
    bench: Workshop, *steps: Json, change: Callable[[], object] = lambda: None, **more: object
) -> Json:
    """Run steps and one that fails until a file is there; make a change, and resume the run."""
    wait = {"step_id": "z", **WAIT, "depends_on": [each["step_id"] for each in steps]}
    (bench.root / "approved.txt").unlink(missing_ok=True)
    failed = bench.execute(*steps, wait)
    assert failed["status"] == "execution_failed", failed["text"]
    change()
    bench.text("approved.txt", "yes")
    return bench.execute(*steps, wait, resume=failed["run_id"], **more)


def again(run: Json) -> dict[str, str]:
    """Return why steps were run again."""
    return {name: each["again"] for name, each in steps_of(run).items() if "again" in each}


def write(bench: Workshop, name: str, text: str) -> Callable[[], object]:
    return lambda: bench.text(name, text)


def test_changed_file_runs_its_step_again_and_says_so(bench: Workshop) -> None:
    run = resumed(bench, READS, change=write(bench, "data.txt", "NEW contents\n"))
    assert run["status"] == "executed" and run["outputs"]["a"] == {"result": "NEW contents\n"}
    assert again(run) == {"a": "data.txt has changed since"}
    assert "a file__read: run again, because data.txt has changed since" in run["text"]
    run = resumed(bench, READS)
    assert steps_of(run)["a"]["carried"] and again(run) == {}


def test_file_with_same_size_and_time_is_compared_by_content(bench: Workshop) -> None:
    def change() -> None:
        before = (bench.root / "data.txt").stat()
        bench.text("data.txt", "new contents\n")
        os.utime(bench.root / "data.txt", ns=(before.st_atime_ns, before.st_mtime_ns))

    assert resumed(bench, READS, change=change)["outputs"]["a"] == {"result": "new contents\n"}


def test_missing_file_runs_its_step_again_so_that_it_fails(bench: Workshop) -> None:
    run = resumed(bench, READS, change=(bench.root / "data.txt").unlink)
    assert run["status"] == "execution_failed" and "does not exist" in run["text"]
    assert again(run) == {"a": "data.txt has changed since"}


@pytest.mark.parametrize("kind", ["file__list", "file__grep", "utility"])
def test_changed_folder_runs_its_step_again(bench: Workshop, kind: str) -> None:
    bench.add("counts", gives('{"n": 1}'), input_schema=closed(folder=PATH), idempotency="unsafe")
    read = {
        "file__list": step("a", action="file__list", inputs={"path": "folder"}),
        "file__grep": step("a", action="file__grep", inputs={"pattern": "o", "path": "folder"}),
        "utility": step("a", "counts.run", {"folder": "folder"}),
    }[kind]
    assert again(resumed(bench, read)) == {}
    for name, text in (("folder/deep/one.txt", "two"), ("folder/new.txt", "")):
        assert again(resumed(bench, read, change=write(bench, name, text))) == {
            "a": "folder has changed since"
        }


def test_all_that_depends_on_a_changed_input_is_run_again(bench: Workshop) -> None:
    logs = gives(
        '{"text": "logged"}',
        "import uuid\nfrom pathlib import Path\n(Path(inputs['log']) / uuid.uuid4().hex).touch()\n",
    )
    bench.add("logs", logs, input_schema=opened(log=LOG), idempotency="unsafe")
    steps = [
        READS,
        step("b", "logs.run", {"log": "log"}, depends_on=["a"]),
        step("c", "logs.run", {"log": "log2"}, depends_on=["b"]),
        step("d", "logs.run", {"log": "log3"}),
    ]
    run = resumed(bench, *steps, change=write(bench, "data.txt", "NEW"))
    assert (bench.log("log"), bench.log("log2"), bench.log("log3")) == (2, 2, 1)
    assert again(run) == {"a": "data.txt has changed since", "b": "a was run again", "c": "b was run again"}


def test_file_that_a_step_made_for_another_is_compared(bench: Workshop) -> None:
    body = READ + "from pathlib import Path\nPath('made.txt').write_text('made')\n"
    bench.add("makes", f"{body}print(json.dumps({{'file': str(Path('made.txt').absolute())}}))\n",
              output_schema=closed(file=ARTIFACT), idempotency="safe")  # fmt: skip
    bench.add("reads", gives('{"text": open(inputs["file"]).read()}'), input_schema=closed(file=PATH),
              output_schema=closed(text=TEXT), idempotency="safe")  # fmt: skip
    steps = [step("a", "makes.run"), step("b", "reads.run", {"file": "steps.a.outputs.file"})]
    assert again(resumed(bench, *steps)) == {}

    def change() -> None:
        (made,) = [
            each for each in bench.root.glob("state/runs/*/a/made.txt") if each.stat().st_mtime_ns == newest()
        ]
        made.write_text("edited")

    def newest() -> int:
        return max(each.stat().st_mtime_ns for each in bench.root.glob("state/runs/*/a/made.txt"))

    run = resumed(bench, *steps, change=change)
    assert run["outputs"]["b"] == {"text": "made"} and list(again(run)) == ["a"]


def test_own_writes_of_a_run_are_no_changes(bench: Workshop) -> None:
    write_it = step(
        "b", action="file__write", inputs={"path": "data.txt", "content": "own"}, depends_on=["a"]
    )
    assert again(resumed(bench, READS, write_it)) == {}
    edit = step(
        "a", action="file__edit", inputs={"path": "data.txt", "old_string": "own", "new_string": "one"}
    )
    assert again(resumed(bench, edit)) == {}
    assert (bench.root / "data.txt").read_text() == "one"


def test_edited_or_deleted_output_of_a_write_is_not_overwritten_without_force(bench: Workshop) -> None:
    made = step("a", action="file__write", inputs={"path": "out.txt", "content": "made"})
    for change in (write(bench, "out.txt", "edited"), (bench.root / "out.txt").unlink):
        run = resumed(bench, made, change=change)
        assert run["status"] == "execution_failed" and "out.txt" in run["text"]
        assert "Resume with force" in str(steps_of(run)["a"]["error"])
        assert not (bench.root / "out.txt").exists() or (bench.root / "out.txt").read_text() == "edited"
        (bench.root / "out.txt").unlink(missing_ok=True)
    run = resumed(bench, made, change=write(bench, "out.txt", "edited"), force=True)
    assert again(run) == {"a": "out.txt is not as it was"} and (bench.root / "out.txt").read_text() == "made"


def test_source_that_cannot_be_compared_is_read_again_or_reported(bench: Workshop) -> None:
    bench.session.parts.services.namespace()["df"] = "first"
    run = resumed(bench, step("a", action="memory_operation__list"))
    assert "cannot be compared" in again(run)["a"]
    run = resumed(bench, step("a", action="exec__run", inputs={"argv": ["cat", "data.txt"]}))
    assert steps_of(run)["a"]["carried"] and again(run) == {}
    assert "a exec__run: not run again; whether what its command reads changed is not known" in run["text"]
    bench.add("asks", gives('{"text": "x"}'), dependencies=[{"host": "example.org"}], idempotency="safe")
    run = resumed(bench, step("a", "asks.run"))
    assert steps_of(run)["a"]["carried"] and "whether example.org changed is not known" in run["text"]


def test_step_of_a_workflow_compares_what_it_read(bench: Workshop) -> None:
    bench.text(
        "skills/inner.yaml",
        workflow_file("inner", READS, outputs={"text": "steps.a.outputs.result"}, takes={}),
    )
    trust(bench.session)
    run = resumed(bench, step("w", action="skill__inner"), change=write(bench, "data.txt", "NEW"))
    assert run["outputs"]["w"] == {"text": "NEW"}
    assert resumed(bench, step("w", action="skill__inner"))["outputs"]["w"] == {"text": "NEW"}
