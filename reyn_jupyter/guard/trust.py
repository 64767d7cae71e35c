"""The workspace files that the person trusts, by the hash of their content.

Invariant: a file is trusted only with the very bytes that the person trusted, at the very place; any other
content, a copy elsewhere and a moved workspace are not. Damage to the record means no trust.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reyn_jupyter.config import PROJECT_FILE, ConfigError
from reyn_jupyter.config.yaml_document import read_bytes

if TYPE_CHECKING:
    from reyn_jupyter.guard.own_memories import MemoryOwnership
    from reyn_jupyter.guard.state_folder import StateFolder

FILE = "trust.json"
SERVERS_FILE = ".mcp.json"  # names MCP servers, for clients of all kinds
COUNTING = (PROJECT_FILE, SERVERS_FILE)  # files that count once they are trusted
UTILITIES, MANIFEST, RULES = (
    "tools",
    "tool.yaml",
    "rules.yaml",
)  # in `tools`, a folder each with a manifest; rules
WORKFLOWS, WORKFLOW_SUFFIX = "skills", ".yaml"


class Trust:
    """The trust in the files of one workspace.

    Given to `config.load` as it is, ``load(root, trusted=trust.is_trusted)``, the bytes that are judged are
    the bytes that are used; without bytes the file is read as it is now.
    """

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder

    def is_trusted(self, content: bytes | None = None, name: str = PROJECT_FILE) -> bool:
        """Return whether the person trusts a file with exactly this content; one that cannot be read is not trusted."""
        try:
            content = self._content(name) if content is None else content
        except ConfigError:
            return False
        return content is not None and self._hashes().get(name) == _sha256(content)

    def is_folder_trusted(self) -> bool:
        """Return whether the user trusts the workspace as a place of code: its settings or servers as they are now."""
        return self.is_trusted() or self.is_trusted(name=SERVERS_FILE)

    def waits(self, name: str = PROJECT_FILE) -> bool:
        """Return whether there is such a file and the person does not trust it."""
        try:
            (self._folder.root / name).lstat()
        except OSError:
            return False
        return not self.is_trusted(name=name)

    def awaiting(self) -> Iterator[str]:
        """Yield the names of all that the workspace brought, that would count, and that the person has not trusted.

        Of a utility, rules or a workflow that was trusted once, a change since does not count: people write these.
        """
        yield from filter(self.waits, COUNTING)
        yield from self.unseen()

    def unseen(self) -> Iterator[str]:
        """Yield the names of utilities, rules and workflows of which nothing was ever trusted here."""
        known = self._hashes()
        for folder, counts in _COUNTING_IN.items():
            for place in _entries(self._folder.root / folder):
                name = f"{folder}/{place.name}"
                if name not in known and counts(place):
                    yield name

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of the content that is trusted, by name; for those who ask about many in one go."""
        return self._hashes()

    def known(self, name: str = PROJECT_FILE) -> bool:
        """Return whether any content of this file was ever trusted here (a change since is worth a word)."""
        return name in self._hashes()

    def trust(self, content: bytes | None = None, name: str = PROJECT_FILE) -> str:
        """Trust a file with this content, for the person only.

        Returns:
            The content's hash.

        Raises:
            ConfigError: without `content`, when there is no such file or it cannot be read.
            StateError: the trust cannot be kept.
        """
        content = self._content(name) if content is None else content
        if content is None:
            raise ConfigError("is not there, so there is nothing to trust", source=name)
        digest = _sha256(content)
        self._folder.change(FILE, lambda value: _with(value, name, digest))
        return digest

    def retrust(self, before: bytes, after: bytes, name: str = PROJECT_FILE) -> bool:
        """Carry trust over the person's own change; return whether there was trust to carry. Raises StateError."""
        if not self.is_trusted(before, name):
            return False
        self.trust(after, name)
        return True

    def forget(self, name: str = PROJECT_FILE) -> bool:
        """Take trust back; return whether there was any. Raises StateError."""
        there = self.known(name)
        if there:
            self._folder.change(FILE, lambda value: _with(value, name, None))
        return there

    def _content(self, name: str) -> bytes | None:
        return read_bytes(self._folder.root / name, name)

    def _hashes(self) -> dict[str, str]:
        try:
            return _hashes(self._folder.read(FILE))
        except ValueError:
            return {}


class WorkspaceTrust:
    """The trust in a workspace, for those who may only ask."""

    def __init__(self, trust: Trust, memories: MemoryOwnership) -> None:
        self._trust = trust
        self.memories = memories

    @property
    def is_trusted(self) -> bool:
        """True if the workspace's ``reyn.yaml`` is trusted as it is now."""
        return self._trust.is_trusted()

    @property
    def awaits_trust(self) -> bool:
        """True if the workspace brought a file that would count, and that the person has not trusted."""
        return next(self._trust.awaiting(), None) is not None

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of everything that the person trusts in the workspace, by its name."""
        return self._trust.hashes()

    def keep(self, content: bytes, name: str) -> None:
        """Trust what the person's own call has just made. Raises StateError: the trust cannot be kept."""
        self._trust.trust(content, name)


def _is_utility(place: os.DirEntry[str]) -> bool:
    """Return whether an entry of `tools` is a utility, or the rules for plans."""
    if place.name.startswith("."):
        return False
    return place.name == RULES or os.path.lexists(os.path.join(place.path, MANIFEST))  # noqa: PTH118 - of a thousand


def _is_workflow(place: os.DirEntry[str]) -> bool:
    return place.name.endswith(WORKFLOW_SUFFIX)


# Folders whose entries count once they are trusted, and which of them do.
_COUNTING_IN: Mapping[str, Callable[[os.DirEntry[str]], bool]] = {
    UTILITIES: _is_utility,
    WORKFLOWS: _is_workflow,
}


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _hashes(value: Any) -> dict[str, str]:
    files = value.get("files") if isinstance(value, dict) else None
    if not isinstance(files, dict):
        return {}
    return {
        name: entry["sha256"]
        for name, entry in files.items()
        if isinstance(entry, dict) and isinstance(entry.get("sha256"), str)
    }


def _with(value: Any, name: str, digest: str | None) -> dict[str, Any]:
    hashes = _hashes(value)
    files = {other: {"sha256": known} for other, known in hashes.items() if other != name}
    if digest is not None:
        files[name] = {"sha256": digest, "at": str(int(time.time()))}
    return {"version": 1, "files": files}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
