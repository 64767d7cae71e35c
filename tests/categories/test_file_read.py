"""Reading, listing and searching workspace files."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.backends.files import file_tree
from reyn_jupyter.catalog.action import Effect
from reyn_jupyter.outputs.content import FileContent, Text
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import Source
from tests.categories.file_support import SECRET, Actions, file_actions
from tests.support.waiting import PATIENCE, awaited


@pytest.fixture
def actions(tmp_path: Path) -> Actions:
    return file_actions(tmp_path)


async def test_reading_gives_the_exact_text(actions: Actions, tmp_path: Path) -> None:
    data = b"\xef\xbb\xbfone\r\ntwo\x0c\x85\n\xe6\xbc\xa2 last without newline".replace(b"\x85", b"\xc2\x85")
    (tmp_path / "mixed.txt").write_bytes(data)

    assert await actions.call("file__read", path="mixed.txt") == Text(data.decode())
    assert actions.sources == [Source("file", "mixed.txt")]


async def test_text_that_looks_like_json_stays_text(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{ "a": 1 }\n')

    assert await actions.call("file__read", path="a.json") == Text('{ "a": 1 }\n')


async def test_an_empty_file_is_empty_text(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()

    assert await actions.call("file__read", path="empty") == Text("")
    assert await actions.call("file__read", path="empty", offset=1, limit=5) == Text("")


async def test_offset_and_limit_choose_lines_counted_from_one(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"1\r\n2\n3\n4")

    assert await actions.call("file__read", path="a.txt", offset=2, limit=2) == Text("2\n3\n")
    assert await actions.call("file__read", path="a.txt", offset=3) == Text("3\n4")
    assert await actions.call("file__read", path="a.txt", limit=1) == Text("1\r\n")
    assert await actions.call("file__read", path="a.txt", offset=4, limit=99) == Text("4")


async def test_an_offset_past_the_end_says_how_many_lines_there_are(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n3\n")

    with pytest.raises(ActionError, match="has 3 lines") as refused:
        await actions.call("file__read", path="a.txt", offset=4)
    assert "1 to 3" in refused.value.hint


@given(
    st.text(alphabet=st.sampled_from("a\n\r\x0b\x85\u2028漢 "), max_size=60),
    st.integers(min_value=1, max_value=7),
)
async def test_windows_put_together_are_the_whole_text(text: str, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.txt").write_bytes(text.encode())
        actions = file_actions(Path(folder))
        pieces, offset = [], 1
        while sum(map(len, pieces)) < len(text):
            pieces.append((await actions.call("file__read", path="a.txt", offset=offset, limit=size)).text)
            offset += size
        assert "".join(pieces) == text


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00\xff", "PNG image, 11 bytes"),
        (b"PAR1\x15\x04\xff\xff", "Parquet"),
        ("Grüße".encode("latin-1"), "0xfc"),
        ("Grüße".encode("utf-16"), "UTF-16"),
        (b"\x00\x01\xfe", "binary"),
        (b"cut off \xe6\xbc", "no UTF-8 text"),
    ],
)
async def test_what_is_no_text_is_named_with_its_kind(
    actions: Actions, tmp_path: Path, data: bytes, kind: str
) -> None:
    (tmp_path / "a.bin").write_bytes(data)

    with pytest.raises(ActionError, match="not text") as refused:
        await actions.call("file__read", path="a.bin")
    assert kind in str(refused.value)


async def test_a_large_text_is_handed_over_as_a_file_in_the_state_folder(
    actions: Actions, tmp_path: Path
) -> None:
    text = "a line of ordinary length, number after number\n" * 120_000
    (tmp_path / "large.log").write_text(text)

    content = await actions.call("file__read", path="large.log")

    assert isinstance(content, FileContent)
    assert content.kind == "text"
    assert content.path.parent == tmp_path.resolve() / ".reyn" / "tmp"
    assert content.path.read_text() == text
    assert content.path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "large.log").exists()


async def test_a_part_of_a_gigabyte_is_read_without_the_rest(actions: Actions, tmp_path: Path) -> None:
    with (tmp_path / "huge.txt").open("wb") as file:
        file.write(b"first\nsecond\nthird\n")
        file.truncate(1 << 30)

    assert await actions.call("file__read", path="huge.txt", offset=2, limit=2) == Text("second\nthird\n")
    with pytest.raises(ActionError, match=r"binary .* 1\.1 GB"):
        await actions.call("file__read", path="huge.txt")
    assert not list((tmp_path / ".reyn" / "tmp").glob("*"))


async def test_too_much_text_without_a_store_asks_for_a_part(tmp_path: Path) -> None:
    actions = file_actions(tmp_path, keep=False)
    (tmp_path / "text.txt").write_bytes(b"plain text\n" * (65 << 17))

    with pytest.raises(ActionError, match="too much to show at once") as refused:
        await actions.call("file__read", path="text.txt")
    assert "offset and limit" in refused.value.hint


async def test_a_linked_state_folder_gets_no_files(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    (root / ".reyn").mkdir(parents=True)
    elsewhere.mkdir()
    (root / ".reyn" / "tmp").symlink_to(elsewhere)
    (root / "large.log").write_text("some text\n" * 600_000)

    content = await file_actions(root).call("file__read", path="large.log")

    assert isinstance(content, Text)
    assert not list(elsewhere.iterdir())


# It grows and shrinks for as long as who started it lives.
GROW = """
import os, sys
parent = os.getppid()
with open(sys.argv[1], "ab", buffering=0) as file:
    began = file.tell()
    while os.getppid() == parent:
        file.write(b"more\\n")
        if file.tell() > began + 100_000_000:
            file.truncate(began)
