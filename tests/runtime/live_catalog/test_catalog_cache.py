"""Refreshes of the catalog side by side: what was read later counts, whichever read ends first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from reyn_jupyter.catalog.action import Category, Entry, Purity, Resources, Tool
from reyn_jupyter.runtime.live_catalog.catalog_cache import CatalogCache


async def nothing(arguments: object, context: object) -> None:
    return None


class Shelf:
    """A category whose entries are read at once, and handed out when they are let go."""

    def __init__(self, name: str) -> None:
        self.names: list[str] = []
        self.reads: list[asyncio.Event] = []
        self.category = Category(
            name,
            f"What stands on {name}.",
            resources=Resources(
                Tool(f"take_{name}", nothing, Purity.READ),
                lambda entry, arguments: arguments,
                "take it",
                self.read,
            ),
            revision=lambda: tuple(self.names),
        )

    async def read(self) -> Sequence[Entry]:
        found = [Entry(each, f"The {each}.", {"type": "object"}) for each in self.names]
        self.reads.append(go := asyncio.Event())
        await go.wait()
        return found


async def reads(shelf: Shelf, count: int) -> None:
    async with asyncio.timeout(30):
        while len(shelf.reads) < count:
            await asyncio.sleep(0)


async def test_an_earlier_read_that_ends_later_takes_nothing_back() -> None:
    left, right = Shelf("left"), Shelf("right")
    cache = CatalogCache(lambda: ((left.category, right.category), ()))
    first = asyncio.ensure_future(cache.refresh())
    await reads(right, 1)
    left.names, right.names = ["cup"], ["pot"]
    second = asyncio.ensure_future(cache.refresh())
    await reads(right, 2)
    left.reads[1].set()  # the second refresh has the cup, and waits for the pot
    for _ in range(5):
        await asyncio.sleep(0)
    left.reads[0].set()
    right.reads[0].set()
    await first
    right.reads[1].set()
    snapshot = await second
    assert {action.name.text for part in snapshot.visible for action in part.actions} == {
        "left__cup",
        "right__pot",
    }
