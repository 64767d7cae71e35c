"""Indexing: only what changed, what is gone, interrupted, killed, twice at once, on a full disk, files that move."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from reyn_jupyter.corpora.corpus_file import CorpusError
from reyn_jupyter.corpora.frames import FrameError, frame_document
from reyn_jupyter.corpora.reading import FileReader
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.search.index_state import BusyError
from reyn_jupyter.support.programs.child_process import ChildProcesses
from reyn_jupyter.support.secrets import Redactor
from tests.corpora.corpora_support import SECRET, Counting, Shelf, counting
from tests.support.document_samples import notebook, pdf, write
from tests.support.processes import started
from tests.support.waiting import PATIENCE, awaited, until

NOTES = {f"notes/n{number:02}.md": f"# Note {number}\n\nText {number}.\n" for number in range(20)}


async def test_only_what_is_new_or_changed_is_read_and_embedded_and_what_is_gone_goes(tmp_path: Path) -> None:
    write(tmp_path, NOTES)
    inner = Counting()
    shelf = Shelf(tmp_path, counting(inner))
    first = await shelf.index("notes", "notes")
    assert (first.added, first.passages, first.embedded, len(inner.texts)) == (20, 20, 20, 20)

    again = await shelf.index("notes", "notes")
    assert (again.unchanged, again.added, again.changed, again.embedded) == (20, 0, 0, 0)

    write(
        tmp_path,
        {
            "notes/n00.md": "# Note 0\n\nText 0.\n",
            "notes/n01.md": "# Note 1\n\nOther.\n",
            "notes/new.md": "New.",
        },
    )
    (tmp_path / "notes/n02.md").unlink()
    moved = await shelf.index("notes", "notes")
    assert (moved.added, moved.changed, moved.removed, moved.unchanged, moved.embedded) == (1, 2, 1, 17, 2)
    assert len(inner.texts) == 22  # n00 was written again as it was: its text has its vector
    assert "New." in shelf.texts("notes") and not [each for each in shelf.texts("notes") if "Text 2." in each]
    assert shelf.corpus("notes").file.verify() == () and shelf.corpus("notes").vectors.verify().faults == ()
    assert any("20 of 20" in each or "of 20 files read" in each for each in shelf.reports)


async def test_a_corpus_holds_what_its_paths_name_and_nothing_else(tmp_path: Path) -> None:
    write(
        tmp_path,
        {**NOTES, "a.py": "def a(): ...", "data.csv": "x\n1\n", "node_modules/x.md": "x", "b.bin": b"\0\1"},
    )
    shelf = Shelf(tmp_path)
    whole = await shelf.index("all", ".")
    assert whole.documents == 21 and "words alone" in whole.notes[-1]
    assert {each["path"]: each["why"][:5] for each in whole.left_out} == {
        "b.bin": "is no",
        "data.csv": "holds",
    }
    assert "node_modules" in whole.notes[0]
    some = await shelf.index("all", "notes/n0*.md", "data.csv")
    assert (some.documents, some.removed) == (11, 11) and "x\n1" in shelf.texts("all")


async def test_links_out_of_the_workspace_and_protected_files_are_not_indexed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(outside, {"secret.md": "Out there."})
    write(root, {"in.md": "In here.", ".env": "A=1", ".git/x.md": "x"})
    (root / "link.md").symlink_to(outside / "secret.md")
    (root / "folder").symlink_to(outside)
    shelf = Shelf(root)
    await shelf.index("all", ".")
    assert shelf.texts("all") == ["In here."]


async def test_secrets_are_covered_in_every_format_and_lines_stay_true(tmp_path: Path) -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "A" * 64 + "\n-----END RSA PRIVATE KEY-----\n"
    write(
        tmp_path,
        {
            "a.md": f"# Keys\n{key}{SECRET}\n\n# After\nx",
            "b.ipynb": notebook(("code", f"key = '{SECRET}'")),
            "c.pdf": pdf(f"Key {SECRET} here"),
        },
    )
    with Shelf(tmp_path) as shelf:
        await shelf.index("all", ".")
        texts = shelf.texts("all")
        assert len(texts) == 4 and SECRET not in str(texts) and "AAAA" not in str(texts)
        assert str(texts).count("redacted") == 6  # three lines of the block, and the key three times
        assert await shelf.best("all", "after") == "a.md:7-8 After"
        for file in (tmp_path / ".reyn/state/corpora/all").iterdir():
            assert SECRET.encode() not in file.read_bytes()


class Held(Counting):
    """One that stops behind its first texts until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        if self.texts:
            self.may_go_on.wait(PATIENCE)
        return super().embed(texts)


