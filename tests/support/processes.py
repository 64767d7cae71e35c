"""Python processes that tests start: each imports what the test itself imports."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil

from reyn_jupyter.backends.mcp_sdk.sdk import IS_FIRST

ROOT = Path(__file__).parents[2]


def mcp_python() -> str:
    """Return the interpreter with the second major version of MCP's SDK, by which the peers of tests are made.

    `make setup-test` lays an environment with the first version over the one of the tests, in a folder of it.
    """
    return str(Path(sys.prefix).parent / "bin" / "python") if IS_FIRST else sys.executable


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment, with the repository on the child's path, and `more`."""
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": paths, **more}


def child(
    code: str, *arguments: str, timeout: float = 300.0, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own until it ends; `timeout` in seconds."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True, text=True, timeout=timeout, env=environment(**environ), check=False,
    )  # fmt: skip


class _Started(subprocess.Popen[str]):
    """A process that is killed at the end of a `with` block: a check that fails in it does not wait for the process."""

    def __exit__(self, *error: object) -> None:
        self.kill()
        super().__exit__(*error)  # type: ignore[arg-type]


def started(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Start code in a process of its own, with pipes to it, and return at once."""
    return _Started(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip


def is_gone(pid: int) -> bool:
    """Return whether no process of this number runs; one that ended and that nobody waited for counts as gone."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
