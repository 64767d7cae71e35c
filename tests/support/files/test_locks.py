"""Locks between processes: one holder at a time, given back by a kill; a Python without them works all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reyn_jupyter.support.files.locks import open_lock_file, release, try_lock, wait_for_lock
from tests.support.waiting import until

HOLD = """
import pathlib, sys, time
from reyn_jupyter.support.files.locks import open_lock_file, try_lock

path = pathlib.Path(sys.argv[1])
assert try_lock(open_lock_file(path))
path.with_name("held").touch()
time.sleep(600)
"""
SESSION = """
import sys

sys.modules["fcntl"] = sys.modules["resource"] = None
from IPython.core.interactiveshell import InteractiveShell

import reyn_jupyter
from reyn_jupyter.guard.state_folder import StateFolder

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "reyn_jupyter")
session = reyn_jupyter.Session(model="offline")
trace = session.ask("Which actions are there?")
assert trace.status == "ok", trace
written = session.invoke_action("file__write", {"path": "a.txt", "content": "text"})
assert written.error is None, written
StateFolder(".").change("approvals.json", lambda before: {"kept": True})
assert StateFolder(".").read("approvals.json") == {"kept": True}
print("done")
"""


def test_one_descriptor_holds_a_lock_at_a_time(tmp_path: Path) -> None:
    first, second = (open_lock_file(tmp_path / "lock") for _ in range(2))
    assert try_lock(first) and not try_lock(second) and not wait_for_lock(second, 0.01)
    release(first)
    assert wait_for_lock(second)
    release(second)


def test_a_kill_gives_the_lock_back(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "lock")])
    until(lambda: (tmp_path / "held").exists())
    descriptor = open_lock_file(tmp_path / "lock")
    assert not try_lock(descriptor)
    process.kill()
    process.wait()
    assert wait_for_lock(descriptor, 60)
    release(descriptor)


def test_a_lock_file_is_nobody_elses_and_no_link(tmp_path: Path) -> None:
    release(open_lock_file(tmp_path / "lock"))
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "lock")
    with pytest.raises(OSError, match="link"):
        open_lock_file(tmp_path / "link")


def test_without_fcntl_the_extension_loads_and_a_session_works(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "REYN_STATE_DIR": str(tmp_path / "state"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    done = subprocess.run(
        [sys.executable, "-c", SESSION],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=120,
    )
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr
