"""Writing, editing and deleting workspace files, and what is kept for undo."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import Effect, Purity
from reyn_jupyter.guard.file_restore import RecordedChange, apply, planned
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import FileChange
from tests.categories.file_support import SECRET, Actions, file_actions


@pytest.fixture
def actions(tmp_path: Path) -> Actions:
    return file_actions(tmp_path)


async def undo(actions: Actions) -> None:
    """Take back the reported changes as a session does."""
    blobs = actions.services.blobs
    assert blobs is not None
    recorded = [
        RecordedChange(
            change.path,
            None if change.previous_blob is None else await blobs.load_bytes(change.previous_blob),
            change.sha256,
            change.mode,
        )
        for change in actions.changes
    ]
    with planned(recorded, actions.services.workspace) as restores:
        apply(restores)


async def test_writing_makes_a_file_and_its_folders(actions: Actions, tmp_path: Path) -> None:
    answer = await actions.call("file__write", path="reports/2024/a.md", content="# Grüße\r\n")

    assert answer == {"path": "reports/2024/a.md", "bytes": 11, "created": True}
    assert (tmp_path / "reports/2024/a.md").read_bytes() == "# Grüße\r\n".encode()
    assert actions.changes == [
        FileChange("reports/2024/a.md", None, sha256("# Grüße\r\n".encode()).hexdigest())
    ]


async def test_writing_keeps_what_the_file_held_and_its_mode(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_bytes(b"\xff old")
    (tmp_path / "run.sh").chmod(0o750)

    answer = await actions.call("file__write", path="run.sh", content="new")

    assert answer == {"path": "run.sh", "bytes": 3, "created": False}
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o750
    await undo(actions)
    assert (tmp_path / "run.sh").read_bytes() == b"\xff old"


async def test_writing_what_is_there_already_changes_nothing(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("same")

    assert (await actions.call("file__write", path="a.txt", content="same"))["changed"] is False
    assert actions.changes == []


@given(st.text(max_size=200))
async def test_what_is_written_is_read_back_the_same(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        actions = file_actions(Path(folder))
        await actions.call("file__write", path="a.txt", content=text)
        assert (await actions.call("file__read", path="a.txt")).text == text


async def test_a_stored_json_value_is_written_as_json(actions: Actions, tmp_path: Path) -> None:
    await actions.call("file__write", path="a.json", content=[{"name": "漢"}])

    assert (tmp_path / "a.json").read_text() == '[\n  {\n    "name": "漢"\n  }\n]\n'


async def test_content_that_is_no_text_is_refused(actions: Actions, tmp_path: Path) -> None:
    for content in (b"bytes", 3.5, "half \ud800 pair"):
        with pytest.raises(ActionError, match="content"):
            await actions.call("file__write", path="a.txt", content=content)
    assert list(tmp_path.iterdir()) == []


async def test_an_edit_replaces_the_one_match(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"a = 1\r\nb = 2\r\n")

    answer = await actions.call("file__edit", path="a.py", old_string="b = 2", new_string="b = 3")

    assert answer == {"path": "a.py", "replacements": 1, "lines": [2]}
    assert (tmp_path / "a.py").read_bytes() == b"a = 1\r\nb = 3\r\n"


async def test_several_matches_are_an_error_with_their_lines(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 1\nz = 2\nx = 1\n")

    with pytest.raises(ActionError, match="occurs 2 times, on lines 1, 4") as refused:
        await actions.call("file__edit", path="a.py", old_string="x = 1", new_string="x = 2")
    assert "replace_all" in refused.value.hint
    assert actions.changes == []

    answer = await actions.call(
        "file__edit", path="a.py", old_string="x = 1", new_string="x = 2", replace_all=True
    )
    assert answer == {"path": "a.py", "replacements": 2, "lines": [1, 4]}


@pytest.mark.parametrize(
    ("content", "old", "hint"),
    [
        ("total = price * count\n", "total = prices * count", "nearest line is 1"),
        ("a = 1\r\nb = 2\r\n", "a = 1\nb = 2", r"end with \r\n"),
        ("def f():\n\treturn 1\n", "def f():\n    return 1", "other spaces"),
        ("", "anything", "Read the file"),
    ],
)
async def test_no_match_is_an_error_that_helps(
    actions: Actions, tmp_path: Path, content: str, old: str, hint: str
) -> None:
    (tmp_path / "a.py").write_bytes(content.encode())

    with pytest.raises(ActionError, match="0 matches") as refused:
        await actions.call("file__edit", path="a.py", old_string=old, new_string="x")
    assert hint in refused.value.hint


async def test_an_edit_that_changes_nothing_is_refused(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")

    with pytest.raises(ActionError, match="the same"):
        await actions.call("file__edit", path="a.txt", old_string="a", new_string="a")


async def test_editing_what_is_no_text_or_not_there_is_refused(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\xff")

    with pytest.raises(ActionError, match="PNG image"):
        await actions.call("file__edit", path="a.png", old_string="P", new_string="Q")
    with pytest.raises(ActionError, match="does not exist") as refused:
        await actions.call("file__edit", path="b.png", old_string="P", new_string="Q")
    assert "a.png" in refused.value.hint


async def test_a_model_cannot_edit_what_it_only_saw_redacted(actions: Actions, tmp_path: Path) -> None:
    original = f"host = example\nkey = {SECRET}\nport = 80\n"
    (tmp_path / "settings.ini").write_text(original)

    for old in ("key = [redacted:DEMO_API_KEY]", f"key = {SECRET[:8]}", f"key = {SECRET}\nport"):
        with pytest.raises(ActionError, match=r"secret that is redacted|0 matches"):
            await actions.call("file__edit", path="settings.ini", old_string=old, new_string="key = x")
    with pytest.raises(ActionError, match="writing it would lose"):
        await actions.call("file__write", path="settings.ini", content="key = [redacted:DEMO_API_KEY]\n")
    with pytest.raises(ActionError) as missed:
        await actions.call("file__edit", path="settings.ini", old_string="key= correct", new_string="x")
    assert SECRET[:8] not in missed.value.hint
    assert (tmp_path / "settings.ini").read_text() == original

    await actions.call("file__edit", path="settings.ini", old_string="port = 80", new_string="port = 81")
    actions.actor = "person"
    await actions.call("file__edit", path="settings.ini", old_string=SECRET, new_string="renewed-value")
    assert (tmp_path / "settings.ini").read_text() == "host = example\nkey = renewed-value\nport = 81\n"


async def test_deleting_removes_one_file_and_can_be_undone(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("precious")
    (tmp_path / "a.txt").chmod(0o640)

    assert await actions.call("file__delete", path="a.txt") == {"path": "a.txt", "deleted": True, "bytes": 8}
    assert not (tmp_path / "a.txt").exists()
    assert actions.changes[0].sha256 is None
    await undo(actions)
    assert (tmp_path / "a.txt").read_text() == "precious"
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


async def test_folders_and_missing_files_are_not_deleted(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(ActionError, match="is a folder"):
        await actions.call("file__delete", path="folder")
    with pytest.raises(ActionError, match="does not exist"):
        await actions.call("file__delete", path="nothing.txt")
    assert (tmp_path / "folder").is_dir()


@given(
    st.text(alphabet="ab\n é", max_size=30),
    st.lists(st.tuples(st.sampled_from("ab\n é"), st.text(alphabet="abc\n", max_size=4)), max_size=4),
)
async def test_any_row_of_edits_can_be_taken_back(text: str, edits: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        path.write_bytes(text.encode())
        actions = file_actions(Path(folder))
        for old, new in edits:
            try:
                await actions.call(
                    "file__edit", path="a.txt", old_string=old, new_string=new, replace_all=True
                )
            except ActionError:
                continue
        await actions.call("file__write", path="b.txt", content="made")
        await undo(actions)
        assert path.read_bytes() == text.encode()
        assert not (Path(folder) / "b.txt").exists()


async def test_edits_at_the_same_time_are_all_made(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two three four")

    await asyncio.gather(
        *(
            actions.call("file__edit", path="a.txt", old_string=word, new_string=word.upper())
            for word in ("one", "two", "three", "four")
        )
    )

    assert (tmp_path / "a.txt").read_text() == "ONE TWO THREE FOUR"
    await undo_in_order(actions, tmp_path)


async def undo_in_order(actions: Actions, root: Path) -> None:
    """The reports of concurrent changes form one chain from the first content to the last."""
    blobs = actions.services.blobs
    assert blobs is not None
    before = {
        sha256(await blobs.load_bytes(change.previous_blob or "")).hexdigest() for change in actions.changes
    }
    after = {change.sha256 for change in actions.changes}
    assert len(before) == len(after) == 4
    assert len(before & after) == 3


class FullStore(MemoryBlobStore):
    """A store on a full disk."""

    async def store_bytes(self, data: bytes, *, action: str | None = None, run: str | None = None) -> str:
        raise BlobStoreError("no space left on device")


async def test_what_cannot_be_kept_is_not_changed(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    actions.services = replace(actions.services, blobs=FullStore())

    for action, args in (("file__write", {"content": "new"}), ("file__delete", {})):
        with pytest.raises(ActionError, match="no space left on device"):
            await actions.call(action, path="a.txt", **args)
    assert (tmp_path / "a.txt").read_text() == "old"
    assert actions.changes == []


async def test_without_a_store_the_answer_says_that_there_is_no_undo(tmp_path: Path) -> None:
    actions = file_actions(tmp_path, keep=False)
    (tmp_path / "a.txt").write_text("old")

    replaced = await actions.call("file__write", path="a.txt", content="new")
    created = await actions.call("file__write", path="b.txt", content="new")

    assert "no undo" in replaced["note"]
    assert "note" not in created
    assert [change.previous_blob for change in actions.changes] == ["", None]


async def test_a_huge_previous_content_is_refused(actions: Actions, tmp_path: Path) -> None:
    with (tmp_path / "huge.bin").open("wb") as file:
        file.truncate(1 << 30)

    with pytest.raises(ActionError, match=r"1\.1 GB"):
        await actions.call("file__write", path="huge.bin", content="small")
    assert (tmp_path / "huge.bin").stat().st_size == 1 << 30


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/tmp/x",
        ".reyn/runs/x",
        ".env",
        ".git/hooks/pre-commit",
        "a/",
        "key.pem",
        "a\0b",
        "x" * 300,
        ".",
    ],
)
@pytest.mark.parametrize("action", ["file__write", "file__edit", "file__delete"])
async def test_paths_that_may_not_be_changed_are_refused_before_anyone_is_asked(
    actions: Actions, tmp_path: Path, action: str, path: str
) -> None:
    (tmp_path / "a").mkdir()
    args = {
        "file__write": {"content": "x"},
        "file__edit": {"old_string": "x", "new_string": "y"},
        "file__delete": {},
    }
    with pytest.raises(ActionError):
        actions.effects(action, path=path, **args[action])
    with pytest.raises(ActionError):
        await actions.call(action, path=path, **args[action])
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


async def test_links_out_pipes_and_read_only_files_are_not_written(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside.txt").write_text("outside")
    (root / "out").symlink_to(tmp_path / "outside.txt")
    (root / "dangling").symlink_to(tmp_path / "new.txt")
    os.mkfifo(root / "pipe")
    (root / "read-only.txt").write_text("fixed")
    (root / "read-only.txt").chmod(0o444)
    actions = file_actions(root)

    for path in ("out", "dangling", "pipe", "read-only.txt", "read-only.txt/below"):
        with pytest.raises(ActionError):
            await asyncio.wait_for(actions.call("file__write", path=path, content="x"), 60)
    assert (tmp_path / "outside.txt").read_text() == "outside"
    assert not (tmp_path / "new.txt").exists()
    assert (root / "read-only.txt").read_text() == "fixed"
    assert actions.changes == []


async def test_a_reference_cannot_stand_for_a_path(actions: Actions) -> None:
    with pytest.raises(ActionError, match="path must be given as text"):
        actions.effects("file__write", path={"$blob": "x"}, content="y")


def test_effects_name_the_file_that_is_really_meant(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")

    assert actions.effects("file__write", path="alias/a.txt", content="") == (Effect("write", "real/a.txt"),)
    assert actions.effects("file__edit", path="./a.txt", old_string="a", new_string="b") == (
        Effect("write", "a.txt"),
    )
    assert actions.effects("file__delete", path="a.txt") == (Effect("delete", "a.txt"),)
    assert actions.effects("file__grep", pattern="a") == (Effect("read", "."),)


def test_the_preview_shows_what_would_change(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\nb\n")

    edit = actions.preview("file__edit", path="a.txt", old_string="b", new_string="c")
    assert edit is not None
    assert "-b\n+c" in edit
    assert "+new" in (actions.preview("file__write", path="new.txt", content="new\n") or "")
    assert "-a\n-b" in (actions.preview("file__delete", path="a.txt") or "")
    assert '+  "opened"' in (actions.preview("file__write", path="new.json", content=["opened"]) or "")
    with pytest.raises(ActionError, match="0 matches"):
        actions.preview("file__edit", path="a.txt", old_string="nope", new_string="c")
    assert (tmp_path / "a.txt").read_text() == "a\nb\n"


def test_every_action_says_what_it_takes(actions: Actions) -> None:
    (category,) = actions.categories
    assert [operation.entry for operation in category.operations] == [
        *("read", "list", "glob", "grep", "write", "edit", "delete")
    ]
    for operation in category.operations:
        schema = operation.input_schema
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) <= set(schema["properties"])
        assert all(parameter["description"] for parameter in schema["properties"].values())
        assert operation.tool.purity.repeatable == (operation.tool.purity is Purity.READ)


async def test_a_cancelled_write_is_reported_when_it_was_made(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("start")
    for number in range(40):
        before = (tmp_path / "a.txt").read_text()
        reported = len(actions.changes)
        task = asyncio.ensure_future(actions.call("file__write", path="a.txt", content=f"content {number}"))
        await asyncio.sleep(number * 0.0001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        made = (tmp_path / "a.txt").read_text() != before
        assert len(actions.changes) - reported == made
    await undo(actions)
    assert (tmp_path / "a.txt").read_text() == "start"
