"""The registry at 10 and 1,000 manifests, in CPU time: all of them read, nothing moved, one capability resolved.

Besides, how long a refresh of the catalog that reads all of them holds up the loop, beside one that looks on the loop.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from reyn_jupyter.catalog.action import Category, Entry, Purity, Resources, Tool
from reyn_jupyter.runtime.live_catalog.catalog_cache import CatalogCache
from reyn_jupyter.workflows.utilities.capability_ranking import rank
from reyn_jupyter.workflows.utilities.contract import Contract
from reyn_jupyter.workflows.utilities.registry import ScanCache, read_registry, utility_folders
from tests.workflows.utilities.manifest_samples import put


def milliseconds(work: Callable[[], object], repeats: int) -> float:
    """Return the least CPU time of some repeats."""
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best * 1000


def look(folder: Path) -> None:
    """Look at every file below a folder, as nobody can do without who sees an edit at the next use."""
    for root, _, files in os.walk(folder):
        for file in files:
            os.lstat(f"{root}/{file}")


def parse_all(folder: Path) -> None:
    for file in folder.glob("*/tool.yaml"):
        yaml.load(file.read_text("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def stall(scan: Callable[[], object], in_thread: bool, repeats: int = 3) -> float:
    """Return the longest time in ms for which a refresh of the catalog held up the loop, the least of some repeats."""

    async def nothing(*_: object) -> list[Entry]:
        return []

    resources = Resources(Tool("run", nothing, Purity.READ), lambda entry, args: args, "run it", nothing)
    category = Category(
        "looks",
        "Look.",
        resources=resources,
        revision=lambda: str(scan()),
        revision_is_slow=lambda: in_thread,
    )

    async def refresh() -> float:
        longest, last = 0.0, time.perf_counter()
        refreshing = asyncio.ensure_future(CatalogCache(lambda: ((category,), ())).refresh())
        while not refreshing.done():
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        await refreshing
        return longest

    return min(asyncio.run(refresh()) for _ in range(repeats)) * 1000


def main() -> None:
    for number in (10, 1_000):
        with tempfile.TemporaryDirectory() as text:
            workspace = Path(text)
            for at in range(number):
                text_of = {"type": "string", "minLength": at % 7 + 1}
                put(
                    workspace,
                    f"utility-{at}",
                    name=f"utility-{at}",
                    capabilities=[f"text.count-{at % 50}"],
                    input_schema={"type": "object", "properties": {f"file-{at}": text_of}},
                )
            time.sleep(2.1)  # what was written this very moment is read again at each look
            folders = [each for each in utility_folders(workspace) if each.origin == "workspace"]
            cache = ScanCache()

            def scan(with_cache: ScanCache | None) -> object:
                return read_registry(folders, cache=with_cache, is_trusted=lambda name, digest: True)  # noqa: B023

            scan(cache)
            registry = read_registry(folders, cache=cache, is_trusted=lambda name, digest: True)
            assert len(registry.utilities) == number and not registry.problems
            tools = workspace / "tools"
            needs = Contract({}, {"properties": {"lines": {"type": "number"}}, "required": ["lines"]})
            cold, parsing = milliseconds(lambda: scan(None), 3), milliseconds(lambda: parse_all(tools), 3)  # noqa: B023
            warm, looking = milliseconds(lambda: scan(cache), 10), milliseconds(lambda: look(tools), 10)  # noqa: B023
            found = milliseconds(lambda: rank(registry, "text.count-1", needs), 10)  # noqa: B023
            print(
                f"{number:>5,} manifests, all read, checked and hashed: {cold:.1f} ms; PyYAML alone {parsing:.1f} ms"
            )
            print(f"{'':>5} nothing moved: {warm:.2f} ms; os.walk with a look at each file {looking:.2f} ms")
            print(
                f"{'':>5} one capability resolved by contract, {max(1, number // 50)} candidates: {found:.2f} ms"
            )
            beside, on_it = stall(lambda: scan(None), True), stall(lambda: scan(None), False)
            print(
                f"{'':>5} the loop stands still: {beside:.1f} ms; with the look on the loop {on_it:.1f} ms; "
                f"ratio {on_it / beside:.0f}"
            )
            print(
                f"ratio: read over PyYAML {cold / parsing:.1f}, nothing moved over the looks {warm / looking:.2f}"
            )


if __name__ == "__main__":
    main()
