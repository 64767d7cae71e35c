"""`make bench`: every figure beside a peer or a limit, in the same run. Names pick some: `… tests.benchmarks blobs`."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import traceback


def main() -> None:
    found = [module.name for module in pkgutil.iter_modules(__import__(__package__, fromlist=["_"]).__path__)]
    wanted = sys.argv[1:] or [name for name in found if not name.startswith("_")]
    failed = []
    for name in wanted:
        print(f"\n── {name} " + "─" * max(0, 70 - len(name)), flush=True)
        try:
            importlib.import_module(f"{__package__}.{name}").main()
        except Exception:  # the others have their figures all the same
            traceback.print_exc()
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
