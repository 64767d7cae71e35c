"""The installed categories, and the snapshot that is true now.

Invariants: only the slices whose revision moved, or that a push named, are rebuilt; their sources are read side by
side. A category that fails (a third party's, say) is left out and named in `problems`; it never takes the others with
it, whatever it raises and however long it takes, and its next try waits. A source that fails keeps its last entries; an
entry that cannot be used is left out alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.catalog.action import Category, Entry, on_offer
from reyn_jupyter.catalog.face_checks import callable_entries, hidden_reason, sound_entries
from reyn_jupyter.catalog.snapshot import CatalogError, CatalogSnapshot
from reyn_jupyter.runtime.action_error import text_of
from reyn_jupyter.runtime.live_catalog.backoff import Backoff
from reyn_jupyter.runtime.live_catalog.category_lifecycle import CategoryLifecycle, CategoryStartError
from reyn_jupyter.runtime.live_catalog.category_scope import category_scope

SECONDS = 10.0  # that a category may take to name its entries, its start aside
_NAMED = 3  # entries that are left out and whose fault is told
Build = Callable[[Sequence[Category], Mapping[str, Sequence[Entry]]], CatalogSnapshot]
WATCHERS: list[Callable[[CatalogCache], None]] = []  # told of every push, on the thread that it comes from


@dataclass
class _Source:
    """What is known of one category.

    Attributes:
        entries: the last ones that could be read; None before.
        revision: the one that they are of.
        pushed: the category said that they moved.
        unbuilt: they are not in the snapshot yet.
        fault: why the category as a whole is left out, a start that failed aside.
        read_fault: why its entries could not be read, when it was last tried.
        entry_faults: why some of them are left out.
        begun, newest: how many reads began, and which of them the entries are of.
    """

    category: Category
    entries: tuple[Entry, ...] | None = None
    revision: Hashable = None
    pushed: bool = False
    unbuilt: bool = False
    fault: str | None = None
    read_fault: str | None = None
    entry_faults: tuple[str, ...] = ()
    begun: int = 0
    newest: int = 0
    backoff: Backoff = field(default_factory=Backoff)

    @property
    def problems(self) -> Iterator[tuple[str, str]]:
        name = self.category.name
        if self.fault is not None:
            yield name, f"category {name!r} is left out: {self.fault}"
        if self.read_fault is not None:
            state = "has no entries" if self.entries is None else "shows stale entries, the last that it gave"
            yield f"{name} source", f"category {name!r} {state}: {self.read_fault}"
        if self.entry_faults:
            count = len(self.entry_faults)
            told = "; ".join(self.entry_faults[:_NAMED]) + (" …" if count > _NAMED else "")
            yield f"{name} entries", f"category {name!r} goes without {count} of its entries: {told}"


@dataclass(frozen=True)
class _Standing:
    """The reasons why a category is not on offer: it hides itself, its `hidden` fails, or its start did."""

    hidden: str | None = None
    fault: str | None = None
    unstarted: str | None = None


_ON_OFFER = _Standing()  # this very one, of each category that is: most are, and they are asked at every call


class CatalogCache:
    """Keeps a `CatalogSnapshot` up to date.

    Args:
        load: gives the installed categories; called once, on first use.
        build: makes a snapshot of categories and their live entries, by category.
        lifecycle: starts the categories that have a start.
    """

    def __init__(
        self,
        load: Callable[[], tuple[Sequence[Category], Sequence[str]]],
        build: Build = CatalogSnapshot.build,
        lifecycle: CategoryLifecycle | None = None,
    ) -> None:
        self._load = load
        self._make = build
        self._lifecycle = lifecycle or CategoryLifecycle()
        self._sources: dict[str, _Source] | None = None
        self._snapshot: CatalogSnapshot | None = None
        self._standings: dict[str, _Standing] = {}
        self._load_problems: dict[str, str] = {}

    @property
    def problems(self) -> dict[str, str]:
        """What is left out or stale, and why, in sentences."""
        found = {**self._load_problems, **self._lifecycle.problems}
        for source in (self._sources or {}).values():
            found.update(source.problems)
        return found

    @property
    def is_pushed(self) -> bool:
        """True if a category said that its entries moved, and no refresh has read them since."""
        return any(source.pushed for source in (self._sources or {}).values())

    @property
    def latest(self) -> CatalogSnapshot | None:
        """The snapshot that the last refresh gave; None before the first."""
        return self._snapshot

    def push(self, category_name: str) -> None:
        """Take note that a category's entries moved, whatever its revision says; the next refresh reads them.

        It may be called from any thread. A source that failed is tried again at once.
        """
        source = (self._sources or {}).get(category_name)
        if source is not None:
            source.pushed = True
            source.backoff.clear()
            for watcher in WATCHERS:
                watcher(self)

    async def refresh(self) -> CatalogSnapshot:
        """Return the snapshot as it is now; the same object as before when nothing moved."""
        if self._sources is None:
            categories, problems = self._load()
            self._load_problems.update({str(number): text for number, text in enumerate(problems)})
            usable = map(self._lifecycle.guard, self._usable(categories))
            self._sources = {category.name: _Source(category) for category in usable}
        sources = self._sources.values()
        standings = self._standings_now(self._sources)
        if await self._read_all(
            [self._sources[name] for name, each in standings.items() if each is _ON_OFFER]
        ):
            standings = self._standings_now(self._sources)  # it waited
        # From here on nothing waits, so that refreshes side by side leave a snapshot that is whole.
        if self._snapshot is None or standings != self._standings:
            self._standings = standings
            self._snapshot = self._build()
        else:
            for source in [source for source in sources if source.unbuilt]:
                self._snapshot = self._replace(self._snapshot, source)
        return self._snapshot

    def _usable(self, categories: Sequence[Any]) -> Iterator[Category]:
        """Yield the categories that have a name no other has; ours come first, so that none can be replaced."""
        names = set()
        for number, category in enumerate(categories):
            name = category.name if isinstance(category, Category) else None
            if not isinstance(name, str):
                self._load_problems[f"category {number}"] = (
                    f"a {type(category).__name__} without a name is left out"
                )
            elif name in names:
                self._load_problems[f"{name} {number}"] = (
                    f"a second category {name!r} is left out: there is one of this name already"
                )
            else:
                names.add(name)
                yield category

    def _standings_now(self, sources: dict[str, _Source]) -> dict[str, _Standing]:
        return {name: self._standing(source) for name, source in sources.items()}

    def _standing(self, source: _Source) -> _Standing:
        """Return whether a category is on offer now, as far as it does not depend on its entries."""
        category = source.category
        if (unstarted := self._lifecycle.fault(category)) is not None:
            return _Standing(unstarted=unstarted)
        if category.hidden is on_offer:
            return _ON_OFFER
        try:
            reason = hidden_reason(category)
            return _ON_OFFER if reason is None else _Standing(reason)
        except CatalogError as error:
            return _Standing(fault=str(error))

    async def _read_all(self, sources: Sequence[_Source]) -> bool:
        """Read those of the sources on offer that moved, side by side; return whether it waited for anything."""
        now = asyncio.get_running_loop().time()
        due = [
            each
            for each in sources
            if each.category.resources is not None and not each.backoff.is_waiting(now)
        ]
        work = []
        for source in due:
            if source.category.revision_is_slow():
                work.append(self._read_if_moved(source))
            elif (revision := self._moved(source, source.category.revision)) is not None:
                work.append(self._read(source, revision))
        if len(work) == 1:
            await work[0]
        elif work:
            async with asyncio.TaskGroup() as group:
                for each in work:
                    group.create_task(each)
        return bool(work)

    async def _read_if_moved(self, source: _Source) -> None:
        """Take over a category's live entries where its revision moved, which takes a while to tell."""
        try:
            found = await asyncio.to_thread(source.category.revision)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a category's own code
            self._failed(source, error)
            return
        if (revision := self._moved(source, lambda: found)) is not None:
            await self._read(source, revision)

    def _moved(self, source: _Source, revision_now: Callable[[], Hashable]) -> tuple[Hashable] | None:
        """Return the revision that a source is now to be read at; None where it is not to be."""
        try:
            revision = revision_now()
            same = source.entries is not None and bool(source.revision == revision)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a category's own code
            self._failed(source, error)
            return None
        return None if same and not source.pushed else (revision,)

    async def _read(self, source: _Source, revision: tuple[Hashable]) -> None:
        """Take over a category's live entries."""
        category = source.category
        assert category.resources is not None
        source.pushed = False  # a push that comes meanwhile stands for another read
        source.begun += 1
        number = source.begun
        try:
            await self._lifecycle.ready(category)
            with category_scope(category.name):
                async with asyncio.timeout(SECONDS):
                    entries = tuple(await category.resources.entries())
            faults: tuple[str, ...] = ()
            if any(isinstance(each, Entry) and each.open_schema for each in entries):
                entries, faults = await asyncio.to_thread(callable_entries, entries)
        except CategoryStartError:
            source.pushed = True
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a category's own code
            source.pushed = source.entries is not None
            self._failed(source, error)
        except BaseException:  # interrupted: the read is made again
            source.pushed = True
            raise
        else:
            if number < source.newest:  # a later read was faster, and knows more
                return
            source.newest = number
            source.entries, source.revision, source.unbuilt = entries, revision[0], True
            source.read_fault, source.entry_faults = None, faults
            source.backoff.clear()

    def _failed(self, source: _Source, error: BaseException) -> None:
        loop = asyncio.get_running_loop()
        what = f"no answer within {SECONDS:g} seconds" if isinstance(error, TimeoutError) else _said(error)
        source.read_fault = f"{what}; the next try is in {source.backoff.fail(loop.time()):.0f} s"

    def _build(self) -> CatalogSnapshot:
        assert self._sources is not None
        usable = {}
        for name, source in self._sources.items():
            standing = self._standings[name]
            source.fault = standing.fault
            if standing.fault is None and standing.unstarted is None:
                usable[name] = source
        while True:
            entries = {name: source.entries for name, source in usable.items() if source.entries is not None}
            try:
                snapshot = self._make([source.category for source in usable.values()], entries)
            except CatalogError as error:
                broken = usable.get(error.category)
                if broken is None:
                    raise
                if not self._sift(broken):
                    broken.fault = _said(error)
                    del usable[error.category]
            else:
                for source in usable.values():
                    source.unbuilt = False
                return snapshot

    def _replace(self, snapshot: CatalogSnapshot, source: _Source) -> CatalogSnapshot:
        name = source.category.name
        if name not in snapshot.slices:  # left out as a whole: perhaps its entries were why
            return self._build()
        source.unbuilt = False
        while True:
            try:
                return snapshot.replace(name, source.entries or ())
            except CatalogError as error:
                if not self._sift(source):
                    source.fault = _said(error)
                    return snapshot

    @staticmethod
    def _sift(source: _Source) -> bool:
        """Leave out the entries of a category that cannot be used; return whether there were any."""
        sound, faults = sound_entries(source.category, source.entries or ())
        if not faults:
            return False
        source.entries, source.entry_faults = sound, (*source.entry_faults, *faults)
        return True


def _said(error: Any) -> str:
    return str(error) if isinstance(error, CatalogError) else f"{type(error).__name__}: {text_of(error)}"
