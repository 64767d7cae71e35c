"""One entry of the common ``mcpServers`` JSON: what starts a local server, or where a remote one is.

Invariants: an entry that exists is valid whole, whatever file it came from; what an entry says beside the keys below
(other clients' approvals among them) is kept in its file and allows nothing here. A reference (``${NAME}``) is one of a
closed list and stands where its value may go: keys in `env` and `headers` alone, since a command line is seen by
every program of the machine.

Sources: the ``mcpServers`` object of Claude Desktop, Claude Code, Cursor and Windsurf; `mcp.json` of VS Code.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reyn_jupyter.runtime.access.mcp_access import SERVER_NAME, McpSandbox, McpTransport
from reyn_jupyter.support.network.hosts import HostError, read_host
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.secret_names import secret_variable
from reyn_jupyter.support.text import shorten

NAME_LENGTH = 63
MOST_WORDS = 256  # of a command line
LONGEST_WORD = 8_192  # characters of a word, a value, a URL
MOST_VALUES = 100  # variables, headers
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_STORED, _ENVIRONMENT = "input:", "env:"
PLACES = ("workspaceFolder", "userHome", "HOME")  # references that a command line may have
WORKSPACE = "${workspaceFolder}"
_OF_SANDBOX = ("hosts", "readable", "writable")
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")


class EntryError(ValueError):
    """An entry that cannot be used.

    Args:
        message: a clause that says what is wrong, and what to write.
        advice: what the person can type instead, in words of ours alone.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(f"{message}: {advice}" if advice else message)
        self.message, self.advice = message, advice


@dataclass(frozen=True)
class EntryReference:
    """A value that is looked up when the server starts.

    Attributes:
        kind: "stored" (a secret that the person gave to this server), "environment", or "place" (a folder).
        name: of the secret, the variable or the place.
        default: of a variable that is not set; None where there is none.
    """

    kind: Literal["stored", "environment", "place"]
    name: str
    default: str | None = None


@dataclass(frozen=True)
class ServerEntry:
    """A server as a file names it.

    Attributes:
        name: letters, digits, dots, hyphens and single underscores, so that ``<server>__<tool>`` has one reading.
        transport: "stdio" (a program on this machine) or "http" (streamable HTTP).
        command, args, cwd: the program, its arguments and its folder; no shell reads them.
        env: variables of the program, by name.
        url, headers: of a remote server.
        disabled: kept, and not offered.
        trusts_hints: the person believes what the server says of its tools (its hint that they only read).
        sandbox: what the program may reach in a sandbox; None where it runs without one.
    """

    name: str
    transport: McpTransport
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    disabled: bool = False
    trusts_hints: bool = False
    sandbox: McpSandbox | None = None

    @property
    def argv(self) -> tuple[str, ...]:
        """The words that are run; none for a remote server."""
        return (self.command, *self.args) if self.transport == "stdio" else ()

    @property
    def line(self) -> str:
        """What is run or asked, on one line for people; hidden characters are marked."""
        return printable(shlex.join(self.argv) if self.transport == "stdio" else self.url)

    @property
    def values(self) -> Mapping[str, str]:
        """The variables of a program, or the headers to a host."""
        return self.env if self.transport == "stdio" else self.headers

    @property
    def references(self) -> tuple[EntryReference, ...]:
        """What `values` look up, each once."""
        return tuple(dict.fromkeys(each for value in self.values.values() for each in references(value)))

    @property
    def plain(self) -> dict[str, Any]:
        """The entry as JSON that other clients read too."""
        said: dict[str, Any]
        if self.transport == "stdio":
            said = {"command": self.command, "args": list(self.args)}
            said |= {"env": dict(self.env)} if self.env else {}
            said |= {"cwd": self.cwd} if self.cwd else {}
            if self.sandbox is not None:
                parts = {key: list(getattr(self.sandbox, key)) for key in _OF_SANDBOX}
                said |= {"sandbox": {key: names for key, names in parts.items() if names}}
        else:
            said = {"type": "http", "url": self.url}
            said |= {"headers": dict(self.headers)} if self.headers else {}
        said |= {"disabled": True} if self.disabled else {}
        return said | ({"trustHints": True} if self.trusts_hints else {})


