"""Of two that would run a study at once one runs it, and the other is told by whom."""

from __future__ import annotations

import fcntl
import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from reyn_jupyter.evaluation.run import lock
from reyn_jupyter.evaluation.run.lock import StudyBusyError, running_alone
from tests.evaluation.study_support import study
from tests.support.processes import started

# Nothing ends before one of the two was told that the other runs it.
TOGETHER = """
    import json, sys, time
    from pathlib import Path
    from tests.evaluation.study_support import BASE, HoldingAnywhere, study
    from reyn_jupyter.evaluation.checks import find_check
    from reyn_jupyter.evaluation.run.lock import StudyBusyError
    from reyn_jupyter.evaluation.trial.code_version import code_version
    find_check("first_call_is"), code_version(), print("ready", flush=True)
    for line in sys.stdin:
        path, at = line.split()
        model = HoldingAnywhere(Path(f"{path}.calls"), 0)
        while time.time() < float(at):
            pass
        with study(path, 6, models={"scripted": model}) as made:
            try:
                summary = made.run(BASE)
                found = [summary.ended, summary.done]
            except StudyBusyError as busy:
                found = ["busy", str(busy)]
                model.go_on()
        print(json.dumps(found), flush=True)
"""


def test_of_two_processes_that_make_and_run_a_study_in_the_same_instant_one_runs_it(tmp_path: Path) -> None:
    two = [started(TOGETHER) for _ in range(2)]
    try:
        assert [process.stdout.readline() for process in two if process.stdout] == ["ready\n"] * 2
        for number in range(3):
            path, at = tmp_path / f"{number}.sqlite", time.time() + 0.5
            for process in two:
                assert process.stdin is not None
                process.stdin.write(f"{path} {at}\n")
                process.stdin.flush()
            found = [json.loads(process.stdout.readline()) for process in two if process.stdout]
            other, told = next(each for each in found if each[0] == "busy")
            runner = two[1 - found.index([other, told])].pid
            assert ["complete", 12] in found and f"run already, by process {runner}." in told
            made = study(path, 6)
            assert (len(made.trials), made.spent.trials, len(made.parts.store.runs())) == (12, 12, 1)
            assert made.verify().faults == () and not path.with_name(f"{path.name}.lock").exists()
            made.close()
    finally:
        for process in two:
            process.kill()
            process.communicate()


def test_a_holder_that_has_not_written_its_number_yet_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.sqlite"
    waits: list[float] = []

    def wait(seconds: float) -> None:
        """Let the holder write after a second, which a machine may keep it from doing."""
        waits.append(seconds)
        if sum(waits) >= 1.0 and not written.is_set():
            written.set()
            held.write("4711")
            held.flush()

    written = threading.Event()
    monkeypatch.setattr(lock, "time", SimpleNamespace(sleep=wait))
    with (tmp_path / "a.sqlite.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StudyBusyError, match="by process 4711"), running_alone(path, threading.Lock()):
            pass
        assert written.is_set()
        held.truncate(0)
        with pytest.raises(StudyBusyError, match="by another process"), running_alone(path, threading.Lock()):
            pass
