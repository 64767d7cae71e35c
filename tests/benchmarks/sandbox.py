"""Commands in a sandbox: what the runner adds to bubblewrap itself, and a command beside `subprocess.run`."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import reyn_jupyter as reyn
from reyn_jupyter.guard.sandbox import Confinement, Sandbox
from reyn_jupyter.guard.sandbox.bubblewrap import Bubblewrap
from reyn_jupyter.guard.sandbox.landlock import Landlock

TIMES = 40


def median(work: Callable[[], object]) -> float:
    """Return the median of the times that a piece of work takes, in milliseconds; the first time does not count."""
    work()
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


def main() -> None:
    bare = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        place = Confinement(Path(folder), (Path(folder),))
        plain = median(lambda: subprocess.run(["true"], check=True))
        print(f"true: subprocess.run {plain:.1f} ms")
        for backend in (Bubblewrap(), Landlock()):
            if backend.problem() is not None:
                print(f"true: {backend.name} is not here")
                continue
            sandbox = Sandbox(backend)
            print(f"true: {backend.name} {median(lambda: runner.run(sandbox.run(['true'], place))):.1f} ms")  # noqa: B023
        if Bubblewrap().problem() is None:
            print(f"true: bare bubblewrap {median(lambda: subprocess.run(bare, check=True)):.1f} ms")
        session = reyn.Session(folder, namespace={})
        call = median(lambda: session.invoke_action("exec__run", {"argv": ["true"]}))
        print(f"true: exec__run, by hand and recorded {call:.1f} ms (of {os.cpu_count()} cores)")


if __name__ == "__main__":
    main()
