"""The state folder of a cloned workspace: no link in it leads out, and no file in it stops a verb."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.search.database import FORMAT
from reyn_jupyter.search.vector_store import VectorStore
from reyn_jupyter.support.files.plain_files import DEEPEST, PlainFolder, parse_json
from tests.end_to_end.e2e_support import invoke

DEEP = "[" * 200_000
RUN = "0197f9a2-7c1b-7e3c-8a55-3b0f8e1d2c4a"
STARTED = {"type": "RunStarted", "run": RUN, "at": 1.0, "run_kind": "turn", "session": "s", "prompt": "p"}
Session = reyn.Session


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


def used(workspace: Path) -> tuple[Session, Any]:
    """A session that made a turn with a blob, and read what others left; each verb worked."""
    (workspace / "long.txt").write_text("a line\n" * 400)
    session = Session(workspace, model=ScriptedModel(invoke("file__read", path="long.txt"), "ok"))
    trace = session.ask("go")
    assert trace.answer == "ok"
    for look in (session.runs, session.blobs, session.status, session.list_actions(), session.trace()):
        assert repr(look)
    session.parts.usage.flush()
    session.search_actions("read a file")
    return session, trace


def content(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("name", ["runs", "blobs", "state", "tmp", ""])
def test_nothing_is_kept_or_removed_through_a_linked_folder(
    workspace: Path, outside: Path, name: str
) -> None:
    (outside / f"{RUN}.txt").write_text("not ours")
    (outside / f"{RUN}.jsonl").write_text(json.dumps(STARTED) + "\n")
    (outside / "uses.json").write_text("{}")
    if name:
        (workspace / ".reyn").mkdir()
    (workspace / ".reyn" / name if name else workspace / ".reyn").symlink_to(outside)
    before = content(outside)
    session, _ = used(workspace)
    session.collect_blobs(max_age_days=0)
    assert content(outside) == before
    assert RUN not in [row["run"] for row in session.runs.rows]
    assert RUN not in [row["blob"] for row in session.blobs.rows]


@pytest.mark.parametrize(
    ("link", "target"),
    [
        (".gitignore", "made.txt"),
        ("state/uses.json", "uses.json"),
        (f"runs/{RUN}.jsonl", "run.jsonl"),
        (f"blobs/{RUN}.txt", "secret.txt"),
        (f"blobs/{RUN}.meta.json", "manifest.json"),
        ("state/actions.sqlite", "made.sqlite"),
        ("state/actions.sqlite-wal", "made.wal"),
        ("state/actions.lock", "made.lock"),
    ],
)
@pytest.mark.parametrize("there", [False, True])
def test_a_linked_file_is_neither_read_nor_written_nor_made(
    workspace: Path, outside: Path, link: str, target: str, there: bool
) -> None:
    place = workspace / ".reyn" / link
    place.parent.mkdir(parents=True)
    if there:
        (outside / target).write_text(json.dumps(STARTED) + "\n")
    place.symlink_to(outside / target)
    before = content(outside)
    session, _ = used(workspace)
    assert content(outside) == before
    assert RUN not in [row["run"] for row in session.runs.rows]
    assert RUN not in [row["blob"] for row in session.blobs.rows]


def fifo(path: Path) -> None:
    os.mkfifo(path)


def text(written: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(written)


def uses(**fields: str) -> Callable[[Path], object]:
    values = {"count": "1", "last": "1.0", "seconds": "1.0", **fields}
    return text('{"file__read": {' + ", ".join(f'"{name}": {value}' for name, value in values.items()) + "}}")


def run(**fields: Any) -> Callable[[Path], object]:
    return text(json.dumps({**STARTED, **fields}).replace('"1e999"', "1e999") + "\n")


HOSTILE = {
    "a pipe": fifo,
    "a folder": Path.mkdir,
    "brackets": text(DEEP),
    "brackets in a line": text(json.dumps(STARTED) + "\n" + DEEP + "\n" + json.dumps(STARTED) + "\n"),
    "brackets in a field": text(json.dumps({**STARTED, "host": 0}).replace(": 0", ": " + "[" * 900 + "]" * 900)),
    "a number": text("1e999"),
    "no object": text("[1, 2]\n"),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00" * 100),
    "empty": text(""),
    "zeros without end": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 40),
    "an endless count": uses(count="1e999"),
    "an endless time": uses(last="1e999"),
    "a huge count": uses(count="1" + "0" * 400, last="1" + "0" * 400),
    "a late time": uses(last="1e300"),
    "not a number": uses(last="NaN", seconds="Infinity"),
    "an endless moment": run(at="1e999"),
    "a late moment": run(at=1e300),
    "no moment": text(json.dumps(STARTED).replace("1.0", "NaN") + "\n"),
    "endless seconds": text(
        json.dumps(STARTED) + '\n{"type":"RunEnded","run":"r","at":1,"status":"ok","seconds":Infinity}\n'
    ),
}  # fmt: skip


@pytest.mark.parametrize("file", ["state/uses.json", "runs/zz.jsonl"])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_file_stops_no_verb_and_is_named(workspace: Path, file: str, hostile: str) -> None:
    place = workspace / ".reyn" / file
    place.parent.mkdir(parents=True)
    HOSTILE[hostile](place)
    session, trace = used(workspace)
    assert trace.run in [row["run"] for row in session.runs.rows]
    fresh = Session(workspace)
    assert fresh.trace().run == trace.run or hostile in ("an endless count",)
    damaged = " ".join(fresh.parts.damaged_files())
    sound = [row["run"] for row in fresh.runs.rows]
    if file.startswith("runs/"):
        assert place.name in damaged or place.stem in str(sound) or hostile == "empty"
        assert place.name in fresh.runs.note or place.stem in str(sound) or hostile == "empty"
    elif hostile in ("a pipe", "a folder", "brackets", "a number", "no text", "zeros without end"):
        assert not damaged or place.name in damaged


@pytest.mark.parametrize(
    "manifest",
    [
        {"created": "1e999"}, {"created": 1e300}, {"created": -5}, {"size": "x"}, {"size": -1}, {"entries": "x"},
        {"entries": {"a": 1}}, {"action": 5}, {"run": []}, {"frame": {"rows": "x", "cols": [], "columns": 1}},
        {"source": "yes"}, {"sha256": 7},
    ],
)  # fmt: skip
def test_a_hostile_manifest_stops_no_verb(workspace: Path, manifest: dict[str, Any]) -> None:
    folder = workspace / ".reyn" / "blobs"
    folder.mkdir(parents=True)
    (folder / f"{RUN}.json").write_text('[{"a": 1}]')
    sound = {"id": RUN, "kind": "json_array", "size": 10, "entries": 1, "created": 1.0, "sha256": "00"}
    written = json.dumps({**sound, **manifest}).replace('"1e999"', "1e999")
    (folder / f"{RUN}.meta.json").write_text(written)
    session, _ = used(workspace)
    assert RUN in [row["blob"] for row in session.blobs.rows]
    assert repr(session.blob(RUN))
    assert session.blob(RUN).info.created < 1e12


@pytest.mark.parametrize("companion", [".meta.json", ".idx"])
@pytest.mark.parametrize("hostile", ["a pipe", "a folder", "brackets", "a number", "no object", "no text"])
def test_a_hostile_companion_of_a_blob_stops_no_verb(workspace: Path, companion: str, hostile: str) -> None:
    folder = workspace / ".reyn" / "blobs"
    folder.mkdir(parents=True)
    (folder / f"{RUN}.txt").write_text("a line\n" * 200_000)
    HOSTILE[hostile](folder / f"{RUN}{companion}")
    session, _ = used(workspace)
    assert session.inspect(RUN, "lines:1-2").text.startswith("a line")


VECTORS_VIEW = "CREATE VIEW vectors AS SELECT 1 AS model, zeroblob(32) AS digest, zeroblob(12) AS vector"
FORGED_INDEXES = {
    "a view in place of a table": lambda made: [*(each for each in made if "vectors (" not in each), VECTORS_VIEW],
    "a trigger": lambda made: [
        *made, "CREATE TRIGGER t BEFORE INSERT ON vectors BEGIN SELECT RAISE(IGNORE); END",
    ],
    "a table more": lambda made: [*made, "CREATE TABLE more (a CHECK (a > 1))"],
    "rows that are numbered to the end": lambda made: [
        *made,
        "INSERT INTO models VALUES (1, 'other', 3)",
        "INSERT INTO vectors (rowid, model, digest, vector) VALUES (1 << 62, 1, zeroblob(32), zeroblob(12))",
    ],
}  # fmt: skip


@pytest.mark.parametrize("forged", FORGED_INDEXES)
def test_an_index_that_only_says_that_it_is_one_is_set_aside(tmp_path: Path, forged: str) -> None:
    made = [statement for migration in FORMAT.migrations for statement in migration]
    with closing(sqlite3.connect(tmp_path / "actions.sqlite")) as db:
        for statement in FORGED_INDEXES[forged](made):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {FORMAT.program}")
        db.execute(f"PRAGMA user_version = {FORMAT.version}")
        db.commit()
    store = VectorStore(tmp_path)
    store.add("model", {"00" * 32: np.array([1.0, 0.0], np.float32)})
    assert store.counts() == {"model": 1} and "is built afresh" in store.note
    store.close()
    again = VectorStore(tmp_path)
    assert again.counts() == {"model": 1} and not again.note
    again.close()


def test_json_is_read_within_bounds() -> None:
    deepest = "[" * DEEPEST + "]" * DEEPEST
    assert parse_json(deepest)
    for hostile in (
        f"[{deepest}]",
        DEEP,
        "1e999",
        "[-1e999]",
        "[NaN]",
        "-Infinity",
        '{"a": ' * 400 + "1" + "}" * 400,
    ):
        with pytest.raises(ValueError, match=r"nested|large|no number|delimiter|Expecting"):
            parse_json(hostile)
    assert parse_json("[" + "[],{}," * 1000 + "1]")


WITHOUT_FLAGS = """
import os, sys
for name in ("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC"):
    delattr(os, name)