def read_entry(name: str, value: Any) -> ServerEntry:
    """Return the entry of a name in a file.

    Raises:
        EntryError: the name or the entry cannot be used.

    Example:
        >>> read_entry("time", {"command": "uvx", "args": ["mcp-server-time"]}).argv
        ('uvx', 'mcp-server-time')
    """
    check_name(name)
    if not isinstance(value, dict):
        raise EntryError('is no object; write {"command": …, "args": […]} or {"type": "http", "url": …}')
    kind = value.get("type", "http" if "url" in value and "command" not in value else "stdio")
    if kind == "sse":
        raise EntryError(
            'uses the transport "sse", which streamable HTTP has replaced; write "type": "http" with the address at '
            "which the server speaks that (often the same host, /mcp in place of /sse), or let a program speak SSE: "
            '{"command": "uvx", "args": ["mcp-proxy", the address]}'
        )
    disabled, trusts_hints = _switch(value, "disabled"), _switch(value, "trustHints")
    if kind in _HTTP:
        return ServerEntry(
            name,
            "http",
            url=_url(value),
            headers=_values(value, "headers", _HEADER),
            disabled=disabled,
            trusts_hints=trusts_hints,
        )
    if kind != "stdio":
        raise EntryError(f'has the type {_quoted(kind)}; there are "stdio" and "http"')
    cwd = value.get("cwd")
    return ServerEntry(
        name,
        "stdio",
        command=_word(value.get("command"), "command"),
        args=_words(value),
        cwd=None if cwd is None else _word(cwd, "cwd"),
        env=_values(value, "env", _VARIABLE),
        disabled=disabled,
        trusts_hints=trusts_hints,
        sandbox=_sandbox(value),
    )


def check_name(name: str) -> str:
    """Return the name of a server. Raises EntryError for one that cannot stand before ``__`` in a tool's name.

    >>> check_name("my-server.2")
    'my-server.2'
    """
    if not SERVER_NAME.fullmatch(name):
        raise EntryError(
            f"{_quoted(name)} is no name of a server: letters, digits, dots, hyphens and single underscores inside, at "
            f"most {NAME_LENGTH}, for example {usable_name(name)!r}"
        )
    return name


def usable_name(name: str) -> str:
    """Return the name that a server of another client gets here.

    >>> usable_name("My Server!"), usable_name("__"), usable_name("io.github.user/weather")
    ('My-Server', 'server', 'io.github.user-weather')
    """
    plain = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9._-]+", "-", name))
    return plain.strip("._-")[:NAME_LENGTH].rstrip("._-") or "server"


def references(text: str) -> Iterator[EntryReference]:
    """Yield the references of a valid value, in order."""
    for match in _REFERENCE.finditer(text):
        yield _reference(match[1])


def replace_references(text: str, look_up: Mapping[EntryReference, str]) -> str:
    """Return the text with its references replaced; what a value holds is not looked through again."""
    return _REFERENCE.sub(lambda match: look_up[_reference(match[1])], text)


def stored_reference(name: str) -> str:
    """Return how a secret that is kept for a server is written in its entry: ``${input:NAME}``, as VS Code has it."""
    return f"${{{_STORED}{name}}}"


def check_secret_name(name: str) -> str:
    """Return the name of a secret: letters, digits, underscores and hyphens. Raises EntryError for any other."""
    if not _VARIABLE.fullmatch(name.replace("-", "_")):
        raise EntryError(
            f"{_quoted(name)} is no name of a secret; write it as a variable, for example API_KEY"
        )
    return name


def is_literal_secret(name: str, value: str) -> bool:
    """Return whether a variable or header holds a secret itself, where a reference could stand."""
    return bool(value) and secret_variable(name) and _REFERENCE.search(value) is None


