"""What commands see of the folder that Python is installed in: Python, and nothing that lies beside it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reyn_jupyter.guard.sandbox.visible_system import system_paths


def test_a_folder_of_python_is_shown_whole_until_something_else_lies_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    for name in ("bin", "lib"):
        (tmp_path / name).mkdir()
    assert tmp_path in system_paths()
    (tmp_path / "notes.txt").write_text("mine", encoding="ascii")
    shown = system_paths()
    assert tmp_path not in shown
    assert {tmp_path / "bin", tmp_path / "lib"} <= set(shown)
    assert tmp_path / "notes.txt" not in shown
