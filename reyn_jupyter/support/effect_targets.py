"""What an effect's target is, by its kind: how it is spelled, and which targets a rule stands for.

Invariants: a target has one spelling, so that rule, question, approval and record speak of the same one; the targets in
a rule are spelled by the same functions. A rule that loosens (allow, "always") stands for no more than it says; one
that tightens (ask, deny) also for what differs in letter case or Unicode form alone, and for what may be meant.
Everything that depends on the kind stands in `KINDS`.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial
from types import MappingProxyType

from reyn_jupyter.support.files.globs import glob_matches, is_literal, may_match_below
from reyn_jupyter.support.network.hosts import HostError, normalize_name, read_host, read_host_pattern


class EffectKind(StrEnum):
    """What an effect does to its target; `KINDS` says what the target is."""

    READ = "read"
    WRITE = "write"
    EDIT = "edit"
    CREATE = "create"
    DELETE = "delete"
    NETWORK = "network"
    EXEC = "exec"
    MCP = "mcp"
    SECRET = "secret"  # noqa: S105 - a word, no secret

    @property
    def is_path(self) -> bool:
        """True if the target is a path in the workspace."""
        return KINDS[self].normalize is _path


class TargetError(ValueError):
    """A text that is no target of its kind, or a rule that could match none; the message is a sentence."""


# (a target in its one spelling, whether the rule tightens) → whether the rule stands for it.
TargetRule = Callable[[str, bool], bool]


@dataclass(frozen=True)
class TargetKind:
    """How targets of a kind are spelled and matched.

    Attributes:
        normalize: a target → its one spelling. Raises TargetError.
        rule: what stands for targets in a rule → the rule. Raises TargetError where it could match none.
        example: a rule's targets, for errors.
    """

    normalize: Callable[[str], str]
    rule: Callable[[str], TargetRule]
    example: str


def normalize_target(kind: EffectKind, target: str) -> str:
    """Return the one spelling of a target. Raises TargetError where it is none of its kind.

    >>> normalize_target(EffectKind.NETWORK, "HTTP://A.Evil.org.:443/x"), normalize_target(EffectKind.WRITE, "./a//b")
    ('a.evil.org', 'a/b')
    """
    return KINDS[kind].normalize(target)


@lru_cache(maxsize=1024)
def target_rule(kind: EffectKind, text: str) -> TargetRule:
    """Return what the targets in a rule for a kind stand for. Raises TargetError where they could match none."""
    return KINDS[kind].rule(text)


@lru_cache(maxsize=1024)
def rule_without_kind(kind: EffectKind, text: str) -> TargetRule:
    """Return what the targets in a rule that names no kind stand for among those of one kind.

    What is no target of this kind still tightens as the plain text that it is, and loosens nothing.
    """
    try:
        return target_rule(kind, text)
    except TargetError:
        folded = _fold(text)
        return lambda target, tightens: tightens and glob_matches(folded, _fold(target), crossing=True)


def leads_out(path: str) -> bool:
    """Return whether a path climbs out of the folder that it starts from, or starts at the root of the disk."""
    return path.startswith("/") or ".." in path.split("/")


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _globbed(glob: str, target: str, tightens: bool) -> bool:
    return glob_matches(glob, target) or (tightens and glob_matches(_fold(glob), _fold(target)))


# Paths in the workspace


def _path(target: str) -> str:
    """Return the shortest form of a path, with forward slashes."""
    return posixpath.normpath(target.replace("\\", "/"))


def _path_rule(text: str) -> TargetRule:
    glob = _path(text)

    def matches(target: str, tightens: bool) -> bool:
        # A path that leads out is nobody's target: only a rule without targets loosens for it.
        return (tightens or not leads_out(target)) and _globbed(glob, target, tightens)

    return matches


def may_be_below(text: str, folder: str) -> bool:
    """Return whether the targets in a rule that tightens may be paths below a folder; True where it is not certain."""
    return may_match_below(_fold(_path(text)), _fold(folder))


# Hosts


def _host(target: str) -> str:
    """Return a host, or all names below one, in its one spelling."""
    try:
        return str(read_host_pattern(target))
    except HostError as error:
        raise TargetError(str(error)) from None


_WEB = frozenset({80, 443})  # ports that a host in its one spelling does not name
_PORT = re.compile(r"(?P<host>[^:]*|\[[^\]]*\]):(?P<port>[0-9]{1,5})")
_ANY_PORT = ":*"  # at the end of a rule's host


def _host_rule(text: str) -> TargetRule:
    """Return a rule for hosts: a name, ``*`` in place of whole labels, and a port, ``:*`` for all ports, or neither.

    Without a port, a rule that loosens stands for the ports of the web, as a target does; one that tightens, for all.
    """
    any_port = text.endswith(_ANY_PORT)
    glob, port = _host_glob(text.removesuffix(_ANY_PORT))

    def has_port(target: int | None, tightens: bool) -> bool:
        if any_port or (tightens and (port is None or target is None)):
            # A category that names no port may go to any: that is enough to deny, and too little to allow.
            return True
        return target == (None if port in _WEB else port)

    def matches(target: str, tightens: bool) -> bool:
        pattern = read_host_pattern(target)
        host = pattern.host
        if not has_port(host.port, tightens):
            return False
        if pattern.below:
            return _may_meet(glob, host.name) if tightens else _holds_all_below(glob, host.name)
        return host.name == glob if is_literal(glob) else glob_matches(glob, host.name)

    return matches


def _holds_all_below(glob: str, name: str) -> bool:
    """Return whether a rule's hosts are all names below one, and perhaps more: all, or those below a part of it."""
    star, _, rest = glob.partition(".")
    return glob == "*" or (star == "*" and is_literal(rest) and f".{name}".endswith(f".{rest}"))


