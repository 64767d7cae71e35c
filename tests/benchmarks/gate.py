"""The guard's cost: a call through the gate, a file read and a search with secrets masked at their source.

Each figure is the CPU time of the whole process. A call is one of fifty that a scripted model asks for in one
completion, so that the loop's own share is small; the run log is written, as in a session of people. Beside a call
stands its handler alone, called without the gate in the same run, and what the rules take of the difference.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Purity
from reyn_jupyter.catalog.effects import Effect
from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.call.call_plan import closing_plan, make_plan
from reyn_jupyter.support.programs.child_process import ChildProcesses
from tests.benchmarks import sql
from tests.benchmarks.frames import table
from tests.support.plain_context import PlainContext

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
            print(f"    of it the verdict of the rules{verdict(root, config):>24.0f}")
        print(f"  its handler alone, without a gate{ungated(root):>21.0f}")
        for label, given in (
            ("data", lambda at: f"{at:>2000}"),
            ("$var", lambda at: {"$var": f"note{at}"}),
        ):
            took = per_call(
                root, {}, lambda at, given=given: ("function__length", {"text": given(at)}), namespace=names
            )
            print(f"  function, 2,000 characters as {label:<16}{took:>8.0f}")
        print(f"a turn of one such call, all of it{turn(root):>22.0f}")
        with ChildProcesses() as children:
            there, here = sql.hop(children, table().head(1000))
            print(
                f"a count over 1,000 × 10 in SQL's own process    {there:.1f} ms, in this one {here:.1f} ms"
            )
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


def ungated(root: Path) -> float:
    """The median CPU time in µs of what a call comes down to: the plan and the handler of `file__read`."""
    session = reyn.Session(root, store="memory", namespace={})
    services = session.parts.services
    tool = asyncio.run(session.parts.catalog.refresh()).tools["read_file"]

    name = ActionName.parse("file__read")

    async def read_all() -> None:
        for number in range(CALLS):
            args = {"path": f"small/{number}.txt"}
            context = PlainContext(services, name)
            with closing_plan(await make_plan(tool, args, context)) as context.plan:
                await tool.handler(args, context)

    return _median(lambda: asyncio.run(read_all())) / CALLS


def verdict(root: Path, config: dict[str, Any]) -> float:
    """The median CPU time in µs that the rules take to judge one `file__read`."""
    session = reyn.Session(root, store="memory", config=config, namespace={})
    policy, effects = session.parts.policy, (Effect("read", "small/7.txt"),)

    def judge() -> None:
        for _ in range(1000):
            policy.decide("file__read", Purity.READ, effects, "model")

    return _median(judge) / 1000


def turn(root: Path) -> float:
    """The median CPU time in µs of a turn with one call and a scripted model."""
    steps = [
        step
        for _ in range(20 * ROUNDS)
        for step in (call("invoke_action", action_name="file__read", args={"path": "small/1.txt"}), "done")
    ]
    session = reyn.Session(root, model=ScriptedModel(*steps, otherwise="done"), store="memory", namespace={})

    def ask() -> None:
        for _ in range(20):
            session.ask("go", new=True)

    return _median(ask) / 20


def _median(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return median(times[2:]) * 1e6


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
