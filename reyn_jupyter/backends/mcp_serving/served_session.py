"""A session that is served as an MCP server, as people hold it: where it is, who is connected, and how it ends.

Invariant: nothing of it shows the token, whatever is printed, displayed or pickled of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.backends.mcp_serving.address_file import TOKEN_NAME, AddressFile
from reyn_jupyter.backends.mcp_serving.connected_clients import ConnectedClient, ConnectedClients

BRIDGE = "reyn_jupyter.mcp_bridge"
SERVER_NAME = "reyn"
STATE_VARIABLE = "REYN_STATE_DIR"


@dataclass(frozen=True, eq=False)
class ServedSession:
    """A session at the other end of MCP: any MCP client of this machine can work with it, under its rules.

    Attributes:
        session: names it among the served sessions of the workspace.
        address: its endpoint, for clients that speak streamable HTTP. They need the token, too.
        wait: seconds that a client's call waits for the person's answer to a question.
        look: to be called when the notebook's variables may have changed, after a cell: clients are told what is new.

    Example:
        >>> served = session.serve_mcp()                  # doctest: +SKIP
        >>> served.address, served.connections            # doctest: +SKIP
        >>> served.stop()                                 # doctest: +SKIP
    """

    session: str
    address: str
    wait: float
    file: AddressFile = field(repr=False)
    clients: ConnectedClients = field(repr=False)
    is_on: Callable[[], bool] = field(repr=False)
    end: Callable[[], None] = field(repr=False)
    serve_here: Callable[[], None] = field(repr=False)
    look: Callable[[], None] = field(repr=False)

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
    def payload(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "running": self.running,
            "session": self.session,
            "address": self.address,
            "token in": str(self.file.path),
            "connections": [vars(each) for each in self.connections],
        }
