"""What a tree of processes uses, as somebody sees it who is not root."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

# Takes off root's rights first, under which all can be read.
UNPRIVILEGED = """
import os, subprocess, sys, time
from reyn_jupyter.guard.sandbox.process_tree import TreeMeter
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
os.chdir("/")
def look(meter):
    time.sleep(0.01)  # as the runner does, between two looks
    meter.usage()
"""


def _measured(code: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED + textwrap.dedent(code), *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip() or done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_processes_that_begin_and_end_are_measured() -> None:
    code = """
        many = "for number in 1 2 3 4 5 6 7 8 9; do /bin/true | /bin/cat; done"
        program = subprocess.Popen(["/bin/sh", "-c", many])
        meter = TreeMeter(program.pid)
        while not os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            look(meter)
        for _ in range(30):  # it is dead, and nobody waited for it
            look(meter)
        print("measured")
    """
    assert _measured(code) == "measured"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_program_that_cannot_be_read_is_not_measured_as_nothing() -> None:
    code = """
        program = subprocess.Popen([sys.argv[1], "60"])
        meter = TreeMeter(program.pid)
        try:
            for _ in range(100):
                look(meter)
            print("measured")
        except PermissionError:
            print("refused")
        finally:
            program.kill()
    """
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are for who runs it alone
        Path(folder).chmod(0o755)
        hidden = Path(folder, "sleep")
        hidden.write_bytes(Path("/bin/sleep").read_bytes())
        hidden.chmod(0o111)
        assert _measured(code, str(hidden)) == "refused"
