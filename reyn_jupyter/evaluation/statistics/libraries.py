"""Where scipy and statsmodels come in.

Invariant: neither is imported before a function needs it, and a missing one is named together with the line that
installs it. Both are an extra of the package, and take about a second each to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def library(module: str) -> Any:
    """A module of scipy or statsmodels.

    Args:
        module: its dotted name, such as ``"scipy.special"``.

    Returns:
        The module.

    Raises:
        ImportError: it is not installed; the message carries the line that installs it.

    Example:
        >>> float(library("scipy.special").ndtri(0.5))
        0.0
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(
            f"{name} is not installed, and the statistics of trials need it ({module}). "
            "Run: pip install 'reyn-jupyter[eval]'"
        ) from error