async def test_an_interrupt_keeps_what_was_done_and_the_next_run_goes_on(tmp_path: Path) -> None:
    write(tmp_path, {f"n{number:03}.md": f"Text {number}." for number in range(300)})
    inner = Held()
    shelf = Shelf(tmp_path, counting(inner))
    task = asyncio.create_task(shelf.index("all", "."))
    await awaited(lambda: inner.texts)
    task.cancel()
    inner.may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    done = len(inner.texts)
    assert 0 < done < 300
    found = await shelf.recall("all", "Text 7.")
    assert found.hits and "not finished" in str(found.notes)  # what is there can be searched
    rest = await shelf.index("all", ".")
    assert rest.unchanged == 300 and rest.embedded >= 300 - done and len(inner.texts) <= 300 + 32
    assert not (await shelf.recall("all", "Text 7.")).notes


# It stops at the so manieth time that it reads or embeds, or at each, until it gets a line.
KILLED = """
    import asyncio, sys
    from collections import Counter
    from pathlib import Path
    from reyn_jupyter.corpora import indexing
    from tests.corpora.corpora_support import Counting, Shelf, counting

    times = Counter()

    def reach(word):
        times[word] += 1
        print(word, flush=True)
        if word == sys.argv[2] and sys.argv[3] in ("each", str(times[word])):
            sys.stdin.readline()

    class Slow(Counting):
        def embed(self, texts):
            reach("embedding")
            return super().embed(texts)

    indexing.COMMITTED = 8
    real = indexing.FileReader.read
    def read(self, place, *, named=False):
        reach("reading")
        return real(self, place, named=named)
    indexing.FileReader.read = read
    asyncio.run(Shelf(Path(sys.argv[1]), counting(Slow())).index("all", "."))
"""


@pytest.mark.parametrize(("word", "times"), [("reading", 50), ("embedding", 3)])
async def test_a_kill_loses_nothing_that_was_committed_and_nothing_is_there_twice(
    tmp_path: Path, word: str, times: int
) -> None:
    write(tmp_path, {f"n{number:03}.md": f"# T\n\nText {number}." for number in range(200)})
    process = started(KILLED, str(tmp_path), word, str(times))
    assert process.stdout is not None
    seen = 0
    while seen < times:
        line = process.stdout.readline()
        assert line, process.stderr and process.stderr.read()
        seen += line.strip() == word
    process.send_signal(signal.SIGKILL)
    process.communicate()

    inner = Counting()
    shelf = Shelf(tmp_path, counting(inner))
    before = shelf.corpus("all").file.counts()
    assert shelf.corpus("all").file.verify() == () and 0 < before[0] == before[1] <= 200
    rest = await shelf.index("all", ".")
    assert rest.unchanged == before[0] and rest.documents == rest.passages == 200
    assert sorted(shelf.texts("all")) == sorted(f"# T\n\nText {number}." for number in range(200))
    assert shelf.corpus("all").file.verify() == () and shelf.corpus("all").vectors.verify().vectors == 200
    assert (rest.embedded < 200) == (word == "embedding")


async def test_two_processes_do_not_write_one_corpus_at_once_and_the_other_may_search(tmp_path: Path) -> None:
    write(tmp_path, NOTES)
    shelf = Shelf(tmp_path)
    await shelf.index("all", "notes/n00.md")
    process = started(KILLED, str(tmp_path), "embedding", "each")
    assert process.stdout is not None and process.stdin is not None
    while process.stdout.readline().strip() != "embedding":
        pass
    try:
        with pytest.raises(BusyError, match=str(process.pid)):
            await shelf.index("all", ".")
        holder = shelf.corpus("all").holder
        assert holder is not None and holder.pid == process.pid
        assert len((await shelf.recall("all", "text", 50)).hits) == 20  # what the other one committed
        process.stdin.write("\n" * 50)
        process.stdin.flush()
        until(lambda: process.poll() is not None)
    finally:
        process.kill()
        process.communicate()
    assert (await shelf.index("all", ".")).unchanged == 20


