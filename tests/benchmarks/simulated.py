"""What a study of simulated trials costs in all: planning, true rates, two workers, checks, the file.

Each size runs in a process of its own, since a process never gives back its peak of memory. The CPU time is that of the
coordinator and of its workers together, so that it says the same on a machine that does other things too.

    python -m tests.benchmarks.simulated --trials 1000 10000 --workers 2
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.evaluation.suites import load_suite
from reyn_jupyter.executors.processes import ProcessExecutor

SUITE = "mandates"
SIZES, WORKERS = (1_000, 10_000), 2
LIMIT_SECONDS, LIMIT_MS, LIMIT_MEMORY = 60, 6.0, 1.2
BASE = Variant("generic-1x", model="simulator", mandate="generic", reinforcement=1)
BEST = BASE.but("explicit-3x", mandate="explicit", reinforcement=3)


def one(trials: int, workers: int) -> dict[str, float]:
    """Run one study; what it took."""
    scenarios = len(load_suite(SUITE).scenarios)
    began = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessExecutor(workers) as executor,
        Study(Path(folder) / "study.sqlite", suite=SUITE, executor=executor) as study,
    ):
        summary = study.run(BASE, BEST, repeats=math.ceil(trials / scenarios / 2))
        wall, own = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
        if summary.ended != "complete" or study.spent.trials != summary.done:
            raise RuntimeError(f"the study went wrong: {summary}")
    for child in multiprocessing.active_children():  # only those that ended are in the figures below
        child.join()
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "trials": summary.done,
        "wall": wall,
        "parent": own.ru_utime + own.ru_stime,
        "workers": others.ru_utime + others.ru_stime,
        "memory": (own.ru_maxrss + workers * others.ru_maxrss) / 1024,
    }


def _apart(trials: int, workers: int) -> dict[str, float]:
    command = [sys.executable, "-m", __name__ if __name__ != "__main__" else "tests.benchmarks.simulated"]
    made = subprocess.run(
        [*command, "--one", str(trials), "--workers", str(workers)], check=True, stdout=subprocess.PIPE
    )
    found: dict[str, float] = json.loads(made.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.simulated")
    parser.add_argument("--trials", type=int, nargs="+", default=SIZES, help="about so many")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()
    if options.one:
        print(json.dumps(one(options.one, options.workers)))
        return
    print(
        f"{'trials':>8}{'wall s':>9}{'s / 10,000':>12}{'CPU ms each':>13}{'parent':>8}{'workers':>9}{'MB':>6}"
    )
    least = 0.0
    for size in options.trials:
        made = _apart(size, options.workers)
        count = made["trials"]
        parent, workers = (1000 * made[who] / count for who in ("parent", "workers"))
        least = least or made["memory"]
        print(
            f"{count:>8,}{made['wall']:>9.1f}{made['wall'] / count * 10_000:>12.1f}{parent + workers:>13.2f}"
            f"{parent:>8.2f}{workers:>9.2f}{made['memory']:>6.0f}   memory × {made['memory'] / least:.2f}",
            flush=True,
        )
    print(
        f"limits: {LIMIT_SECONDS} s for 10,000 with two workers, {LIMIT_MS:g} ms of two cores a trial, "
        f"memory × {LIMIT_MEMORY}"
    )


if __name__ == "__main__":
    main()
