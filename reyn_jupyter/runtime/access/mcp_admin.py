"""How a category changes which MCP servers a session has.

Invariant: whoever changes them has asked first; the face here writes and tells, and never starts a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol

from reyn_jupyter.runtime.action_error import ActionError

McpScope = Literal["user", "workspace"]


@dataclass(frozen=True)
class DroppedServer:
    """A server that was taken out of its file: where that is, and which of its secrets were forgotten."""

    name: str
    scope: McpScope
    path: str
    secrets: tuple[str, ...] = ()


class McpAdmin(Protocol):
    """The files of servers of a session."""

    def place(self, scope: McpScope) -> str:
        """Return the path of the file that holds the servers of a scope."""

    def scopes(self, name: str) -> tuple[McpScope, ...]:
        """Return the scopes whose file has a server of this name, the person's own first."""

    def add(self, name: str, entry: Mapping[str, Any], scope: McpScope = "user") -> str:
        """Write an entry of the common ``mcpServers`` JSON; return the path of the file. Raises ActionError."""

    def drop(self, name: str, scope: McpScope | None = None) -> DroppedServer:
        """Take a server out of its file, and forget its secrets. Raises ActionError."""

    def missing_secrets(self, name: str) -> tuple[str, ...]:
        """Return the secrets that a server refers to and does not have."""


class NoMcpAdmin:
    """Stands where a session has no files of servers."""

    def place(self, scope: McpScope) -> NoReturn:
        self._refuse()

    def scopes(self, name: str) -> tuple[McpScope, ...]:
        return ()

    def add(self, name: str, entry: Mapping[str, Any], scope: McpScope = "user") -> NoReturn:
        self._refuse()

    def drop(self, name: str, scope: McpScope | None = None) -> NoReturn:
        self._refuse()

    def missing_secrets(self, name: str) -> tuple[str, ...]:
        return ()

    def _refuse(self) -> NoReturn:
        raise ActionError("MCP servers are not kept here.", "Go on without them.", code="not_available")
