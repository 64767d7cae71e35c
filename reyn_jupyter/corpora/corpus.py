"""One corpus: where it lies, what is loaded of it, and what of it has changed on the disk since.

Invariants: a corpus lies in a folder of its own under `.reyn/state/corpora`, reached through no link; what is ranked is
one state of its file, loaded once and taken over as far as it did not change; vectors are found by the text that they
are of, so that none belongs to another passage.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from reyn_jupyter.corpora.corpus_file import (
    NAME,
    CorpusError,
    CorpusFacts,
    CorpusFile,
    StoredDocument,
    StoredPassage,
)
from reyn_jupyter.corpora.reading import stamp_of
from reyn_jupyter.search.build_lock import lock_holder
from reyn_jupyter.search.database import IndexStoreError
from reyn_jupyter.search.index_state import BuildHolder
from reyn_jupyter.search.vector_store import VectorStore
from reyn_jupyter.support.files.plain_files import PlainFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reyn_jupyter.search.action_records import Record
    from reyn_jupyter.search.ranking.index import Index

    Floats = NDArray[np.float32]

VECTORS = "vectors.sqlite"
LOCK = "index.lock"
FRAME = "$"  # before the name of a frame, where a file has its path
_FILES = frozenset(
    {LOCK, *(f"{name}{end}" for name in (NAME, VECTORS) for end in ("", "-wal", "-shm", "-journal"))}
)
_VIEW = "passage"  # with the model's key, what decides a stored vector: change it, and all are stale


def vectors_key(embedder: str) -> str:
    """Return the key of stored vectors: the model that made them, and what of a passage is embedded."""
    return f"{embedder}#{_VIEW}"


@dataclass(frozen=True)
class LoadedCorpus:
    """A state of a corpus, ready to be searched.

    Attributes:
        facts: of the corpus.
        documents: by path.
        passages: by row.
        index: ranks the passages, whose ids are their rows as text.
        vectors: how many of them have a vector.
    """

    facts: CorpusFacts
    documents: Mapping[str, StoredDocument]
    passages: Mapping[int, StoredPassage]
    index: Index
    vectors: int = 0


@dataclass
class _Cache:
    key: tuple[int, str | None] | None = None
    loaded: LoadedCorpus | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Corpus:
    """A corpus of a workspace, which need not exist yet.

    Args:
        root: the workspace's folder, no link in its path.
        name: of the corpus.

    Raises:
        CorpusError: a part of the path to its folder is a link, or a file in it is none.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self._seen: tuple[int, int] | None = None  # the file that is open
        self.folder = PlainFolder(root, ".reyn", "state", "corpora", name)
        self.file = CorpusFile(self.folder.path / NAME)
        self.vectors = VectorStore(self.folder, VECTORS)
        self._cache = _Cache()
        self.check()

    def check(self) -> None:
        """Look whether it may be used now, and let go of files that another process replaced.

        Raises:
            CorpusError: the folder, or a file of it, is reached through a link or is no plain one.
        """
        try:
            self.folder.check()
        except OSError:
            raise CorpusError(
                f"The folder .reyn/state/corpora/{self.name} is reached through a link or a file, so it is not used.",
                "Put a plain folder in its place.",
            ) from None
        odd = sorted(_FILES & set(self.folder.entries()[1]))
        if odd:
            raise CorpusError(
                f"{odd[0]} of the corpus {self.name} is no regular file, so it is not used.",
                "Remove it, then index again.",
            )
        status = None
        with suppress(OSError):
            status = self.file.path.lstat()
        now = None if status is None else (status.st_dev, status.st_ino)
        if self._seen not in (None, now):
            self.close()
        self._seen = now

    @property
    def exists(self) -> bool:
        """True if anything was indexed."""
        return self.folder.is_regular(NAME)

    @property
    def holder(self) -> BuildHolder | None:
        """Return who indexes now; None where nobody does."""
        return lock_holder(self.folder, LOCK)

    @property
    def size(self) -> int:
        """Return its size on disk, in bytes."""
        return self.file.size + self.vectors.size

    def load(self, embedder: str | None) -> LoadedCorpus:
        """Return the corpus as it is now; blocks, for seconds the first time that a large one is loaded.

        Args:
            embedder: the key of who embeds; None where nobody does.

        Raises:
            CorpusError: its files cannot be used.
        """
        with self._cache.lock:
            facts = self.file.facts()
            key = (facts.revision, embedder)
            if self._cache.loaded is not None and self._cache.key == key:
                return self._cache.loaded
            loaded = self._loaded(facts, embedder)
            self._cache.key, self._cache.loaded = key, loaded
            return loaded

    def _loaded(self, facts: CorpusFacts, embedder: str | None) -> LoadedCorpus:
        from reyn_jupyter.search.ranking.index import Index

        passages = self.file.passages()
        records = _records(passages)
        rows, held = self._rows(passages, embedder)
        before = self._cache.loaded
        index = Index(records, rows) if before is None else before.index.updated(records, rows)
        documents = {each.path: each for each in self.file.documents()}
        return LoadedCorpus(facts, documents, {each.id: each for each in passages}, index, held)

    def _rows(self, passages: Sequence[StoredPassage], embedder: str | None) -> tuple[Floats | None, int]:
        """Return the vectors of passages, one row each, NaN where there is none yet; and how many have one."""
        import numpy as np

        if embedder is None or not passages:
            return None, 0
        key = vectors_key(embedder)
        places: dict[str, list[int]] = {}
        for place, each in enumerate(passages):
            places.setdefault(each.digest, []).append(place)
        try:
            dimension = self.vectors.dimension(key)
            if dimension is None:
                return None, 0
            rows = np.full((len(passages), dimension), np.nan, np.float32)
            held = 0
            for digests, vectors in self.vectors.read(key, places):
                for digest, vector in zip(digests, vectors, strict=True):
                    rows[places[digest]] = vector
                    held += len(places[digest])
        except IndexStoreError as error:
            raise CorpusError(str(error), error.hint) from error
        return (rows, held) if held else (None, 0)

    def changed_files(self, documents: Mapping[str, StoredDocument]) -> list[str]:
        """Return which files of documents changed or went since they were read here; new files are not looked for."""
        root = os.fspath(self.folder.root)
        return [
            path
            for path, document in documents.items()
            if not path.startswith(FRAME) and _stamp(root, path) != document.stamp
        ]

    def drop(self) -> None:
        """Remove all of it. Raises CorpusError."""
        self.close()
        try:
            for name in (*self.folder.entries()[0], *_FILES & set(self.folder.entries()[1])):
                with suppress(FileNotFoundError):
                    self.folder.remove(name)
        except OSError as error:
            raise CorpusError(
                f"The corpus {self.name} cannot be removed: {error.strerror or error}.",
                "Make the folder .reyn/state of the workspace writable.",
            ) from error
        with suppress(OSError):
            self.folder.path.rmdir()

    def close(self) -> None:
        """Close its files, and let go of what is loaded."""
        self.file.close()
        self.vectors.close()
        self._cache = _Cache()


