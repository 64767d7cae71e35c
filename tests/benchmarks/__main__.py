"""`make bench`: every figure beside a peer or a limit, in the same run. Names pick some: `… tests.benchmarks blobs`.

`--trials 300` is how many `executors` counts, for a machine that is slow or busy.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import traceback


def main() -> None:
    found = [module.name for module in pkgutil.iter_modules(__import__(__package__, fromlist=["_"]).__path__)]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark; all of them by default")
    parser.add_argument("--trials", type=int, help="of executors")
    given = parser.parse_args()
    wanted = given.names or [name for name in found if not name.startswith("_")]
    failed = []
    for name in wanted:
        print(f"\n── {name} " + "─" * max(0, 70 - len(name)), flush=True)
        try:
            options = {"trials": given.trials} if name == "executors" and given.trials else {}
            importlib.import_module(f"{__package__}.{name}").main(**options)
        except Exception:  # the others have their figures all the same
            traceback.print_exc()
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
