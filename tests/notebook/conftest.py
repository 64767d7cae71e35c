"""A shell of this process, for tests of what a line or a cell prints."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from reyn_jupyter.notebook import extension
from reyn_jupyter.sessions import current


@pytest.fixture
def run(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[[str], str]]:
    """Runs a cell in a shell of this process and gives what it printed."""
    monkeypatch.chdir(workspace)
    monkeypatch.setattr(current, "_current", [])
    hooks = (sys.excepthook, sys.displayhook)
    shell = InteractiveShell(colors="nocolor")
    shell.history_manager.enabled = False
    extension.load(shell)

    def run(code: str) -> str:
        capsys.readouterr()
        shell.run_cell(code, store_history=False)
        return capsys.readouterr().out.strip()

    yield run
    extension.unload(shell)
    atexit.unregister(shell.atexit_operations)
    shell.displayhook.do_full_cache = (
        False  # or its end collects all garbage, a second where the whole suite is loaded
    )
    shell.atexit_operations()
    sys.excepthook, sys.displayhook = hooks
