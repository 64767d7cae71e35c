"""Folders that somebody else filled are removed whole, and nothing beside them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reyn_jupyter.support.files import tree_removal
from reyn_jupyter.support.files.scratch import remove
from reyn_jupyter.support.files.tree_removal import remove_tree


def make_deep(folder: Path, levels: int = 3000) -> None:
    """Make folders in each other, so deep that no path leads to the last one."""
    folder.mkdir()
    current = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=current)
        inner = os.open("d", os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = inner
    os.close(current)


def test_a_folder_deeper_than_a_recursion_and_a_path_can_be_is_removed(tmp_path: Path) -> None:
    make_deep(tmp_path / "filled")
    remove_tree(tmp_path / "filled")
    assert not list(tmp_path.iterdir())


def test_what_a_link_leads_to_stays_and_so_does_what_lies_beside(tmp_path: Path) -> None:
    kept, filled = tmp_path / "kept", tmp_path / "filled"
    kept.mkdir()
    (kept / "file").write_text("", encoding="ascii")
    (filled / "below").mkdir(parents=True)
    (filled / "link").symlink_to(kept)
    (filled / "below" / "link").symlink_to("../../kept")
    os.mkfifo(filled / "below" / "pipe")
    remove_tree(filled)
    assert (kept / "file").exists() and not filled.exists()
    (tmp_path / "link").symlink_to(kept)
    with pytest.raises(OSError, match="link"):
        remove_tree(tmp_path / "link")
    assert (kept / "file").exists()


def test_folders_without_permissions_are_removed(tmp_path: Path) -> None:
    inner = tmp_path / "filled" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("", encoding="ascii")
    for folder in (inner, inner.parent):
        folder.chmod(0)
    remove_tree(tmp_path / "filled")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_removed_is_told_and_keeps_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled, unlink = tmp_path / "filled", os.unlink
    filled.mkdir()
    for name in ("a", "kept", "z"):
        (filled / name).write_text("", encoding="ascii")

    def refuse(name: str, *, dir_fd: int) -> None:
        if name == "kept":
            raise PermissionError(1, "not permitted", name)
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)
    monkeypatch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, refuse})
    with pytest.raises(PermissionError, match="kept"):
        remove_tree(filled)
    assert [each.name for each in filled.iterdir()] == ["kept"]


def test_a_folder_is_removed_from_the_one_that_is_held_wherever_its_path_leads_now(tmp_path: Path) -> None:
    for place in ("held/filled/.git", "other/filled/.git"):
        (tmp_path / place).mkdir(parents=True)
    held = os.open(tmp_path / "held", os.O_RDONLY)
    (tmp_path / "held").rename(tmp_path / "moved")
    (tmp_path / "held").symlink_to("other")
    remove_tree("filled", dir_fd=held)
    os.close(held)
    assert not list((tmp_path / "moved").iterdir())
    assert (tmp_path / "other" / "filled" / ".git").exists()


def test_nothing_is_removed_behind_a_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("filled/mounted/inner", "filled/plain"):
        (tmp_path / place).mkdir(parents=True)
    number = (tmp_path / "filled" / "mounted").stat().st_ino
    monkeypatch.setattr(tree_removal, "_mount", lambda folder: (os.fstat(folder).st_ino == number, b""))
    with pytest.raises(OSError, match="mounted"):
        remove_tree(tmp_path / "filled")
    assert (tmp_path / "filled" / "mounted" / "inner").exists()
    assert not (tmp_path / "filled" / "plain").exists()


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        remove_tree(tmp_path / "none")


def test_a_trials_folder_goes_with_whatever_a_command_made_in_it(tmp_path: Path) -> None:
    make_deep(tmp_path / "trial")
    remove(tmp_path / "trial")
    assert not list(tmp_path.iterdir())
    remove(tmp_path / "trial")
