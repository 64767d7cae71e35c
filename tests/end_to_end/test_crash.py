"""What is left after a kill, on a full disk, in a read-only store, and with two kernels on one workspace."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
from tests.end_to_end.e2e_support import history_is_valid, invoke, paired, scripted
from tests.support.processes import child, started

BEFORE = "first line\nsecond line\nthird line\n"
DIES = """
    import os, signal, sys
    from tests.end_to_end.e2e_support import category, invoke, scripted
    from reyn_jupyter.catalog.action import Purity
    from reyn_jupyter.runtime.record import runlog

    def die(*args, **kwargs):
        os.kill(os.getpid(), signal.SIGKILL)

    root, moment = sys.argv[1:]
    write = invoke("file__write", path="notes.txt", content="changed")
    steps = [invoke("file__read", path="notes.txt"), write, "never"]

    async def deadly(args, context):
        die()

    async def large(args, context):
        return "x" * 100_000

    if moment == "in the handler":
        steps[1] = invoke("odd__deadly")
    elif moment == "between temporary file and rename":
        replace = os.replace
        os.replace = lambda old, new, **at: die() if str(new).endswith("notes.txt") else replace(old, new, **at)
    elif moment == "after the rename":
        replace = os.replace
        def replaced(old, new, **at):
            replace(old, new, **at)
            if str(new).endswith("notes.txt"):
                die()
        os.replace = replaced
    elif moment == "after the blob is stored":
        steps[1] = invoke("odd__large")
        append = runlog.RunLog.append
        runlog.RunLog.append = lambda log, event: die() if type(event).__name__ == "BlobStored" else append(log, event)
    elif moment == "while the blob is written":
        steps[1] = invoke("odd__large")
        replace = os.replace
        os.replace = lambda old, new, **at: die() if "blobs" in str(new) else replace(old, new, **at)
    else:
        append = runlog.RunLog.append
        seen = []
        def counted(log, event):
            append(log, event)
            seen.append(type(event).__name__)
            if len(seen) == int(moment):
                die()
        runlog.RunLog.append = counted
    own = category(purity=Purity.WRITE, deadly=deadly, large=large)
    s, _ = scripted(root, *steps, store="files")
    load = s.parts.catalog._load
    s.parts.catalog._load = lambda: ((*load()[0], own), ())
    s.ask("go", approve="all")
"""


def killed(workspace: Path, moment: str) -> reyn.Session:
    """A fresh session on the workspace in which another process died at this moment."""
    done = child(DIES, str(workspace), moment)
    assert done.returncode == -signal.SIGKILL, done.stderr
    for blob in FsBlobStore(workspace / ".reyn" / "blobs").list():
        path = FsBlobStore(workspace / ".reyn" / "blobs").path(blob.id)
        assert path is not None and path.stat().st_size == blob.size
    return reyn.Session(workspace)


@pytest.mark.parametrize(
    ("moment", "content"),
    [
        ("in the handler", BEFORE),
        ("between temporary file and rename", BEFORE),
        ("after the rename", "changed"),
        ("after the blob is stored", BEFORE),
        ("while the blob is written", BEFORE),
        ("1", BEFORE),
        ("3", BEFORE),
        ("5", BEFORE),
        ("9", BEFORE),
        ("12", "changed"),
        ("13", "changed"),
    ],
)
def test_a_kill_leaves_a_partial_trace_whole_blobs_and_a_file_that_is_old_or_new(
    workspace: Path, moment: str, content: str
) -> None:
    s = killed(workspace, moment)
    s.parts.ask_person = lambda question: "once"
    trace = s.trace()
    assert trace.ended is None and trace.started.prompt == "go"
    assert (workspace / "notes.txt").read_text() == content
    if content == "changed":
        s.undo(trace.run)
        assert (workspace / "notes.txt").read_text() == BEFORE
    else:
        with pytest.raises(LookupError):
            s.undo(trace.run)
    assert s.invoke_action("file__read", {"path": "notes.txt"}).value == BEFORE
    assert [row["kind"] for row in s.runs.rows][-1] == "turn"


def test_a_new_file_of_a_killed_run_is_taken_away_again_and_a_later_edit_is_respected(
    workspace: Path,
) -> None:
    code = DIES.replace('path="notes.txt", content="changed"', 'path="new.txt", content="changed"').replace(
        'endswith("notes.txt")', 'endswith("new.txt")'
    )
    assert child(code, str(workspace), "after the rename").returncode == -signal.SIGKILL
    s = reyn.Session(workspace)
    s.parts.ask_person = lambda question: "once"
    assert (workspace / "new.txt").read_text() == "changed"
    (workspace / "new.txt").write_text("edited by hand")
    with pytest.raises(Exception, match="changed since"):
        s.undo("last")
    (workspace / "new.txt").write_text("changed")
    s.undo("last")
    assert not (workspace / "new.txt").exists()


def test_leftovers_of_a_kill_are_no_blobs_and_no_runs(workspace: Path) -> None:
    s = killed(workspace, "while the blob is written")
    assert len(s.blobs) == 0 and len(s.runs) == 1


# Disks that take no more


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A workspace on a disk of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=False
    )
    if not made or made.returncode:
        pytest.skip("mounting a small disk takes root")
    (folder / "notes.txt").write_text(BEFORE)
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    with (folder / "ballast").open("wb") as file:
        try:
            while True:
                file.write(b"x" * 65536)
                file.flush()
        except OSError:
            pass


FULL = """
    import json, resource, sys
    from tests.end_to_end.e2e_support import category, history_is_valid, invoke, paired, results, scripted

    async def large(args, context):
        return "x" * 300_000

    root = sys.argv[1]
    steps = [invoke("odd__large"), invoke("file__write", path="notes.txt", content="y" * 60_000), "went on"]
    s, model = scripted(root, *steps, store="files")
    load = s.parts.catalog._load
    s.parts.catalog._load = lambda: ((*load()[0], category(large=large)), ())
    s.invoke_action("file__read", {"path": "notes.txt"})
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
    trace = s.ask("go", approve="all")
    print(json.dumps({
        "answer": trace.answer, "results": results(model.requests[-1].messages), "notes": trace.ended.notes,
        "valid": history_is_valid(s) and paired(trace), "run": trace.run,
    }))
