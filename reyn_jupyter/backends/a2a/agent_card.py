"""The card of an agent elsewhere: where it says what it is, and where requests go.

Invariants: a card is read from the host that the person configured, and no redirect is followed; it has a bounded
size; of the addresses in it those alone are used that lie at that very origin. So a card sends nobody elsewhere, and no
token leaves for a host that the person did not name. A card's signature is not checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.web.web_client import WebAddress, WebClient, WebError, read_address
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.network.hosts import HostError
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import enumerate_words, shorten

if TYPE_CHECKING:
    from a2a.types import AgentCard, AgentInterface

LARGEST_CARD = 256 << 10  # bytes
CARD_PATH = "/.well-known/agent-card.json"
BINDINGS = ("JSONRPC", "HTTP+JSON")
TOO_LARGE = "peer_too_large"
_SHOWN = 3


def card_address(url: str) -> WebAddress:
    """Return where the card of an agent is.

    Args:
        url: the agent's base address, or that of its card, which ends with .json.

    Raises:
        ActionError: it is no address of the web.

    Example:
        >>> card_address("https://agent.example.org/sales/").url
        'https://agent.example.org/sales/.well-known/agent-card.json'
    """
    try:
        address = read_address(url)
        if address.target.partition(b"?")[0].endswith(b".json"):
            return address
        return read_address(address.url.partition("?")[0].rstrip("/") + CARD_PATH)
    except WebError as error:
        raise ActionError(str(error), error.hint, code=error.code) from None


async def read_card(client: WebClient, url: str, headers: Mapping[str, str], peer: str) -> AgentCard:
    """Return the card of an agent, with those of its addresses that may be asked.

    Args:
        client: sends the request.
        url: as for `card_address`.
        headers: go along with it.
        peer: what the agent is called here.

    Raises:
        ActionError: there is none that can be used.
        WebError: it cannot be reached.
    """
    from a2a.client.card_resolver import parse_agent_card
    from google.protobuf.json_format import ParseError

    address = card_address(url)
    answer = await client.get(address, headers={"Accept": "application/json", **headers}, most=LARGEST_CARD)
    if answer.status != 200:
        raise refused_status(peer, str(address.host), answer.status, answer.headers.get("location"))
    if not answer.is_whole:
        raise _no_card(peer, address, f"it has more than {LARGEST_CARD >> 10} KiB")
    try:
        card = parse_agent_card(json.loads(answer.body))
    except (ValueError, RecursionError, ParseError, TypeError, AttributeError, KeyError) as error:
        raise _no_card(peer, address, f"it cannot be read ({type(error).__name__})") from None
    usable: list[AgentInterface] = []
    elsewhere: list[AgentInterface] = []
    for each in card.supported_interfaces:
        if each.protocol_binding in BINDINGS:
            (usable if _is_at(each.url, address) else elsewhere).append(each)
    if not usable and elsewhere:
        where = enumerate_words([_named(each.url) for each in elsewhere[:_SHOWN]])
        raise ActionError(
            f"The card of {peer} sends requests to {where}, and not to {address.origin}, which is configured.",
            "Nothing was sent there. Where that is right, the person can configure that address as the peer's url.",
            code="peer_elsewhere",
        )
    if not usable:
        raise _no_card(peer, address, f"it names no address for {enumerate_words(BINDINGS, 'or')}")
    kept = [type(each).FromString(each.SerializeToString()) for each in usable]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(kept)
    return card


def refused_status(peer: str, host: str, status: int, location: str | None = None) -> ActionError:
    """Return the error for an answer that is none, by its status."""
    if status in (401, 403):
        return ActionError(
            f"{peer} did not let the request in: {host} answered {status}.",
            "The person can name the secret that holds its token, as the peer's token in the settings.",
            code="peer_denied",
        )
    if 300 <= status < 400:
        to = f" to {_named(location)}" if location else ""
        return ActionError(
            f"{peer} redirects{to}, which is not followed.",
            "The person can configure the address where it is now as the peer's url.",
            code="peer_elsewhere",
        )
    return ActionError(
        f"{peer} answered {status} at {host}.", "Look at its address, or try again later.", code="peer_failed"
    )


def _is_at(url: str, origin: WebAddress) -> bool:
    """Return whether a URL is at an origin: the same scheme, host and port."""
    try:
        return read_address(url).origin == origin.origin
    except (WebError, HostError):
        return False


def _named(url: Any) -> str:
    try:
        return read_address(str(url)).origin
    except WebError:
        return shorten(printable(str(url)), 80) or "no address"


def _no_card(peer: str, address: WebAddress, why: str) -> ActionError:
    return ActionError(
        f"What {peer} has at {shorten(address.url, 200)} is no agent card that can be used: {why}.",
        "Look at the peer's url in the settings: an agent of the A2A protocol has a card below it.",
        code="peer_no_card",
    )