def _reference(inner: str) -> EntryReference:
    if inner in PLACES:
        return EntryReference("place", inner)
    if inner.startswith(_STORED):
        name = inner.removeprefix(_STORED)
        if _VARIABLE.fullmatch(name.replace("-", "_")):
            return EntryReference("stored", name)
    else:
        name, colon, default = inner.removeprefix(_ENVIRONMENT).partition(":-")
        if _VARIABLE.fullmatch(name):
            return EntryReference("environment", name, default if colon else None)
    raise EntryError(
        f"refers to {_quoted('${' + inner + '}')}, which means nothing here; write ${{NAME}} for a variable of the "
        "environment, or ${input:NAME} for a secret that you give by %reyn mcp secret"
    )


def _words(value: Mapping[str, Any]) -> tuple[str, ...]:
    words = value.get("args", [])
    if not isinstance(words, list) or len(words) > MOST_WORDS:
        raise EntryError(f'has no list of at most {MOST_WORDS} words as "args"')
    return tuple(_word(word, "args", empty=True) for word in words)


def _word(value: object, key: str, *, empty: bool = False) -> str:
    text = _text(value, key, empty=empty)
    for reference in references(text):
        if reference.kind != "place":
            raise EntryError(
                f'looks up {reference.name} in "{key}", where every program of the machine could read it; hand it over '
                'in "env"'
            )
    return text


def _text(value: object, key: str, *, empty: bool = False) -> str:
    if not isinstance(value, str) or not (value.strip() or empty):
        raise EntryError(f'needs a text as "{key}"')
    if len(value) > LONGEST_WORD or _CONTROL.search(value) or not value.isprintable():
        raise EntryError(
            f'has a text in "{key}" with characters that are not drawn, or over {LONGEST_WORD:,} of them'
        )
    return value


def _values(value: Mapping[str, Any], key: str, names: re.Pattern[str]) -> dict[str, str]:
    values = value.get(key, {})
    if not isinstance(values, dict) or len(values) > MOST_VALUES:
        raise EntryError(f'has no object of at most {MOST_VALUES} texts as "{key}"')
    for name, each in values.items():
        if not names.fullmatch(name):
            raise EntryError(f'has the name {_quoted(name)} in "{key}", which is none')
        text = _text(each, f"{key}.{name}", empty=True)
        list(references(text))  # each is one of those that there are
    return dict(values)


def _url(value: Mapping[str, Any]) -> str:
    url = _text(value.get("url"), "url")
    if any(True for _ in _REFERENCE.finditer(url)):
        raise EntryError('looks something up in "url"; write the address itself, and a key into "headers"')
    if not re.match(r"https?://", url) or any(character.isspace() for character in url):
        raise EntryError('needs an address that begins with https:// as "url"')
    try:
        read_host(url)
    except HostError as error:
        raise EntryError(f'has a "url" that cannot be used: {error}') from None
    if re.match(r"https?://[^/?#]*@", url):
        raise EntryError('has a password in its "url"; put it into "headers"')
    return url


def _sandbox(value: Mapping[str, Any]) -> McpSandbox | None:
    said = value.get("sandbox")
    if said is None:
        return None
    if not isinstance(said, dict) or not set(said) <= set(_OF_SANDBOX):
        # A word that means nothing here may be meant to loosen or to tighten.
        raise EntryError(f'needs an object with {", ".join(_OF_SANDBOX)} as "sandbox"')
    found: dict[str, tuple[str, ...]] = {}
    for key in _OF_SANDBOX:
        names = said.get(key, [])
        if not isinstance(names, list) or len(names) > MOST_VALUES:
            raise EntryError(f'has no list of at most {MOST_VALUES} texts as "sandbox.{key}"')
        found[key] = tuple(_word(name, f"sandbox.{key}") for name in names)
    try:
        hosts = tuple(dict.fromkeys(str(read_host(host)) for host in found.pop("hosts")))
    except HostError as error:
        raise EntryError(f'has a host in "sandbox" that cannot be used: {error}') from None
    return McpSandbox(hosts, **found)


def _switch(value: Mapping[str, Any], key: str) -> bool:
    said = value.get(key, False)
    if not isinstance(said, bool):
        raise EntryError(f'has {_quoted(said)} as "{key}"; write true or false')
    return said


def _quoted(value: object) -> str:
    return ascii(shorten(str(value), 80))
