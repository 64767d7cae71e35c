"""`%reyn corpora`: indexing, looking, asking and dropping at the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reyn_jupyter.notebook.verbs.corpora import VERB
from reyn_jupyter.sessions import current
from tests.support.document_samples import write

Run = Callable[[str], str]


@pytest.fixture(autouse=True)
def documents(workspace: Path) -> Path:
    write(workspace, {"docs/a.md": "# Harbour\n\nBoats <b>leave</b> at noon.\n", "docs/b.bin": b"\0\1"})
    return workspace


def test_documents_are_indexed_searched_looked_at_and_dropped(run: Run, documents: Path) -> None:
    run("%reyn config action_retrieval.embedding_class null")
    shown = run('%reyn corpora index port docs --about "The harbour"')
    assert "port is indexed" in shown and "docs/b.bin: is no text" in shown and "words alone" in shown
    assert "ready" in (table := run("%reyn corpora")) and "The harbour" in table
    found = run('%reyn corpora port "when do boats leave?"')
    assert "docs/a.md" in found and "1-3" in found and "Harbour" in found and "ranked by words." in found
    assert "Boats <b>leave</b> at noon." in run("%reyn corpora port")
    write(documents, {"docs/c.md": "Trains, too."})
    assert "1 added" in run("%reyn corpora index port")  # of what it was made of before
    assert VERB.completes is not None
    assert list(VERB.completes(current.session(), [], "")) == ["index", "drop", "port"]
    assert "port is dropped" in run("%reyn corpora drop port")
    assert "Nothing is indexed yet" in run("%reyn corpora")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("index", "%reyn corpora index meetings"),
        ("drop", "%reyn corpora drop meetings"),
        ("index other", "There is no corpus 'other'"),
        ("index Bad docs", "'Bad' is no name of a corpus"),
        ("index port nowhere", "nowhere does not exist"),
        ("other words", "There is no corpus 'other'"),
        ("other", "There is no corpus 'other'"),
    ],
)
def test_a_mistake_says_what_to_write(run: Run, line: str, said: str) -> None:
    assert said in run(f"%reyn corpora {line}")
