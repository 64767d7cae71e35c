"""The installed categories, and the snapshot that is true now.

Only the slices whose revision moved are rebuilt. A category that fails (a third party's, say) is left out and named
in `problems`; it never takes the others with it, whatever it raises and however long it takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from reyn_jupyter.catalog.action import Category, Entry, always
from reyn_jupyter.catalog.snapshot import CatalogError, CatalogSnapshot
from reyn_jupyter.runtime.action_error import text_of

SECONDS = 10.0  # that a category may take to name its entries
Build = Callable[[Sequence[Category], Mapping[str, Sequence[Entry]]], CatalogSnapshot]


class CatalogCache:
    """Keeps a `CatalogSnapshot` up to date.

    Args:
        load: gives the installed categories; called once, on first use.
        build: makes a snapshot of categories and their live entries, by category.
    """

    def __init__(
        self,
        load: Callable[[], tuple[Sequence[Category], Sequence[str]]],
        build: Build = CatalogSnapshot.build,
    ) -> None:
        self._load = load
        self._make = build
        self._categories: tuple[Category, ...] | None = None
        self._snapshot: CatalogSnapshot | None = None
        self._revisions: dict[str, Hashable] = {}
        self._entries: dict[str, tuple[Entry, ...]] = {}
        self._visible: dict[str, bool | None] = {}
        self.problems: dict[str, str] = {}

    async def refresh(self) -> CatalogSnapshot:
        """Return the snapshot as it is now; the same object as before when nothing moved."""
        if self._categories is None:
            categories, problems = self._load()
            self.problems.update({str(number): text for number, text in enumerate(problems)})
            self._categories = tuple(self._usable(categories))
        moved = [category for category in self._categories if await self._read(category)]
        visible = {category.name: self._is_visible(category) for category in self._categories}
        if self._snapshot is None or visible != self._visible:
            self._visible = visible
            self._snapshot = self._build()
        else:
            for category in moved:
                self._snapshot = self._replace(self._snapshot, category)
        return self._snapshot

    def _usable(self, categories: Sequence[Any]) -> Iterator[Category]:
        """Yield the categories that have a name no other has; ours come first, so that none can be replaced."""
        names = set()
        for number, category in enumerate(categories):
            name = category.name if isinstance(category, Category) else None
            if not isinstance(name, str):
                self.problems[f"category {number}"] = (
                    f"a {type(category).__name__} without a name is left out"
                )
            elif name in names:
                self.problems[f"{name} {number}"] = (
                    f"a second category {name!r} is left out: there is one of this name already"
                )
            else:
                names.add(name)
                yield category

    async def _read(self, category: Category) -> bool:
        """Take over a category's live entries where its revision moved; return whether it did."""
        if category.resources is None:
            return False
        try:
            revision = category.revision()
            if category.name in self._revisions and bool(self._revisions[category.name] == revision):
                return False
            async with asyncio.timeout(SECONDS):
                entries = tuple(await category.resources.entries())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a category's own code
            self._fault(category, error)
            return False
        # Only now: a read that was interrupted is made again.
        self._entries[category.name] = entries
        self._revisions[category.name] = revision
        self.problems.pop(category.name, None)
        return True

    def _is_visible(self, category: Category) -> bool | None:
        """Return whether a category is on offer now; None when its predicate fails."""
        if category.visible is always:
            return True
        try:
            return bool(category.visible())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a category's own code
            self._fault(category, error)
            return None

    def _build(self) -> CatalogSnapshot:
        assert self._categories is not None
        usable = [category for category in self._categories if self._visible[category.name] is not None]
        while True:
            names = {category.name for category in usable}
            entries = {name: found for name, found in self._entries.items() if name in names}
            try:
                return self._make(usable, entries)
            except CatalogError as error:
                broken = next((category for category in usable if category.name == error.category), None)
                if broken is None:
                    raise
                self._fault(broken, error)
                usable.remove(broken)

    def _replace(self, snapshot: CatalogSnapshot, category: Category) -> CatalogSnapshot:
        if category.name not in snapshot.slices:  # left out as a whole: perhaps its entries were why
            return self._build()
        try:
            return snapshot.replace(category.name, self._entries.get(category.name, ()))
        except CatalogError as error:
            self._fault(category, error)
            return snapshot

    def _fault(self, category: Category, error: Any) -> None:
        what = str(error) if isinstance(error, CatalogError) else f"{type(error).__name__}: {text_of(error)}"
        self.problems[category.name] = f"category {category.name!r} is left out: {what}"
