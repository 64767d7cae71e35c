"""What was done with tools made at run time: one JSON line an action, kept beside the tools.

Invariants: a line goes out whole, after the last whole one, under a lock between processes, so that a kill or a full
disk tears no line of another's; no secret and nothing large is in a line; a line that is none is counted and stops no
reader; a full file is archived, never discarded; a log that cannot be written says so and stops nothing.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uuid_utils

from reyn_jupyter.dynamic.definition import DynamicTool
from reyn_jupyter.support.encoding import clean
from reyn_jupyter.support.files.locks import release, wait_for_lock
from reyn_jupyter.support.files.plain_files import PlainFolder, parse_json
from reyn_jupyter.support.secret_names import secret_name
from reyn_jupyter.support.secrets import Redactor
from reyn_jupyter.support.text import shorten

FILE = "tool_audit.jsonl"  # in the state of a workspace
LARGEST = 1 << 20  # bytes of the file, from which on it is archived
LONGEST_LINE = 8 << 10  # bytes
LONGEST_TEXT = 500  # characters of one text in it
LONGEST_WAIT = 30.0  # seconds for the lock
_MOST_ITEMS = 20  # of a list or object in it
_DEEPEST = 5
_LOOKED_AT = (
    16 * LONGEST_TEXT
)  # characters of a text that are looked through for secrets: no secret is as long
_LARGEST_READ = 8 << 20  # bytes of the end of a file
_OWN = ("id", "at", "action", "actor", "tool", "tool_id", "success", "error")


@dataclass(frozen=True)
class AuditEntry:
    """One action.

    Attributes:
        id: of the entry.
        at: when, in ISO 8601, UTC.
        action: what was done: "tool.create", "tool.run", "tool.delete", "verification.pass" and the like.
        actor: who did it.
        tool, tool_id: the tool's name and id; None where it has none yet.
        success: whether it went well. `error`: why not.
        details: what else was written of it.
    """

    id: str
    at: str
    action: str
    actor: str
    tool: str | None
    tool_id: str | None
    success: bool
    error: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AuditTrail:
    """What was read of a log: entries, oldest first, and how many lines that were looked at are none."""

    entries: tuple[AuditEntry, ...] = ()
    skipped: int = 0


class AuditLog:
    """The log of one workspace's tools. Safe to use from several threads and processes.

    Args:
        path: the file, in the person's own state of the workspace; archives lie beside it.
        redactor: takes the secrets out.
        largest: bytes of the file, from which on it is archived.

    Attributes:
        problem: why the last entry could not be written; None where it was.

    Example:
        >>> log = AuditLog(state.path / FILE, redactor)                                    # doctest: +SKIP
        >>> log.write("tool.run", actor="model", tool=tool, success=True, milliseconds=12)  # doctest: +SKIP
        True
    """

    def __init__(self, path: Path, redactor: Redactor, *, largest: int = LARGEST) -> None:
        self.path = path
        self.problem: str | None = None
        self._folder = PlainFolder(path.parent.parent, path.parent.name)
        self._redactor = redactor
        self._largest = largest
        self._archive = re.compile(rf"{re.escape(path.stem)}-(\d{{4,}}){re.escape(path.suffix)}")

    def write(
        self,
        action: str,
        *,
        actor: str,
        tool: DynamicTool | str | None,
        success: bool,
        error: str | None = None,
        **details: Any,
    ) -> bool:
        """Append an entry; return whether it was written, see `problem`. It never raises for the disk or the values.

        Args:
            action, actor, success, error: see `AuditEntry`.
            tool: the tool, or the name of one that there is not.
            details: what else to keep of it, parameters say; values that are no JSON are kept as their type's name.
        """
        given = {
            "id": str(uuid_utils.uuid7()),
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "action": action,
            "actor": actor,
            "tool": tool.name if isinstance(tool, DynamicTool) else tool,
            "tool_id": tool.id if isinstance(tool, DynamicTool) else None,
            "success": success,
            "error": error,
        }
        line = self._line(given, {key: value for key, value in details.items() if key not in _OWN})
        try:
            self._append(line)
        except OSError as trouble:
            self.problem = (
                f"the audit of tools could not be written ({trouble.strerror or trouble}): {self.path}"
            )
            return False
        self.problem = None
        return True

    def entries(self, limit: int = 100, *, tool: str | None = None) -> AuditTrail:
        """Return the last entries, archives included.

        Args:
            limit: how many at most.
            tool: only those of the tool with this name or id.
        """
        found: list[AuditEntry] = []
        skipped = 0
        for name in (self.path.name, *reversed(self._archives())):
            for line in reversed(self._lines(name)):
                entry = _entry(line)
                if entry is None:
                    skipped += 1
                elif tool is None or tool in (entry.tool, entry.tool_id):
                    found.append(entry)
                if len(found) >= limit:
                    return AuditTrail(tuple(reversed(found[:limit])), skipped)
        return AuditTrail(tuple(reversed(found)), skipped)

    def _line(self, own: Mapping[str, Any], details: Mapping[str, Any]) -> bytes:
        """Return an entry as a line without secrets, of at most `LONGEST_LINE` bytes."""
        kept = {key: self._bounded(value) for key, value in own.items()}
        line = _encoded({**self._bounded_object(details, 0), **kept})
        if len(line) > LONGEST_LINE:
            short = {key: shorten(each, 200) if isinstance(each, str) else each for key, each in kept.items()}
            line = _encoded({**short, "left_out": f"details of {len(line):,} bytes"})
        return line

    def _bounded(self, value: Any, depth: int = 0) -> Any:
        """Return a value in JSON, cut and without secrets, also those that only a name tells."""
        if isinstance(value, str):
            return shorten(self._redactor.text(clean(value[:_LOOKED_AT])), LONGEST_TEXT)
        if value is None or isinstance(value, bool | int):
            return value if value is None or abs(value) < 1 << 63 else "[a large number]"
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, Mapping | list | tuple) and depth >= _DEEPEST:
            return "[nested]"
        if isinstance(value, Mapping):
            return self._bounded_object(value, depth)
        if isinstance(value, list | tuple):
            more = [f"[{len(value) - _MOST_ITEMS} more]"] if len(value) > _MOST_ITEMS else []
            return [*(self._bounded(each, depth + 1) for each in value[:_MOST_ITEMS]), *more]
        return f"[{type(value).__name__}]"

    def _bounded_object(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, inner in list(value.items())[:_MOST_ITEMS]:
            text = key if isinstance(key, str) else f"[{type(key).__name__}]"
            name = shorten(self._redactor.text(clean(text[:_LOOKED_AT])), 100)
            hidden = secret_name(name) and inner is not None and not isinstance(inner, bool)
            made[name] = "[redacted]" if hidden else self._bounded(inner, depth + 1)
        if len(value) > _MOST_ITEMS:
            made["[more]"] = len(value) - _MOST_ITEMS
        return made

    def _append(self, line: bytes) -> None:
        """Write a line after the last whole one. Raises OSError, and the file is as it was."""
        with self._locked():
            name = self.path.name
            descriptor = self._folder.open(name, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            try:
                size = os.fstat(descriptor).st_size
                if size and size + len(line) > self._largest:
                    os.close(descriptor)
                    descriptor = -1
                    self._rotate()
                    descriptor = self._folder.open(name, os.O_RDWR | os.O_APPEND | os.O_CREAT)
                    size = 0
                # What a loss of power tore stays a line of its own.
                whole = b"\n" + line if size and not _ends_a_line(descriptor, size) else line
                try:
                    written = os.write(descriptor, whole)
                    if written != len(whole):
                        raise OSError(f"only {written} of {len(whole)} bytes were written")
                except OSError:
                    with suppress(OSError):
                        os.ftruncate(descriptor, size)
                    raise
            finally:
                if descriptor >= 0:
                    os.close(descriptor)

    def _rotate(self) -> None:
        """Rename the file to the next archive."""
        archives = self._archives()
        number = int(self._archive.fullmatch(archives[-1])[1]) + 1 if archives else 1  # type: ignore[index]
        self.path.rename(self.path.with_name(f"{self.path.stem}-{number:04}{self.path.suffix}"))

    def _archives(self) -> list[str]:
        """Return the names of the archives, oldest first."""
        matches = (self._archive.fullmatch(name) for name in self._folder.entries()[0])
        return [match[0] for match in sorted(filter(None, matches), key=lambda match: int(match[1]))]

    def _lines(self, name: str) -> list[bytes]:
        """Return the lines of a file; of a very large one the last."""
        try:
            with os.fdopen(self._folder.open(name, os.O_RDONLY), "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LARGEST_READ))
                return [line for line in file.read(_LARGEST_READ).split(b"\n") if line.strip()]
        except OSError:
            return []

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock between processes. Raises OSError."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = self._folder.open(f".{self.path.stem}.lock", os.O_RDWR | os.O_CREAT)
        try:
            if not wait_for_lock(descriptor, LONGEST_WAIT):
                raise OSError(f"another kernel holds it for more than {LONGEST_WAIT:.0f} seconds")
            yield
        finally:
            release(descriptor)


def _encoded(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _ends_a_line(descriptor: int, size: int) -> bool:
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1) == b"\n"


def _entry(line: bytes) -> AuditEntry | None:
    """Return the entry of a line; None where it is none."""
    try:
        values = parse_json(line)
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    texts = ("id", "at", "action", "actor")
    if not all(isinstance(values.get(key), str) for key in texts) or not isinstance(
        values.get("success"), bool
    ):
        return None
    if not all(isinstance(values.get(key), str | None) for key in ("tool", "tool_id", "error")):
        return None
    own = {key: values.pop(key, None) for key in _OWN}
    return AuditEntry(**own, details=values)