"""


async def test_a_file_that_changes_while_it_is_read_is_an_error_that_says_so(
    actions: Actions, tmp_path: Path
) -> None:
    path = tmp_path / "growing.log"
    path.write_text("some text\n" * 6_000_000)
    before = path.stat().st_size
    # A process of its own: a thread may wait for the interpreter until the file is read.
    writer = subprocess.Popen([sys.executable, "-S", "-c", GROW, str(path)])
    try:
        while path.stat().st_size == before:
            await asyncio.sleep(0.01)
            assert writer.poll() is None
        with pytest.raises(ActionError, match="changed while it was being read"):
            await actions.call("file__read", path="growing.log")
    finally:
        writer.kill()
        writer.wait()
    assert not list((tmp_path / ".reyn" / "tmp").glob("*"))


async def test_a_cancelled_read_leaves_no_file_behind(
    actions: Actions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "large.log").write_text("some text\n" * 5_000_000)
    begun, go_on = threading.Event(), threading.Event()
    read = file_tree.read_lines

    def held(*given: Any) -> Any:
        begun.set()
        assert go_on.wait(PATIENCE)
        return read(*given)

    monkeypatch.setattr(file_tree, "read_lines", held)
    task = asyncio.ensure_future(actions.call("file__read", path="large.log"))
    await awaited(begun.is_set)
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    await awaited(lambda: not list((tmp_path / ".reyn" / "tmp").glob("*")))


@pytest.mark.parametrize("action", ["file__read", "file__list", "file__grep", "file__glob"])
@pytest.mark.parametrize(
    "path", ["../outside", "/etc/passwd", "a/../../x", ".reyn/runs", ".env", "\0", "", "~"]
)
async def test_paths_out_of_the_workspace_and_protected_ones_are_refused(
    actions: Actions, action: str, path: str
) -> None:
    args = {"path": path} if action in ("file__read", "file__list") else {"path": path, "pattern": "x"}
    with pytest.raises(ActionError):
        await actions.call(action, **args)
    with pytest.raises(ActionError):
        actions.effects(action, **args)


async def test_a_link_that_leads_out_is_refused_and_one_inside_is_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret.txt").write_text("outside")
    (root / "inside.txt").write_text("inside")
    (root / "out").symlink_to(tmp_path / "secret.txt")
    (root / "in").symlink_to("inside.txt")
    actions = file_actions(root)

    with pytest.raises(ActionError, match="outside the workspace"):
        await actions.call("file__read", path="out")
    assert await actions.call("file__read", path="in") == Text("inside")
    assert actions.effects("file__read", path="in") == (Effect("read", "inside.txt"),)


async def test_pipes_devices_and_folders_are_refused_without_waiting(
    actions: Actions, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "null").symlink_to("/dev/zero")

    for path in ("pipe", "folder", "null"):
        with pytest.raises(ActionError):
            await asyncio.wait_for(actions.call("file__read", path=path), 60)
    assert await asyncio.wait_for(actions.call("file__grep", pattern="x"), 60) == Text(
        "── no match in 0 files"
    )


async def test_a_missing_file_is_answered_with_the_nearest_names(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.csv").write_text("a\n")

    with pytest.raises(ActionError, match="does not exist") as refused:
        await actions.call("file__read", path="order.csv")
    assert "data/orders.csv" in refused.value.hint


async def test_listing_a_folder_gives_names_types_and_sizes(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "a.txt").write_bytes(b"12345")
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / ".reyn").mkdir()
    (tmp_path / "link").symlink_to("a.txt")
    os.mkfifo(tmp_path / "pipe")

    assert await actions.call("file__list", path=".") == {
        "path": ".",
        "entries": [
            {"name": "a.txt", "type": "file", "size": 5},
            {"name": "data", "type": "folder"},
            {"name": "link", "type": "link"},
            {"name": "pipe", "type": "other"},
        ],
        "total": 4,
    }
    with pytest.raises(ActionError, match="is a file"):
        await actions.call("file__list", path="a.txt")
    with pytest.raises(ActionError, match="does not exist"):
        await actions.call("file__list", path="nowhere")


async def test_a_long_listing_is_cut_and_says_so(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(2003):
        (tmp_path / "many" / f"{number:05}").touch()

    listing = await actions.call("file__list", path="many")

    assert (len(listing["entries"]), listing["total"]) == (2000, 2003)
    assert "2000 of 2003" in listing["note"]


async def test_names_with_odd_bytes_are_shown_as_valid_text(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"odd\xff\n.txt")).write_text("needle")

    listing = await actions.call("file__list", path=".")
    found = await actions.call("file__grep", pattern="needle")

    assert listing["entries"][0]["name"] == "odd\ufffd␊.txt"
    assert found == Text("odd\ufffd␊.txt:1:needle")


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.csv", ".", ["data/2024/b.csv", "data/a.csv", "top.csv"]),
        ("data/*.csv", ".", ["data/a.csv"]),
        ("data/**/*.csv", ".", ["data/2024/b.csv", "data/a.csv"]),
        ("**/*.{py,csv}", "data", ["data/2024/b.csv", "data/a.csv"]),
        ("./top.csv", ".", ["top.csv"]),
        ("data/[ab].csv", ".", ["data/a.csv"]),
        ("data/**", ".", ["data/2024/b.csv", "data/a.csv", "data/n.txt"]),
        ("nothing*", ".", []),
    ],
)
async def test_glob_finds_files_by_path(
    actions: Actions, tmp_path: Path, pattern: str, path: str, expected: list[str]
) -> None:
    for name in ("top.csv", "data/a.csv", "data/n.txt", "data/2024/b.csv", ".git/c.csv", ".reyn/d.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    found = await actions.call("file__glob", pattern=pattern, path=path)

    assert sorted(found["paths"]) == expected
    assert found["total"] == len(expected)


@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "data/../../*", "[z-a]"])
async def test_glob_patterns_that_leave_or_mean_nothing_are_refused(actions: Actions, pattern: str) -> None:
    with pytest.raises(ActionError):
        await actions.call("file__glob", pattern=pattern)


async def test_copies_and_caches_are_searched_only_when_named(actions: Actions, tmp_path: Path) -> None:
    for folder in (".venv/lib", "node_modules", "src"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text("needle\n")

    everywhere = await actions.call("file__grep", pattern="needle")
    named = await actions.call("file__grep", pattern="needle", path=".venv")
    pattern = await actions.call("file__glob", pattern=".venv/**/*.py")

    assert everywhere.text.split("\n")[0] == "src/a.py:1:needle"
    assert "Not searched: .venv, node_modules" in everywhere.text
    assert named == Text(".venv/lib/a.py:1:needle")
    assert pattern["paths"] == [".venv/lib/a.py"]


async def test_grep_answers_with_path_line_and_text(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\ndef total_of():\n    return 1\r\n\ndef other(): pass")
    (tmp_path / "b.md").write_text("Def total\n")
    (tmp_path / "c.bin").write_bytes(b"def \0 total")

    assert await actions.call("file__grep", pattern=r"^def \w+") == Text(
        "a.py:2:def total_of():\na.py:5:def other(): pass\n── 1 binary files were left out"
    )
    assert await actions.call("file__grep", pattern="def total", case_sensitive=False, glob="*.md") == Text(
        "b.md:1:Def total"
    )
    assert await actions.call("file__grep", pattern="1$", path="a.py") == Text("a.py:3:    return 1")
    assert actions.sources[0] == Source("file", ".")


async def test_grep_says_what_it_cut_and_what_changes_it(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("needle\n" * 5)
    (tmp_path / "b.txt").write_text("x" * 5000 + "needle" + "y" * 5000)

    first = (await actions.call("file__grep", pattern="needle", path="a.txt", max_results=3)).text
    long = (await actions.call("file__grep", pattern="needle", path="b.txt")).text

    assert first.split("\n")[:3] == ["a.txt:1:needle", "a.txt:2:needle", "a.txt:3:needle"]
    assert "── the first 3 matches: give a higher max_results" in first
    line = long.split("\n")[0]
    assert "needle" in line
    assert len(line) < 450
    assert "1 long lines were cut" in long


async def test_a_pattern_that_could_run_away_does_not(actions: Actions, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a" * 200_000 + "\n")

    answer = await asyncio.wait_for(actions.call("file__grep", pattern="(a*)*(a*)*b"), 60)

    assert answer == Text("── no match in 1 files")


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "[z-a]", "\ud800"])
async def test_a_wrong_pattern_is_a_clear_error(actions: Actions, pattern: str) -> None:
    with pytest.raises(ActionError, match="no regular expression") as refused:
        await actions.call("file__grep", pattern=pattern)
    assert "RE2" in refused.value.hint


@given(
    st.lists(st.text(alphabet="ab\r é", max_size=6), min_size=1, max_size=8),
    st.sampled_from(["a", "^b", "b$", "a|b", r"\bab", "(?i)A", "^$", "é", r"\Aa", "a.b", "[^a]"]),
)
async def test_grep_finds_the_lines_that_match_one_by_one(lines: list[str], pattern: str) -> None:
    import re2

    lines = [line.rstrip("\r") for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.txt").write_bytes("\n".join(lines).encode())
        found = (await file_actions(Path(folder)).call("file__grep", pattern=pattern, path="a.txt")).text
    expected = [f"a.txt:{n}:{line}" for n, line in enumerate(lines, 1) if re2.search(pattern, line)]
    if lines[-1] == "" and expected and expected[-1] == f"a.txt:{len(lines)}:":
        expected.pop()  # after the last newline there is no line
    assert [line for line in found.split("\n") if not line.startswith("──")] == expected


async def test_a_line_is_redacted_before_it_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("needle " + "x" * 385 + SECRET + "y" * 100)

    for_model = await file_actions(tmp_path).call("file__grep", pattern="needle")
    for_person = await file_actions(tmp_path, actor="person").call("file__grep", pattern="needle")

    assert SECRET[:7] not in for_model.text
    assert SECRET[:7] in for_person.text