def _stamp(root: str, path: str) -> tuple[int, int, int, int] | None:
    parts = path.split("/")
    if ".." in parts or path.startswith("/") or "\0" in path:
        return None
    try:
        return stamp_of(os.lstat(f"{root}/{path}"))
    except (OSError, ValueError):
        return None


def _records(passages: Sequence[StoredPassage]) -> list[Record]:
    """Return what is ranked: the name of a passage is its document's, and the headings that it stands under."""
    from reyn_jupyter.search.action_records import Record

    found = []
    shared: dict[tuple[object, ...], dict[str, Any]] = {}
    for each in passages:
        document, passage = each.document, each.passage
        name = "/".join((PurePosixPath(document.path).stem or document.path, *passage.heading))
        known = (
            document.id,
            passage.heading,
            passage.first if passage.unit not in ("line", "section") else 0,
        )
        facts = shared.get(known) if not passage.facts else None
        if facts is None:
            facts = facts_of(each)
            shared[known] = facts
        found.append(Record(str(each.id), name, passage.text, metadata=facts))
    return found


def facts_of(stored: StoredPassage) -> dict[str, Any]:
    """Return what a search may be narrowed by: where a passage stands, and what is known of its document and of it."""
    document, passage = stored.document, stored.passage
    folders = [parent.as_posix() for parent in PurePosixPath(document.path).parents]
    facts: dict[str, Any] = {**document.facts, **passage.facts}
    facts |= {
        "path": document.path,
        "folder": folders,
        "type": document.kind,
        "heading": list(passage.heading),
    }
    if passage.unit not in ("line", "section"):
        facts[passage.unit] = passage.first
    return facts
