"""A session that is served, as people hold it: as what, where it is, who is connected, and how it ends.

Invariant: nothing of it shows the token, whatever is printed, displayed or pickled of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.backends.serving.address_file import TOKEN_NAME, AddressFile, OfferName
from reyn_jupyter.backends.serving.connected_clients import ConnectedClient, ConnectedClients

BRIDGE = "reyn_jupyter.mcp_bridge"
SERVER_NAME = "reyn"
AGENT_TOKEN_NAME = "NOTEBOOK_TOKEN"  # noqa: S105 - a proposal for the name of a secret
MCP_PATH = "/mcp"
AGENT_PATH = "/a2a"
CARD_PATH = "/.well-known/agent-card.json"
OFFERS: dict[OfferName, str] = {"mcp": "MCP server", "a2a": "A2A agent"}
STATE_VARIABLE = "REYN_STATE_DIR"


@dataclass(frozen=True, eq=False)
class ServedSession:
    """A session that programs of this machine can work with, under its rules: as an MCP server, an A2A agent, or both.

    Attributes:
        session: names it among the served sessions of the workspace.
        origin: where it is. Whoever asks there needs the token, too.
        wait: seconds that a client's call waits for the person's answer to a question.
        add: begins to serve it as something more.
        look: to be called when the notebook's variables may have changed, after a cell: clients are told what is new.

    Example:
        >>> served = session.serve_mcp()                  # doctest: +SKIP
        >>> served.address, served.connections            # doctest: +SKIP
        >>> served.stop()                                 # doctest: +SKIP
    """

    session: str
    origin: str
    wait: float
    file: AddressFile = field(repr=False)
    clients: ConnectedClients = field(repr=False)
    is_on: Callable[[], bool] = field(repr=False)
    end: Callable[[], None] = field(repr=False)
    serve_here: Callable[[], None] = field(repr=False)
    look: Callable[[], None] = field(repr=False)
    add: Callable[[OfferName], Awaitable[None]] = field(repr=False)
    offered: Callable[[], tuple[OfferName, ...]] = field(repr=False)

    @property
    def offers(self) -> tuple[OfferName, ...]:
        """Return what it is served as."""
        return self.offered()

    @property
    def address(self) -> str:
        """Return its endpoint for MCP clients that speak streamable HTTP."""
        return self.origin + MCP_PATH

    @property
    def agent_address(self) -> str:
        """Return the base address for A2A clients: its agent card lies below it."""
        return self.origin

    @property
    def title(self) -> str:
        """Return what it is served as, in words."""
        return " and ".join(OFFERS[each] for each in self.offers)

    @property
    def running(self) -> bool:
        """Return whether clients are answered."""
        return self.is_on()

    @property
    def connections(self) -> tuple[ConnectedClient, ...]:
        """Return the clients that were there, the one heard of last first; what they say of themselves is unchecked."""
        return self.clients.all()

    def stop(self) -> None:
        """End it: the address is closed, calls under way are cancelled, and the token is worth nothing any more."""
        self.end()

    def join(self) -> None:
        """Wait, in a script, until it is stopped or the person interrupts; this thread serves calls meanwhile."""
        self.serve_here()

    @property
    def bridge_command(self) -> tuple[str, ...]:
        """Return the program that joins a client's pipes to the newest served session of this workspace.

        Python looks for it in installed places alone, whatever folder a client starts it in.
        """
        return (sys.executable, "-P", "-m", BRIDGE, "--workspace", str(self.file.root))

    @property
    def stdio_entry(self) -> dict[str, Any]:
        """Return the ``mcpServers`` JSON for a client that starts programs. It stays right for later kernels."""
        command, *args = self.bridge_command
        entry: dict[str, Any] = {"command": command, "args": args}
        if STATE_VARIABLE in os.environ:
            entry["env"] = {STATE_VARIABLE: os.environ[STATE_VARIABLE]}
        return {"mcpServers": {SERVER_NAME: entry}}

    @property
    def http_entry(self) -> dict[str, Any]:
        """Return the ``mcpServers`` JSON for a client that speaks HTTP; a variable stands in place of the token."""
        headers = {"Authorization": f"Bearer ${{{TOKEN_NAME}}}"}
        return {"mcpServers": {SERVER_NAME: {"type": "http", "url": self.address, "headers": headers}}}

    @property
    def peer_entry(self) -> dict[str, Any]:
        """Return what another session's settings need to ask this one: a secret's name stands in place of the token."""
        return {"peers": {"notebook": {"url": self.agent_address, "token": AGENT_TOKEN_NAME}}}

    @property
    def payload(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "running": self.running,
            "session": self.session,
            **({"address": self.address} if "mcp" in self.offers else {}),
            **({"agent": self.agent_address} if "a2a" in self.offers else {}),
            "token in": str(self.file.path),
            "connections": [vars(each) for each in self.connections],
        }
