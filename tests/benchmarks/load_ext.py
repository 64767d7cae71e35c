"""What `%load_ext reyn_jupyter` costs in a shell that has pydantic loaded already: the median of fresh processes."""

from __future__ import annotations

import statistics
import subprocess
import sys

PROCESSES = 9
LIMIT_MS = 60.0
_CODE = """
import time, pydantic
from pydantic import BaseModel
from IPython.core.interactiveshell import InteractiveShell
class Warm(BaseModel):
    x: int = 1
shell = InteractiveShell.instance()
shell.history_manager.enabled = False
begin = time.perf_counter()
shell.run_line_magic("load_ext", "reyn_jupyter")
print((time.perf_counter() - begin) * 1000)
"""


def measure() -> list[float]:
    """Milliseconds of `%load_ext`, one figure a process."""
    runs = (
        subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
        for _ in range(PROCESSES)
    )
    return [float(run.stdout.split()[-1]) for run in runs]


def main() -> None:
    figures = measure()
    print("%load_ext reyn_jupyter, pydantic loaded, no network")
    print(f"  median of {PROCESSES} fresh processes  {statistics.median(figures):6.1f} ms")
    print(f"  slowest                      {max(figures):6.1f} ms")
    print(f"  limit                        {LIMIT_MS:6.1f} ms")


if __name__ == "__main__":
    main()
