"""A JSON document of 100 MB as a tree, beside `json.loads` of the same file in the same run.

Each side runs in a process of its own, so that its memory is its own too. Cold is a kernel that has never seen the
blob and has no index on disk.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SIZE = 100_000_000
COLD_LIMIT, NEXT_LIMIT = 4000.0, 100.0  # ms
SLOW = ("cold", "nowhere", "its lines")  # what may take as long as a cold start: it reads all of the document
MEMORY_LIMIT = 8.0  # times the file

_MEASURED = """
import resource, sys, time
import numpy  # the kernel has it as soon as pandas is used

def used():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6

def timed(name, work):
    start = time.perf_counter()
    value = work()
    print(f"{name}\\t{1000 * (time.perf_counter() - start):.1f}", flush=True)
    return value
"""

_TREE = (
    _MEASURED
    + """
from queue import SimpleQueue
from reyn_jupyter import Session
from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import Hub

session = Session(sys.argv[1])
answers = SimpleQueue()
connection = Connection(Hub(lambda: session), answers.put, None)
told = 0

def ask(op, **args):
    global told
    connection.receive({"type": "request", "id": 1, "op": op, "args": {"blob": sys.argv[2], **args}})
    while (answer := answers.get())["type"] == "progress":
        told += 1
    if answer["type"] == "error":
        raise SystemExit(answer["message"])
    return answer["value"]

connection.receive({"type": "request", "id": 0, "op": "hello", "args": {"protocol": 1, "host": "widget"}})
answers.get()
ask("blob.open")
before = used()
page = timed("first children, cold", lambda: ask("tree.children"))
place = page["children"][0]["place"]
inner = timed("children of the first, cold", lambda: ask("tree.children", place=place))
print(f"told\\t{told}")
last = max(0, inner["total"] - 200)
timed("the last 200 of them", lambda: ask("tree.children", place=place, offset=last, limit=200))
timed("first children again", lambda: ask("tree.children"))
timed("a value by its path", lambda: ask("tree.way", path=["rows", "250000", "name"]))
timed("a text that is nowhere", lambda: ask("tree.find", text="nowhere to be found"))
timed("the same in its lines", lambda: ask("lines.find", text="nowhere to be found"))
timed("500 lines", lambda: ask("lines.window", count=500))
print(f"peak\\t{peak() - before:.1f}")
connection.close()
print(f"left\\t{used() - before:.1f}")
"""
)

_LOADS = (
    _MEASURED
    + """
import json
before = used()
with open(sys.argv[1], "rb") as file:
    value = timed("json.loads", lambda: json.loads(file.read()))
print(f"peak\\t{peak() - before:.1f}")
"""
)


def _write(path: Path, size: int) -> None:
    """One object, as an API gives it: a few facts, and one very long list of records."""
    rows = [
        {"id": n, "name": f"row {n}", "tags": ["a", "b"], "quote": 'say "hi"', "x": n / 7}
        for n in range(5000)
    ]
    block = json.dumps(rows, separators=(",", ":"))[1:-1]
    with path.open("w") as file:
        file.write('{"rows":[' + block)
        for _ in range(size // len(block)):
            file.write("," + block)
        file.write('],"status":"ok","next":null}')


def _figures(code: str, *arguments: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    pairs = (line.split("\t") for line in done.stdout.splitlines())
    return {name: float(value) for name, value in pairs}


def _verdict(kept: bool) -> str:
    return "" if kept else "   MISSED"


def main() -> None:
    """Print the figures; needs about 200 MB of disk for a minute."""
    from reyn_jupyter import Session
    from reyn_jupyter.outputs.content import FileContent

    with tempfile.TemporaryDirectory(prefix="reyn-trees-") as name:
        folder = Path(name)
        handed = folder / "document.json"
        _write(handed, SIZE)
        store = Session(folder).parts.services.blobs
        info = store.put(FileContent(handed, kind="json"))  # type: ignore[union-attr]
        file = store.path(info.id)  # type: ignore[union-attr]
        size = file.stat().st_size / 1e6
        loads = _figures(_LOADS, str(file))
        for index in file.parent.glob("*.idx"):
            index.unlink()
        ours = _figures(_TREE, str(folder), info.id)
        print(f"JSON of {size:.0f} MB as a tree")
        print(f"  json.loads of the same       {loads['json.loads']:8.1f} ms   +{loads['peak']:.0f} MB")
        for title, spent in ours.items():
            if title in ("peak", "left", "told"):
                continue
            limit = COLD_LIMIT if title.endswith(SLOW) else NEXT_LIMIT
            print(f"  {title:<28} {spent:8.1f} ms   limit {limit:.0f} ms{_verdict(spent <= limit)}")
        print(f"  told how far it is {ours['told']:.0f} times")
        kept = ours["peak"] <= MEMORY_LIMIT * size
        print(
            f"  memory at most: +{ours['peak']:.0f} MB, limit {MEMORY_LIMIT:.0f} × the file{_verdict(kept)}"
        )
        print(f"  memory when the view is closed: +{ours['left']:.0f} MB")


if __name__ == "__main__":
    main()
