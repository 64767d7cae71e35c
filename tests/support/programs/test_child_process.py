"""A child answers, and whatever it does instead ends in time with a reason; the next request finds a fresh one."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from reyn_jupyter.support.programs.child_process import (
    ChildDeadlineError,
    ChildEndedError,
    ChildLimits,
    ChildMessage,
    ChildProcess,
    ChildProcesses,
)
from tests.support.waiting import PATIENCE, until

LIMITS = ChildLimits(memory=300 << 20, answer=1 << 20)


@pytest.fixture
def child() -> Iterator[ChildProcess]:
    process = ChildProcess("tests.support.answering_child", LIMITS)
    yield process
    process.close()


def ask(child: ChildProcess, timeout: float = PATIENCE, **header: object) -> ChildMessage:
    return child.exchange(ChildMessage(header), timeout)


def test_one_process_answers_all_requests(child: ChildProcess) -> None:
    assert child.pid is None
    first, second = ask(child).header, ask(child).header
    assert first["pid"] == second["pid"] == child.pid
    assert first["open"] == second["open"]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"do": "end"}, "ended with the code 3"),
        ({"do": "crash"}, "SIGSEGV"),
        ({"do": "flood", "bytes": 2 << 20}, "at most"),
        ({"do": "lie"}, "no object"),
    ],
)
def test_a_child_that_does_not_answer_is_ended_and_says_why(
    child: ChildProcess, header: dict[str, object], reason: str
) -> None:
    before = ask(child).header["pid"]
    with pytest.raises(ChildEndedError, match=reason):
        ask(child, **header)
    assert ask(child).header["pid"] != before


def test_a_deadline_ends_the_process(child: ChildProcess) -> None:
    pid = ask(child).header["pid"]
    with pytest.raises(ChildDeadlineError, match=r"within 0\.2 seconds"):
        ask(child, 0.2, do="hang")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert ask(child).header["pid"] != pid


def test_another_thread_ends_a_request(child: ChildProcess, tmp_path: Path) -> None:
    began = tmp_path / "began"
    killing = threading.Thread(target=lambda: until(began.exists) and child.kill())
    killing.start()
    with pytest.raises(ChildEndedError, match="SIGKILL"):
        ask(child, do="hang", began=str(began))
    killing.join()


@pytest.mark.skipif(sys.platform != "linux", reason="macOS takes the limit and does not hold it")
def test_memory_is_limited(child: ChildProcess) -> None:
    assert ask(child, do="grow", bytes=1 << 20).header == {"held": 1 << 20}
    with pytest.raises(ChildEndedError):
        ask(child, do="grow", bytes=400 << 20)
    assert ask(child).header["pid"] == child.pid


def test_open_files_are_handed_over_and_closed_again(child: ChildProcess, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("first")
    (tmp_path / "b").write_text("second")
    before = ask(child).header["open"]
    with (tmp_path / "a").open("rb") as a, (tmp_path / "b").open("rb") as b:
        handed = ChildMessage({"do": "read"}, descriptors=(a.fileno(), b.fileno()))
        assert child.exchange(handed, PATIENCE).header == {"read": ["first", "second"]}
    assert ask(child).header["open"] == before


def test_a_module_that_cannot_start_says_why() -> None:
    child = ChildProcess("tests.support.no_such_module", LIMITS)
    with pytest.raises(ChildEndedError, match=r"could not start: .*no_such_module"):
        ask(child)


def test_a_fork_of_the_parent_keeps_no_child_alive(child: ChildProcess) -> None:
    pid = ask(child).header["pid"]
    release, hold = os.pipe()
    fork = os.fork()
    if fork == 0:
        os.close(hold)
        os.read(release, 1)
        os._exit(0)
    os.close(release)
    try:
        # Only the parent's ends of the channels go; the process itself is not asked to end.
        assert child._running is not None
        child._running.life.close()
        until(lambda: child.pid is None)
    finally:
        os.close(hold)
        os.waitpid(fork, 0)
    assert ask(child).header["pid"] != pid


def test_all_children_of_a_session_end_with_it() -> None:
    with ChildProcesses() as children:
        names = ("a", "b", "a")
        found = [
            children.get(name, lambda: ChildProcess("tests.support.answering_child", LIMITS))
            for name in names
        ]
        assert found[0] is found[2] and found[0] is not found[1]
        pids = {ask(child).header["pid"] for child in found}
        assert set(children.pids) == pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
