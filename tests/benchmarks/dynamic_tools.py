"""Tools made at run time: a run from nothing, beside the bare interpreter that it needs, in the same sandbox."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from reyn_jupyter.config.settings import SandboxSettings
from reyn_jupyter.dynamic.tool_runner import run_tool
from reyn_jupyter.guard.sandbox import Confinement, Sandbox
from reyn_jupyter.guard.sandbox.bubblewrap import Bubblewrap
from reyn_jupyter.guard.sandbox.deno import Deno
from reyn_jupyter.guard.workspace import Workspace
from tests.benchmarks.sandbox import BARE, medians

PYTHON = "def execute(params):\n    return params['text'][::-1]\n"
TYPESCRIPT = "const execute = (params) => params.text.split('').reverse().join('');"
BARE_PYTHON = [*BARE[:-1], sys.executable, "-I", "-c", "pass"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        workspace, settings = Workspace(folder), SandboxSettings()

        def tool(mode: Literal["python", "typescript"], code: str) -> None:
            ran = runner.run(
                run_tool(code, {"text": "abc"}, mode=mode, name="t", settings=settings, workspace=workspace)
            )
            assert ran.value == "cba", ran.error

        work: dict[str, Callable[[], object]] = {}
        if Bubblewrap().problem() is None:
            work["bare bubblewrap, python -I -c pass"] = partial(subprocess.run, BARE_PYTHON, check=True)
            work["a Python tool, cold"] = partial(tool, "python", PYTHON)
        if Deno().problem() is None:
            script = Path(folder, "empty.ts")
            script.write_text("", encoding="ascii")
            place, deno = Confinement(Path(folder)), Sandbox(Deno())
            work["deno in its sandbox, an empty script"] = lambda: runner.run(deno.run([str(script)], place))
            work["a TypeScript tool, cold"] = partial(tool, "typescript", TYPESCRIPT)
        found = medians(work)
        for name, each in found.items():
            print(f"{name}: {each:.1f} ms")
        times = list(found.values())
        for at, name in (
            (0, "Python tool over bare python -I in bubblewrap"),
            (2, "TypeScript tool over an empty script"),
        ):
            if at + 1 < len(times):
                print(f"ratio: {name} {times[at + 1] / times[at]:.2f}")


if __name__ == "__main__":
    main()
