"""A host has one spelling; what libraries read in two ways has none."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.support.network.hosts import HostError, read_host


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("a.example.org", "a.example.org"),
        ("HTTP://A.Evil.org.:443/x", "a.evil.org"),
        ("https://user:p@ss@a.example.org:8443/x?y#z", "a.example.org:8443"),
        ("//a.example.org/x", "a.example.org"),
        ("http:/a.example.org", "a.example.org"),
        ("http:a.example.org", "a.example.org"),
        ("http:\\\\a.example.org\\x", "a.example.org"),
        (" http://a.exa\tmple.org\n", "a.example.org"),
        ("http://%61.example.org", "a.example.org"),
        ("a.example.org.", "a.example.org"),
        ("a。example．org｡", "a.example.org"),
        ("ａ.ＥＸＡＭＰＬＥ.org", "a.example.org"),
        ("a.exam\u00adple.org", "a.example.org"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("my_service:6379", "my_service:6379"),
        ("redis://:secret@db:6379/0", "db:6379"),
        ("localhost:8080", "localhost:8080"),
        ("a.example.org:", "a.example.org"),
        ("a.example.org:080", "a.example.org"),
        ("127.1", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("１２７.０.０.１", "127.0.0.1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("[::ffff:7f00:1]:22", "127.0.0.1:22"),
        ("[::1]", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("[FE80::1%25eth0]", "fe80::1"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_a_host_has_one_spelling(text: str, host: str) -> None:
    assert str(read_host(text)) == host
    assert str(read_host(host)) == host


@pytest.mark.parametrize(
    "text",
    [
        "", ".", "a..org", "a.org..", ".a.org", "*.evil.org", "a b.org", "a<b.org", "a.org|b", "a.org^b", "a\0.org",
        "%2561.org", "%ff.org", "a%2forg", "evil.org%40good.org", "a.org%", "http://", "https:///", "file:///x",
        "1.2.3.4.5", "256.1.1.1", "1.2.3.999", "4294967296", "a.1", "0x7g.1", "08.1", "[::1", "[::1]x", "[::g]",
        "1:2:3", "a.org:65536", "a.org:-1", "a.org:８０", "a.org:8x", "http:8080", "℀.org", "x" * 64 + ".org",
        ".".join(["abc"] * 70), "\ud800.org", "a.org" + "/" * 3000,
    ],
)  # fmt: skip
def test_what_names_no_host_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(HostError, match=r"\.$"):
        read_host(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://good.org\\@evil.org/",  # a browser stops at the backslash; Python takes what stands before for a user
        "good.org\\@evil.org",
        "faß.example",  # IDNA of 2003: fass.example
        "βόλος.example",
        "x\u200dy.example",
    ],
)
def test_what_libraries_read_as_two_hosts_is_refused(text: str) -> None:
    with pytest.raises(HostError, match="two different hosts"):
        read_host(text)


@given(st.lists(st.integers(0, 2**32), min_size=1, max_size=4), st.data())
def test_an_address_in_numbers_is_the_one_that_a_socket_connects_to(
    numbers: list[int], data: st.DataObject
) -> None:
    spelled = data.draw(
        st.tuples(*(st.sampled_from((f"{each}", f"{each:#x}", f"0{each:o}")) for each in numbers))
    )
    text = ".".join(spelled)
    try:
        meant = socket.inet_ntoa(socket.inet_aton(text))
    except OSError:
        with pytest.raises(HostError):
            read_host(text)
    else:
        assert str(read_host(text)) == meant
