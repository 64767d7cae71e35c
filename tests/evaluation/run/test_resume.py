"""A study that is killed (`kill -9`) loses and doubles nothing, and goes on where it stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.evaluation.run.lock import StudyBusyError
from tests.evaluation.study_support import BASE, study
from tests.support.processes import child, environment, started
from tests.support.waiting import until

SLOW = """
    import sys, threading
    from tests.evaluation.study_support import BASE, Holding, study
    model = Holding(10)
    threading.Thread(target=lambda: (sys.stdin.readline(), model.go_on.set()), daemon=True).start()
    study(sys.argv[1], 40, models={"scripted": model}).run(
        BASE, on_progress=lambda progress: print(progress.done, flush=True)
    )
"""


def kills(*arguments: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.kills", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_kill_at_any_named_moment_of_a_write_leaves_whole_trials_and_the_rest_is_run_once() -> None:
    found = {each["moment"]: each for each in kills()}
    assert set(found) == {"before", "trial", "events", "commit", "after", "progress"}
    # The fifth trial dies with its transaction, unless that was over.
    stored = {moment: each["stored"] for moment, each in found.items() if moment != "progress"}
    assert stored == {"before": 4, "trial": 4, "events": 4, "commit": 4, "after": 5}


def test_ten_kills_at_random_moments_lose_and_double_nothing() -> None:
    assert sum(each["killed"] for each in kills("10", "1")) == 10


@pytest.fixture
def running(tmp_path: Path) -> Any:
    """A study that another process runs: some trials, and the others once it is written a line."""
    process = started(SLOW, str(tmp_path / "a.sqlite"))
    assert process.stdout is not None
    while (line := process.stdout.readline()) == "0\n":
        pass
    assert line, process.communicate()[1]
    yield process, tmp_path / "a.sqlite"
    process.kill()
    process.communicate()


def test_while_another_process_runs_a_study_it_can_be_read_and_not_run(running: Any) -> None:
    process, path = running
    made = study(path, 40)
    with pytest.raises(StudyBusyError, match=f"run already, by process {process.pid}"):
        made.run(BASE)
    reader = type(made).open(path)
    seen = len(reader.trials)
    assert 0 < seen < 80 and reader.verify().faults == ()
    process.stdin.write("go on\n")
    process.stdin.flush()
    until(lambda: len(reader.trials) == 80)


def test_a_killed_runner_leaves_no_lock_behind(running: Any) -> None:
    process, path = running
    process.kill()
    process.wait()
    made = study(path, 40)
    summary = made.run(BASE, n=40)
    assert summary.ended == "complete" and summary.earlier > 0
    assert (len(made.trials), made.spent.trials, made.verify().faults) == (80, 80, ())


def test_an_unfinished_file_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    code = """
        import dataclasses, os, signal, sqlite3, sys
        from pathlib import Path
        from reyn_jupyter.evaluation.store import study_file as store_file
        from reyn_jupyter.evaluation.store.store import Store
        (tables,) = store_file.FORMAT.migrations
        store_file.FORMAT = dataclasses.replace(
            store_file.FORMAT, migrations=((*tables[:3], "SELECT deadly()"),)
        )
        connect = sqlite3.connect
        def connected(*args, **options):
            db = connect(*args, **options)
            db.create_function("deadly", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
            return db
        sqlite3.connect = connected
        Store(Path(sys.argv[1]))
    """
    path = tmp_path / "a.sqlite"
    assert child(code, str(path)).returncode == -9
    assert study(path, 1).run(BASE).done == 2
