"""The versions that a view and `%reyn doctor` name."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


@cache
def version() -> str:
    """This package's version."""
    return installed("reyn-jupyter")


@cache
def versions() -> dict[str, str]:
    """The versions of what takes part on the kernel's side."""
    found = {"python": platform.python_version(), "reyn-jupyter": version()}
    for name in ("ipykernel", "ipywidgets", "anywidget", "pandas"):
        try:
            found[name] = installed(name)
        except PackageNotFoundError:
            continue
    return found
