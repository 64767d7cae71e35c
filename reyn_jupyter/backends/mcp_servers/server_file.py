"""Files of the common ``mcpServers`` JSON, read within bounds and changed entry by entry.

Invariants: a file costs a bounded amount of time and memory whatever is in it; it is understood whole or refused with
one sentence; one entry that cannot be used is named, and takes no other with it. A change keeps what the file says
beside the entry, and replaces the file in one step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reyn_jupyter.backends.mcp_servers.server_entry import EntryError, ServerEntry, check_name, read_entry
from reyn_jupyter.config import ConfigError
from reyn_jupyter.config.yaml_document import LARGEST, read_bytes
from reyn_jupyter.support.files.plain_files import PlainFolder, parse_json
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import shorten

MOST_SERVERS = 500
SERVERS = "mcpServers"


class ServerFileError(Exception):
    """A file of servers that cannot be used or changed; the message is a sentence that says what to do."""


@dataclass(frozen=True)
class ServerDocument:
    """What a file of servers says.

    Attributes:
        content: its bytes, None where there is no file.
        values: all of its JSON.
        entries: the entries that can be used, by name.
        problems: what cannot, a sentence each.
    """

    content: bytes | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    entries: Mapping[str, ServerEntry] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def read_servers(path: Path, source: str) -> ServerDocument:
    """Return what a file says; one that is not there says nothing. Links are not followed.

    Args:
        source: what messages call it.

    Raises:
        ServerFileError: it is no regular file, larger than 1 MiB, or no such JSON.
    """
    try:
        content = read_bytes(path, source)
    except ConfigError as error:
        raise ServerFileError(f"{error}.") from None
    return ServerDocument() if content is None else parse_servers(content, source)


def parse_servers(content: bytes, source: str, key: str = SERVERS) -> ServerDocument:
    """Return what the bytes of a file say.

    Args:
        key: under which the servers stand.

    Raises:
        ServerFileError: they are no such JSON.

    Example:
        >>> found = parse_servers(b'{"mcpServers": {"a": {"command": "x"}, "b": {}}}', ".mcp.json")
        >>> list(found.entries), found.problems
        (['a'], ('.mcp.json: b needs a text as "command".',))
    """
    values = read_json(content, source)
    servers = values.get(key, {})
    if not isinstance(servers, dict) or len(servers) > MOST_SERVERS:
        raise ServerFileError(f'{source}: "{key}" must be an object of at most {MOST_SERVERS} servers.')
    entries, problems = {}, []
    for name, value in servers.items():
        try:
            entries[name] = read_entry(name, value)
        except EntryError as error:
            said = str(error) if str(error).startswith(ascii(name)) else f"{name_shown(name)} {error}"
            problems.append(f"{source}: {said}.")
    return ServerDocument(content, values, entries, tuple(problems))


def read_json(content: bytes, source: str) -> dict[str, Any]:
    """Return an object of JSON. Raises ServerFileError for anything else, a key that is there twice, NaN, and depth."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ServerFileError(f"{source} is not UTF-8 text; save it as UTF-8.") from None
    try:
        parse_json(text)  # its depth, and numbers that are none
        values = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except ValueError as error:
        raise ServerFileError(f"{source} is no JSON that can be used: {_sentence(error)}.") from None
    if not isinstance(values, dict):
        raise ServerFileError(f'{source} must be an object, as {{"{SERVERS}": {{…}}}}.')
    return values


def with_entry(before: ServerDocument, source: str, entry: ServerEntry, *, replace: bool = False) -> bytes:
    """Return the bytes of a file with an entry more, all else as it was.

    Raises:
        ServerFileError: the name is there already and `replace` is false, or the file would be too large.
    """
    check_name(entry.name)
    servers = dict(before.values.get(SERVERS, {}))
    if entry.name in servers and not replace:
        raise ServerFileError(f"{source} has a server {entry.name} already; drop it first.")
    # What other clients wrote into the entry stays.
    kept = servers.get(entry.name)
    servers[entry.name] = {**(kept if isinstance(kept, dict) else {}), **entry.plain}
    return _content(source, {**before.values, SERVERS: servers})


def without_entry(before: ServerDocument, source: str, name: str) -> bytes:
    """Return the bytes of a file without an entry, also one that cannot be used. Raises ServerFileError."""
    servers = {each: value for each, value in before.values.get(SERVERS, {}).items() if each != name}
    return _content(source, {**before.values, SERVERS: servers})


def write_file(path: Path, content: bytes) -> None:
    """Replace a file, mode 0600, in one step; its folder is made. Raises ServerFileError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        PlainFolder(path.parent).replace(path.name, content, durable=True)
    except OSError as error:
        raise ServerFileError(f"{path} cannot be written: {error.strerror}.") from None


def name_shown(name: str) -> str:
    """Return a name of somebody else's for a message."""
    return printable(shorten(name, 80))


def _content(source: str, values: Mapping[str, Any]) -> bytes:
    content = (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")
    if len(content) > LARGEST:
        raise ServerFileError(f"{source} would be larger than {LARGEST >> 20} MiB.")
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {name_shown(twice)!r} is there twice; keep one")
    return found


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _sentence(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}: {error.msg[:1].lower()}{error.msg[1:]}"
    return shorten(str(error), 200)
