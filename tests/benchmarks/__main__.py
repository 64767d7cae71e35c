"""`make bench`: every figure beside a peer or a limit, in the same run. `make bench NAMES="blobs sql"` runs some.

Each says how many are before it, and how long it took; one that fails is named at the end, and the others run.
`--trials 300` is how many `executors` counts, for a machine that is slow or busy.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time
import traceback


def main() -> None:
    found = [module.name for module in pkgutil.iter_modules(__import__(__package__, fromlist=["_"]).__path__)]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    found = [name for name in found if not name.startswith("_")]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all by default: {', '.join(found)}")
    parser.add_argument("--trials", type=int, help="of executors")
    given = parser.parse_args()
    if unknown := sorted({*given.names} - {*found}):
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(found)}")
    wanted = given.names or found
    failed = []
    for number, name in enumerate(wanted, 1):
        title = f"── {name} ({number} of {len(wanted)}) "
        print(f"\n{title:─<74}", flush=True)
        began = time.monotonic()
        try:
            options = {"trials": given.trials} if name == "executors" and given.trials else {}
            importlib.import_module(f"{__package__}.{name}").main(**options)
        except (Exception, SystemExit):  # the others have their figures all the same
            traceback.print_exc()
            failed.append(name)
        print(f"({name}: {time.monotonic() - began:,.0f} s)", flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
