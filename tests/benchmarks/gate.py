"""The guard's cost: a call through the gate, a file read and a search with secrets masked at their source.

Each figure is the CPU time of the whole process. A call is one of fifty that a scripted model asks for in one
completion, so that the loop's own share is small; the run log is written, as in a session of people.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel, call

CALLS = 50
ROUNDS = 12
RULES = [f"file__*(area{number}/**)" for number in range(10)]
KEY = "AKIA" + "ABCDEFGHIJKLMNOP"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lay_out(root)
        names = {f"note{number}": f"{number:>2000}" for number in range(CALLS)}

        @reyn.action(purity="read")
        def length(text: str) -> int:
            return len(text)

        print("a call (file__read, 20 bytes)                   µs CPU")
        for label, config in (("no rules", {}), ("ten deny rules", {"permissions": {"deny": RULES}})):
            took = per_call(root, config, lambda at: ("file__read", {"path": f"small/{at}.txt"}))
            print(f"  {label:<46}{took:>8.0f}")
        for label, given in (
            ("data", lambda at: f"{at:>2000}"),
            ("$var", lambda at: {"$var": f"note{at}"}),
        ):
            took = per_call(
                root, {}, lambda at, given=given: ("function__length", {"text": given(at)}), namespace=names
            )
            print(f"  function, 2,000 characters as {label:<16}{took:>8.0f}")
        print("files                                           ms CPU")
        for name in ("plain.txt", "keys.txt"):
            whole = per_call(root, {}, lambda _, name=name: ("file__read", {"path": name}), calls=1) / 1000
            part = (
                per_call(
                    root,
                    {},
                    lambda _, name=name: ("file__read", {"path": name, "offset": 90_000, "limit": 20}),
                    calls=1,
                )
                / 1000
            )
            print(f"  read 10 MB, {name:<16} whole {whole:>8.1f}    20 lines near its end {part:>8.1f}")
        for label, pattern in (("nothing found", "nowhere to be seen"), ("100 lines found", "common word")):
            took = per_call(
                root, {}, lambda _, p=pattern: ("file__grep", {"pattern": p, "path": "many"}), calls=1
            )
            print(f"  grep over 1,000 files, {label:<18}{took / 1000:>8.1f}")


def lay_out(root: Path) -> None:
    (root / "small").mkdir()
    for number in range(CALLS):
        (root / "small" / f"{number}.txt").write_text(f"file number {number:>8}")
    line = "an ordinary line of a log, of about one hundred characters, which holds no secret whatsoever: 12345\n"
    (root / "plain.txt").write_text(line * 100_000)
    (root / "keys.txt").write_text((line * 999 + f"key {KEY}\n") * 100)
    (root / "many").mkdir()
    for number in range(1000):
        (root / "many" / f"{number}.txt").write_text(
            line * 40 + "a common word\n" + f"key {KEY}\n" * (number % 2)
        )


def per_call(
    root: Path,
    config: dict[str, Any],
    make: Callable[[int], tuple[str, dict[str, Any]]],
    calls: int = CALLS,
    namespace: dict[str, Any] | None = None,
) -> float:
    """The median CPU time of a call in µs, less what a completion without calls takes."""
    asked = [call("invoke_action", action_name=name, args=args) for name, args in map(make, range(calls))]
    steps = [step for _ in range(ROUNDS) for step in (asked, "done")]
    model = ScriptedModel(*steps, otherwise="done")
    settings = {"router": {"discovery": "prompt"}, "variables": "head", **config}
    session = reyn.Session(root, model=model, store="memory", config=settings, namespace=namespace or {})
    session.build_embeddings()
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        session.ask("go", new=True)
        times.append(time.process_time() - began)
    return median(times[2:]) / calls * 1e6


if __name__ == "__main__":
    main()
