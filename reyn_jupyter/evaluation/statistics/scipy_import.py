"""Import scipy on first use.

Invariant: it is not imported before a function needs it, and where it is missing, the error names the line that
installs it. It is an extra of the package, and takes about a second to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def library(module: str) -> Any:
    """Return a module of scipy.

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