def _may_meet(glob: str, name: str) -> bool:
    """Return whether a rule's hosts and the names below one may have a host in common; True where it is not certain."""
    ruled, below = glob.split(".")[::-1], name.split(".")[::-1]
    for one, other in zip(ruled, below, strict=False):
        if not is_literal(one):
            return True
        if one != other:
            return False
    return len(ruled) > len(below)


def _host_glob(text: str) -> tuple[str, int | None]:
    """Return the name of a rule's hosts, wildcards in it, and the port that it names, if any."""
    refused = TargetError(
        f"{text!a} is no host. Write a name (api.example.org), *.example.org for all names below one, or an "
        "address, and if needed a port from 0 to 65535 (api.example.org:8443) or :* for all. Without one, a rule "
        "allows only 80 and 443."
    )
    # A URL means more than its host: a rule that only seems to hold for one page must not be kept.
    if re.search(r"[/?#@\\]", text):
        raise refused
    match = _PORT.fullmatch(text)
    name, port = (match["host"], int(match["port"])) if match else (text, None)
    try:
        if is_literal(text):
            return read_host(text).name, port
        if port is not None and port > 65_535:
            raise refused
        labels = name.removesuffix(".").split(".")
        named = [label for label in labels if label != "*"]
        # The label in its place keeps what looks like an address from being read as a whole one.
        spelled = iter(normalize_name(".".join((*named, "x"))).split("."))
        return ".".join(label if label == "*" else next(spelled) for label in labels), port
    except HostError:
        raise refused from None


# Programs


def _command(target: str) -> str:
    words = _words(target)
    if not words or not words[0]:
        raise TargetError(f"{target[:80]!a} names no program.")
    return shlex.join((_program(words[0]), *words[1:]))


def _program(word: str) -> str:
    """Return the shortest path of a program; one in the working folder keeps the slash that says so."""
    if "/" not in word:
        return word
    path = posixpath.normpath(word)
    return path if "/" in path else f"./{path}"


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise TargetError(
            f"{text[:80]!a} cannot be split into words: a quotation mark is left open."
        ) from None


def _command_rule(text: str) -> TargetRule:
    """Return a rule for programs: word by word, ``**`` at the end for any further words."""
    globs = _words(text)
    if not globs or globs[0] in ("", "**"):
        raise TargetError(f"{text[:80]!a} names no program. For any, leave out the words, or write *.")
    open_end = globs[-1] == "**"
    globs = [_program(globs[0]), *globs[1 : -1 if open_end else None]]

    def matches(target: str, tightens: bool) -> bool:
        words = shlex.split(target)
        # A program by itself is meant whatever it is given, and wherever it lies; to allow that, say so: `git **`.
        further = open_end or (tightens and len(globs) == 1)
        if len(words) < len(globs) or (len(words) > len(globs) and not further):
            return False
        program, word = globs[0], words[0]
        if tightens and "/" not in program:
            word = posixpath.basename(word)
        elif tightens and "/" not in word and is_literal(program):
            program = posixpath.basename(program)
        return _globbed(program, word, tightens) and all(
            _globbed(glob, each, tightens) for glob, each in zip(globs[1:], words[1:], strict=False)
        )

    return matches


# Tools of servers


def _server_tool(target: str) -> str:
    server, slash, tool = target.partition("/")
    server, tool = server.strip(), tool.strip()
    if not server or (slash and not tool):
        raise TargetError(f"{target[:80]!a} is no tool of a server: write server/tool.")
    return f"{server}/{tool}" if slash else server


def _server_tool_rule(text: str) -> TargetRule:
    """Return a rule for servers and their tools: ``git/commit``, ``git/*``; ``git`` tightens for all that it has."""
    server, _, tool = _server_tool(text).partition("/")

    def matches(target: str, tightens: bool) -> bool:
        its_server, _, its_tool = target.partition("/")
        if not _globbed(server, its_server, tightens):
            return False
        if not tool:
            return tightens or not its_tool
        if not its_tool:
            return tightens and tool in ("*", "**")
        return glob_matches(tool, its_tool, crossing=True) or (
            tightens and glob_matches(_fold(tool), _fold(its_tool), crossing=True)
        )

    return matches


# Names of secret values


def _secret(target: str) -> str:
    if not target or not target.isprintable() or target != target.strip():
        raise TargetError(f"{target[:80]!a} is no name of a secret value.")
    return target


def _secret_rule(text: str) -> TargetRule:
    return partial(_globbed, _secret(text))


_PATHS = TargetKind(_path, _path_rule, "data/**")
KINDS: Mapping[EffectKind, TargetKind] = MappingProxyType(
    {
        EffectKind.READ: _PATHS,
        EffectKind.WRITE: _PATHS,
        EffectKind.EDIT: _PATHS,
        EffectKind.CREATE: _PATHS,
        EffectKind.DELETE: _PATHS,
        EffectKind.NETWORK: TargetKind(_host, _host_rule, "*.example.org"),
        EffectKind.EXEC: TargetKind(_command, _command_rule, "git status"),
        EffectKind.MCP: TargetKind(_server_tool, _server_tool_rule, "git/*"),
        EffectKind.SECRET: TargetKind(_secret, _secret_rule, "RATES_API_KEY"),
    }
)
