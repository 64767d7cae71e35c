"""Recall: meaning and words, filters, what changed, what may not be read; with the real model where meaning counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from reyn_jupyter.corpora.frames import frame_document
from reyn_jupyter.search.metadata import FilterError
from reyn_jupyter.support.secrets import Redactor
from tests.corpora.corpora_support import Counting, Shelf, counting, mini
from tests.support.document_samples import notebook, pdf, word, write

FILES: Mapping[str, str | bytes] = {
    "docs/pricing.md": "---\nyear: 2025\n---\n# Pricing\n\nEverything about money.\n\n## Discounts\n\n"
    "Schools pay half. Pupils get thirty percent off.\n\n## Refunds\n\nWe return what was paid within 14 days.\n",
    "docs/animals.txt": "Dogs bark at strangers.\n",
    "src/shop.py": "def send_parcel(order):\n    '''Ship goods to the customer.'''\n    return order\n",
    "study.ipynb": notebook(
        ("markdown", "# Temperature of the sea"), ("code", "celsius = (fahrenheit - 32) / 1.8")
    ),
    "report.pdf": pdf("Cover", "The volcano erupted twice in the spring."),
    "letter.docx": word(("Heading 1", "Holiday"), ("Normal", "The office is closed over Christmas.")),
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


async def test_each_kind_of_document_is_found_by_meaning_with_its_place(workspace: Path) -> None:
    with Shelf(workspace, mini()) as shelf:
        await shelf.index("all", ".")
        for query, place in {
            "rebate for students": "docs/pricing.md:8-10 Pricing › Discounts",
            "get my money back": "docs/pricing.md:12-14 Pricing › Refunds",
            "noise that a hound makes": "docs/animals.txt:1",
            "delivery of a package": "src/shop.py:1-3 send_parcel",
            "convert units of heat": "study.ipynb:cell 2 Temperature of the sea",
            "lava and ashes from a mountain": "report.pdf:p. 2",
            "when do we have vacation": "letter.docx:section 1 Holiday",
        }.items():
            assert await shelf.best("all", query) == place
        recalled = await shelf.recall("all", "lava")
        assert recalled.ranking == "hybrid" and not recalled.notes
        assert recalled.hits == tuple(sorted(recalled.hits, key=lambda hit: -hit.score))


async def test_without_an_embedder_words_rank_and_nothing_else_changes(workspace: Path) -> None:
    with Shelf(workspace) as shelf:
        await shelf.index("all", ".")
        assert await shelf.best("all", "thirty percent") == "docs/pricing.md:8-10 Pricing › Discounts"
        assert (await shelf.recall("all", "percent")).ranking == "lexical"
        assert (await shelf.recall("all", "zebra")).hits == ()
        shelf.embedder = mini()  # one that comes later ranks once it has been indexed with
        assert "ranked by words alone" in (await shelf.recall("all", "percent")).notes[0]
        await shelf.index("all", ".")
        assert await shelf.best("all", "rebate for students") == "docs/pricing.md:8-10 Pricing › Discounts"


@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        ({"type": "markdown"}, {"docs/pricing.md"}),
        ({"type": ["pdf", "word"]}, {"report.pdf", "letter.docx"}),
        ({"page": {"min": 2}}, {"report.pdf"}),
        ({"folder": "docs"}, {"docs/pricing.md", "docs/animals.txt"}),
        ({"path": "docs/*.md"}, {"docs/pricing.md"}),
        ({"path": "*.{py,txt}"}, {"docs/animals.txt", "src/shop.py"}),
        ({"heading": "Discounts", "year": {"max": 2025}}, {"docs/pricing.md"}),
        ({"language": "python"}, {"src/shop.py"}),
    ],
)
async def test_filters_keep_what_fits_them(
    indexed: Shelf, filters: dict[str, object], paths: set[str]
) -> None:
    found = await indexed.recall("all", "anything at all", 50, **filters)
    assert {hit.stored.document.path for hit in found.hits} == paths


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    import asyncio

    root = tmp_path_factory.mktemp("indexed")
    write(root, FILES)
    with Shelf(root, counting(Counting())) as shelf:
        asyncio.run(shelf.index("all", "."))
        return shelf


@pytest.mark.parametrize(
    "filters", [{"yeer": 2025}, {"year": {"from": 1}}, {"year": {}}, {"path": "[z-a]*"}, {"year": None}]
)
async def test_a_filter_that_makes_no_sense_is_an_error(indexed: Shelf, filters: dict[str, object]) -> None:
    with pytest.raises(FilterError):
        await indexed.recall("all", "money", **filters)


async def test_rows_of_a_frame_are_narrowed_by_their_columns(tmp_path: Path) -> None:
    rows = [
        {"body": f"Ticket about printers {year}", "year": year, "open": year > 2020}
        for year in range(2015, 2025)
    ]
    shelf = Shelf(tmp_path, counting(Counting()))
    await shelf.index("faq", frames={"tickets": frame_document("tickets", rows, "body", Redactor({}))})
    found = await shelf.recall("faq", "printers", 50, year={"min": 2018}, open=False)
    assert sorted(hit.where for hit in found.hits) == [f"$tickets:row {row}" for row in (4, 5, 6)]


async def test_what_changed_since_is_said_and_marked(tmp_path: Path) -> None:
    write(tmp_path, {f"n{number}.md": f"Text {number} about boats." for number in range(6)})
    shelf = Shelf(tmp_path)
    await shelf.index("all", ".")
    for number in range(5):
        write(tmp_path, {f"n{number}.md": "Other."})
    (tmp_path / "n5.md").unlink()
    found = await shelf.recall("all", "boats", 50)
    assert found.notes == ("all: n0.md, n1.md, n2.md and 3 more changed since indexing; index it again.",)
    assert all(hit.changed for hit in found.hits) and len(found.hits) == 6
    await shelf.index("all", ".")
    assert (await shelf.recall("all", "boats", 50)).hits == ()


async def test_a_file_that_may_not_be_read_now_is_not_found(indexed: Shelf) -> None:
    found = await indexed.recall(
        "all", "pricing discounts refunds", 3, lambda path: not path.startswith("docs/")
    )
    assert {hit.stored.document.path for hit in found.hits} and "rule" in str(found.notes)
    assert not [hit for hit in found.hits if hit.stored.document.path.startswith("docs/")]


async def test_what_a_kernel_indexes_another_one_finds(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "About boats."})
    one, other = (Shelf(tmp_path, counting(Counting())) for _ in range(2))
    await one.index("all", ".")
    assert len((await other.recall("all", "boats")).hits) == 1
    write(tmp_path, {"b.md": "More about boats."})
    await one.index("all", ".")
    assert len((await other.recall("all", "boats")).hits) == 2
    one.store.drop("all")
    assert other.store.names() == [] and not (tmp_path / ".reyn/state/corpora/all").exists()
    (tmp_path / "a.md").unlink()
    await one.index("all", ".")
    assert (
        len((await other.recall("all", "boats")).hits) == 1
        and other.corpus("all").vectors.verify().vectors == 1
    )
