"""Recall: the passages of some corpora that fit a request best, each with its place, and what to know of the answer.

Invariants: a passage of a file that the caller may not read now is not found, whatever the corpus holds of it; filters
are applied before anything is ranked; where nothing embeds, words rank, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.files.file_search import Glob, GrepPatternError
from reyn_jupyter.corpora.corpus import FRAME, Corpus, LoadedCorpus
from reyn_jupyter.corpora.corpus_file import CorpusError, StoredPassage
from reyn_jupyter.search.embedders.local import one_thread
from reyn_jupyter.search.metadata import Between, FilterError
from reyn_jupyter.search.ranking.tokens import cut_query
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import count, enumerate_words, shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_MORE = 50  # hits beyond the wanted ones, in case the caller may not read some
_NAMED = 3  # files in a note
_ENDS = frozenset({"min", "max"})
_MAGIC = frozenset("*?[{")


@dataclass(frozen=True)
class RecallHit:
    """A passage that was found.

    Attributes:
        source: the corpus.
        stored: the passage, with its document.
        score: in [0, 1]; scores of one answer compare, those of different requests do not.
        changed: its file changed since it was read.
    """

    source: str
    stored: StoredPassage
    score: float
    changed: bool = False

    @property
    def position(self) -> str:
        """Return where it stands: ``12-30`` for lines, ``p. 4`` for a page.

        >>> place_of("line", 12, 30), place_of("page", 4, 4)
        ('12-30', 'p. 4')
        """
        passage = self.stored.passage
        return place_of(passage.unit, passage.first, passage.last)

    @property
    def line(self) -> str:
        """Return it on one line: score, document, place, headings."""
        return f"{self.score:.2f} {self.where} {' › '.join(self.stored.passage.heading)}".rstrip()

    @property
    def where(self) -> str:
        """Return its document and its place in it."""
        return f"{printable(self.stored.document.path)}:{self.position}"

    def as_json(self) -> dict[str, Any]:
        """Return it as an answer has it."""
        passage = self.stored.passage
        place: dict[str, int] = {passage.unit: passage.first}
        if passage.last != passage.first:
            place["to"] = passage.last
        changed = {"changed": True} if self.changed else {}
        return {
            "source": self.source,
            "path": self.stored.document.path,
            **place,
            "heading": list(passage.heading),
            "score": round(self.score, 4),
            **changed,
            "text": passage.text,
        }


def place_of(unit: str, first: int, last: int) -> str:
    """Return a place in a few characters."""
    span = f"{first}" if first == last else f"{first}-{last}"
    return span if unit == "line" else f"{'p.' if unit == 'page' else unit} {span}"


@dataclass(frozen=True)
class Recalled:
    """The answer of a recall.

    Attributes:
        hits: best first.
        ranking: "hybrid" for words and meaning, "lexical" for words alone.
        notes: what a reader has to know, a sentence each.
    """

    hits: tuple[RecallHit, ...]
    ranking: str
    notes: tuple[str, ...] = ()


def recall(
    corpora: Sequence[Corpus],
    query: str,
    top_k: int,
    filters: Mapping[str, Any] | None,
    vector: Floats | None,
    embedder: str | None,
    may_read: Callable[[str], bool],
) -> Recalled:
    """Return the best passages; blocks, so it belongs into a worker thread.

    Args:
        filters: conditions on what is known of passages: key → a value, a list of which one must be equal, or
            ``{"min": …, "max": …}``; a value of `path` may be a pattern.
        vector: of the query; None ranks by words.
        embedder: the key of who embedded it.
        may_read: whether the caller may read a file.

    Raises:
        CorpusError: a corpus cannot be used. FilterError: a filter that no passage could be asked.
    """
    found: list[RecallHit] = []
    notes: list[str] = []
    denied = meant = 0
    unknown: list[FilterError] = []
    for corpus in corpora:
        loaded = corpus.load(embedder)
        changed = set(corpus.changed_files(loaded.documents))
        notes += _state_notes(corpus.name, loaded, changed, vector is not None)
        try:
            where = _conditions(filters, loaded) if filters else None
            ranked = _search(loaded, query, top_k + _MORE, where, vector)
        except FilterError as error:  # another corpus may know the key
            unknown.append(error)
            continue
        meant += loaded.vectors if vector is not None else 0
        hits = [
            RecallHit(corpus.name, stored, score, stored.document.path in changed)
            for row, score in ranked
            if (stored := loaded.passages[int(row)])
        ]
        allowed = [each for each in hits if _is_readable(each, may_read)]
        denied += len(hits) - len(allowed)
        found += allowed
    if unknown and len(unknown) == len(corpora):
        raise unknown[0]
    if denied:
        notes.append(f"{count(denied, 'hit')} left out: a permission rule does not allow reading the file.")
    found.sort(key=lambda hit: -hit.score)
    return Recalled(tuple(found[:top_k]), "hybrid" if meant else "lexical", tuple(notes))


def _search(
    loaded: LoadedCorpus, query: str, limit: int, where: Mapping[str, Any] | None, vector: Floats | None
) -> list[tuple[str, float]]:
    if vector is None or not loaded.vectors:
        return loaded.index.search(cut_query(query), limit, where=where)
    if vector.shape != (loaded.index.dimension,):
        raise CorpusError(
            "The model gives vectors of another length than those that are kept.",
            "If the model behind the name changed: drop the corpus, and index it again.",
        )
    with one_thread():
        return loaded.index.search(cut_query(query), limit, where=where, vector=vector)


def _is_readable(hit: RecallHit, may_read: Callable[[str], bool]) -> bool:
    path = hit.stored.document.path
    return path.startswith(FRAME) or may_read(path)


def _state_notes(name: str, loaded: LoadedCorpus, changed: set[str], embeds: bool) -> list[str]:
    """Say what of a corpus is not as it should be."""
    notes = []
    total = len(loaded.passages)
    if not loaded.facts.indexed:
        notes.append(f"{name}: indexing was not finished; index it again.")
    if embeds and loaded.vectors < total:
        notes.append(
            f"{name}: {total - loaded.vectors:,} of {count(total, 'passage')} are ranked by words alone."
        )
    if changed:
        named = [shorten(printable(path), 60) for path in sorted(changed)[:_NAMED]]
        more = [f"{len(changed) - _NAMED:,} more"] if len(changed) > _NAMED else []
        said = enumerate_words([*named, *more])
        notes.append(f"{name}: {said} changed since indexing; index it again.")
    return notes


def _conditions(filters: Mapping[str, Any], loaded: LoadedCorpus) -> dict[str, Any]:
    """Return filters as the index takes them. Raises FilterError."""
    found: dict[str, Any] = {}
    for key, value in filters.items():
        if isinstance(value, Mapping):
            if not value or not set(value) <= _ENDS:
                raise FilterError(
                    f'filters: {key}: give a value, a list of values, or {{"min": …, "max": …}}.'
                )
            found[key] = Between(value.get("min"), value.get("max"))
        elif key == "path" and isinstance(value, str) and _MAGIC & set(value):
            found[key] = _matching(value, loaded)
        else:
            found[key] = value
    return found


def _matching(pattern: str, loaded: LoadedCorpus) -> list[str]:
    """Return the documents whose path a pattern matches. Raises FilterError."""
    try:
        glob = Glob(pattern)
    except GrepPatternError as error:
        raise FilterError(f"filters: path: {error}") from error
    base = f"{glob.base}/" if glob.base else ""
    return [path for path in loaded.documents if path.startswith(base) and glob.matches(path[len(base) :])]
