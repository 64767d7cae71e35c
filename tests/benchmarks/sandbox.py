"""Commands in a sandbox: what the runner adds to bubblewrap itself, and a command beside `subprocess.run`."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import reyn_jupyter as reyn
from reyn_jupyter.guard.sandbox import Confinement, Sandbox
from reyn_jupyter.guard.sandbox.bubblewrap import Bubblewrap
from reyn_jupyter.guard.sandbox.landlock import Landlock

TIMES = 40
BARE = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]


def medians(work: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median time of each piece of work, in ms; they take turns, and the first turn is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(TIMES + 1):
        for name, each in work.items():
            began = time.perf_counter()
            each()
            if turn:
                taken[name].append(1000 * (time.perf_counter() - began))
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        place = Confinement(Path(folder), (Path(folder),))
        online = Confinement(Path(folder), (Path(folder),), hosts=("localhost:8080",))
        session = reyn.Session(folder, namespace={})
        work: dict[str, Callable[[], object]] = {
            "subprocess.run": partial(subprocess.run, ["true"], check=True),
            "exec__run, by hand and recorded": partial(
                session.invoke_action, "exec__run", {"argv": ["true"]}
            ),
        }

        def command(sandbox: Sandbox, confinement: Confinement) -> None:
            runner.run(sandbox.run(["true"], confinement))

        if Bubblewrap().problem() is None:
            work["bare bubblewrap"] = partial(subprocess.run, BARE, check=True)
            work["bubblewrap"] = partial(command, Sandbox(Bubblewrap()), place)
            work["bubblewrap, with a host"] = partial(command, Sandbox(Bubblewrap()), online)
        if Landlock().problem() is None:
            work["landlock"] = partial(command, Sandbox(Landlock()), place)
        found = medians(work)
        for name, each in found.items():
            print(f"true: {name} {each:.1f} ms")
        if "bubblewrap" in found:
            print(
                f"ratio: bubblewrap over bare bubblewrap {found['bubblewrap'] / found['bare bubblewrap']:.2f}"
            )
            recorded = found["exec__run, by hand and recorded"]
            print(f"ratio: exec__run over subprocess.run {recorded / found['subprocess.run']:.1f}")


if __name__ == "__main__":
    main()
