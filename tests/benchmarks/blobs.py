"""Stored results: what a durable write, an index and a look into a gigabyte cost.

A durable 1 MB write is printed beside the bare work of the disk in the same run (write, fsync, rename, fsync of the
folder). Reading lines of a 1 GB text is measured in a process of its own, so that its memory is its own too.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
from reyn_jupyter.outputs.byte_source import FileSource
from reyn_jupyter.outputs.content import FileContent, Structured, Text
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.outputs.json_index import index_json
from reyn_jupyter.outputs.line_index import file_lines

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 15
INDEX_LIMIT = 300.0  # MB/s, at least
LINES_LIMIT = 50.0  # ms, and MB, at most
GIGABYTE = 1_000_000_000

_LOOK = """
import asyncio, resource, sys, time
import numpy  # the kernel has it as soon as pandas is used
from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
from reyn_jupyter.outputs.inspect import inspect

def used():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6

async def look():
    store = FsBlobStore(sys.argv[1])
    before = used()
    for selector in sys.argv[3:]:
        start = time.perf_counter()
        answer = await inspect(store, sys.argv[2], selector)
        spent = 1000 * (time.perf_counter() - start)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        print(f"{selector}\\t{spent:.2f}\\t{peak - before:.1f}\\t{len(answer)}")

asyncio.run(look())
"""


def _median(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median time of one call, in milliseconds."""
    spent = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return 1000 * statistics.median(spent)


def _raw_write(folder: Path, data: bytes) -> None:
    """What durability costs without us."""
    temporary = folder / "raw.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(descriptor, data)
    os.fsync(descriptor)
    os.close(descriptor)
    temporary.replace(folder / f"raw-{time.monotonic_ns()}")
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _writes(folder: Path) -> None:
    text = Text(("0123456789abcdef" * 4)[:-1].ljust(64, "\n") * 15_625)
    data = text.text.encode()
    store = FsBlobStore(folder / "writes")
    store.put(text)
    raw = _median(lambda: _raw_write(folder, data))
    ours = _median(lambda: store.put(text))
    print(f"durable 1 MB write         {ours:8.2f} ms   the disk itself {raw:.2f} ms ({ours / raw:.1f}×)")


def _deliveries(folder: Path) -> None:
    store = FsBlobStore(folder / "deliveries")
    small = {"status": "ok", "items": [1, 2, 3], "text": "x" * 200}

    async def many() -> None:
        for _ in range(1000):
            await deliver(small, store=store)

    spent = _median(lambda: asyncio.run(many()), 5)
    print(
        f"small result, inline       {1000 * spent / 1000:8.1f} µs   the loop's whole limit is 400 µs a turn"
    )


def _write_text(path: Path, size: int) -> None:
    block = b"".join(
        b"%09d a line of a long log, neither short nor long\n" % number for number in range(20_000)
    )
    with path.open("wb") as file:
        for _ in range(size // len(block) + 1):
            file.write(block)


def _write_json(path: Path, size: int) -> None:
    rows = [
        {"id": n, "name": f"row {n}", "tags": ["a", "b"], "quote": 'say "hi"', "x": n / 7}
        for n in range(5000)
    ]
    block = json.dumps(rows, separators=(",", ":")).encode()[1:-1]
    with path.open("wb") as file:
        file.write(b"[" + block)
        for _ in range(size // len(block)):
            file.write(b"," + block)
        file.write(b"]")


def _rate(path: Path, index: Callable[[FileSource], object]) -> float:
    source = FileSource(path)
    try:
        index(source)
        return source.size / 1000 / _median(lambda: index(source), 3)
    finally:
        source.close()


def _indexes(folder: Path) -> None:
    text, records = folder / "index.txt", folder / "index.json"
    _write_text(text, 200_000_000)
    _write_json(records, 200_000_000)
    for name, path, index in (("text", text, file_lines), ("JSON", records, index_json)):
        rate = _rate(path, index)
        limit = f"limit ≥ {INDEX_LIMIT:.0f} MB/s{_verdict(rate >= INDEX_LIMIT)}"
        print(f"index of 200 MB of {name}    {rate:8.0f} MB/s   {limit}")
        path.unlink()


def _looks(folder: Path) -> None:
    store = FsBlobStore(folder / "looks")
    store.put(Structured({}))
    for name, suffix, write, selectors in (
        ("text", "text", _write_text, ("lines:20-50", "lines:9000000-9000030")),
        ("JSON", "json", _write_json, ("slice:20..25", "slice:5000000..5000005")),
    ):
        path = folder / f"gigabyte.{suffix}"
        write(path, GIGABYTE)
        start = time.perf_counter()
        blob = store.put(FileContent(path, kind=suffix))
        spent = time.perf_counter() - start
        print(f"1 GB of {name} handed over     {spent:8.1f} s    moved, hashed and indexed in this time")
        done = subprocess.run(
            [sys.executable, "-c", _LOOK, str(store.folder), blob.id, *selectors],
            capture_output=True,
            text=True,
            check=True,
        )
        for line in done.stdout.splitlines():
            selector, milliseconds, megabytes, _ = line.split("\t")
            kept = float(milliseconds) <= LINES_LIMIT and float(megabytes) <= LINES_LIMIT
            print(
                f"  {selector:<24} {float(milliseconds):8.1f} ms   +{megabytes} MB   limit 50 ms, 50 MB{_verdict(kept)}"
            )
        store.gc(max_bytes=0)


def _verdict(kept: bool) -> str:
    return "" if kept else "   MISSED"


def main() -> None:
    """Print the figures; needs about 3 GB of disk for a minute."""
    with tempfile.TemporaryDirectory(prefix="reyn-blobs-") as name:
        folder = Path(name)
        _deliveries(folder)
        _writes(folder)
        _indexes(folder)
        _looks(folder)


if __name__ == "__main__":
    main()
