"""An embedder of one's own: one class, named in one line, builds an index and answers searches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.search.embedders.embedder import Embedder
from reyn_jupyter.search.embedders.embedding_classes import EMBEDDERS


class Letters(Embedder):
    """Vectors of how often each letter stands in a text."""

    key, dimension = "letters", 26

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.array(
            [[1 + text.lower().count(chr(97 + n)) for n in range(26)] for text in texts], np.float32
        )
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class RemoteLetters(Letters):
    """The same, as if a server counted them."""

    key, is_remote = "remote letters", True


@pytest.mark.parametrize(("serving", "kind"), [(Letters, "local"), (RemoteLetters, "hosted")])
def test_an_embedder_of_ones_own_builds_an_index_and_answers_a_search(
    serving: type[Embedder], kind: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EMBEDDERS, "letters/", f"{__name__}:{serving.__name__}")
    classes = {"embedding": {"classes": {"mine": "letters/a-to-z"}}}
    session = reyn.Session(workspace, config={**classes, "action_retrieval": {"embedding_class": "mine"}})
    card = session.build_embeddings()
    assert card.data["kind"] == kind and card.data["vectors"] == card.data["actions"] > 10
    assert card.data["served_by"] == "letters/a-to-z"
    assert ("built only by" in dict(card.facts)["class"]) == serving.is_remote
    found = session.search_actions("edit a file")
    assert found.payload["ranking"] == "hybrid" and len(found)
