"""Requests that a stranger's metadata asks for: none of them reaches a door inside a network."""

from __future__ import annotations

import asyncio

import pytest

from reyn_jupyter.backends.mcp_sign_in.guarded_http import GuardError, guarded_client
from reyn_jupyter.support.hosts import Host


async def ask(server: str, url: str) -> None:
    async def approve(host: Host) -> bool:
        return True

    async with guarded_client(server, approve) as http:
        await http.get(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://10.0.0.5/.well-known/oauth-authorization-server",
        "https://192.168.1.1/token",
        "https://127.0.0.1:8443/token",
        "https://localhost/token",
        "https://2130706433/token",
        "https://[::1]/token",
        "https://[::ffff:10.0.0.5]/token",
        "https://[64:ff9b::a00:5]/token",
        "https://[2002:a00:5::]/token",
        "https://[fd00::1]/token",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/token",
        "https://0.0.0.0/token",
    ],
)
def test_a_public_server_leads_to_no_address_inside_a_network(url: str) -> None:
    with pytest.raises(GuardError, match="inside a network"):
        asyncio.run(ask("https://1.1.1.1/mcp", url))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://1.1.1.1/token", "over http, and not https"),
        ("http://127.0.0.1/token", "over http, and not https"),
        ("https://bank.example@1.1.1.1/token", "user's name"),
    ],
)
def test_an_address_that_is_not_plain_https_is_not_asked(url: str, said: str) -> None:
    with pytest.raises(GuardError, match=said):
        asyncio.run(ask("https://1.1.1.1/mcp", url))


def test_a_server_inside_a_network_may_name_another_there_and_none_on_this_machine() -> None:
    with pytest.raises(GuardError, match="inside a network"):
        asyncio.run(ask("https://10.0.0.5/mcp", "https://127.0.0.1:9/token"))
    with pytest.raises(GuardError, match="over http"):
        asyncio.run(ask("https://10.0.0.5/mcp", "http://10.0.0.6/token"))
