"""The installed categories, and the snapshot that is true now.

Only the slices whose revision moved are rebuilt. A category that fails (a third party's, say) is left out and named
in `problems`; it never takes the others with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from reyn_jupyter.catalog.action import Category, Entry
from reyn_jupyter.catalog.snapshot import CatalogError, CatalogSnapshot


class LiveCatalog:
    """Keeps a `CatalogSnapshot` up to date.

    Args:
        load: gives the installed categories; called once, on first use.
    """

    def __init__(self, load: Callable[[], tuple[Sequence[Category], Sequence[str]]]) -> None:
        self._load = load
        self._categories: tuple[Category, ...] | None = None
        self._snapshot: CatalogSnapshot | None = None
        self._revisions: dict[str, Hashable] = {}
        self._entries: dict[str, tuple[Entry, ...]] = {}
        self._visible: dict[str, bool] = {}
        self.problems: dict[str, str] = {}

    async def refresh(self) -> CatalogSnapshot:
        """The snapshot now; the same object as before when nothing moved."""
        if self._categories is None:
            categories, problems = self._load()
            self.problems.update({str(number): text for number, text in enumerate(problems)})
            self._categories = tuple(categories)
        moved = [category for category in self._categories if self._moved(category)]
        for category in moved:
            await self._read(category)
        if self._snapshot is None or any(self._visible[c.name] != c.visible() for c in self._categories):
            self._snapshot = self._build()
        else:
            for category in moved:
                self._snapshot = self._replace(self._snapshot, category)
        return self._snapshot

    def _moved(self, category: Category) -> bool:
        if category.resources is None:
            return False
        try:
            revision = category.revision()
        except Exception as error:  # noqa: BLE001 - a category's own code
            self._fault(category, error)
            return False
        if category.name in self._revisions and self._revisions[category.name] == revision:
            return False
        self._revisions[category.name] = revision
        return True

    async def _read(self, category: Category) -> None:
        assert category.resources is not None
        try:
            self._entries[category.name] = tuple(await category.resources.entries())
            self.problems.pop(category.name, None)
        except Exception as error:  # noqa: BLE001 - a category's own code
            self._fault(category, error)

    def _build(self) -> CatalogSnapshot:
        assert self._categories is not None
        usable = list(self._categories)
        while True:
            self._visible = {category.name: category.visible() for category in self._categories}
            try:
                return CatalogSnapshot.build(usable, self._entries)
            except CatalogError as error:
                broken = next((category for category in usable if category.name == error.category), None)
                if broken is None:
                    raise
                self._fault(broken, error)
                usable.remove(broken)

    def _replace(self, snapshot: CatalogSnapshot, category: Category) -> CatalogSnapshot:
        try:
            return snapshot.replace(category.name, self._entries.get(category.name, ()))
        except CatalogError as error:
            self._fault(category, error)
            return snapshot

    def _fault(self, category: Category, error: Any) -> None:
        self.problems[category.name] = f"category {category.name!r} is left out: {error}"
