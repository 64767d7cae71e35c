"""Addresses of the Internet Protocol: where a name leads, and how public that is.

Invariant: an address of version 6 that stands for one of version 4 is as public as that one. Sources: the IANA
registries of special-purpose addresses (as `ipaddress` has them), RFC 4291 (2000::/3 is all that is routed), RFC 6052,
RFC 3056.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from enum import IntEnum

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_ROUTED = ipaddress.IPv6Network("2000::/3")
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


class Reach(IntEnum):
    """How public an address is."""

    NOBODY = 0  # link-local (a cloud's metadata among them), multicast, reserved, unspecified
    MACHINE = 1
    NETWORK = 2
    WORLD = 3


def reach(address: Address) -> Reach:
    """Return how public an address is.

    >>> reach(ipaddress.ip_address("10.0.0.7")), reach(ipaddress.ip_address("::ffff:127.0.0.1"))
    (<Reach.NETWORK: 2>, <Reach.MACHINE: 1>)
    """
    plain = _plain(address)
    if plain.is_loopback:
        return Reach.MACHINE
    if plain.is_link_local or plain.is_multicast or plain.is_unspecified or plain.is_reserved:
        return Reach.NOBODY
    is_routed = plain.version == 4 or plain in _ROUTED
    return Reach.WORLD if plain.is_global and is_routed else Reach.NETWORK


def _plain(address: Address) -> Address:
    """Return the address of version 4 that one of version 6 stands for; any other as it is."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _TRANSLATED or (address in _COMPATIBLE and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


async def look_up(name: str, port: int) -> tuple[Address, ...]:
    """Return the addresses of a name, those of version 4 first. Raises OSError where there are none."""
    found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    addresses = [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]
    # Both families of "localhost" are one machine, and a server may listen in one of them.
    return tuple(sorted(dict.fromkeys(addresses), key=lambda address: address.version))
