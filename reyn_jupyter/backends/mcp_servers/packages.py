"""Command lines that run a published package as a server: npx, uvx, docker.

Invariants: a command line is a list of words that no shell reads, and each word that somebody else wrote is matched
against the grammar of what it names: ASCII, no space, and no hyphen at its start, so that none becomes an option of the
runner. Nothing is downloaded here: the runner does that when the server starts for the first time.

Sources: npm package names, PEP 508 and PEP 440, the distribution specification's references.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, get_args

from reyn_jupyter.backends.mcp_servers.server_entry import EntryError, usable_name
from reyn_jupyter.support.text import shorten

PackageKind = Literal["npm", "pypi", "docker", "github"]
KINDS: tuple[PackageKind, ...] = get_args(PackageKind)
LONGEST = 250  # characters of an identifier
_NPM = re.compile(r"(?:@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*")
_PYPI = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_IMAGE = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?/)?"
    r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
_REPOSITORY = re.compile(
    r"(?:https://github\.com/)?(?P<owner>[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)/"
    r"(?P<name>[A-Za-z0-9_][A-Za-z0-9._-]*?)(?:\.git)?/?"
)
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
_GRAMMARS = {"npm": _NPM, "pypi": _PYPI, "docker": _IMAGE, "github": _REPOSITORY}
_EXAMPLES = {
    "npm": "@modelcontextprotocol/server-everything",
    "pypi": "mcp-server-time",
    "docker": "mcp/time",
    "github": "owner/repository",
}


def package_command(
    kind: PackageKind,
    identifier: str,
    version: str | None = None,
    *,
    variables: Sequence[str] = (),
    arguments: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the words that run a package.

    Args:
        kind: where it is published. "github" is a Python project in a repository, which uvx builds.
        identifier: its name there.
        version: an exact version, a tag, a digest, or of a repository a branch, tag or commit; the newest when None.
        variables: that the server gets (a container is told each).
        arguments: of the server.

    Raises:
        EntryError: a word is none of its kind.

    Example:
        >>> package_command("pypi", "mcp-server-time", "2025.9.25")
        ('uvx', 'mcp-server-time@2025.9.25')
        >>> package_command("docker", "mcp/time", variables=["TZ"])
        ('docker', 'run', '-i', '--rm', '-e', 'TZ', 'mcp/time')
    """
    grammar = _GRAMMARS[kind]
    match = grammar.fullmatch(identifier) if len(identifier) <= LONGEST else None
    if match is None:
        raise EntryError(
            f"{_quoted(identifier)} is no name of a package of kind {kind}; write it as {_EXAMPLES[kind]}"
        )
    match kind:
        case "npm":
            return ("npx", "-y", _at(identifier, version), *arguments)
        case "pypi":
            return ("uvx", _at(identifier, version), *arguments)
        case "docker":
            told = (word for name in variables for word in ("-e", name))
            return ("docker", "run", "-i", "--rm", *told, _image(identifier, version), *arguments)
        case "github":
            owner, name = match["owner"], match["name"]
            source = f"git+https://github.com/{owner}/{name}"
            return ("uvx", "--from", source + _branch(version), name, *arguments)


def package_name(kind: PackageKind, identifier: str) -> str:
    """Return the name that a server from a package gets.

    >>> package_name("npm", "@modelcontextprotocol/server-everything"), package_name("docker", "mcp/time:1.0")
    ('server-everything', 'time')
    """
    last = identifier.removesuffix("/").rpartition("/")[2].removesuffix(".git")
    return usable_name(re.split("[:@]", last)[0] if kind == "docker" else last)


def _at(identifier: str, version: str | None) -> str:
    return identifier if version is None else f"{identifier}@{_checked(_VERSION, version)}"


def _image(identifier: str, version: str | None) -> str:
    tagged = "@" in identifier or ":" in identifier.rpartition("/")[2]
    if version is None or (tagged and identifier.endswith(version)):
        return identifier
    if tagged:
        raise EntryError(f"{_quoted(identifier)} names a version already; leave {_quoted(version)} out")
    return f"{identifier}@{version}" if _DIGEST.fullmatch(version) else f"{identifier}:{_tag(version)}"


def _tag(version: str) -> str:
    return _checked(re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"), version)


def _branch(version: str | None) -> str:
    if version is None:
        return ""
    if ".." in version or "//" in version:
        raise EntryError(f"{_quoted(version)} is no branch, tag or commit")
    return f"@{_checked(_BRANCH, version)}"


def _checked(grammar: re.Pattern[str], version: str) -> str:
    if not grammar.fullmatch(version):
        raise EntryError(f"{_quoted(version)} is no exact version; write it as 1.2.3, or leave it out")
    return version


def _quoted(text: str) -> str:
    return ascii(shorten(text, 80))
