"""The memories of a workspace that are the person's own: written here, or trusted, by the hash of their files.

Invariant: a memory is the person's own only with the very bytes that a session of theirs wrote here, or that they
trusted, at this very place. What came with a folder, or was changed by anything else, waits for their trust.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from reyn_jupyter.guard.state_folder import LARGEST

if TYPE_CHECKING:
    from reyn_jupyter.guard.state_folder import StateFolder

FILE = "memories.json"
_DIGITS = 32  # of a hash, in hex
MOST = LARGEST // (_DIGITS + 8)  # hashes that the file has room for; the oldest go


def memory_digest(content: bytes) -> str:
    """Return the hash by which a memory's file is known."""
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


class MemoryOwnership(Protocol):
    """Says which memories are the person's own."""

    @property
    def stamp(self) -> Hashable:
        """Return a value that moves whenever more are."""

    def holds(self, digest: str) -> bool:
        """Return whether a file with this hash is."""

    def add(self, digests: Iterable[str]) -> None:
        """Take files with these hashes as the person's own. Raises StateError."""


class EveryMemory:
    """Takes every memory as the person's own: a trial has a workspace that its study made."""

    @property
    def stamp(self) -> Hashable:
        return None

    def holds(self, digest: str) -> bool:
        return True

    def add(self, digests: Iterable[str]) -> None:
        return None


class OwnMemories:
    """The memories of one workspace that are the person's own.

    Args:
        folder: the state of this workspace, which lies outside it.
    """

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder
        self._seen: tuple[object, frozenset[str]] = (None, frozenset())

    @property
    def stamp(self) -> Hashable:
        """See `MemoryOwnership.stamp`."""
        return self._folder.stamp(FILE)

    def holds(self, digest: str) -> bool:
        """See `MemoryOwnership.holds`; damage to the record means no."""
        stamp = self._folder.stamp(FILE)
        if stamp is None or stamp != self._seen[0]:
            try:
                found = frozenset(_digests(self._folder.read(FILE)))
            except ValueError:
                found = frozenset()
            self._seen = (stamp, found)
        return digest in self._seen[1]

    def add(self, digests: Iterable[str]) -> None:
        """See `MemoryOwnership.add`."""
        new = list(dict.fromkeys(digests))

        def change(value: Any) -> dict[str, Any]:
            kept = [each for each in _digests(value) if each not in set(new)]
            return {"version": 1, "memories": [*kept, *new][-MOST:]}

        self._folder.change(FILE, change)


def _digests(value: Any) -> list[str]:
    found = value.get("memories") if isinstance(value, dict) else None
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
