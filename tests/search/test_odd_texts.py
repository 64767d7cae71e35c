"""Actions and requests of any content: empty, huge, without an encoding, in scripts with and without spaces."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from reyn_jupyter.catalog.action import Entry
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.search.action_index import ActionEmbeddingIndex
from reyn_jupyter.search.action_records import Record
from reyn_jupyter.search.database import NAME
from reyn_jupyter.search.embedders.local import LocalEmbedder
from reyn_jupyter.search.index_builder import build
from reyn_jupyter.search.ranking.tokens import MOST_PARTS, cut_query
from tests.catalog.samples import schema, skill_category
from tests.search.action_indexes import LITTLE, LOCAL, WORDS, built, found, names, run

ODD = CatalogSnapshot.build(
    [skill_category()],
    {
        "skill": [
            Entry("empty", "", schema()),
            Entry("huge", "again " * 200_000, schema()),
            Entry("control", "a\0b \ud800 c", schema()),
            Entry("picture", "🚗🚙", schema()),
            Entry("sum_sales", "売上を集計する", schema()),
            Entry("find_thai", "ค้นหาไฟล์ในโฟลเดอร์", schema()),
            Entry("find_lao", "ຊອກຫາເອກະສານ", schema()),
            Entry("find_khmer", "ស្វែងរកឯកសារ", schema()),
            Entry("find_arabic", "ابحث عن ملف", schema()),
            Entry("find_russian", "ищет файлы в папке", schema()),
        ]
    },
)
QUERIES = (
    "",
    " \n",
    "🚗",
    "🚗" * 3_000,
    "!?…",
    "\0",
    "\ud800",
    "x" * 10_000,
    "again " * 2_000,
    "\u200b",
    "e\u0301" * 3_000,
    "%_*",
)


@pytest.fixture(scope="module")
def indexes() -> list[ActionEmbeddingIndex]:
    both = ActionEmbeddingIndex(LOCAL, None)
    run(both.build(ODD))
    assert both.vectors == len(ODD)
    return [ActionEmbeddingIndex(WORDS, None), both]


@pytest.mark.parametrize("query", QUERIES, ids=[f"{len(query)}-{n}" for n, query in enumerate(QUERIES)])
def test_any_request_is_answered_by_words_and_by_meaning(
    indexes: list[ActionEmbeddingIndex], query: str
) -> None:
    for index in indexes:
        answer = found(index, ODD, query)
        assert all(0 <= score <= 1 for _, score in answer.hits)
        assert answer.hits or answer.weak


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("売上", "sum_sales"),
        ("集計", "sum_sales"),
        ("ไฟล์", "find_thai"),
        ("โฟลเดอร์", "find_thai"),
        ("ເອກະສານ", "find_lao"),
        ("ឯកសារ", "find_khmer"),
        ("ملف", "find_arabic"),
        ("файл", "find_russian"),
        ("a\0b", "control"),
        ("again", "huge"),
        ("empty", "empty"),
    ],
)
def test_a_word_within_a_text_is_found_with_and_without_spaces(
    indexes: list[ActionEmbeddingIndex], query: str, best: str
) -> None:
    words, both = indexes
    assert names(found(words, ODD, query))[0] == f"skill__{best}"
    # The model reads hardly more than Latin letters, so with it another script need not come first.
    assert f"skill__{best}" in names(found(both, ODD, query))


@pytest.mark.parametrize(
    "query",
    [
        "!?.,;" * 4_000,
        "read!" * 4_000,
        "中" * 20_000,
        "word " * 4_000,
        f"read{' ' * 20_000}files",
        f"{' ' * 20_000}read",
    ],
)
def test_of_a_long_request_only_the_beginning_is_looked_up_by_words_and_by_meaning(
    indexes: list[ActionEmbeddingIndex], query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[str] = []
    embed = LocalEmbedder.embed

    def noted(self: LocalEmbedder, texts: Sequence[str]) -> NDArray[np.float32]:
        embedded.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(LocalEmbedder, "embed", noted)
    kept = len(cut_query(query))
    for index in indexes:
        answer = found(index, ODD, query)
        assert answer.note.startswith(f"Only the beginning of the query was looked up, {kept:,} of its ")
        assert answer == replace(found(index, ODD, query[:kept]), note=answer.note)
    assert all(len(each) == kept for each in embedded)
    assert bool(embedded) == ("!?" not in query and query[0] != " "), "what has no word needs no vector"
    assert kept <= 8 * MOST_PARTS + MOST_PARTS


def test_a_catalog_of_none_and_of_one() -> None:
    index = ActionEmbeddingIndex(LOCAL, None)
    none, one = (
        LITTLE.replace("skill", []),
        LITTLE.replace("skill", [Entry("water", "Waters plants.", schema())]),
    )
    assert run(index.build(none)) == 0 and found(index, none, "water").hits == () and not index.vectors
    assert run(index.build(one)) == 1 and names(found(index, one, "irrigate the greenhouse")) in (
        [],
        ["skill__water"],
    )
    assert names(found(index, one, "water")) == ["skill__water"]


# Files


def test_the_file_of_a_newer_version_is_left_alone_and_search_goes_on(tmp_path: Path) -> None:
    built(folder=tmp_path)._store.close()
    db = sqlite3.connect(tmp_path / NAME)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = (tmp_path / NAME).read_bytes()
    index = ActionEmbeddingIndex(LOCAL, tmp_path)
    assert not index.vectors and found(index, LITTLE, "mail").ranking == "lexical"
    assert any("newer reyn-jupyter" in note and "in memory" in note for note in index.state().notes)
    assert run(index.build(LITTLE)) == 3 and found(index, LITTLE, "mail").ranking == "hybrid"
    assert (tmp_path / NAME).read_bytes() == before


def test_what_another_model_left_half_built_goes_when_this_one_is_complete(tmp_path: Path) -> None:
    index = ActionEmbeddingIndex(LOCAL, tmp_path)
    run(index.look(LITTLE))
    records = index._covering.now.records  # type: ignore[union-attr]

    class Breaking:
        key, dimension = "other", 8

        def embed(self, texts: list[str]) -> object:
            raise RuntimeError("out of memory")

    index._store.add("other#half", {records[0].digest: np.eye(8, dtype=np.float32)[0]})
    with pytest.raises(RuntimeError, match="out of memory"):
        run(build(index._store, LocalEmbedder("other", 8, Breaking, None), _by_digest(records)))
    assert run(index.build(LITTLE)) == 3 and list(index._store.counts().values()) == [3]
    assert index._store.verify().faults == ()


def _by_digest(records: tuple[Record, ...]) -> dict[str, Record]:
    return {record.digest: record for record in records}


def test_a_catalog_that_changes_while_it_is_built_ends_with_what_it_is_then(tmp_path: Path) -> None:
    first = [Entry(f"report_{n}", f"Writes report {n}.", schema()) for n in range(40)]
    changed = [
        *first[5:20],
        Entry("renamed", "Writes report 3.", schema()),
        Entry("report_20", "Draws a chart.", schema()),
        Entry("added", "Waters the plants.", schema()),
    ]
    index, before = ActionEmbeddingIndex(LOCAL, tmp_path), LITTLE.replace("skill", first)
    after = before.replace("skill", changed)

    async def turn() -> None:
        index.begin(before)
        assert index._work is not None
        await index._work.wait(1)
        index.begin(after)
        await index._work.task

    run(turn())
    assert index.vectors == len(after) == len(changed)
    assert names(found(index, after, "irrigate the greenhouse", 1)) == ["skill__added"]
    assert "skill__report_3" not in names(found(index, after, "report_3", 100))
    assert run(ActionEmbeddingIndex(LOCAL, tmp_path).build(after)) == 0
