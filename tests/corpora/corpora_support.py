"""Corpora over a folder, indexed and searched as an action does it, without a session around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reyn_jupyter.corpora.corpus import Corpus
from reyn_jupyter.corpora.corpus_store import CorpusStore
from reyn_jupyter.corpora.document import Document
from reyn_jupyter.corpora.indexing import IndexOutcome, IndexPlan, glob_of, index_corpus
from reyn_jupyter.corpora.reading import FileReader
from reyn_jupyter.corpora.recall import Recalled, recall
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.runtime.access.session_access import NoAccess
from reyn_jupyter.search.embedders.local import LocalEmbedder
from reyn_jupyter.search.embedders.packaged import KEY, PackagedMiniLM, weights_folder
from reyn_jupyter.sessions.access.session_embedder import SessionEmbedder
from reyn_jupyter.support.programs.child_process import ChildProcesses
from reyn_jupyter.support.secrets import Redactor

SECRET = "correct-horse-battery"


class Counting:
    """Vectors of a few letters, and how many texts were embedded."""

    key, dimension = "counting", 26

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.texts += texts
        rows = np.array(
            [[1 + text.lower().count(chr(97 + n)) for n in range(26)] for text in texts], np.float32
        )
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def counting(inner: Counting) -> SessionEmbedder:
    made = LocalEmbedder(inner.key, inner.dimension, lambda: inner, None)
    return SessionEmbedder(lambda: made, {})


_mini = LocalEmbedder(KEY, 384, lambda: PackagedMiniLM(weights_folder() or Path()), None)


def mini() -> SessionEmbedder:
    """Return the real model, one for the whole process."""
    return SessionEmbedder(lambda: _mini, {})


class Shelf:
    """The corpora of a folder.

    Args:
        root: the workspace.
        embedder: who embeds; nobody when None.
    """

    def __init__(self, root: Path, embedder: Any = None) -> None:
        self.workspace = Workspace(root)
        self.store = CorpusStore(self.workspace.root)
        self.embedder = embedder or NoAccess()
        self.children = ChildProcesses()
        self.reports: list[str] = []

    def __enter__(self) -> Shelf:
        return self

    def __exit__(self, *_: object) -> None:
        self.children.close()

    def report(self, message: str = "", *_: object) -> None:
        self.reports.append(message)

    async def index(
        self, name: str, *paths: str, frames: Mapping[str, Document] | None = None
    ) -> IndexOutcome:
        places = {}
        for path in paths:
            pattern = glob_of(path)
            places[path] = self.workspace.place(path if pattern is None else pattern.base or ".")
        reader = FileReader(self.workspace, Redactor({"DEMO_API_KEY": SECRET}), self.children)
        plan = IndexPlan(paths, places, frames)
        return await index_corpus(self.corpus(name), plan, reader, self.embedder, self.report)

    def corpus(self, name: str) -> Corpus:
        return self.store.of(name)

    async def recall(
        self, name: str, query: str, top_k: int = 5, may_read: Any = lambda path: True, **filters: Any
    ) -> Recalled:
        key = self.embedder.key
        vector = None if key is None else (await self.embedder.embed([query]))[0]
        return recall([self.corpus(name)], query, top_k, filters or None, vector, key, may_read)

    async def best(self, name: str, query: str, **filters: Any) -> str:
        """Return the best hit as path:place heading."""
        hit = (await self.recall(name, query, 1, **filters)).hits[0]
        return f"{hit.where} {' › '.join(hit.stored.passage.heading)}".strip()

    def texts(self, name: str) -> list[str]:
        return [each.passage.text for each in self.corpus(name).file.passages()]
