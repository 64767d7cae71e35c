"""The audit of what is installed: a known vulnerability fails it, a service that cannot be reached is said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

AUDIT = Path(__file__).resolve().parents[2] / ".ci" / "audit"
SOUND = {"name": "sound", "version": "1.0", "vulns": []}
BAD = {"name": "bad", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"], "aliases": []}]}
SKIPPED = {"name": "skipped", "skip_reason": "Dependency not found on PyPI and could not be audited"}


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        ([SOUND, SKIPPED], 0, "audited 1 of 2 packages: no known vulnerabilities"),
        ([SOUND, BAD], 1, "bad 1.0: PYSEC-1; mended in 1.1"),
        ([SKIPPED, SKIPPED], 0, "NOT AUDITED: the advisory service answered for none of 2 packages"),
        (None, 0, "NOT AUDITED: pip-audit gave no answer"),
    ],
)
def test_what_was_found_and_what_could_not_be_asked_is_said(
    tmp_path: Path, packages: list[dict[str, Any]] | None, status: int, said: str
) -> None:
    report = "" if packages is None else json.dumps({"dependencies": packages})
    program = tmp_path / "pip-audit"  # the answers of the real one, which needs a network
    program.write_text(f"#!{sys.executable}\nprint({report!r})\n")
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, AUDIT, program, tmp_path], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, said in done.stdout) == (status, True), done.stdout + done.stderr
