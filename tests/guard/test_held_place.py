"""A place is held from its judgement to its change: what is read and written lies in that folder, or is refused."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from reyn_jupyter.guard.held_place import HeldPlace, PlaceMovedError, WorkspaceError


def place(root: Path, path: str) -> HeldPlace:
    return HeldPlace(str(root), path)


def test_what_is_there_is_read_replaced_and_removed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with closing(place(tmp_path, "data/a.txt")) as held:
        assert (held.read(), held.open(), held.status()) == (None, None, None)
        held.replace(b"one", mode=0o640)
        assert held.read() == b"one" and held.read(2) == b"on"
        held.replace(b"two")
        status = held.status()
        assert status is not None and status.st_mode & 0o777 == 0o640
        held.remove()
        assert list((tmp_path / "data").iterdir()) == []


def test_folders_are_made_for_a_file_and_for_nothing_else(tmp_path: Path) -> None:
    with closing(place(tmp_path, "a/b/c.txt")) as held:
        assert held.read() is None
        with pytest.raises(WorkspaceError, match="does not exist"):
            held.remove()
        assert list(tmp_path.iterdir()) == []
        held.replace(b"x")
        held.replace(b"y")
    assert (tmp_path / "a" / "b" / "c.txt").read_bytes() == b"y"


@pytest.mark.parametrize("path", ["file/below", "link/a.txt", "link/deep/a.txt"])
def test_a_file_or_a_link_on_the_way_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    with pytest.raises(WorkspaceError, match="link"):
        place(tmp_path, path)


def test_a_link_in_the_place_of_the_file_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("kept")
    (tmp_path / "link.txt").symlink_to("kept.txt")
    with closing(place(tmp_path, "link.txt")) as held:
        for refused in (held.read, lambda: held.replace(b"x"), held.remove):
            with pytest.raises(WorkspaceError):
                refused()
    assert (tmp_path / "kept.txt").read_text() == "kept"


def test_the_content_comes_from_the_folder_that_is_held_wherever_it_is(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("mine")
    with closing(place(tmp_path, "data/a.txt")) as held:
        (tmp_path / "data").rename(tmp_path / "moved")
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "a.txt").write_text("theirs")
        assert held.read() == b"mine"
        with pytest.raises(PlaceMovedError, match="not where it was"):
            held.check()
        for refused in (lambda: held.replace(b"x"), held.remove):
            with pytest.raises(PlaceMovedError):
                refused()
        (tmp_path / "data" / "a.txt").unlink()
        (tmp_path / "data").rmdir()
        (tmp_path / "moved").rename(tmp_path / "data")
        held.replace(b"back")
    assert (tmp_path / "data" / "a.txt").read_text() == "back"


def test_a_root_that_is_replaced_is_another_place(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with closing(place(root, "a.txt")) as held:
        root.rename(tmp_path / "before")
        root.mkdir()
        with pytest.raises(PlaceMovedError):
            held.replace(b"x")
    assert list(root.iterdir()) == [] and list((tmp_path / "before").iterdir()) == []


def test_once_it_is_closed_nothing_is_reached_and_what_was_opened_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("whole")
    held = place(tmp_path, "a.txt")
    file = held.open()
    held.close()
    held.close()
    assert file is not None
    with file:
        assert file.read() == b"whole"
    for refused in (held.read, held.status, held.check, lambda: held.replace(b"x"), held.remove):
        with pytest.raises(WorkspaceError, match="the call is over"):
            refused()
