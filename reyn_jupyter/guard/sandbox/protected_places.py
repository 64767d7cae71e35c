"""What lies where no action may write: ``.git``, names of secret files.

Invariant: what is there stays as it is, whatever a command does; what it makes there is not taken over (see
`private_copies`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from reyn_jupyter.guard.workspace import protects


@lru_cache(maxsize=8192)  # a command asks about each file of its folders several times
def is_protected(place: str) -> bool:
    """Return whether no action may write at a place, from the root on."""
    return protects(tuple(place.split("/")[-3:]), for_write=True) is not None


def protected_places(root: Path) -> Iterator[str]:
    """Yield the protected places below a folder, through no link, and nothing below them."""
    pending = ["."]
    while pending:
        current = pending.pop()
        with suppress(OSError), os.scandir(root / current) as entries:
            for entry in list(entries):
                place = entry.name if current == "." else f"{current}/{entry.name}"
                if is_protected(place):
                    yield place
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(place)
