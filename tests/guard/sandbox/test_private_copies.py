"""What a command writes is taken over from a private copy, and nothing of the user's is changed or removed by it."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.guard.held_place import HeldFolder
from reyn_jupyter.guard.sandbox import SandboxError, private_copies
from reyn_jupyter.guard.sandbox.private_copies import Change, NotKeptError, PrivateCopies, TakenOver
from reyn_jupyter.guard.sandbox.protected_places import is_protected
from reyn_jupyter.guard.sandbox.staging import Staging
from tests.support.files.test_tree_removal import make_deep

Work = Callable[[Path], None]


@contextmanager
def copies_of(root: Path, *places: str, hidden: tuple[str, ...] = ()) -> Iterator[PrivateCopies]:
    """Yield the copies of some folders of a workspace."""
    with closing(HeldFolder(os.fspath(root), ".")) as top:
        folders = [HeldFolder(os.fspath(root), place) for place in places]
        with closing(PrivateCopies(top, folders, hidden, view="own")) as copies:
            yield copies


def copy_of(root: Path, place: str) -> Path:
    """Return the copy of a folder, in which a command would work."""
    (found,) = root.glob(f".reyn/commands/*/{'' if place == '.' else place}")
    return found


def taken(root: Path, command: Work, user: Work = lambda root: None, place: str = "data") -> TakenOver:
    """Let a command work in the copy of a folder, and a user in the folder, and take over what the command did."""
    with copies_of(root, place) as copies:
        command(copy_of(root, place))
        user(root / place)
        return asyncio.run(copies.take_over())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    (data / "sub").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        (data / name).write_text("before", encoding="ascii")
    return tmp_path


def tree(folder: Path) -> dict[str, str]:
    """Return what lies in a folder: the content of files, the targets of links, "/" for folders."""
    found = {}
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder).as_posix()
        if not place.startswith(".reyn"):
            found[place] = (
                f"-> {path.readlink()}"
                if path.is_symlink()
                else "/"
                if path.is_dir()
                else path.read_text("utf-8")
            )
    return found


def test_what_a_command_did_is_taken_over_and_its_copy_is_gone(root: Path) -> None:
    def command(data: Path) -> None:
        (data / "a.txt").write_text("after", encoding="ascii")
        (data / "b.txt").unlink()
        shutil.rmtree(data / "sub")
        (data / "sub").write_text("a file now", encoding="ascii")
        (data / "new" / "deep").mkdir(parents=True)
        (data / "new" / "deep" / "run.sh").write_text("#!/bin/sh", encoding="ascii")
        (data / "new" / "deep" / "run.sh").chmod(0o4755)
        (data / "link").symlink_to("a.txt")
        os.link(data / "a.txt", data / "second")
        with (data / "sparse").open("wb") as file:
            file.truncate(1 << 20)
        os.mkfifo(data / "pipe")
        (data / "locked").mkdir()
        (data / "locked" / "x").write_text("x", encoding="ascii")
        (data / "locked").chmod(0)
        (data / "sub-2" / "y").write_text("y", encoding="ascii")
        (data / "sub-2").chmod(0o555)

    (root / "data" / "sub-2").mkdir()
    done = taken(root, command)
    assert (done.left_out, done.refusals) == (("data/pipe",), ())
    found = tree(root / "data")
    assert found.pop("sparse") == "\0" * (1 << 20)
    assert found == {
        "a.txt": "after", "link": "-> a.txt", "locked": "/", "locked/x": "x", "new": "/", "new/deep": "/",
        "new/deep/run.sh": "#!/bin/sh", "second": "after", "sub": "a file now", "sub-2": "/", "sub-2/y": "y",
    }  # fmt: skip
    assert stat.S_IMODE((root / "data/sub-2").stat().st_mode) == 0o555
    assert stat.S_IMODE((root / "data/new/deep/run.sh").stat().st_mode) == 0o755  # no bit that gives rights
    assert [(each.place, each.how) for each in done.changes if each.kind == "file"][:3] == [
        ("data/sub/c.txt", "deleted"), ("data/b.txt", "deleted"), ("data/a.txt", "changed"),
    ]  # fmt: skip
    assert not list(root.glob(".reyn/commands/*"))


def test_what_the_user_makes_meanwhile_stays_and_the_version_of_the_command_is_set_aside(root: Path) -> None:
    def command(data: Path) -> None:
        for name in ("a.txt", "b.txt", "new.txt", "same.txt"):
            (data / name).write_text("of the command", encoding="ascii")
        (data / "sub" / "c.txt").unlink()
        (data / "sub").rmdir()
        (data / ".git").mkdir()
        (data / ".env").write_text("of the command", encoding="ascii")

    def user(data: Path) -> None:
        (data / "a.txt").write_text("of the user", encoding="ascii")
        (data / "b.txt").unlink()
        (data / "new.txt").write_text("of the user", encoding="ascii")
        (data / "same.txt").write_text("of the command", encoding="ascii")
        (data / "sub" / "c.txt").write_text("of the user", encoding="ascii")
        (data / "thesis" / ".git").mkdir(parents=True)
        (data / "thesis" / ".git" / "HEAD").write_text("ref", encoding="ascii")
        (data / ".env").write_text("of the user", encoding="ascii")
        (data / "id_rsa").write_text("of the user", encoding="ascii")

    done = taken(root, command, user)
    assert tree(root / "data") == {
        "a.txt": "of the user", "new.txt": "of the user", "same.txt": "of the command", "sub": "/",
        "sub/c.txt": "of the user", "thesis": "/", "thesis/.git": "/", "thesis/.git/HEAD": "ref",
        ".env": "of the user", "id_rsa": "of the user",
    }  # fmt: skip
    assert done.planted == ("data/.env", "data/.git")
    aside = {each.place: each.set_aside for each in done.refusals}
    assert sorted(aside) == ["data/a.txt", "data/b.txt", "data/new.txt", "data/sub/c.txt"]
    for place in ("data/a.txt", "data/b.txt", "data/new.txt"):
        assert (root / str(aside[place])).read_text(encoding="ascii") == "of the command"
        assert str(aside[place]) in str(next(each for each in done.refusals if each.place == place))


NAMES = st.sampled_from(["a", "b", "d/e", "d/f", "d/.env", ".git/HEAD", "k.pem"])
ACTS = st.lists(st.tuples(NAMES, st.sampled_from(["write", "remove", "clear"])), max_size=8)


def act(folder: Path, acts: list[tuple[str, str]], who: str) -> None:
    for name, what in acts:
        path = folder / name
        if what == "write" and not path.is_dir():
            path.parent.mkdir(exist_ok=True)
            path.write_text(who, encoding="ascii")
        elif what == "remove":
            path.unlink(missing_ok=True)
        elif what == "clear" and path.parent != folder:
            shutil.rmtree(path.parent, ignore_errors=True)


@settings(max_examples=40, deadline=None)
@given(before=ACTS, command=ACTS, user=ACTS)
def test_each_file_is_as_the_user_left_it_or_as_the_command_did_alone(
    before: list[tuple[str, str]],
    command: list[tuple[str, str]],
    user: list[tuple[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("workspace")
    (root / "data").mkdir()
    act(root / "data", before, "before")
    start = tree(root / "data")
    with copies_of(root, "data") as copies:
        copy = copy_of(root, "data")
        shown = tree(copy)
        act(copy, command, "command")
        made = tree(copy)
        act(root / "data", user, "user")
        left = tree(root / "data")
        done = asyncio.run(copies.take_over())
    after = tree(root / "data")
    refused = {each.place for each in done.refusals}
    for name in {*left, *after, *made, *start} - {"d", ".git"}:
        by_user = left.get(name) != start.get(name)
        by_command = made.get(name) != shown.get(name)
        wanted = (
            made.get(name)
            if by_command and not by_user and not is_protected(f"data/{name}")
            else left.get(name)
        )
        if is_protected(f"data/{name}") or by_user or not by_command:
            assert after.get(name) == left.get(name), name
        else:  # a folder that the user removed meanwhile does not come back
            assert after.get(name) == wanted or f"data/{name}" in refused, name
    shutil.rmtree(root)


class Recorded:
    """A record that keeps nothing of some files."""

    def __init__(self, unkept: str = "") -> None:
        self.unkept = unkept
        self.kept: dict[str, bytes | None] = {}
        self.made: list[str] = []

    async def before(self, change: Change, content: bytes | None) -> None:
        if change.place == self.unkept:
            raise NotKeptError("was not changed, because what it holds could not be kept for undo")
        self.kept[change.place] = content

    def after(self, change: Change) -> None:
        self.made.append(change.place)


def test_a_file_that_cannot_be_kept_for_undo_is_not_changed(root: Path) -> None:
    record = Recorded(unkept="data/a.txt")
    with copies_of(root, "data") as copies:
        for name in ("a.txt", "b.txt"):
            (copy_of(root, "data") / name).write_text("after", encoding="ascii")
        done = asyncio.run(copies.take_over(record))
    assert (root / "data/a.txt").read_text(encoding="ascii") == "before"
    assert (root / "data/b.txt").read_text(encoding="ascii") == "after"
    assert (record.kept, record.made) == ({"data/b.txt": b"before"}, ["data/b.txt"])
    (refusal,) = done.refusals
    assert (root / str(refusal.set_aside)).read_text(encoding="ascii") == "after"


def test_without_room_for_a_copy_nothing_runs_and_nothing_is_left(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "copy_file_range", full)
    with pytest.raises(SandboxError, match="No space left on device") as caught, copies_of(root, "data"):
        pass
    assert "Free some space" in caught.value.hint
    assert not list(root.glob(".reyn/commands/*"))


@pytest.mark.parametrize("on_another_file_system", [False, True])
def test_files_get_to_another_file_system_and_replace_nothing_there(
    root: Path, on_another_file_system: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, *_: object, **given: object) -> None:
        if not str(source).endswith(".tmp"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        replace(source, *_, **given)  # type: ignore[arg-type]

    replace = os.replace
    if on_another_file_system:
        monkeypatch.setattr(os, "replace", refuse)
        monkeypatch.setattr(os, "link", refuse)

    def command(data: Path) -> None:
        for name in ("a.txt", "new.txt", "other.txt"):
            (data / name).write_text("of the command", encoding="ascii")

    done = taken(
        root, command, lambda data: (data / "other.txt").write_text("of the user", encoding="ascii") and None
    )
    found = tree(root / "data")
    assert (found["a.txt"], found["new.txt"], found["other.txt"]) == (
        "of the command",
        "of the command",
        "of the user",
    )
    assert [each.place for each in done.refusals] == ["data/other.txt"]
    assert not [name for name in found if name.endswith(".tmp")]


@pytest.mark.parametrize("swapped", ["data", "data/sub"])
def test_a_folder_that_is_swapped_for_a_link_takes_nothing_along(
    swapped: str, root: Path, tmp_path: Path
) -> None:
    victim = root / "victim"
    shutil.copytree(root / "data", victim)

    def user(data: Path) -> None:
        (root / swapped).rename(root / "moved")
        (root / swapped).symlink_to(victim if swapped == "data" else victim / "sub")

    def command(data: Path) -> None:
        (data / "sub" / "c.txt").unlink()
        (data / "sub" / "new").write_text("attacker", encoding="ascii")

    done = taken(root, command, user)
    assert tree(victim) == {"a.txt": "before", "b.txt": "before", "sub": "/", "sub/c.txt": "before"}
    assert {"data/sub/new", "data/sub/c.txt"} <= {each.place for each in done.refusals}


def test_a_folder_that_is_too_large_is_refused_and_so_is_too_much_of_a_command(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_copies, "MOST_FILES", 3)
    with pytest.raises(SandboxError, match="more than 3 files or 64 MiB"), copies_of(root, "data"):
        pass
    monkeypatch.setattr(private_copies, "MOST_FILES", 5)
    monkeypatch.setattr(private_copies, "MOST_BYTES", 10)
    with pytest.raises(SandboxError, match="more than 5 files"), copies_of(root, "data"):
        pass
    monkeypatch.undo()
    monkeypatch.setattr(private_copies, "MOST_MADE", 6)

    def command(data: Path) -> None:
        (data / "a.txt").unlink()
        for number in range(10):
            (data / str(number)).write_text("x", encoding="ascii")

    done = taken(root, command)
    assert tree(root / "data") == {"a.txt": "before", "b.txt": "before", "sub": "/", "sub/c.txt": "before"}
    (refusal,) = done.refusals
    assert len(list((root / str(refusal.set_aside)).iterdir())) == 12


def test_folders_deeper_than_a_path_can_be_are_refused_and_removed(root: Path) -> None:
    done = taken(root, lambda data: make_deep(data / "deep", levels=300))
    assert "too deep" in str(done.refusals[0])
    assert not list(root.glob(".reyn/commands/*"))
    make_deep(root / "data" / "own", levels=250)
    with pytest.raises(SandboxError, match="too deep"), copies_of(root, "data"):
        pass


def test_two_commands_in_one_folder_lose_nothing_of_each_other(root: Path) -> None:
    with copies_of(root, "data") as first, copies_of(root, ".") as second:
        one, other = sorted(root.glob(".reyn/commands/*/data"))
        for number, data in enumerate((one, other)):
            (data / "a.txt").write_text(str(number), encoding="ascii")
            (data / f"own-{number}").write_text("x", encoding="ascii")
        done = [asyncio.run(each.take_over()) for each in (first, second)]
    assert {"own-0", "own-1"} <= {path.name for path in (root / "data").iterdir()}
    assert (done[0].refusals, [each.place for each in done[1].refusals]) == ((), ["data/a.txt"])


def test_a_copy_of_a_kernel_that_was_killed_is_removed_with_the_next_one(root: Path) -> None:
    left = root / ".reyn" / "commands" / "20200101-000000-00000000"
    with copies_of(root, "data"):
        left.mkdir()
        (left / "x").write_text("x", encoding="ascii")
        left.with_name(f"{left.name}.lock").touch()
        with copies_of(root, "data"):
            assert not left.exists()
            assert len(list(root.glob(".reyn/commands/*/data"))) == 2  # that of one that lives stays


def test_a_state_folder_that_leads_elsewhere_gets_no_copy(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (root / ".reyn").symlink_to(elsewhere)
    with (
        closing(HeldFolder(os.fspath(root), ".")) as top,
        pytest.raises(SandboxError, match="cannot be made"),
    ):
        Staging(top.descriptor)
    assert not list(elsewhere.iterdir())
