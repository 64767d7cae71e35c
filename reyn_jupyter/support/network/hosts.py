"""The host that a text names, in one spelling.

Invariant: whatever two libraries take to the same server has one spelling here, and what they take to different servers
has none: it is refused, since a rule could be held against one of them and the request go to the other. Names are never
looked up. Sources: the WHATWG URL Standard (host parser, IPv4 parser), RFC 3986, UTS 46 without its transitional forms.
"""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

LONGEST = 2_000  # characters of a URL
_LONGEST_NAME, _LONGEST_LABEL = 253, 63
_WEB_PORTS = frozenset({80, 443})
_FTP = 21
# The schemes whose URLs name a host however many slashes there are, and whose backslash is one (WHATWG: special).
_LENIENT = frozenset({"http", "https", "ws", "wss", "ftp"})
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
_AROUND = "".join(map(chr, range(0x21)))  # control characters and blanks, which parsers take off both ends
_WITHIN = str.maketrans("", "", "\t\r\n")  # which they take out
_LABEL = re.compile(r"[a-z0-9!$&'()+,;=_`{}~\"-]+")  # what may stand between two dots, and no wildcard
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class HostError(ValueError):
    """A text that names no host, or that libraries read in two ways; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host in its one spelling.

    Attributes:
        name: a name, ``127.0.0.1`` or ``::1``; lower case, without a dot at its end, in ASCII.
        port: None for those of the web (80, 443), and where none is named.
    """

    name: str
    port: int | None = None

    def __str__(self) -> str:
        if self.port is None:
            return self.name
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"

    @property
    def is_here(self) -> bool:
        """Whether it is this machine, by its spelling."""
        address = self.address
        return self.name == "localhost" if address is None else address.is_loopback

    @property
    def address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """The address that it is; None for a name."""
        try:
            return ipaddress.ip_address(self.name)
        except ValueError:
            return None


@lru_cache(1024)
def read_host(text: str) -> Host:
    """Return the host of a URL, or of a host with or without its port.

    Args:
        text: ``HTTPS://user@A.Example.org.:443/x``, ``a.example.org:8080``, ``[::1]``, ``0x7f.1``.

    Raises:
        HostError: it names none, or libraries would not agree on which one.

    Example:
        >>> str(read_host("HTTPS://user@A.Example.org.:443/x")), str(read_host("http://0x7f.1:8080"))
        ('a.example.org', '127.0.0.1:8080')
    """
    if len(text) > LONGEST:
        raise HostError(f"{_quoted(text)} is longer than {LONGEST} characters.")
    plain = text.strip(_AROUND).translate(_WITHIN)
    authority = _authority(plain, text)
    # Without brackets one parser ends the host at the first colon, another at the last.
    if authority.count(":") > 1 and not authority.startswith("[") and authority != plain:
        raise HostError(f"{_quoted(text)} has an address of version 6 without its brackets.")
    name, port = _name_and_port(authority, text)
    if port is None and plain[:6].lower() == "ftp://" and not authority.endswith((":80", ":443")):
        port = _FTP  # the one lenient scheme whose port is not of the web
    host = Host(normalize_name(name), port)
    if host.port is not None and host.name in _LENIENT:
        raise HostError(f"{_quoted(text)} names a host that reads like a scheme.")
    return host


def _authority(text: str, given: str) -> str:
    """Return what stands between the slashes of a URL, or a text without any up to its path."""
    match = _SCHEME.fullmatch(text)
    scheme = match["scheme"].lower() if match else ""
    if match and scheme in _LENIENT and not match["rest"].isdigit():
        text = match["rest"].lstrip("/\\")
    elif match and match["rest"].startswith("//"):
        text = match["rest"][2:]
    elif match and scheme in _LENIENT:
        raise HostError(f"{_quoted(given)} may be a URL, or a host and its port: write it with //.")
    elif text.startswith("//"):
        text = text[2:]
    authority = re.split(r"[/?#]", text, maxsplit=1)[0]
    before, backslash, after = authority.partition("\\")
    # One parser ends the host at a backslash, another takes what stands before it for a user's name.
    if backslash and "@" in after:
        raise HostError(f"{_quoted(given)} is read as two different hosts, because of its backslash.")
    return before.rpartition("@")[2]


def _name_and_port(authority: str, given: str) -> tuple[str, int | None]:
    if authority.startswith("["):
        name, closed, rest = authority[1:].partition("]")
        if not closed or rest[:1] not in ("", ":"):
            raise HostError(f"{_quoted(given)} has a bracket too many or too few.")
        return f"[{name}]", _port(rest[1:], given)
    if authority.count(":") > 1:
        return f"[{authority}]", None
    name, _, port = authority.partition(":")
    return name, _port(port, given)


