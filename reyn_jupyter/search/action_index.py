"""The search of one session's catalog: which actions it covers, what of them has a vector, and who ranks.

Invariants: an answer is about exactly the snapshot that was asked about, hidden categories left out; only the slices
that moved are read again; whether models may search is decided by the settings and by what is installed or was built,
never by how fast a machine embeds, so that a request is the same on every machine; no turn waits for the index, and a
search for a bounded time, since what has no vector yet is found by its words; only local models are used unasked, and a
provider only where the person built an index with it. Everything that takes long happens in threads, off the engine's
loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from reyn_jupyter.catalog.discovery.search_results import Found
from reyn_jupyter.catalog.discovery.visibility import is_search_available, search_hint
from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.config import Settings
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.search.active_class import ActiveClass, EmbeddingClassError
from reyn_jupyter.search.coverage import Coverage, CoverageCache
from reyn_jupyter.search.database import IndexStoreError
from reyn_jupyter.search.embedders.embedder import EmbedderError
from reyn_jupyter.search.embedders.embedding_classes import ResolvedClass
from reyn_jupyter.search.index_state import BuildProgress, IndexState
from reyn_jupyter.search.index_updates import FEW, BackgroundBuild, BuildTask
from reyn_jupyter.search.ranking.language import is_english
from reyn_jupyter.search.ranking.tokens import cut_note, cut_query, runs
from reyn_jupyter.search.vector_store import VectorStore
from reyn_jupyter.support.files.plain_files import PlainFolder

if TYPE_CHECKING:
    from reyn_jupyter.search.embedders.embedder import Embedder, Wait
    from reyn_jupyter.search.ranking.index import Index

WAIT = 30.0  # seconds that a search waits for the index: loading torch takes about ten, a small catalog one
OTHER_LANGUAGE = (
    "Search works in English here, and this request seems to be in another language: say it in English, or list a "
    "category."
)
_KNOWN = 0.5  # share of a request's words that records hold, from which on they are in its language
_LONGEST_NOTE = 300  # characters of a note in an answer
_FAILURES = (EmbedderError, ModelError, IndexStoreError, RuntimeError, ValueError, OSError, ImportError)


class ActionEmbeddingIndex:
    """Finds the actions of a session by what they do.

    Args:
        settings: the effective settings now.
        folder: where vectors are kept; None for memory alone.
        wait: see `HostedEmbedder`.
        redact: takes secrets out of what is sent to a provider.
        environ: where a provider's key is looked for.

    Example:
        >>> index = ActionEmbeddingIndex(Settings, None)
        >>> asyncio.run(index.find(CatalogSnapshot.build([], {}), "read a file")).hits
        ()
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        folder: PlainFolder | Path | None,
        *,
        wait: Wait | None = None,
        redact: Callable[[str], str] = str,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._in_force = ActiveClass(settings, wait=wait, redact=redact, environ=environ)
        self._store = VectorStore(folder)
        self._covering = CoverageCache(lambda: self._store, self.in_memory)
        self._wanted: tuple[int, CatalogSnapshot | None] = (0, None)  # the newest snapshot, by number
        self._work: BackgroundBuild | None = None
        self._before = 0  # vectors when the build under way began
        self._building: BuildProgress | None = None
        self._notes: dict[str, str] = {}

    # What is in force

    @property
    def resolved(self) -> ResolvedClass:
        """Return what the configured class comes to here and now."""
        return self._in_force.resolved

    @property
    def embedder(self) -> Embedder | None:
        """Return who embeds for the configured class; None where nobody can."""
        return self._in_force.embedder

    @property
    def vectors(self) -> int:
        """Return how many actions on offer have a vector; until they were looked through, 1 where any is kept."""
        key, now = self._in_force.key, self._covering.now
        if key is None:
            return 0
        if now is not None and now.key == key:
            return now.vectors
        try:
            return int(self._store.dimension(key) is not None)
        except IndexStoreError:
            return 0

    @property
    def offered(self) -> bool:
        """Return whether models may search: a local model is on this machine, or a provider gave an action a vector."""
        resolved, embedder = self._in_force.both
        if embedder is not None and not embedder.is_remote:
            return is_search_available(resolved.in_force if embedder.is_available else None, 0, local=True)
        return is_search_available(resolved.in_force, self.vectors)

    @property
    def hint(self) -> dict[str, str] | None:
        """Return why models cannot search, for a listing; None when they can."""
        if self.offered:
            return None
        (resolved, embedder), now = self._in_force.both, self._covering.now
        if resolved.kind == "absent":
            return search_hint(resolved.reason, install=resolved.hint)
        reason, hint = resolved.reason, resolved.hint
        if embedder is not None and not embedder.is_remote:
            reason, hint = (
                f"{resolved.model} is not on this machine",
                "%reyn embeddings build says how to get it.",
            )
        elif embedder is not None:
            of = f"none of {len(now.records):,} actions" if now is not None else "no action"
            reason = f"{of} has a vector of class '{resolved.in_force}' yet"
            building = f" ({self._building})" if self._building is not None else ""
            reason += building or "; %reyn embeddings build asks the provider for them"
        return search_hint(reason, hint=hint)

    def state(self) -> IndexState:
        """Return where the index stands. Looks at the disk, never at the network."""
        from reyn_jupyter.search.index_builder import holder

        resolved, embedder = self._in_force.both
        now, path = self._covering.now, self._store.path
        return IndexState(
            resolved,
            (embedder.served_by or resolved.model or "") if embedder is not None else "",
            embedder is not None and embedder.is_remote,
            self.vectors,
            len(now.records) if now is not None else 0,
            self.offered,
            str(path) if path is not None else "memory",
            self._store.size,
            self._building,
            holder(self._store) if self._building is None else None,
            tuple(dict.fromkeys(note for note in (*self._notes.values(), self._store.note) if note)),
            embedder.spent if embedder is not None else None,
        )

    # Search

    async def find(
        self,
        snapshot: CatalogSnapshot,
        query: str,
        limit: int = 10,
        categories: Collection[str] | None = None,
        *,
        by_words: bool = False,
    ) -> Found:
        """Return the actions of this snapshot that fit a query best.

        Args:
            query: what the action should do, or a name.
            limit: actions at most.
            categories: names to stay within; None or empty for all on offer.
            by_words: rank by words alone: the same at any time and on every machine, and no provider is asked.
        """
        if not len(snapshot):
            return Found(())
        return await asyncio.to_thread(self._find, snapshot, query, limit, categories, by_words)

    def _find(
        self,
        snapshot: CatalogSnapshot,
        query: str,
        limit: int,
        categories: Collection[str] | None,
        by_words: bool,
    ) -> Found:
        query, cut = cut_query(query), cut_note(query)
        embedder = self._in_force.embedder
        coverage = self._covering.bring(snapshot, self._in_force.key)
        index = self._covering.index(coverage, embedder, final=self._building is None)
        meaning, note = coverage.indexed > 0 and not by_words, self._lack(coverage)
        if meaning and runs(query):  # what has no word is not found by meaning
            meaning, unread = self._embeds(index, query, embedder)
            note = unread or note
        if not (meaning and embedder is not None and not embedder.english_only):
            note = " ".join(filter(None, (note, _language(index, query))))
        if coverage.indexed and not meaning:
            index = self._covering.words(coverage, index)
        note = " ".join(filter(None, (cut, note)))
        answer = index.answer(query, limit, categories=categories or None)
        hits = ((snapshot.get(ActionName.parse(name)), score) for name, score in answer.hits)
        return Found(
            tuple((action, score) for action, score in hits if action is not None),
            answer.weak,
            answer.nearest_categories,
            "hybrid" if meaning else "lexical",
            note[:_LONGEST_NOTE],
        )

    def _lack(self, coverage: Coverage) -> str:
        """Say what of a coverage has no vector yet, where that is about to change or went wrong; empty otherwise."""
        if self.resolved.in_force is None or not coverage.missing:
            return ""
        building = (
            "the index is still being built" if self._building is not None else self._notes.get("build", "")
        )
        if not coverage.vectors:
            return f"Ranked by words alone: {building or 'no action has a vector yet'}."
        if not building:
            return ""
        return f"{coverage.vectors:,} of {len(coverage.records):,} actions were ranked by meaning, too: {building}."

    def _embeds(self, index: Index, query: str, embedder: Embedder | None) -> tuple[bool, str]:
        """Return whether the query has a vector now, and what to say where it has none."""
        if embedder is not None and not embedder.ready:
            embedder.load()
            return False, "Ranked by words alone: the embedding model is still being loaded."
        try:
            index.query_vector(query)
        except _FAILURES as error:
            self._notes["query"] = f"a query could not be embedded: {error}"
            return False, f"Ranked by words alone: {self._notes['query']}"
        self._notes.pop("query", None)
        return True, ""

    # Building

    async def look(self, snapshot: CatalogSnapshot) -> None:
        """Look up what of a snapshot has a vector, so that the figures of `state` are those of now."""
        await asyncio.to_thread(self._covering.bring, snapshot, self._in_force.key)

    def begin(self, snapshot: CatalogSnapshot) -> None:
        """Bring the vectors of a local class up to date in the background. Called on the engine's loop."""
        self._in_force.renew()
        embedder = self._in_force.embedder
        if embedder is None or embedder.is_remote:
            return
        from reyn_jupyter.search.index_builder import store_key

        now = self._covering.now
        current = now is not None and now.snapshot is snapshot and now.vectors == len(now.records)
        if current and now is not None and now.key == store_key(embedder):
            return
        self._wanted = (self._wanted[0] + 1, snapshot)
        if self._work is None or not self._work.going_on:
            self._work = BackgroundBuild(self)

    async def ready(self, snapshot: CatalogSnapshot, seconds: float = WAIT) -> None:
        """Begin, and wait until a search of this snapshot ranks by meaning, for some seconds at most.

        It waits for all of a small catalog, for the first vectors of a large one, and for a local model to be loaded.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                self.begin(snapshot)
                if self._work is not None:
                    await self._work.wait(self._wanted[0])
                await self._load()

    async def _load(self) -> None:
        """Wait until a local model embeds without being loaded first; not where there is nothing to compare with."""
        embedder = self._in_force.embedder
        if embedder is not None and self.vectors and not embedder.ready:
            loading = embedder.load()
            if loading is not None:
                await asyncio.wrap_future(loading)

    @property
    def newest(self) -> int:
        """The number of the newest snapshot that is wanted."""
        return self._wanted[0]

    def todo(self, after: int) -> BuildTask | None:
        """Return the work of a build in the background; None where there is nothing new since number `after`."""
        embedder = self._in_force.embedder
        number, snapshot = self._wanted
        if number == after or snapshot is None or embedder is None or embedder.is_remote:
            return None
        coverage = self._covering.bring(snapshot, self._in_force.key)
        missing = len(coverage.missing)
        records = {record.digest: record for record in coverage.records} if missing else {}
        return BuildTask(
            number, self._store, embedder, records, missing, missing > FEW and coverage.vectors > 0
        )

    def prepare(self) -> None:
        """Make the index that the next search would wait for. May take seconds."""
        snapshot = self._wanted[1]
        if snapshot is None:
            return
        coverage = self._covering.bring(snapshot, self._in_force.key)
        if coverage.vectors:
            self._covering.index(coverage, self._in_force.embedder)

    def note_progress(self, progress: BuildProgress | None) -> None:
        """Note that a batch was stored; None: the build is over."""
        if progress is None or self._building is None:
            self._before = self.vectors
        self._building = progress
        self._covering.grew(self._before + progress.done if progress is not None else 0)

    def stood(self, trouble: str) -> None:
        """Note how the last build in the background ended."""
        self._notes["build"] = trouble

    async def build(
        self, snapshot: CatalogSnapshot, tell: Callable[[BuildProgress], None] = lambda progress: None
    ) -> int:
        """Give every action of a snapshot a vector, whoever has to be asked for it; how many got one.

        Raises:
            EmbeddingClassError: the class is off, or wrong; says what to do.
            IndexStoreError: a provider's vectors could not be kept.
            ModelError: the provider failed; what it gave before is kept.
        """
        from reyn_jupyter.search.index_builder import build

        self._in_force.renew()
        resolved, embedder = self._in_force.both
        if embedder is None:
            raise EmbeddingClassError(f"There is nothing to build: {resolved.reason}.", resolved.hint)
        coverage = await asyncio.to_thread(self._covering.bring, snapshot, self._in_force.key)
        records = {record.digest: record for record in coverage.records}

        def report(progress: BuildProgress) -> None:
            self.note_progress(progress)
            tell(progress)

        try:
            return await build(self._store, embedder, records, tell=report)
        except IndexStoreError as error:
            if embedder.is_remote:
                raise
            return await build(self.in_memory(error), embedder, records, tell=report)
        finally:
            self.note_progress(None)
            await self.look(snapshot)

    def in_memory(self, error: IndexStoreError) -> VectorStore:
        """Go on without a disk that cannot serve: vectors of a local model cost nothing but time."""
        self._notes["store"] = f"{error} {error.hint}".strip()
        if not self._store.note:  # a damaged file was set aside, and a new one takes its place
            self._notes["store"] += " Until then vectors are kept in memory."
            self._store = VectorStore(None)
        return self._store

    async def clear(self) -> int:
        """Drop every vector of every class; how many there were. Raises IndexStoreError."""
        if self._work is not None and self._work.going_on:
            self._work.task.cancel()
            await asyncio.wait([self._work.task])
        count = await asyncio.to_thread(self._store.clear)
        self._notes.clear()
        self._covering.forget()
        return count


def _language(index: Index, query: str) -> str:
    """Say that a request is in a language that is not found by; empty where it is, or where actions have its words."""
    return "" if index.known_share(query) >= _KNOWN or is_english(query) else OTHER_LANGUAGE
