"""All operations, gathered from the files of this room. Adding one is adding it to a file's ``OPERATIONS``."""

from __future__ import annotations

import importlib
from functools import cache

from reyn_jupyter.notebook.serving.operation import ServedOperation

FILES = ("approvals", "catalog", "blobs", "frames", "trees", "lines", "runs", "modules")


@cache
def operations() -> dict[str, ServedOperation]:
    """The operations by name."""
    found: dict[str, ServedOperation] = {}
    for file in FILES:
        module = importlib.import_module(f"reyn_jupyter.notebook.serving.{file}")
        for operation in module.OPERATIONS:
            if operation.name in found:
                raise ValueError(f"two operations are named {operation.name}")
            found[operation.name] = operation
    return found
