"""Counts of uses are shared by the kernels of a workspace, and none is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import reyn_jupyter as reyn

KERNEL = """
import sys
from reyn_jupyter.runtime.record.action_usage import ActionUsage
from reyn_jupyter.runtime.record.events import ActionFinished
from reyn_jupyter.support.files.plain_files import PlainFolder
from pathlib import Path

root, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
usage = ActionUsage(PlainFolder(root, ".reyn", "state"))
usage.uses
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    for action in ("file__read", name):
        usage.record(
            [ActionFinished(call="c", step=0, wrapper="", output="", at=float(number), name=action, ok=True)]
        )
    usage.flush()
"""


def counts(root: Path) -> dict[str, int]:
    written = json.loads((root / ".reyn" / "state" / "uses.json").read_text())
    return {name: use["count"] for name, use in written.items()}


def test_kernels_that_count_at_the_same_time_lose_no_use(tmp_path: Path) -> None:
    (tmp_path / ".reyn").mkdir()
    names = [f"file__{letter}" for letter in "abc"]
    kernels = [
        subprocess.Popen(
            [sys.executable, "-c", KERNEL, str(tmp_path), name, "40"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for kernel in kernels:
        assert kernel.stdout is not None and kernel.stdout.readline() == "ready\n"
    for kernel in kernels:
        kernel.communicate("go\n", timeout=120)
    assert counts(tmp_path) == {"file__read": 120, **dict.fromkeys(names, 40)}


def test_second_session_adds_to_the_counts_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("hello")
    sessions = [reyn.Session(tmp_path, namespace={}) for _ in range(2)]
    for session in sessions:
        assert session.parts.usage.uses == {}
    for session in sessions:
        for _ in range(3):
            session.invoke_action("file__read", {"path": "notes.md"})
        session.parts.usage.flush()
        session.close()
    assert counts(tmp_path) == {"file__read": 6}