os.supports_dir_fd = set()
import reyn_jupyter.sessions.session, reyn_jupyter.categories.file, reyn_jupyter.evaluation.study
from reyn_jupyter.search.database import FORMAT
from reyn_jupyter.search.vector_store import VectorStore
from reyn_jupyter.support.files.plain_files import PlainFolder
from pathlib import Path
root = Path(sys.argv[1])
folder = PlainFolder(root, "a", "b")
folder.replace("file", b"content")
print(folder.read("file", 10), folder.entries())
(root / "a" / "b" / "link").symlink_to(root / "secret")
(root / "linked").symlink_to(root / "a")
for of, name in ((folder, "link"), (PlainFolder(root, "linked", "b"), "file")):
    try:
        of.read(name, 10)
    except OSError as error:
        print("refused", error.strerror)
"""


def test_a_system_without_these_flags_imports_everything_and_looks_by_name(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_FLAGS, tmp_path],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "b'content' (['file'], [])",
        "refused link is a link",
        "refused linked is a link or no folder, so nothing is kept there",
    ], done.stderr


def test_a_folder_is_reached_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "in").mkdir(parents=True)
    (tmp_path / "real" / "in" / "file").write_text("content")
    (tmp_path / "real" / "in" / "link").symlink_to("file")
    (tmp_path / "away").symlink_to("real")
    plain = PlainFolder(tmp_path, "real", "in")
    assert plain.entries() == (["file"], ["link"])
    assert plain.read("file", 7) == b"content"
    for folder, name, limit in (
        (plain, "link", 7),
        (plain, "file", 6),
        (PlainFolder(tmp_path, "away", "in"), "file", 7),
    ):
        with pytest.raises(OSError, match=r"link|larger|levels"):
            folder.read(name, limit)


def _replace_by_a_folder(place: Path, elsewhere: Path) -> None:
    place.rename(elsewhere)
    place.mkdir()


def _replace_by_a_link_to_where_it_went(place: Path, elsewhere: Path) -> None:
    place.rename(elsewhere)
    place.symlink_to(elsewhere)


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="this system holds no folder open")
@pytest.mark.parametrize("part", ["state", "state/in"])
def test_a_folder_that_went_away_while_it_was_in_use_is_written_to_no_more(tmp_path: Path, part: str) -> None:
    plain = PlainFolder(tmp_path / "root", "state", "in")
    (tmp_path / "root").mkdir()
    plain.replace("first", b"1")
    _replace_by_a_folder(tmp_path / "root" / part, tmp_path / "gone")
    plain.replace("second", b"2")
    assert (tmp_path / "root/state/in/second").read_bytes() == b"2"
    assert not list((tmp_path / "gone").rglob("second"))
    _replace_by_a_link_to_where_it_went(tmp_path / "root" / part, tmp_path / "linked")
    with pytest.raises(OSError, match="link"):
        plain.replace("third", b"3")
    assert not list(tmp_path.rglob("third"))


def _open_below(folder: Path) -> int:
    """The number of descriptors of this process that are open on something below a folder."""
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            count += str(descriptor.readlink()).startswith(str(folder))
    return count


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open descriptors are counted in /proc")
def test_a_folder_keeps_one_descriptor_and_gives_it_back(tmp_path: Path) -> None:
    plain = PlainFolder(tmp_path, "state")
    for number in range(20):
        plain.replace(f"{number}", b"1")
        (tmp_path / "state").rename(tmp_path / f"old{number}")
    assert _open_below(tmp_path) == 1
    del plain
    assert _open_below(tmp_path) == 0
