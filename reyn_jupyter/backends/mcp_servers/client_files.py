"""Servers from the files of other clients: Claude Desktop and Code, Cursor, Windsurf, VS Code.

Invariants: reading changes nothing and starts nothing. What is taken is an entry of this package: a name that can stand
here, no approvals of the other client, and each secret apart from its entry. What cannot be taken is named.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reyn_jupyter.backends.mcp_servers.server_entry import (
    EntryError,
    ServerEntry,
    is_literal_secret,
    read_entry,
    stored_reference,
    usable_name,
)
from reyn_jupyter.backends.mcp_servers.server_file import SERVERS, ServerFileError, name_shown, read_json
from reyn_jupyter.support.files.plain_files import read_regular
from reyn_jupyter.support.secrets import SHORTEST

LARGEST = 8 << 20  # bytes; Claude Code keeps its history beside the servers
# Texts stay; comments and commas before a closing bracket go, as editors write them.
_TEXT_OR_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TEXT_OR_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True)
class ForeignServer:
    """A server in another client's file.

    Attributes:
        entry: what would be written; None where it cannot be taken.
        given_name: what the other client calls it.
        secrets: values that would be kept apart from the entry, by name.
        note: why it is not taken, or what changes; "" where nothing does.
    """

    entry: ServerEntry | None
    given_name: str
    secrets: Mapping[str, str]
    note: str = ""


def known_files(
    home: Path, environ: Mapping[str, str], platform: str = sys.platform
) -> tuple[tuple[str, Path], ...]:
    """Return the files of other clients that are there: (client, path)."""
    if platform == "darwin":
        applications = home / "Library" / "Application Support"
    elif platform == "win32":
        applications = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    else:
        applications = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    places = (
        ("Claude Desktop", applications / "Claude" / "claude_desktop_config.json"),
        ("Claude Code", home / ".claude.json"),
        ("Cursor", home / ".cursor" / "mcp.json"),
        ("Windsurf", home / ".codeium" / "windsurf" / "mcp_config.json"),
        ("VS Code", applications / "Code" / "User" / "mcp.json"),
    )
    return tuple((client, path) for client, path in places if os.path.isfile(path))  # noqa: PTH113 - follows links


def read_client_file(path: Path, taken: Collection[str] = ()) -> tuple[ForeignServer, ...]:
    """Return the servers of another client's file; a link to it is followed.

    Args:
        taken: names that are taken here.

    Raises:
        ServerFileError: it cannot be read, or names no servers.
    """
    try:
        content = read_regular(path, LARGEST)
    except OSError as error:
        raise ServerFileError(f"{path} cannot be read: {error.strerror}.") from None
    servers = _servers(read_json(without_comments(content, path), str(path)))
    if servers is None:
        raise ServerFileError(f'{path} has neither "{SERVERS}" nor "servers".')
    found: list[ForeignServer] = []
    names = set(taken)
    for given, value in servers.items():
        server = _foreign(given, value, names)
        names |= {server.entry.name} if server.entry else set()
        found.append(server)
    return tuple(found)


def _servers(values: Mapping[str, Any]) -> Mapping[str, Any] | None:
    inner = values.get("mcp")
    for place in (
        values.get(SERVERS),
        values.get("servers"),
        inner.get("servers") if isinstance(inner, dict) else None,
    ):
        if isinstance(place, dict):
            return place
    return None


def _foreign(given: str, value: Any, taken: Collection[str]) -> ForeignServer:
    name = usable_name(given)
    try:
        entry = read_entry(name, value)
    except EntryError as error:
        return ForeignServer(None, given, {}, f"left out: it {error}")
    if name in taken:
        return ForeignServer(None, given, {}, f"left out: there is a server {name} already")
    if isinstance(value, dict) and "envFile" in value:
        return ForeignServer(None, given, {}, "left out: its envFile is not read; name the variables in env")
    entry = replace(entry, trusts_hints=False)
    secrets = {
        each: text
        for each, text in entry.values.items()
        if is_literal_secret(each, text) and len(text) >= SHORTEST
    }
    notes = [f"called {name} here"] if name != given else []
    if secrets:
        entry, secrets = _apart(entry, secrets)
        notes.append(f"{', '.join(secrets)} kept apart as a secret")
    return ForeignServer(entry, name_shown(given), secrets, "; ".join(notes))


def _apart(entry: ServerEntry, secrets: Mapping[str, str]) -> tuple[ServerEntry, dict[str, str]]:
    """Return an entry that refers to its secrets, and their values by the names that it refers to."""
    names = {each: re.sub(r"[^A-Za-z0-9_]", "_", each) for each in secrets}
    values = {
        each: stored_reference(names[each]) if each in secrets else text
        for each, text in entry.values.items()
    }
    kept = {names[each]: text for each, text in secrets.items()}
    if entry.transport == "stdio":
        return replace(entry, env=values), kept
    return replace(entry, headers=values), kept


def without_comments(content: bytes, path: Path) -> bytes:
    """Return JSON as it is without the comments and commas that editors allow; proper JSON as it stands.

    Raises:
        ServerFileError: it is not UTF-8 text.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ServerFileError(f"{path} is not UTF-8 text.") from None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        text = _TEXT_OR_COMMENT.sub(lambda match: match[1] or " ", text)
        text = _TEXT_OR_COMMA.sub(lambda match: match[1] or "", text)
    return text.encode("utf-8", "replace")
