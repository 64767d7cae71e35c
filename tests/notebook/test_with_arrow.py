"""What is different where pyarrow is installed, in a process that has it; everything else is tested without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ARROW = Path(sys.prefix) / "arrow"  # laid there by make setup-test


def test_tables_of_polars_and_arrow_and_texts_that_pyarrow_cannot_hold() -> None:
    assert ARROW.is_dir(), f"polars and pyarrow are missing in {ARROW}: make setup-test"
    checks = sorted(map(str, (ROOT / "tests" / "with_arrow").glob("check_*.py")))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *checks],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ARROW)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout[-4000:]
