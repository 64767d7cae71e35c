"""What a tool is granted beside its sandbox: hosts, files and folders of the workspace, and operations.

Invariants: each permission has one spelling, so that the definition, the question to the person and the run speak of
the same one. What is read here is only a wish until a person consents to it. A path that no action may touch is
refused when it is read, and again, links followed, when the tool runs.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from reyn_jupyter.catalog.effects import Effect, EffectKind
from reyn_jupyter.dynamic.tool_error import DynamicToolError
from reyn_jupyter.guard.workspace import Workspace, WorkspaceError, protects
from reyn_jupyter.support.network.hosts import HostError, read_host
from reyn_jupyter.support.text import enumerate_words, meant_clause

OPERATIONS: Mapping[str, str] = MappingProxyType(
    {
        "delete_files": "delete files",
        "processes": "start processes",
        "dynamic_code": "run code that it makes itself",
        "native_code": "call native code",
        "deserialization": "load objects from pickled or marshalled bytes",
    }
)
MOST = 20
_FORMS = (
    'Forms: "network:api.example.org" or "network:localhost:8080", "read:<path>", "write:<folder>", '
    f"and allow: with one of {enumerate_words(list(OPERATIONS))}."
)
_KINDS = ("network", "read", "write", "allow")


@dataclass(frozen=True)
class ToolPermissions:
    """What a tool may do beside computing.

    Args:
        hosts: what it may reach over HTTP and HTTPS, as `support.network.hosts.read_host` spells them.
        readable: files and folders of the workspace that it may read, from the root on (".": all of it).
        writable: folders of the workspace that it may change and read.
        operations: critical operations of its code that the person admits, names of `OPERATIONS`. They lift the word
            of the analysis; the sandbox holds as before.

    Example:
        >>> read_permissions(["network:API.example.org", "write:out/"]).spelled
        ('network:api.example.org', 'write:out')
    """

    hosts: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()

    @property
    def spelled(self) -> tuple[str, ...]:
        """Each permission in its one spelling, as a definition keeps it."""
        kinds = (self.hosts, self.readable, self.writable, self.operations)
        return tuple(
            f"{kind}:{target}" for kind, targets in zip(_KINDS, kinds, strict=True) for target in targets
        )

    @property
    def granted(self) -> tuple[str, ...]:
        """What the analysis of code takes as admitted: operations by their names, the others as they are spelled."""
        return tuple(each.removeprefix("allow:") for each in self.spelled)

    @property
    def is_critical(self) -> bool:
        """True if an operation is among them that only the person may admit, at creation."""
        return bool(self.operations)

    def effects(self) -> Sequence[Effect]:
        """Return what a run does to the world, for the question to the person."""
        return (
            *(Effect(EffectKind.READ, place) for place in self.readable),
            *(Effect(EffectKind.WRITE, place) for place in self.writable),
            *(Effect.network(host) for host in self.hosts),
        )

    def places(self, workspace: Workspace) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Return the paths that a run may read and those that it may change, links followed.

        Raises:
            DynamicToolError: E403 for one that is protected, outside of the workspace, or not there.
        """
        readable = tuple(_place(workspace, each, "read") for each in self.readable)
        return readable, tuple(_place(workspace, each, "write") for each in self.writable)


def read_permissions(given: Sequence[str]) -> ToolPermissions:
    """Return the permissions that a list of texts asks for, each in its one spelling, doubles left out.

    Args:
        given: ``network:HOST[:PORT]``, ``read:PATH``, ``write:FOLDER`` or ``allow:OPERATION``; paths from the
            workspace's root on.

    Raises:
        DynamicToolError: E403 for a text that is none of these, for more than 20, and for a path that no action may
            touch.

    Example:
        >>> read_permissions(["read:data/", "allow:processes"]).is_critical
        True
    """
    if len(given) > MOST:
        raise _refused(f"{len(given)} permissions are more than {MOST}", "Name folders in place of files.")
    found: dict[str, dict[str, None]] = {kind: {} for kind in _KINDS}
    for text in given:
        kind, target = _read(text)
        found[kind][target] = None
    return ToolPermissions(*(tuple(found[kind]) for kind in _KINDS))


def _read(text: object) -> tuple[str, str]:
    if not isinstance(text, str):
        raise _refused(f"a permission is text, and {type(text).__name__} was given", _FORMS)
    kind, colon, target = (part.strip() for part in text.partition(":"))
    shown = ascii(text[:80])
    if not colon or kind not in _KINDS:
        meant = meant_clause(kind, _KINDS) if colon else ""
        raise _refused(f"{shown} is no permission{meant}", _FORMS)
    if not target:
        raise _refused(f"{shown} does not say what for", _FORMS)
    if kind == "network":
        try:
            return kind, str(read_host(target))
        except HostError as error:
            raise _refused(str(error).rstrip("."), _FORMS) from None
    if kind == "allow":
        if target not in OPERATIONS:
            raise _refused(f"{shown} names no operation{meant_clause(target, OPERATIONS)}", _FORMS)
        return kind, target
    return kind, _path(target, kind, shown)


def _path(target: str, kind: str, shown: str) -> str:
    """Return a path from the workspace's root on, in its shortest form."""
    plain = target.replace("\\", "/")
    parts = plain.split("/")
    if plain.startswith(("/", "~")) or ".." in parts or "\0" in plain:
        raise _refused(f"{shown} is no path below the workspace", 'Name it from the root on: "read:<path>".')
    path = posixpath.normpath(plain)
    if (why := protects(path.split("/"), for_write=kind == "write")) is not None:
        raise _refused(f"{shown} is protected: {why}", "Name another file or folder of the workspace.")
    return path


def _place(workspace: Workspace, path: str, kind: str) -> Path:
    try:
        place = workspace.place(path)
    except WorkspaceError as error:
        raise _refused(str(error), "Make the tool anew, with another permission.") from None
    parts = place.split("/")
    if kind == "write" and (why := protects(parts, for_write=True)) is not None:
        raise _refused(f"{path!r} is protected: {why}", "Make the tool anew, with another folder.")
    found = workspace.root / place
    if kind == "write" and not found.is_dir():
        raise _refused(f"the tool may write in {path!r}, and there is no such folder", "Make the folder.")
    if not found.exists():
        raise _refused(f"the tool may read {path!r}, which is not there", "Make the file or folder.")
    return found


def _refused(message: str, hint: str) -> DynamicToolError:
    return DynamicToolError(f"{message[:1].upper()}{message[1:]}.", hint, "E403")