def _port(text: str, given: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 5 or int(text) > 65_535:
        raise HostError(f"{_quoted(given)} has no port from 0 to 65535.")
    return None if int(text) in _WEB_PORTS else int(text)


def normalize_name(name: str) -> str:
    """Return the name or address of a host in its one spelling.

    Args:
        name: without port; an address of version 6 in brackets.

    Raises:
        HostError: it is none.
    """
    try:
        decoded = unquote_to_bytes(name).decode() if "%" in name and name[:1] != "[" else name
    except UnicodeDecodeError:
        raise HostError(f"{_quoted(name)} is no host: its %-signs stand for no text.") from None
    if decoded.startswith("["):
        return _address_6(decoded[1:-1])
    plain = _ascii(decoded)
    # Before letters of other scripts are read, and after: what they become may look like an address.
    labels = plain.removesuffix(".").split(".")
    if not all(0 < len(label) <= _LONGEST_LABEL and _LABEL.fullmatch(label) for label in labels):
        raise HostError(f"{_quoted(name)} is no host.")
    if _NUMBER.fullmatch(labels[-1]):
        return _address_4(labels, name)
    if sum(map(len, labels)) + len(labels) - 1 > _LONGEST_NAME:
        raise HostError(f"{_quoted(name)} is longer than the name of a host may be.")
    return ".".join(labels)


def _ascii(name: str) -> str:
    """Return a name as the network has it: mapped by UTS 46, lower case, labels of other scripts in punycode."""
    if name.isascii():
        return name.lower()
    import idna

    try:
        mapped = idna.uts46_remap(name, std3_rules=False, transitional=False)
        plain = ".".join(
            label if label.isascii() else f"xn--{label.encode('punycode').decode()}"
            for label in mapped.split(".")
        )
    except (idna.IDNAError, UnicodeError):
        raise HostError(f"{_quoted(name)} is no host: it holds a character that none may have.") from None
    try:
        older = name.encode("idna").decode().lower()  # what Python's sockets do with it
    except UnicodeError:
        older = plain
    if older.removesuffix(".") != plain.removesuffix("."):
        raise HostError(
            f"{_quoted(name)} is read as two different hosts ({plain} and {older}): write the one that is meant."
        )
    return plain


def _address_4(labels: list[str], given: str) -> str:
    """Return an address of version 4 in four decimal numbers, from one to four numbers of base 8, 10 or 16."""
    refused = HostError(f"{_quoted(given)} is no address.")
    if len(labels) > 4 or not all(_NUMBER.fullmatch(label) for label in labels):
        raise refused
    try:
        numbers = [_number(label) for label in labels]
    except ValueError:
        raise refused from None
    *firsts, last = numbers
    if any(number > 255 for number in firsts) or last >= 256 ** (5 - len(numbers)):
        raise refused
    return str(ipaddress.IPv4Address(last + sum(number << (24 - 8 * at) for at, number in enumerate(firsts))))


def _number(text: str) -> int:
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if len(text) > 1 and text.startswith("0") else 10)


def _address_6(text: str) -> str:
    """Return an address of version 6 in its shortest form, without its zone, and one of version 4 in it as that."""
    address = text.partition("%")[0]
    try:
        found = ipaddress.IPv6Address(address if address.isascii() else "")
    except ValueError:
        raise HostError(f"{_quoted(f'[{text}]')} is no address.") from None
    return str(found.ipv4_mapped or found)


def _quoted(text: str) -> str:
    return ascii(text if len(text) <= 80 else f"{text[:80]}…")


# Names below which customers have their sites, and that the public suffix list lacks.
_SHARED = frozenset({"glitch.me", "googleusercontent.com", "sharepoint.com"})


@cache
def _public_suffixes() -> tuple[PublicSuffixList, frozenset[str]]:
    """Return the public suffix list that its package carries, and the names below which it has some; no look-up."""
    import publicsuffixlist

    above = set(_SHARED)
    for line in Path(publicsuffixlist.PSLFILE).read_text(encoding="utf-8").splitlines():
        if not line or line.startswith(("//", "!")):
            continue
        name = line.split()[0]
        while "." in (name := name.partition(".")[2]):
            above.add(name)
    # To write its names in punycode takes it longer than to read the list.
    return publicsuffixlist.PublicSuffixList(accept_encoded_idn=False), frozenset(above)


def _has_many_owners(name: str) -> bool:
    """Return whether anybody may have a name below this one, or below one of those that are below it."""
    suffixes, above = _public_suffixes()
    with suppress(UnicodeError):  # a label that is no punycode stands in no list
        name = name.encode().decode("idna")
    return suffixes.is_public(name) or name in above


@dataclass(frozen=True, slots=True)
class HostPattern:
    """A host, or all names below one.

    Attributes:
        host: the host; where `below`, the one whose names are meant, and it not among them.
        below: whether the names below it are meant.
    """

    host: Host
    below: bool = False

    def __str__(self) -> str:
        return f"*.{self.host}" if self.below else str(self.host)

    def admits(self, host: Host) -> bool:
        """Return whether a host is meant, with its port.

        >>> read_host_pattern("*.example.org").admits(read_host("a.b.example.org"))
        True
        """
        if not self.below:
            return host == self.host
        return host.port == self.host.port and host.name.endswith(f".{self.host.name}")


def read_host_pattern(text: str) -> HostPattern:
    """Return what a text means that may stand for all names below a host.

    Args:
        text: as for `read_host`; or ``*.example.org``, with its port or without, where what follows the first label is
            nothing below which anybody may have a name.

    Raises:
        HostError: it is neither.

    Example:
        >>> str(read_host_pattern("*.GoogleVideo.com."))
        '*.googlevideo.com'
    """
    if not text.startswith("*."):
        return HostPattern(read_host(text))
    rest = text[2:]
    if not rest or re.search(r"[/@?#\\%\s*]", rest):
        raise HostError(
            f"{_quoted(text)} is no name with * in place of its first label, such as *.example.org."
        )
    host = read_host(rest)
    if host.address is not None:
        raise HostError(f"{_quoted(text)}: there is nothing below an address.")
    if _has_many_owners(host.name):
        raise HostError(
            f"{_quoted(text)} means names of everybody; name one that has an owner: *.example.org."
        )
    return HostPattern(host, below=True)
