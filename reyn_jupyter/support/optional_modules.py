"""Know whether a module of an extra can be imported, without importing it.

Invariants: what was found stays found while the process lives, so that asking before every call costs nothing; what was
absent is looked for again after `ABSENT_SECONDS`, so that an installation in a running kernel is noticed.
"""

from __future__ import annotations

from importlib.util import find_spec
from time import monotonic

ABSENT_SECONDS = 1.0

_looked_for: dict[str, tuple[bool, float]] = {}  # module → whether it is there, and when it was looked for


def is_importable(module: str) -> bool:
    """Return whether a module can be imported.

    Args:
        module: the name of a top-level module.

    Example:
        >>> is_importable("json"), is_importable("there_is_no_such_module")
        (True, False)
    """
    found, at = _looked_for.get(module, (False, 0.0))
    now = monotonic()
    if not found and (not at or now >= at + ABSENT_SECONDS):
        found = find_spec(module) is not None
        _looked_for[module] = found, now
    return found