"""


@pytest.mark.parametrize(("limit", "logged"), [(290_000, True), (3_000, False)])
def test_files_that_may_not_grow_are_told_and_the_turn_goes_on(
    workspace: Path, limit: int, logged: bool
) -> None:
    done = child(FULL, str(workspace), str(limit))
    told = json.loads(done.stdout)
    assert told["answer"] == "went on" and told["valid"]
    large, write = told["results"]
    assert "not stored" in large and len(large.encode()) <= 400
    assert ("error" in json.loads(write)) is not logged
    assert (workspace / "notes.txt").read_text() == ("y" * 60_000 if logged else BEFORE)
    assert any("run log" in note for note in told["notes"]) is not logged
    trace = reyn.Session(workspace).trace(told["run"])
    assert (trace.answer == "went on") is logged  # what was written until then is a valid partial run


def test_a_full_disk_is_told_and_the_turn_goes_on(small_disk: Path) -> None:
    (small_disk / "long.txt").write_text("line\n" * 1000)
    write = invoke("file__write", path="notes.txt", content="y" * 20_000)
    s, model = scripted(small_disk, invoke("file__read", path="long.txt"), write, "went on", store="files")
    s.invoke_action("file__read", {"path": "notes.txt"})
    fill(small_disk)
    trace = s.ask("go", approve="all")
    assert trace.answer == "went on" and paired(trace) and history_is_valid(s)
    assert "not stored" in model.requests[-1].messages[-3].content
    assert (small_disk / "notes.txt").read_text() == BEFORE
    assert any("run log" in note for note in trace.ended.notes)  # type: ignore[union-attr]
    assert s.trace().answer == "went on"
    (small_disk / "ballast").unlink()
    assert s.ask("again", model=scripted(small_disk, "fine")[1]).ended.notes == ()  # type: ignore[union-attr]


def test_a_read_only_workspace_is_read_and_nothing_else_and_says_so(small_disk: Path) -> None:
    (small_disk / "long.txt").write_text("line\n" * 1000)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    write = invoke("file__write", path="notes.txt", content="y")
    s, model = scripted(small_disk, invoke("file__read", path="long.txt"), write, "went on", store="files")
    trace = s.ask("go", approve="all")
    assert trace.answer == "went on" and [call.ok for call in trace.calls] == [True, False]
    assert "not stored" in model.requests[1].messages[-1].content
    assert any("run log" in note for note in trace.ended.notes)  # type: ignore[union-attr]
    assert s.status.facts and len(s.runs) == 1


# Two kernels on one workspace

WORKS = """
    import sys
    from tests.end_to_end.e2e_support import history_is_valid, invoke, paired, results, scripted

    root, name = sys.argv[1:]
    def steps(request):
        turn = sum(message.role == "user" for message in request.messages)
        if request.messages[-1].role == "user":
            shared = invoke("file__edit", path="shared.txt", old_string="end", new_string=f"{name}{turn} end")
            own = invoke("file__write", path=f"{name}.txt", content=f"{name} {turn}\\n" * 200)
            return [shared, own, invoke("file__read", path=f"{name}.txt")]
        return "done"

    s, model = scripted(root, otherwise=steps, store="files")
    for number in range(25):
        trace = s.ask(f"{name} {number}", approve="all")
        assert trace.answer == "done" and paired(trace), trace
        assert all(call.ok for call in trace.calls), [call.finished for call in trace.calls]
    assert history_is_valid(s) and len(s.history) == 25
"""


def test_two_kernels_on_one_workspace_lose_no_run_and_no_change(workspace: Path) -> None:
    (workspace / "shared.txt").write_text("begin end\n")
    processes = [started(WORKS, str(workspace), name) for name in ("a", "b")]
    failures = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], failures
    s = reyn.Session(workspace)
    assert len(s.runs) == 50 and {row["status"] for row in s.runs.rows} == {"ok"}
    words = (workspace / "shared.txt").read_text().split()
    assert sorted(words) == sorted(["begin", "end", *(f"{name}{n}" for name in "ab" for n in range(1, 26))])
    for name in ("a", "b"):
        assert (workspace / f"{name}.txt").read_text() == f"{name} 25\n" * 200
    store: Any = s.parts.services.blobs
    assert all(store.path(blob.id).stat().st_size == blob.size for blob in store.list())
