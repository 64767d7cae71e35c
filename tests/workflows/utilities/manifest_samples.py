"""Manifests that tests write into folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from reyn_jupyter.workflows.utilities.registry import UtilityRegistry, read_registry, utility_folders

SOUND: dict[str, Any] = {
    "name": "line-count",
    "version": "1.0.0",
    "description": "Counts the lines of a file.",
    "capabilities": ["text.count"],
    "entrypoint": {"type": "python", "command": "main.py"},
    "input_schema": {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]},
    "output_schema": {"type": "object", "properties": {"lines": {"type": "integer"}}, "required": ["lines"]},
}


def put(workspace: Path, folder: str = "line-count", text: str | None = None, **values: Any) -> Path:
    """Write a utility into a workspace and return its folder; a value of None leaves its key out."""
    place = workspace / "tools" / folder
    place.mkdir(parents=True, exist_ok=True)
    manifest = {key: value for key, value in {**SOUND, **values}.items() if value is not None}
    (place / "tool.yaml").write_text(text if text is not None else yaml.safe_dump(manifest, sort_keys=False))
    (place / "main.py").write_text("print('{\"lines\": 1}')\n")
    return place


def registry_of(
    workspace: Path, *configured: str, trusted: bool = True, shipped: bool = False
) -> UtilityRegistry:
    """Read the utilities of a workspace and of configured folders; the package's own are left out unless asked for."""
    folders = [each for each in utility_folders(workspace, configured) if shipped or each.origin != "package"]
    return read_registry(folders, is_trusted=lambda name, digest: trusted)
