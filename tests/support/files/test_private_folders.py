"""Folders that are this user's alone: the state folder of a clone, and those among the temporary files."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.files.scratch import Scratch


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_state_folder_of_a_clone_is_made_its_users_alone(workspace: Path) -> None:
    for name in ("runs", "state", "memory/shared"):
        (workspace / ".reyn" / name).mkdir(parents=True)
    for path in ((workspace / ".reyn"), *(workspace / ".reyn").rglob("*")):
        path.chmod(0o777)
    session = reyn.Session(workspace, namespace={}, store="files")
    session.ask("go", model=ScriptedModel("done"))
    session.close()
    assert mode(workspace / ".reyn") == 0o700 and list((workspace / ".reyn" / "runs").iterdir())


def test_only_the_state_folder_is_changed(tmp_path: Path) -> None:
    for name in ("skills", "skills/.reyn", ".reyn", ".reyn/runs"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o755)
    for parts in (("skills",), ("skills", ".reyn"), (".reyn", "runs")):
        PlainFolder(tmp_path, *parts).check()
    assert [mode(tmp_path / name) for name in ("skills", "skills/.reyn", ".reyn")] == [0o755, 0o755, 0o700]


def test_the_state_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PlainFolder(tmp_path, ".reyn", "runs").make()
    owner = (tmp_path / ".reyn").stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(OSError, match="another user"):
        PlainFolder(tmp_path, ".reyn", "runs").read("a", 10)
    monkeypatch.setattr(os, "geteuid", lambda: 0)  # root may work in a folder of anybody, as containers do
    PlainFolder(tmp_path, ".reyn", "runs").check()


def test_no_name_among_the_temporary_files_can_be_taken_by_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o777)
    monkeypatch.setenv("TMPDIR", str(shared))
    monkeypatch.setattr(tempfile, "tempdir", None)
    taken = shared / f"reyn-trials-{os.getuid()}-mine"
    taken.mkdir()
    taken.chmod(0o777)  # anybody may write in it
    (shared / f"reyn-trials-{os.getuid()}").symlink_to(tmp_path)
    (shared / f"reyn-trials-{os.getuid()}-link").symlink_to(tmp_path)
    one, other = Scratch(), Scratch()
    assert one.base == other.base and mode(one.base) == 0o700 and one.base.parent == shared
    assert one.base not in (taken, tmp_path) and not list(taken.iterdir())
    one.close()
    other.close()
