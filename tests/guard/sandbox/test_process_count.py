"""A command makes no more processes than it may, also where everything runs as root, and no control group is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from reyn_jupyter.guard.sandbox import Confinement, SandboxLimits, find_sandbox
from reyn_jupyter.guard.sandbox.process_count import ProcessCount, count_processes, give_back

DOUBLES = """
import os, sys
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
RUNS_ONE = """
import asyncio, os, sys, time
from pathlib import Path
from reyn_jupyter.guard.sandbox import Confinement, SandboxLimits, find_sandbox
print(asyncio.run(find_sandbox().run(["true"], Confinement(Path("/usr")))).status, flush=True)
if "stay" in sys.argv:
    time.sleep(600)
"""
LIMIT = 40
# Only root without control groups is held to no number by the system.
IS_HELD = os.geteuid() != 0 or count_processes(LIMIT) is not None


@contextmanager
def counted(marker: str) -> Iterator[list[int]]:
    """Count the processes with a word in their command line, again and again."""
    found, over = [0], threading.Event()

    def look() -> None:
        while not over.is_set():
            found.append(
                sum(
                    marker in " ".join(each.info["cmdline"] or ())
                    for each in psutil.process_iter(["cmdline"])
                )
            )

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield found
    finally:
        over.set()
        looking.join()


@pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
async def test_a_bomb_that_doubles_makes_few_processes_before_it_is_ended(backend: str) -> None:
    marker = f"doubling-{backend}-{os.getpid()}"
    with counted(marker) as found:
        done = await find_sandbox("program", backend).run(
            [sys.executable, "-c", DOUBLES, marker],
            Confinement(Path("/usr")),
            SandboxLimits(processes=LIMIT, seconds=60),
        )
    assert done.status == "limit" and "more than 40 processes" in done.reason
    assert max(found) <= (LIMIT + 20 if IS_HELD else 100_000)


@pytest.fixture
def group() -> ProcessCount:
    made = count_processes(LIMIT)
    if made is None:
        pytest.skip("this system lets nobody make a control group, or holds the user by itself")
    give_back(made)
    return made


def test_a_group_with_a_process_in_it_is_given_to_no_other_command(group: ProcessCount) -> None:
    first = count_processes(LIMIT)
    assert first is not None
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        first.add(sleeper.pid)
        give_back(first)
        second = count_processes(LIMIT)
        assert second is not None and second.procs != first.procs
        give_back(second)
        sleeper.kill()


def test_a_group_whose_last_process_leaves_a_little_later_goes_then(group: ProcessCount) -> None:
    made = count_processes(LIMIT)
    assert made is not None
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as reader:
        assert reader.stdin is not None
        made.add(reader.pid)
        made.remove()
        assert Path(made.procs).exists()
        leaving = threading.Timer(0.3, reader.stdin.close)
        leaving.start()
        waiting = threading.Thread(target=reader.wait)
        waiting.start()
        made.remove(60)
        assert not Path(made.procs).exists()
        waiting.join()
        leaving.join()


def test_groups_go_with_the_process_that_made_them_and_those_of_a_killed_one_with_the_next(
    group: ProcessCount,
) -> None:
    parent = Path(group.procs).parent.parent

    def left(process: int) -> list[Path]:
        return list(parent.glob(f"reyn-commands-{process}-*"))

    with subprocess.Popen([sys.executable, "-c", RUNS_ONE], stdout=subprocess.PIPE, text=True) as ends:
        assert ends.stdout is not None and ends.stdout.read() == "ok\n"
    assert left(ends.pid) == []
    with subprocess.Popen(
        [sys.executable, "-c", RUNS_ONE, "stay"], stdout=subprocess.PIPE, text=True
    ) as killed:
        assert killed.stdout is not None and killed.stdout.readline() == "ok\n"
        assert left(killed.pid)
        killed.send_signal(signal.SIGKILL)
    with subprocess.Popen([sys.executable, "-c", RUNS_ONE], stdout=subprocess.PIPE, text=True) as ends:
        assert ends.stdout is not None and ends.stdout.read() == "ok\n"
    assert left(killed.pid) == []
