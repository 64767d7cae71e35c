"""Refreshes of the catalog side by side: what was read later counts, whichever read ends first."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace

from reyn_jupyter.catalog.action import Category, Entry, Purity, Resources, Tool
from reyn_jupyter.runtime.live_catalog.catalog_cache import CatalogCache
from tests.support.waiting import PATIENCE


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
    async with asyncio.timeout(PATIENCE):
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


async def test_the_loop_goes_on_while_a_slow_revision_is_looked_at() -> None:
    shelf, asked, answer = Shelf("slow"), threading.Event(), threading.Event()
    shelf.names = ["cup"]

    def revision() -> bool:
        asked.set()
        return answer.wait(2 * PATIENCE)

    slow = replace(shelf.category, revision=revision, revision_is_slow=lambda: True)
    refreshing = asyncio.ensure_future(CatalogCache(lambda: ((slow,), ())).refresh())
    async with asyncio.timeout(PATIENCE):  # less than the look would hold the loop up
        while not asked.is_set():
            await asyncio.sleep(0)
        answer.set()
        await reads(shelf, 1)
    shelf.reads[0].set()
    snapshot = await refreshing
    assert [each.name.text for each in snapshot.actions] == ["slow__cup"]


async def test_a_slow_revision_that_fails_is_the_fault_of_its_category_alone() -> None:
    shelf, other = Shelf("slow"), Shelf("other")
    broken = replace(shelf.category, revision=lambda: 1 // 0, revision_is_slow=lambda: True)
    cache = CatalogCache(lambda: ((broken, other.category), ()))
    refreshing = asyncio.ensure_future(cache.refresh())
    await reads(other, 1)
    other.reads[0].set()
    await refreshing
    assert "ZeroDivisionError" in str(cache.problems)
