"""A session as an A2A agent: its card, and the turns that its clients ask for.

Invariant: a message begins a turn of the session's agent and nothing else: what that may do is judged as for a model,
and what asks asks the person in the notebook.
"""

from __future__ import annotations

from pathlib import Path

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

from reyn_jupyter.backends.serving.agent_endpoint import AgentEndpoint
from reyn_jupyter.backends.serving.connected_clients import ConnectedClients
from reyn_jupyter.backends.serving.door import Door
from reyn_jupyter.backends.serving.served_session import AGENT_PATH
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.sessions.serving.client_turns import ClientTurns
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import shorten
from reyn_jupyter.support.versions import versions

_TEXT = ("text/plain",)
_TAKEN = ("text/plain", "application/json")
_MOST_SKILLS = 64
_LONGEST = 300  # characters of one description
_VERSIONS = ("1.0", "0.3")
DESCRIPTION = (
    "The agent of a person's notebook: it answers requests about the notebook's data, files and results with the "
    "actions below, and under the person's rules. What changes something asks the person, and may be denied."
)


class AgentService:
    """Answers the A2A clients of one session. All of it belongs on the engine's loop.

    Args:
        parts: the session's.
        clients: who is heard of, and how much of theirs runs.
        wait: seconds that a question to the person stays open.
        door: where they come in.
    """

    def __init__(self, parts: Parts, clients: ConnectedClients, wait: float, door: Door) -> None:
        self._parts = parts
        self._url = door.origin + AGENT_PATH
        endpoint = AgentEndpoint(ClientTurns(parts, clients, wait), self.card, clients)
        self.paths, self.running, self.answer = endpoint.paths, endpoint.running, endpoint.answer

    def look_soon(self) -> None:
        """Take note that a cell may have changed what there is: the card says it when it is next read."""

    def card(self) -> AgentCard:
        """Return what the agent says of itself."""
        notebook = self._parts.notebook
        where = f" of {printable(Path(notebook).name[:100])}" if notebook else ""
        return AgentCard(
            name=f"reyn: the agent{where or ' of a notebook'}",
            description=DESCRIPTION,
            version=versions()["reyn-jupyter"],
            supported_interfaces=[
                AgentInterface(url=self._url, protocol_binding="JSONRPC", protocol_version=each)
                for each in _VERSIONS
            ],
            capabilities=AgentCapabilities(streaming=True),
            default_input_modes=_TAKEN,
            default_output_modes=_TEXT,
            security_schemes={
                "bearer": SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="bearer"))
            },
            security_requirements=[SecurityRequirement(schemes={"bearer": StringList()})],
            skills=self._skills(),
        )

    def _skills(self) -> list[AgentSkill]:
        """Return a skill for each kind of action that a model is offered."""
        snapshot = self._parts.catalog.latest
        categories = () if snapshot is None else snapshot.categories
        return [
            AgentSkill(
                id=each.name,
                name=each.name,
                description=shorten(self._parts.redactor.text(each.capability), _LONGEST),
                tags=["notebook"],
            )
            for each in categories[:_MOST_SKILLS]
        ]
