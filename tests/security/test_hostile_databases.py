"""Databases of a cloned folder: no file beside one leads SQLite to a file elsewhere."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.corpora.corpus_file import CorpusError, CorpusFile
from reyn_jupyter.corpora.passages import Passage
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.evaluation.store.study_file import StoreError
from reyn_jupyter.search.database import IndexStoreError
from reyn_jupyter.search.vector_store import VectorStore

MAGIC = bytes.fromhex("d9d505f920a163d7")
KEPT = "ten years of work\n"


def make_index(path: Path) -> None:
    store = VectorStore(path.parent, path.name)
    store.add("model", {"00" * 32: np.array([1.0, 0.0], np.float32)})
    store.close()


def use_index(path: Path) -> str:
    store = VectorStore(path.parent, path.name)
    store.add("model", {"11" * 32: np.array([1.0, 0.0], np.float32)})
    assert store.counts()["model"] >= 1
    note = store.note
    store.close()
    return note


def make_corpus(path: Path) -> None:
    file = CorpusFile(path)
    file.replace("a.md", "text", {}, "", (0, 0, 0, 0), [Passage("Hello.")])
    file.close()


def use_corpus(path: Path) -> str:
    file = CorpusFile(path)
    file.replace("b.md", "text", {}, "", (0, 0, 0, 0), [Passage("Hello.")])
    assert [each.passage.text for each in file.passages()]
    note = file.note
    file.close()
    return note


def make_study(path: Path) -> None:
    Store(path).close()


def use_study(path: Path) -> str:
    with pytest.raises(StoreError) as caught:
        Store(path).close()
    return str(caught.value)


KINDS: dict[str, tuple[Callable[[Path], None], Callable[[Path], str]]] = {
    "index": (make_index, use_index),
    "corpus": (make_corpus, use_corpus),
    "study": (make_study, use_study),
}


def journal_naming(database: Path, victim: Path) -> bytes:
    """Return a rollback journal as a killed transaction over two databases leaves one: it names a super-journal."""
    content, name = database.read_bytes(), os.fsencode(victim)
    page = struct.unpack(">H", content[16:18])[0]
    head = MAGIC + struct.pack(">IIIII", 0, 0, len(content) // page, 512, page)
    checksum = sum(each if each < 128 else each - 256 for each in name) & 0xFFFFFFFF
    tail = struct.pack(">I", (1 << 30) // page + 1) + name + struct.pack(">II", len(name), checksum) + MAGIC
    return head.ljust(512, b"\0") + tail


@pytest.mark.parametrize("kind", KINDS)
def test_a_journal_that_names_another_file_deletes_nothing(tmp_path: Path, kind: str) -> None:
    make, use = KINDS[kind]
    victim = tmp_path / "thesis.tex"
    victim.write_text(KEPT)
    (tmp_path / "folder").mkdir()
    database = tmp_path / "folder" / "data.sqlite"
    make(database)
    database.with_name("data.sqlite-journal").write_bytes(journal_naming(database, victim))
    said = use(database)
    assert victim.read_text() == KEPT
    assert "data.sqlite-journal names another file" in said


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_beside_a_database_that_leads_elsewhere_is_neither_written_nor_waited_for(
    tmp_path: Path, kind: str
) -> None:
    make, use = KINDS[kind]
    victim = tmp_path / "thesis.tex"
    victim.write_text(KEPT)
    for end in ("-journal", "-wal", "-shm", "-journal, a pipe"):
        (tmp_path / end).mkdir()
        database = tmp_path / end / "data.sqlite"
        make(database)
        beside = database.with_name(f"data.sqlite{end.partition(',')[0]}")
        beside.unlink(missing_ok=True)
        if "pipe" in end:
            os.mkfifo(beside)
            assert "it is no regular file" in use(database)
        else:
            beside.symlink_to(victim)
            with suppress(CorpusError, IndexStoreError):
                use(database)
        assert victim.read_text() == KEPT, end


def test_an_unfinished_transaction_of_ours_is_still_rolled_back(tmp_path: Path) -> None:
    database = tmp_path / "data.sqlite"
    make_index(database)
    head = MAGIC + struct.pack(">IIIII", 0, 0, database.stat().st_size // 16_384, 512, 16_384)
    database.with_name("data.sqlite-journal").write_bytes(head.ljust(512, b"\0"))
    assert use_index(database) == ""


def test_a_search_in_a_cloned_workspace_deletes_no_file_outside_of_it(tmp_path: Path) -> None:
    workspace, victim = tmp_path / "clone", tmp_path / "thesis.tex"
    database = workspace / ".reyn" / "state" / "actions.sqlite"
    database.parent.mkdir(parents=True)
    victim.write_text(KEPT)
    make_index(database)
    database.with_name("actions.sqlite-journal").write_bytes(journal_naming(database, victim))
    session = reyn.Session(workspace, namespace={})
    session.search_actions("read a file")
    session.close()
    assert victim.read_text() == KEPT
