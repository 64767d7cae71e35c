"""Utilities that tests write into a folder, and runs of them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reyn_jupyter.config.settings import SandboxSettings
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.workflows.utilities.manifest import (
    Dependency,
    Entrypoint,
    EntrypointType,
    Manifest,
    Utility,
    read_manifest,
)
from reyn_jupyter.workflows.utilities.protocol import OnStderr, UtilityRun, run_utility
from reyn_jupyter.workflows.utilities.registry import SHIPPED

ANY = {"type": "object"}
ECHO = "import json, sys\nprint(json.dumps(json.load(sys.stdin)))\n"


def write_utility(
    root: Path,
    program: str,
    *,
    input_schema: Mapping[str, Any] = ANY,
    output_schema: Mapping[str, Any] = ANY,
    dependencies: Sequence[tuple[str, str]] = (),
    kind: EntrypointType = "python",
    command: str = "main",
    args: Sequence[str] = (),
    trusted: bool = True,
) -> Utility:
    """Write the program of a utility into ``tools/sample`` and return it."""
    folder = root / "tools" / "sample"
    folder.mkdir(parents=True, exist_ok=True)
    if program:
        (folder / command).write_text(textwrap.dedent(program))
    manifest = Manifest(
        "sample", "1.0.0", "A sample for tests.", ("sample.run",), Entrypoint(kind, command, tuple(args)),
        input_schema, output_schema, tuple(Dependency(*each) for each in dependencies),  # type: ignore[arg-type]
    )  # fmt: skip
    return Utility(manifest, folder, "workspace", "0" * 64, trusted)


async def run(
    utility: Utility,
    root: Path,
    inputs: Mapping[str, Any] | None = None,
    *,
    backend: str = "auto",
    seconds: float = 30,
    on_stderr: OnStderr | None = None,
    secrets: Mapping[str, Secret] | None = None,
    step: str = "step-1",
) -> UtilityRun:
    """Run a utility as a step of the first run of a workspace."""
    return await run_utility(
        utility, inputs or {}, run_folder=Path(root).resolve() / "state" / "runs" / "1" / step,
        workspace=Workspace(root, off_limits=()), settings=SandboxSettings(backend=backend),
        timeout_seconds=seconds, on_stderr=on_stderr, secrets=secrets,
    )  # fmt: skip


def shipped(
    name: str, *, dependencies: Sequence[tuple[str, str]] | None = None, args: Sequence[str] = ()
) -> Utility:
    """Return a utility of the package.

    Args:
        name: of its folder.
        dependencies: in place of those of its manifest.
        args: in place of those of its manifest, where there are any.
    """
    manifest = read_manifest(SHIPPED / name / "tool.yaml")
    if dependencies is not None:
        needed = tuple(Dependency(*each) for each in dependencies)  # type: ignore[arg-type]
        manifest = replace(manifest, dependencies=needed)
    if args:
        manifest = replace(manifest, entrypoint=replace(manifest.entrypoint, args=tuple(args)))
    return Utility(manifest, SHIPPED / name, "package", "0" * 64, True)
