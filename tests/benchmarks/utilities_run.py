"""A step by a utility: what the protocol and the sandbox add to a bare subprocess that speaks the same JSON."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from reyn_jupyter.config.settings import SandboxSettings
from reyn_jupyter.guard.sandbox import Confinement, rungs
from reyn_jupyter.guard.sandbox.ladder import find_sandbox
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.workflows.utilities.manifest import Entrypoint, Manifest, Utility
from reyn_jupyter.workflows.utilities.program import command_of
from reyn_jupyter.workflows.utilities.protocol import run_utility

TIMES = 40
PROGRAM = "import json, sys\njson.dump({'text': json.load(sys.stdin)['text'][::-1]}, sys.stdout)\n"
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
GIVEN = {"text": "a short text"}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        root = Path(folder).resolve()
        place = root / "tools" / "reverse"
        place.mkdir(parents=True)
        (place / "main.py").write_text(PROGRAM)
        manifest = Manifest(
            "reverse",
            "1.0.0",
            "Turns a text around.",
            ("text.reverse",),
            Entrypoint("python", "main.py"),
            SCHEMA,
            SCHEMA,
        )
        utility = Utility(manifest, place, "workspace", "", True)
        argv, data = command_of(utility), json.dumps(GIVEN).encode()

        def bare() -> None:
            subprocess.run(argv, input=data, stdout=subprocess.PIPE, check=True)

        def sandboxed(backend: str) -> None:
            sandbox = find_sandbox("program", backend)
            runner.run(sandbox.run(argv, Confinement(place, (place,)), stdin=data))

        def step(backend: str) -> None:
            found = runner.run(
                run_utility(
                    utility,
                    GIVEN,
                    run_folder=root / "state" / "runs" / "1" / "a",
                    workspace=Workspace(root),
                    settings=SandboxSettings(backend=backend),
                    timeout_seconds=60,
                )
            )
            assert found.output == {"text": "txet trohs a"}

        work: dict[str, Callable[[], None]] = {"a bare subprocess": bare}
        for each in rungs():
            if each.language == "program" and each.problem is None:
                work[f"the sandbox alone, {each.backend}"] = lambda name=each.backend: sandboxed(name)  # type: ignore[misc]
                work[f"a step by the utility, {each.backend}"] = lambda name=each.backend: step(name)  # type: ignore[misc]
        taken: dict[str, list[float]] = {name: [] for name in work}
        for turn in range(TIMES + 1):
            for name, do in work.items():
                began = time.perf_counter()
                do()
                if turn:
                    taken[name].append(1000 * (time.perf_counter() - began))
        base = statistics.median(taken["a bare subprocess"])
        print(f"{sys.implementation.name} program, {TIMES} times in turns, median:")
        for name, times in taken.items():
            median = statistics.median(times)
            print(f"  {name:40} {median:7.1f} ms  {median / base:5.2f} x  {median - base:+6.1f} ms")


if __name__ == "__main__":
    main()
