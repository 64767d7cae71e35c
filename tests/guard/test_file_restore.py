"""Undo puts back exactly what a run found, or nothing; and diffs that stay small whatever they compare."""

from __future__ import annotations

import hashlib
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.guard import file_restore as undo
from reyn_jupyter.guard.diff import unified, whole_diff
from reyn_jupyter.guard.file_restore import RecordedChange, UndoRefusedError
from reyn_jupyter.guard.workspace import Workspace


def sha(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


class Run:
    """A run that changes files and records it."""

    def __init__(self, root) -> None:
        self.workspace = Workspace(root)
        self.changes: list[RecordedChange] = []

    def change(self, path: str, content: bytes | None) -> None:
        target = self.workspace.root / path
        before = target.read_bytes() if target.exists() else None
        mode = self.workspace.mode(path)
        if content is None:
            self.workspace.delete(path)
        else:
            self.workspace.write_atomic(path, content)
        self.changes.append(RecordedChange(path, before, sha(content), mode))

    def undo(self) -> None:
        with undo.planned(self.changes, self.workspace) as restores:
            undo.apply(restores)

    def files(self) -> dict[str, bytes]:
        return {self.workspace.relative(path): path.read_bytes() for path in self.workspace.walk()}


@pytest.fixture
def run(tmp_path) -> Run:
    (tmp_path / "kept.txt").write_bytes(b"kept\n")
    (tmp_path / "old.txt").write_bytes(b"old\n")
    (tmp_path / "old.txt").chmod(0o750)
    return Run(tmp_path)


def test_writes_edits_creations_and_deletions_are_taken_back(run):
    before = run.files()
    run.change("kept.txt", b"first\n")
    run.change("new/made.txt", b"made\n")
    run.change("kept.txt", b"second\n")
    run.change("old.txt", None)
    run.change("gone.txt", b"x")
    run.change("gone.txt", None)
    run.undo()
    assert run.files() == before
    assert run.workspace.mode("old.txt") == 0o750


def test_a_file_that_changed_since_stops_everything_and_the_difference_is_shown(run):
    run.change("kept.txt", b"by the run\n")
    run.change("old.txt", None)
    (run.workspace.root / "kept.txt").write_bytes(b"by the person\n")
    before = run.files()
    with pytest.raises(
        UndoRefusedError, match=r"kept\.txt was changed since, so nothing was undone"
    ) as caught:
        run.undo()
    assert "-kept" in caught.value.diff and "+by the person" in caught.value.diff
    assert run.files() == before


def test_a_file_that_was_removed_or_came_back_since_stops_it_too(run):
    run.change("kept.txt", b"x")
    (run.workspace.root / "kept.txt").unlink()
    with pytest.raises(UndoRefusedError):
        run.undo()
    run.changes.clear()
    run.change("old.txt", None)
    (run.workspace.root / "old.txt").write_bytes(b"written anew")
    with pytest.raises(UndoRefusedError, match="changed since"):
        run.undo()


def test_an_undo_that_was_killed_half_way_goes_on(run):
    before = run.files()
    run.change("kept.txt", b"first\n")
    run.change("kept.txt", b"second\n")
    run.change("old.txt", None)
    run.change("new/made.txt", b"made\n")
    with undo.planned(run.changes, run.workspace) as restores:
        for restore in restores[:2]:  # what a killed process had put back: made.txt is gone, old.txt is there
            undo.apply([restore])
    with undo.planned(run.changes, run.workspace) as restores:
        assert [restore.path for restore in restores] == ["kept.txt"]
        assert set(restores.back) == {"old.txt", "new/made.txt"}
        undo.apply(restores)
    assert run.files() == before


def test_the_persons_edit_in_the_middle_of_a_run_is_not_lost(run):
    run.change("kept.txt", b"one")
    (run.workspace.root / "kept.txt").write_bytes(b"by the person")
    run.change("kept.txt", b"two")
    with pytest.raises(UndoRefusedError, match="in between"):
        run.undo()
    assert run.files()["kept.txt"] == b"two"


def test_a_link_put_in_the_place_of_a_file_is_not_followed_nor_removed(run, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "x"
    outside.write_bytes(b"by the run")
    run.change("kept.txt", b"by the run")
    (run.workspace.root / "kept.txt").unlink()
    (run.workspace.root / "kept.txt").symlink_to(outside)
    with pytest.raises(UndoRefusedError, match=r"kept\.txt is not put back \(kept\.txt is a link now\)"):
        run.undo()
    run.change("old.txt", b"by the run")
    with undo.planned(run.changes, run.workspace) as restores:
        undo.apply(restores)
    assert dict(restores.linked) == {"kept.txt": "kept.txt is a link now"}
    assert (run.workspace.root / "old.txt").read_bytes() == b"old\n"
    assert (run.workspace.root / "kept.txt").is_symlink() and outside.read_bytes() == b"by the run"


def test_a_link_that_was_there_before_the_run_stops_no_undo(run):
    (run.workspace.root / "way").symlink_to(".")
    run.change("kept.txt", b"by the run")
    run.changes = [RecordedChange("way/kept.txt", b"kept\n", sha(b"by the run"))]
    run.undo()
    assert (run.workspace.root / "kept.txt").read_bytes() == b"kept\n"


def test_when_one_file_cannot_be_put_back_none_is(run):
    run.change("kept.txt", b"changed")
    run.change("old.txt", b"changed too")
    with undo.planned(run.changes, run.workspace) as restores:
        assert [restore.path for restore in restores] == ["old.txt", "kept.txt"]
        (run.workspace.root / "kept.txt").chmod(0o444)
        with pytest.raises(UndoRefusedError, match="read-only"):
            undo.apply(restores)
    assert run.files() == {"kept.txt": b"changed", "old.txt": b"changed too"}


def test_a_file_that_moves_between_plan_and_restore_stops_it(run):
    run.change("kept.txt", b"changed")
    with undo.planned(run.changes, run.workspace) as restores:
        (run.workspace.root / "kept.txt").write_bytes(b"just now")
        with pytest.raises(UndoRefusedError, match="just now"):
            undo.apply(restores)
    assert "-changed" in restores[0].diff and "+kept" in restores[0].diff


@pytest.mark.parametrize("target", ["other", "../outside"])
def test_a_folder_that_is_swapped_between_plan_and_restore_stops_everything(run, target):
    for folder in (run.workspace.root / "data", (run.workspace.root / "data" / target).resolve()):
        folder.mkdir(exist_ok=True)
        (folder / "a.txt").write_bytes(b"before")
    run.change("kept.txt", b"changed")
    run.change("data/a.txt", b"changed")
    run.change("old.txt", None)
    with undo.planned(run.changes, run.workspace) as restores:
        (run.workspace.root / "data").rename(run.workspace.root / "moved")
        (run.workspace.root / "data").symlink_to(target)
        with pytest.raises(UndoRefusedError, match="not where it was"):
            undo.apply(restores)
    assert (run.workspace.root / "moved" / "a.txt").read_bytes() == b"changed"
    assert run.files()["kept.txt"] == b"changed" and "old.txt" not in run.files()


def test_a_rule_against_one_restore_stops_all_of_them_and_is_named(run):
    run.change("kept.txt", b"changed")
    run.change("made.txt", b"made")
    before = run.files()
    asked = []

    def judge(place, removes):
        asked.append((place, removes))
        return "the rule X denies it" if removes else None

    with (
        pytest.raises(UndoRefusedError, match=r"made\.txt may not be removed \(the rule X denies it\)"),
        undo.planned(run.changes, run.workspace, judge),
    ):
        pass
    assert run.files() == before and asked[0] == ("made.txt", True)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.binary(max_size=4)), max_size=12))
