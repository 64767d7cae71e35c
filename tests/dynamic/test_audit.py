"""The audit of tools: whole lines from several kernels, no secrets, bounded, archived; garbage is skipped."""

from __future__ import annotations

import json
import os
import stat
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.dynamic.audit import LONGEST_LINE, AuditLog
from reyn_jupyter.support.files.locks import open_lock_file, release, wait_for_lock
from reyn_jupyter.support.secrets import Redactor
from tests.dynamic.tool_samples import sample_tool
from tests.support.processes import child

SECRET = "correct-horse-battery"


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path / "state" / "audit.jsonl", Redactor({"DEMO_API_KEY": SECRET}))


def test_an_entry_says_who_did_what_to_which_tool_and_how_it_went(log: AuditLog) -> None:
    assert log.entries() == AuditLog(log.path, Redactor({})).entries()
    assert log.entries().entries == () and not log.path.parent.exists()
    tool = sample_tool()
    assert log.write("tool.create", actor="model", tool=tool, success=True, safety_score=1.0)
    assert log.write(
        "tool.run", actor="person", tool="none", success=False, error="there is no tool", code="E203"
    )
    first, second = log.entries().entries
    assert (first.action, first.actor, first.tool, first.tool_id) == (
        "tool.create",
        "model",
        "reverse",
        tool.id,
    )
    assert (first.success, first.error, first.details) == (True, None, {"safety_score": 1.0})
    assert (second.tool, second.tool_id, second.success) == ("none", None, False)
    assert (second.error, second.details) == ("there is no tool", {"code": "E203"})
    assert first.id < second.id and datetime.fromisoformat(first.at).utcoffset() is not None
    assert len(log.path.read_text().splitlines()) == 2
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


def test_secrets_are_taken_out_wherever_they_stand(log: AuditLog) -> None:
    log.write(
        "tool.run",
        actor=SECRET,
        tool=SECRET,
        success=False,
        error=f"the key {SECRET} was refused",
        parameters={
            "a": [{"b": f"x {SECRET}"}],
            SECRET: 1,
            "password": "short",
            "api_key": {"inner": "short"},
        },
        long="x" * 490 + SECRET,
        token="short",
    )
    text = log.path.read_text()
    assert SECRET not in text and "short" not in text and "horse" not in text
    (entry,) = log.entries().entries
    assert entry.details["parameters"]["password"] == entry.details["parameters"]["api_key"] == "[redacted]"
    assert "[redacted:DEMO_API_KEY]" in (entry.error or "")


def test_what_is_large_is_cut_and_what_is_no_json_is_named(log: AuditLog) -> None:
    log.write(
        "tool.run", actor="model", tool="x", success=True, error="e" * 100_000,
        rows=list(range(1000)), text="y" * 1_000_000, deep=[[[[[[[1]]]]]]], odd=object(), nan=float("nan"),
        many=10**100, half="\ud800",
    )  # fmt: skip
    log.write(
        "tool.run", actor="model", tool="x", success=True, rows={str(n): "z" * 500 for n in range(1000)}
    )
    lines = log.path.read_bytes().splitlines()
    assert len(lines) == 2 and all(len(line) < LONGEST_LINE for line in lines)
    first, second = log.entries().entries
    assert first.details["rows"][-1] == "[980 more]" and first.details["odd"] == "[object]"
    assert "left_out" in second.details and second.tool == "x"


def test_what_is_an_entrys_own_cannot_be_overwritten_by_details(log: AuditLog) -> None:
    log.write("tool.run", actor="model", tool="x", success=True, id="mine", at="never")
    (entry,) = log.entries().entries
    assert entry.id != "mine" and entry.at != "never"


def test_lines_that_are_none_are_counted_and_stop_no_reader(log: AuditLog) -> None:
    log.write("tool.create", actor="model", tool="x", success=True)
    with log.path.open("ab") as file:
        file.write(b'\xff\xfe\n[]\n{"id": 1}\n' + b"[" * 100_000 + b'\n{"success": true}\n\n{"torn')
    log.write("tool.delete", actor="model", tool="x", success=True)
    trail = log.entries()
    assert [entry.action for entry in trail.entries] == ["tool.create", "tool.delete"]
    assert trail.skipped == 6


def test_a_full_file_is_archived_and_nothing_is_lost(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "state" / "audit.jsonl", Redactor({}), largest=2_000)
    for number in range(100):
        assert log.write("tool.run", actor="model", tool=f"tool_{number % 2}", success=True, number=number)
    files = sorted(path.name for path in log.path.parent.glob("*.jsonl"))
    assert (
        files[:2] == ["audit-0001.jsonl", "audit-0002.jsonl"]
        and files[-1] == "audit.jsonl"
        and len(files) > 5
    )
    assert all((log.path.parent / name).stat().st_size <= 2_000 for name in files)
    assert [entry.details["number"] for entry in log.entries(1_000).entries] == list(range(100))
    assert [entry.details["number"] for entry in log.entries(3).entries] == [97, 98, 99]
    assert [entry.details["number"] for entry in log.entries(3, tool="tool_0").entries] == [94, 96, 98]


