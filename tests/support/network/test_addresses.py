"""How public an address is, in every form that one can be written in."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.support.network.addresses import Reach, reach


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("93.184.216.34", Reach.WORLD),
        ("2606:2800:220:1::1", Reach.WORLD),
        ("127.0.0.1", Reach.MACHINE),
        ("127.9.9.9", Reach.MACHINE),
        ("::1", Reach.MACHINE),
        ("10.0.0.1", Reach.NETWORK),
        ("172.16.0.1", Reach.NETWORK),
        ("192.168.1.1", Reach.NETWORK),
        ("100.64.0.1", Reach.NETWORK),  # shared by a provider's customers
        ("198.18.0.1", Reach.NETWORK),
        ("fd00::1", Reach.NETWORK),
        ("fec0::1", Reach.NETWORK),
        ("64:ff9b:1::1", Reach.NETWORK),
        ("2001:db8::1", Reach.NETWORK),
        ("2001::1", Reach.NETWORK),  # Teredo
        ("169.254.169.254", Reach.NOBODY),
        ("fe80::1", Reach.NOBODY),
        ("0.0.0.0", Reach.NOBODY),
        ("::", Reach.NOBODY),
        ("224.0.0.1", Reach.NOBODY),
        ("ff02::1", Reach.NOBODY),
        ("255.255.255.255", Reach.NOBODY),
        ("240.0.0.1", Reach.NOBODY),
    ],
)
def test_an_address_is_as_public_as_the_registries_say(text: str, expected: Reach) -> None:
    address = ipaddress.ip_address(text)
    # NETWORK and NOBODY are both refused; what differs between versions of Python is the word for some reserved ones.
    assert reach(address) is expected or {reach(address), expected} == {Reach.NETWORK, Reach.NOBODY}


@given(st.ip_addresses(v=4))
def test_an_address_of_version_6_is_as_public_as_the_one_of_version_4_in_it(
    four: ipaddress.IPv4Address,
) -> None:
    bits = int(four)
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | bits)
    translated = ipaddress.IPv6Address((0x0064FF9B << 96) | bits)
    six_to_four = ipaddress.IPv6Address((0x2002 << 112) | (bits << 80))
    assert reach(mapped) is reach(translated) is reach(six_to_four) is reach(four)
    if bits > 1:
        assert reach(ipaddress.IPv6Address(bits)) is reach(four)
