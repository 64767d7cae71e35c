"""The versions that a run's provenance and `%reyn doctor` name; read without importing what they are of."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def version_of(package: str) -> str | None:
    """Return the installed version of a distribution, or None when it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def versions() -> dict[str, str]:
    """Return the versions that a run file records."""
    return {"reyn-jupyter": version_of("reyn-jupyter") or "source", "python": platform.python_version()}
