"""The catalog at 100, 10,000 and 100,000 actions: milliseconds a call, beside the limit of each.

After the snapshot is built, a page, a description and a resolution must not grow with the number of actions; a
filtered page and an unknown name with its suggestions have 100 ms. "First" is the first call in a fresh snapshot.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.action import Category, Entry, Operation, Purity, Resources, Tool
from reyn_jupyter.catalog.arguments.preparation import prepare
from reyn_jupyter.catalog.discovery.listing import describe_action, list_actions
from reyn_jupyter.catalog.resolve import bind, find
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.config import Settings
from reyn_jupyter.search.action_index import ActionEmbeddingIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZES = (100, 10_000, 100_000)
LIMIT = 100.0  # milliseconds, of a filtered page and of an unknown name
SCHEMA = {
    "type": "object",
    "properties": {"topic": {"type": "string"}, "pages": {"type": "integer"}},
    "required": ["topic"],
}


async def _nothing(arguments: dict[str, Any], context: object) -> object:
    return None


async def _no_entries() -> Sequence[Entry]:
    return ()


def categories() -> list[Category]:
    """One category of operations and one of resources."""
    entries = ("read", "write", "edit", "delete", "list", "glob", "grep")
    operations = tuple(
        Operation(
            entry,
            f"{entry.capitalize()} in the workspace.",
            SCHEMA,
            Tool(f"{entry}_file", _nothing, Purity.READ),
        )
        for entry in entries
    )
    run = Tool("invoke_skill", _nothing, Purity.UNKNOWN)
    rule = Resources(run, lambda entry, args: {"name": entry, "input": args}, "run it", _no_entries)
    return [Category("file", "Files.", operations), Category("skill", "Workflows.", (), rule)]


def workflows(count: int) -> list[Entry]:
    topics = ("revenue", "inventory", "churn", "delivery", "returns", "staffing", "energy")
    return [
        Entry(
            f"report_{topics[i % 7]}_{i:06d}",
            f"Write report number {i} about {topics[i % 7]} in region {i % 50}, with a table for each month.",
            SCHEMA,
        )
        for i in range(count)
    ]


def milliseconds(call: Callable[[], object], repeat: int) -> tuple[float, float]:
    """The first call, and the median of the following ones."""
    times: list[float] = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1000)
    return times[0], statistics.median(times[1:])


def calls(snapshot: CatalogSnapshot, count: int) -> dict[str, tuple[Callable[[], object], float | None]]:
    """Label → what is measured, and its limit in milliseconds."""
    middle = snapshot.slices["skill"].actions[count // 2].name.text
    mistyped = middle.replace("report", "reprot")
    return {
        "list_actions, narrowed": (lambda: list_actions(snapshot, ["skill"], offset=count // 2), None),
        "list_actions, all": (lambda: list_actions(snapshot, offset=count // 2), None),
        "describe_action": (lambda: describe_action(snapshot, middle), None),
        "resolve": (lambda: bind(snapshot, find(snapshot, middle), {"topic": "x"}), None),
        "list_actions, filtered": (lambda: list_actions(snapshot, filter="churn in region 9"), LIMIT),
        "list_actions, no hit": (lambda: list_actions(snapshot, filter="no such thing anywhere"), LIMIT),
        "unknown name, mistyped": (lambda: describe_action(snapshot, mistyped), LIMIT),
        "unknown name, near miss": (lambda: describe_action(snapshot, "file__read_file"), LIMIT),
        "unknown name, nonsense": (
            lambda: describe_action(snapshot, "xylophone concerto in " + "d" * 60),
            LIMIT,
        ),
        "replace another slice": (lambda: snapshot.replace("file", []), None),
    }


def main() -> None:
    """Measure and print one table."""
    print(f"{'catalog, ms a call':28}{'actions':>9}{'first':>10}{'median':>10}{'limit':>8}  within")
    for count in SIZES:
        entries, installed = workflows(count), categories()
        gc.collect()
        start = time.perf_counter()
        snapshot = CatalogSnapshot.build(installed, {"skill": entries})
        built = (time.perf_counter() - start) * 1000
        print(f"{'build':28}{count:>9,}{built:>10.1f}{'–':>10}{'–':>8}")
        for label, (call, limit) in calls(snapshot, count).items():
            first, median = milliseconds(call, 15)
            verdict = "" if limit is None else "yes" if max(first, median) <= limit else "NO"
            shown = "–" if limit is None else f"{limit:.0f}"
            print(f"{label:28}{count:>9,}{first:>10.3f}{median:>10.3f}{shown:>8}  {verdict}")
        first, median = milliseconds(_search(snapshot), 3)
        print(f"{'search by words (people)':28}{count:>9,}{first:>10.1f}{median:>10.1f}{'–':>8}")
    _arguments()


def _search(snapshot: CatalogSnapshot) -> Callable[[], object]:
    """A person's search without a model; the first one reads all actions."""
    settings = Settings.model_validate({"action_retrieval": {"embedding_class": None}})
    index = ActionEmbeddingIndex(lambda: settings, None)
    return lambda: asyncio.run(index.find(snapshot, "churn report region"))


def _arguments() -> None:
    for label, args in {
        "arguments, plain": {"topic": "x", "pages": 3},
        "arguments, coerced": {"topic": "x", "pages": "3"},
        "arguments, invalid": {"topic": 5, "page": 3},
    }.items():
        _, median = milliseconds(partial(prepare, SCHEMA, args), 2_000)
        print(f"{label:28}{'–':>9}{'–':>10}{median:>10.4f}{0.1:>8}  {'yes' if median <= 0.1 else 'NO'}")


if __name__ == "__main__":
    main()