def test_undo_is_the_inverse_of_any_run(tmp_path_factory, steps):
    root = tmp_path_factory.mktemp("run")
    (root / "a").write_bytes(b"at first")
    run = Run(root)
    before = run.files()
    for path, content in steps:
        if content is not None or (root / path).exists():
            run.change(path, content)
    run.undo()
    assert run.files() == before


def test_texts_that_would_keep_a_comparison_busy_are_given_as_one_block_with_every_line():
    old = [line for at in range(990) for line in (f"c{at % 50}", f"old {at}")]
    new = [line for at in range(990) for line in (f"c{at % 50}", f"new {at}")]
    whole = whole_diff("\n".join(["a", *old]).encode(), "\n".join(["b", *new]).encode(), "x")
    assert isinstance(whole, str)
    lines = whole.splitlines()
    assert lines[2] == "@@ from line 1: 1981 lines become 1981 @@"
    assert [line for line in lines if line.startswith("-old")] == [
        f"-{line}" for line in old if "old" in line
    ]
    assert sum(line.startswith("+new") for line in lines) == 990


def test_ordinary_changes_of_long_files_are_compared_line_by_line():
    old = [f"line {at}" if at % 5 else "" for at in range(1500)]
    new = [f"{line}!" if at % 50 == 7 else line for at, line in enumerate(old)]
    diff = unified("\n".join(old).encode(), "\n".join(new).encode(), "x", most_lines=10_000)
    assert diff.count("\n@@") == 30 and diff.count("\n+line") == 30


def test_a_diff_says_what_changes():
    assert unified(b"a\nb\nc\n", b"a\nB\nc\n", "x").splitlines() == [
        "--- a/x", "+++ b/x", "@@ -1,3 +1,3 @@", " a", "-b", "+B", " c",
    ]  # fmt: skip
    assert unified(None, b"new\n", "x").splitlines() == ["--- /dev/null", "+++ b/x", "@@ -0,0 +1 @@", "+new"]
    assert unified(b"old\n", None, "x").splitlines()[:2] == ["--- a/x", "+++ /dev/null"]
    assert unified(b"same", b"same", "x") == "x stays as it is"
    assert "\\ No newline at end of file" in unified(b"a\n", b"a", "x")


def test_line_numbers_count_the_part_that_is_not_compared():
    many = b"".join(b"%d\n" % number for number in range(10_000))
    assert "@@ -4998,7 +4998,7 @@" in unified(many, many.replace(b"\n5000\n", b"\nfive\n"), "x")


def test_binary_and_huge_files_are_named_by_size():
    assert unified(b"\0\1", b"text", "x.bin") == "Binary file x.bin: 2 bytes → 4 bytes"
    assert unified(None, b"\xff\xfe\xfa", "x.bin") == "Binary file x.bin: not there → 3 bytes"
    assert "bytes" in unified(b"a" * (5 << 20), b"b", "x")


def test_a_diff_is_bounded_in_lines_characters_and_work():
    old = b"\n".join(os.urandom(8).hex().encode() for _ in range(60_000))
    new = b"\n".join(os.urandom(8).hex().encode() for _ in range(60_000))
    text = unified(old, new, "x")
    assert "60000 lines become 60000" in text and len(text) < 10_000
    text = unified(b"", b"x" * 1_000_000 + b"\n" + b"y\n" * 500, "x")
    assert len(text) < 10_000 and "(1000001 characters)" in text and "more lines of this diff" in text
