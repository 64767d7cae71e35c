"""Bring a corpus up to date: what is new or changed is read, what is gone is taken out, what has no vector gets one.

Invariants: a document is replaced whole; after an interrupt or a kill the next run goes on from what was committed, and
nothing is lost or there twice; a file whose state is the one in which it was read here is not opened; a text that was
embedded is not embedded again, in whatever document it stands; one process at a time writes a corpus. What cannot be
read is left out and named, and stops nothing.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.files.file_search import Glob
from reyn_jupyter.backends.files.file_tree import FileTree, in_thread
from reyn_jupyter.corpora.corpus import FRAME, LOCK, Corpus, vectors_key
from reyn_jupyter.corpora.corpus_file import CorpusError, StoredDocument
from reyn_jupyter.corpora.document import Document, Stamp, UnreadableError
from reyn_jupyter.corpora.passages import MOST, passages_of
from reyn_jupyter.corpora.reading import FileReader, stamp_of
from reyn_jupyter.runtime.action_error import ActionError, PermissionDeniedError
from reyn_jupyter.search.build_lock import build_lock
from reyn_jupyter.search.database import IndexStoreError

if TYPE_CHECKING:
    import numpy as np

    from reyn_jupyter.runtime.access.progress_report import ProgressReport
    from reyn_jupyter.runtime.access.session_access import EmbedderAccess

MOST_FILES = 200_000
BATCH = 32  # passages that are embedded and stored together: about a second on one busy core
COMMITTED = 64  # documents that are read before what was read is committed
_TEXTS_A_PASSAGE = 10  # short texts that embedding one passage costs as much as
_NAMED = 20  # documents that are left out, in an answer
_MAGIC = frozenset("*?[{")


@dataclass(frozen=True)
class IndexPlan:
    """What is to be indexed.

    Attributes:
        paths: files, folders and patterns, as they were given.
        places: where each of them begins, by path: links followed, inside the workspace.
        frames: documents that are made of frames already, by name; None leaves those that the corpus has.
        about: what the corpus holds, in a sentence; None leaves what was said before.
    """

    paths: tuple[str, ...]
    places: Mapping[str, str]
    frames: Mapping[str, Document] | None = None
    about: str | None = None


@dataclass
class IndexOutcome:
    """The result of bringing a corpus up to date.

    Attributes:
        documents, passages: how many the corpus has now.
        added, changed, removed, unchanged: documents.
        left_out: what could not be read, and why.
        left_out_total: how many that are in all.
        embedded: passages that got a vector.
        notes: what a reader of the corpus has to know.
        seconds: that it took.
    """

    documents: int = 0
    passages: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    left_out: list[dict[str, str]] = field(default_factory=list)
    left_out_total: int = 0
    embedded: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def leave_out(self, path: str, why: str) -> None:
        self.left_out_total += 1
        if len(self.left_out) < _NAMED:
            self.left_out.append({"path": path, "why": why})


async def index_corpus(
    corpus: Corpus,
    plan: IndexPlan,
    reader: FileReader,
    embedder: EmbedderAccess,
    report: ProgressReport,
) -> IndexOutcome:
    """Bring a corpus up to date with what a plan names: afterwards it holds that and nothing else.

    Raises:
        BusyError: another process indexes it.
        CorpusError: it cannot be written; what was committed is kept.
        ActionError: a path that cannot be used.
    """
    began, outcome = time.monotonic(), IndexOutcome()
    try:
        corpus.check()
        async with build_lock(corpus.folder, LOCK, wait=False):
            await in_thread(lambda check: _read_all(corpus, plan, reader, outcome, report, check))
            await _embed_all(corpus, embedder, outcome, report)
            await asyncio.to_thread(_finish, corpus, plan, outcome)
    except OSError as error:
        raise CorpusError(
            f"The corpus {corpus.name} cannot be written: {error.strerror or error}.",
            "Make room on the disk, or the folder .reyn/state of the workspace writable; then index again.",
        ) from error
    except IndexStoreError as error:
        raise CorpusError(str(error), error.hint) from error
    outcome.seconds = round(time.monotonic() - began, 3)
    return outcome


def _finish(corpus: Corpus, plan: IndexPlan, outcome: IndexOutcome) -> None:
    about = {} if plan.about is None else {"about": plan.about}
    corpus.file.note_facts(paths=list(plan.paths), indexed=time.time(), **about)
    outcome.documents, outcome.passages = corpus.file.counts()


# Reading


def _read_all(
    corpus: Corpus,
    plan: IndexPlan,
    reader: FileReader,
    outcome: IndexOutcome,
    report: ProgressReport,
    check: Callable[[], None],
) -> None:
    """Read what is new or changed into the corpus, and take out what is not named any more."""
    known = {each.path: each for each in corpus.file.documents()}
    seen: set[str] = set()
    waiting: list[tuple[str, bool]] = []
    for place, named in _files(plan, reader, outcome, check):
        seen.add(place)
        if len(seen) % 1000 == 0:
            report(f"looked at {len(seen):,} files")
        if place in known and known[place].stamp == _stamp(reader, place):
            outcome.unchanged += 1
        else:
            waiting.append((place, named))
    changed = _Changes(corpus, known, outcome)
    began = time.monotonic()
    for number, (place, named) in enumerate(waiting):
        check()
        report(_progress("files", "read", number, len(waiting), began), number, len(waiting))
        try:
            document, stamp = reader.read(place, named=named)
        except UnreadableError as error:
            outcome.leave_out(place, str(error))
            seen.discard(place)
            continue
        changed.add(place, document, stamp)
    if plan.frames is None:
        seen |= {path for path in known if path.startswith(FRAME)}
    for name, document in (plan.frames or {}).items():
        path = f"{FRAME}{name}"
        seen.add(path)
        changed.add(path, document, (0, 0, 0, 0))
    gone = [path for path in known if path not in seen]
    outcome.removed = len(gone)
    changed.commit(gone)
    outcome.notes += reader.workspace.left_out.notes


def _files(
    plan: IndexPlan, reader: FileReader, outcome: IndexOutcome, check: Callable[[], None]
) -> Iterator[tuple[str, bool]]:
    """Yield the files that a plan names, each once, and whether it was named itself. Raises ActionError."""
    tree = FileTree(reader.workspace)
    skipped: set[str] = set()
    found: set[str] = set()
    for path in plan.paths:
        place = plan.places[path]
        wanted = glob_of(path)
        named = wanted is None and os.path.isfile(reader.workspace.root / place)  # noqa: PTH113
        for file in tree.files(path, skipped, check, wanted.matches if wanted is not None else None, place):
            if len(found) >= MOST_FILES:
                outcome.notes.append(f"Only the first {MOST_FILES:,} files were looked at.")
                return
            if file not in found:
                found.add(file)
                yield file, named
    if skipped:
        outcome.notes.append(
            f"Not looked into: {', '.join(sorted(skipped))} (name one in paths to index it)."
        )


def glob_of(path: str) -> Glob | None:
    """Return a path as a pattern; None where it is none. Raises GrepPatternError."""
    return Glob(path) if _MAGIC & set(path) else None


def _stamp(reader: FileReader, place: str) -> Stamp | None:
    try:
        return stamp_of(os.lstat(f"{reader.workspace.root}/{place}"))
    except OSError:
        return None


class _Changes:
    """Documents on their way into a corpus, a batch of them in one transaction."""

    def __init__(self, corpus: Corpus, known: Mapping[str, StoredDocument], outcome: IndexOutcome) -> None:
        self._corpus, self._known, self._outcome = corpus, known, outcome
        self._waiting: list[tuple[str, Document, Stamp]] = []
        self._passages = 0

    def add(self, path: str, document: Document, stamp: Stamp) -> None:
        self._waiting.append((path, document, stamp))
        self._passages += sum(len(each.text) for each in document.sections) // 1000
        if len(self._waiting) >= COMMITTED or self._passages > MOST:
            self.commit()

    def commit(self, gone: Sequence[str] = ()) -> None:
        """Write what waits, and take out what is gone. Raises CorpusError."""
        if not self._waiting and not gone:
            return
        file = self._corpus.file
        with file.batch():
            for path, document, stamp in self._waiting:
                passages, more = passages_of(document)
                notes = [document.note, f"only its first {MOST:,} passages" if more else ""]
                note = "; ".join(filter(None, notes))
                if note:
                    self._outcome.leave_out(path, note)
                file.replace(path, document.kind, document.facts, note, stamp, passages)
            file.remove(gone)
        for path, _, _ in self._waiting:
            if path in self._known:
                self._outcome.changed += 1
            else:
                self._outcome.added += 1
        self._waiting, self._passages = [], 0


# Embedding


async def _embed_all(
    corpus: Corpus, embedder: EmbedderAccess, outcome: IndexOutcome, report: ProgressReport
) -> None:
    """Give every passage that has none a vector. Raises CorpusError, IndexStoreError."""
    model = embedder.key
    if model is None:
        outcome.notes.append(
            "Nothing embeds here, so it is searched by words alone; %reyn embeddings says more."
        )
        return
    key = vectors_key(model)
    digests = await asyncio.to_thread(corpus.file.digests)
    missing = await asyncio.to_thread(_missing, corpus, key, digests)
    embedder.expect(_TEXTS_A_PASSAGE * len(missing))
    began = time.monotonic()
    try:
        for first in range(0, len(missing), BATCH):
            report(_progress("passages", "embedded", first, len(missing), began), first, len(missing))
            texts = await asyncio.to_thread(corpus.file.texts, missing[first : first + BATCH])
            outcome.embedded += await _embed(corpus, embedder, key, texts)
        if digests:
            await asyncio.to_thread(corpus.vectors.keep_only, corpus.name, key, digests)
    except PermissionDeniedError as error:
        outcome.notes.append(f"Not all passages have a vector: {error.message}")
    except ActionError as error:
        outcome.notes.append(f"Not all passages have a vector: {error.message} {error.hint}".strip())


def _missing(corpus: Corpus, key: str, digests: Mapping[str, tuple[int, int]]) -> list[int]:
    """Return the rows of passages whose texts have no vector, those of like length beside each other."""
    if digests:
        corpus.vectors.claim(corpus.name, key, digests)
    known = corpus.vectors.find_digests(key, digests)
    rows = [(length, row) for digest, (row, length) in digests.items() if digest not in known]
    return [row for _, row in sorted(rows, reverse=True)]


async def _embed(corpus: Corpus, embedder: EmbedderAccess, key: str, texts: Mapping[str, str]) -> int:
    import numpy as np

    if not texts:
        return 0
    rows = await embedder.embed(list(texts.values()))
    found: dict[str, np.ndarray[Any, np.dtype[np.float32]]] = {}
    for digest, row in zip(texts, rows, strict=True):
        # What a model has no numbers for is found by its words.
        if np.isfinite(row).all() and row.any():
            found[digest] = np.asarray(row / max(float(np.linalg.norm(row)), 1e-12), np.float32)
    await asyncio.to_thread(corpus.vectors.add, key, found)
    return len(found)


def _progress(what: str, done_word: str, done: int, total: int, began: float) -> str:
    """Return how far a run is, with its rate and the time left once they are known."""
    seconds = time.monotonic() - began
    if not done or seconds <= 0:
        return f"{done:,} of {total:,} {what} {done_word}"
    rate = done / seconds
    left = (total - done) / rate
    return f"{done:,} of {total:,} {what} {done_word}, {rate:,.0f} a second, about {left:,.0f} s left"