def test_a_link_or_pipe_in_the_way_is_not_written_to(log: AuditLog, tmp_path: Path) -> None:
    log.path.parent.mkdir()
    (tmp_path / "victim").write_text("before")
    log.path.symlink_to(tmp_path / "victim")
    assert not log.write("tool.run", actor="model", tool="x", success=True)
    assert log.problem is not None and str(log.path) in log.problem
    assert (tmp_path / "victim").read_text() == "before" and log.entries().entries == ()
    log.path.unlink()
    os.mkfifo(log.path)
    assert not log.write("tool.run", actor="model", tool="x", success=True)
    log.path.unlink()
    assert log.write("tool.run", actor="model", tool="x", success=True) and log.problem is None


def test_a_folder_that_was_removed_is_made_again(log: AuditLog) -> None:
    log.write("tool.run", actor="model", tool="x", success=True)
    log.path.parent.rename(log.path.parent.with_name("old"))
    assert log.write("tool.run", actor="model", tool="x", success=True)
    assert len(log.entries().entries) == 1


def test_a_kernel_that_hangs_with_the_lock_stops_nothing(
    log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write("tool.run", actor="model", tool="x", success=True)
    monkeypatch.setattr("reyn_jupyter.dynamic.audit.LONGEST_WAIT", 0.0)
    descriptor = open_lock_file(log.path.parent / ".audit.lock")
    assert wait_for_lock(descriptor)
    assert not log.write("tool.run", actor="model", tool="x", success=True)
    assert "another kernel" in (log.problem or "")
    assert len(log.entries().entries) == 1
    release(descriptor)
    assert log.write("tool.run", actor="model", tool="x", success=True)


FULL = """
    import resource, signal, sys
    from pathlib import Path
    from reyn_jupyter.dynamic.audit import AuditLog
    from reyn_jupyter.support.secrets import Redactor

    log = AuditLog(Path(sys.argv[1]), Redactor({}))
    log.write("tool.run", actor="model", tool="x", success=True)
    before = log.path.read_bytes()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, len(before) + 20))
    print(log.write("tool.run", actor="model", tool="x", success=True), log.path.read_bytes() == before)
    print(log.problem)
"""


def test_a_full_disk_is_told_and_tears_no_line(tmp_path: Path) -> None:
    done = child(FULL, str(tmp_path / "state" / "audit.jsonl"))
    first, second = done.stdout.splitlines()
    assert first == "False True", done.stderr
    assert "could not be written" in second


SEVERAL = """
    import os, signal, sys
    from pathlib import Path
    from reyn_jupyter.dynamic.audit import AuditLog
    from reyn_jupyter.support.secrets import Redactor

    path, redactor = Path(sys.argv[1]), Redactor({})
    reading, writing = os.pipe()
    pids = []
    for kernel in range(4):
        pids.append(os.fork())
        if pids[-1] == 0:
            log = AuditLog(path, redactor, largest=600)
            for number in range(100 if kernel else 1_000_000):        # the first is killed
                assert log.write("tool.run", actor=str(kernel), tool="x", success=True, number=number), log.problem
                if kernel == 0:
                    os.write(writing, b".")
            os._exit(0)
    os.close(writing)
    for _ in range(50):
        assert os.read(reading, 1) == b"."
    os.kill(pids[0], signal.SIGKILL)
    print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
"""


def test_several_kernels_write_whole_lines_and_a_kill_stops_none_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "state" / "audit.jsonl"
    done = child(SEVERAL, str(path))
    assert done.stdout == "[-9, 0, 0, 0]\n", done.stderr
    trail = AuditLog(path, Redactor({})).entries(10_000)
    assert trail.skipped == 0
    for kernel in "0123":
        numbers = [entry.details["number"] for entry in trail.entries if entry.actor == kernel]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) == 100 if kernel != "0" else len(numbers) >= 50


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


long = st.text(st.characters()) | st.sampled_from(["\0", "😀"]).map(lambda character: character * 1000)


@given(anything, long, long, st.text())
def test_whatever_is_written_is_one_line_that_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, value: object, error: str, actor: str, key: str
) -> None:
    log = AuditLog(tmp_path_factory.getbasetemp() / "any" / "audit.jsonl", Redactor({"DEMO_API_KEY": SECRET}))
    assert log.write(
        "tool.run", actor="model", tool="x", success=False, error=error, **{f"d{key}": [value, SECRET]}
    )
    trail = log.entries(1)
    assert trail.skipped == 0 and trail.entries[0].tool == "x"
    last = log.path.read_bytes().split(b"\n")[-2]
    assert len(last) <= LONGEST_LINE and SECRET.encode() not in last
    json.loads(last)
