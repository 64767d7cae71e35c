"""A served session as a view: where it is, how clients are told of it, and who is connected.

Invariant: the token is in none of it. What clients say of themselves is text.
"""

from __future__ import annotations

import json
import shlex
import time
from typing import TYPE_CHECKING

from reyn_jupyter.backends.serving.served_session import CARD_PATH, OFFERS
from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Cell,
    Code,
    Column,
    Commands,
    Facts,
    Grid,
    Notice,
    Section,
    View,
    number_cell,
)
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.support.text import age, count

if TYPE_CHECKING:
    from reyn_jupyter.backends.serving.address_file import OfferName
    from reyn_jupyter.backends.serving.connected_clients import ConnectedClient
    from reyn_jupyter.backends.serving.served_session import ServedSession

_CLIENTS = 20
_LONGEST = 4000  # characters of a configuration, which is no use when it is cut


def served_session(served: ServedSession, look: Look) -> View:
    """Return the card of a served session."""
    if not served.running:
        ended = Notice(
            "It has ended: its address is closed, and its token is worth nothing any more.", "muted"
        )
        badge = Badge("off", "muted")
        return View("serve", _title(served), (badge,), (), (ended, Commands(_begin(served))))
    facts = Facts(
        (
            *(_address(each, served, look) for each in served.offers),
            (
                "token",
                look.text(f"in {served.file.path}, which only you can read; never in this notebook", 400),
            ),
            ("session", look.text(served.session, 40)),
            (
                "consent",
                f"what would ask asks here, and is denied after {served.wait:g} seconds without an answer",
            ),
            ("ends", "with %reyn serve stop, %reyn reset, or the kernel"),
        )
    )
    blocks: list[Block] = [facts]
    if served.connections:
        blocks.append(_grid(served.connections, look))
    else:
        blocks.append(Notice("No client has connected yet.", "muted"))
    read_token = shlex.join((*served.bridge_command, "--token"))
    if "mcp" in served.offers:
        blocks += [
            _configuration("For an MCP client that starts programs (stdio)", served.stdio_entry, look),
            _configuration("For an MCP client that speaks HTTP", served.http_entry, look),
        ]
    if "a2a" in served.offers:
        blocks.append(_configuration("For an A2A client, such as another session", served.peer_entry, look))
    blocks += [
        Section(
            "The token, for the client's environment; type this in a terminal",
            (Code(look.text(read_token, _LONGEST)),),
        ),
        Commands(("%reyn serve", "%reyn approvals", "%reyn serve stop")),
    ]
    connected = f"{count(sum(each.is_connected for each in served.connections), 'client')} connected"
    return View(
        "serve",
        _title(served),
        (Badge("on", "good"),),
        (connected,),
        tuple(blocks),
        ".connections",
    )


def _title(served: ServedSession) -> str:
    return "This session as an " + " and an ".join(OFFERS[each] for each in served.offers)


def _begin(served: ServedSession) -> tuple[str, ...]:
    return tuple(f"%reyn serve {each}" for each in served.offers)


def _address(offer: OfferName, served: ServedSession, look: Look) -> tuple[str, str]:
    if offer == "mcp":
        return "address", look.text(served.address, 200)
    return "agent", look.text(f"{served.agent_address}, with its card at {CARD_PATH}", 200)


def _configuration(heading: str, entry: object, look: Look) -> Section:
    return Section(heading, (Code(look.text(json.dumps(entry, indent=2, ensure_ascii=False), _LONGEST)),))


def _grid(clients: tuple[ConnectedClient, ...], look: Look) -> Grid:
    columns = (
        Column("client, as it says", header=True),
        Column("process", right=True),
        Column("state"),
        Column("calls", right=True),
        Column("errors", right=True),
        Column("last heard of"),
    )
    now = time.time()
    rows = tuple(_row(each, look, now) for each in clients[:_CLIENTS])
    rest = len(clients) - len(rows)
    return Grid("", columns, rows, f"… {count(rest, 'more client')}; .connections holds all" if rest else "")


def _row(client: ConnectedClient, look: Look, now: float) -> tuple[Cell, ...]:
    if client.left:
        state = Cell("left", "muted", "badge")
    elif client.under_way:
        state = Cell(count(client.under_way, "call") + " under way", "info", "badge")
    elif client.is_connected:
        state = Cell("connected", "good", "badge")
    else:  # between two requests nobody knows whether it is still there
        state = Cell("silent", "muted", "badge")
    return (
        Cell(look.line(client.name, 140)),
        Cell("") if client.process is None else number_cell(str(client.process), client.process),
        state,
        number_cell(f"{client.calls:,}", client.calls),
        number_cell(f"{client.errors:,}", client.errors, "bad" if client.errors else "plain"),
        number_cell(f"{formatting.moment(client.last)}, {age(now - client.last)} ago", client.last),
    )