async def test_a_file_that_changes_while_it_is_read_is_left_out_and_a_later_run_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"a.md": "first", "b.md": "calm"})
    shelf = Shelf(tmp_path)
    real = FileReader._read

    def read(self: FileReader, place: str, *rest: object) -> object:
        document = real(self, place, *rest)  # type: ignore[arg-type]
        if place == "a.md":
            with (tmp_path / "a.md").open("a") as file:
                file.write("more")
        return document

    monkeypatch.setattr(FileReader, "_read", read)
    outcome = await shelf.index("all", ".")
    assert outcome.left_out == [{"path": "a.md", "why": "changed while it was being read"}]
    assert shelf.texts("all") == ["calm"]
    monkeypatch.undo()
    assert (await shelf.index("all", ".")).added == 1


async def test_a_full_disk_says_so_and_keeps_what_was_committed(tmp_path: Path) -> None:
    write(tmp_path, NOTES)
    shelf = Shelf(tmp_path)
    await shelf.index("all", "notes")
    file = shelf.corpus("all").file
    pages = file._rows("PRAGMA page_count")[0][0]
    file._rows(f"PRAGMA max_page_count = {pages}")
    write(tmp_path, {"notes/long.md": "word " * 100_000})
    with pytest.raises(CorpusError, match="full") as caught:
        await shelf.index("all", "notes")
    assert "Make room" in caught.value.hint and len(shelf.texts("all")) == 20 and file.verify() == ()
    file._rows("PRAGMA max_page_count = 1000000")
    assert (await shelf.index("all", "notes")).added == 1


async def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "x", ".reyn/state": "a file in the way"})
    with pytest.raises(CorpusError, match="link or a file"):
        await Shelf(tmp_path).index("all", ".")


async def test_rules_decide_for_each_file(tmp_path: Path) -> None:
    write(tmp_path, {"open/a.md": "open", "closed/b.md": "closed"})
    shelf = Shelf(tmp_path)
    shelf.workspace = Workspace(tmp_path).judged(
        lambda place: "deny" if place.startswith("closed") else "allow"
    )
    outcome = await shelf.index("all", ".")
    assert shelf.texts("all") == ["open"] and "rule denies" in str(outcome.notes)


def test_a_frame_is_its_rows_with_the_other_columns_as_facts() -> None:
    import pandas as pd

    when = pd.to_datetime(["2025-01-31", "2025-02-01", None])
    frame = pd.DataFrame(
        {"id": [1, 2, 3], "text": ["long enough a", SECRET, ""], "when": when, "api_key": ["a", "b", "c"]}
    )
    document = frame_document("t", frame, None, Redactor({"DEMO_API_KEY": SECRET}))
    assert [(each.first, dict(each.facts)) for each in document.sections] == [
        (1, {"id": 1, "when": "2025-01-31T00:00:00"}),
        (2, {"id": 2, "when": "2025-02-01T00:00:00"}),
    ]
    assert SECRET not in document.sections[1].text and document.facts == {"column": "text"}
    with pytest.raises(FrameError, match="no column 'texd'; did you mean 'text'"):
        frame_document("t", frame, "texd", Redactor({}))
    with pytest.raises(FrameError, match="no column of texts"):
        frame_document("t", pd.DataFrame({"a": [1]}), None, Redactor({}))


async def test_frames_stay_until_they_are_named_anew(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "file"})
    shelf = Shelf(tmp_path)
    made = frame_document("t", [{"text": "row one"}, {"text": "row two"}], None, Redactor({}))
    assert (await shelf.index("all", "a.md", frames={"t": made})).documents == 2
    assert (await shelf.index("all", "a.md")).documents == 2
    assert await shelf.best("all", "two") == "$t:row 2"
    assert (await shelf.index("all", "a.md", frames={})).removed == 1


def test_a_file_is_read_as_the_encoding_that_it_has(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.txt": "naïve".encode("utf-16"),
            "b.txt": "naïve".encode("cp1252"),
            "c.txt": b"\xef\xbb\xbfna\xc3\xafve",
        },
    )
    reader = FileReader(Workspace(tmp_path), Redactor({}), ChildProcesses())
    assert {reader.read(name)[0].sections[0].text for name in ("a.txt", "b.txt", "c.txt")} == {"naïve"}
