"""The peers of a session, as the category `agent.peer` asks them, and the seam to peers behind an address.

Invariant: a peer has no more than whoever asks it: the same rules, the same budget and deadline, and what either has
read of strangers counts for both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NoReturn, Protocol

from reyn_jupyter.config.settings import Peer
from reyn_jupyter.outputs.parts.content_parts import ContentPart
from reyn_jupyter.runtime.access.progress_report import ProgressReport
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.secret import Secret

CATEGORY = "agent.peer"


@dataclass(frozen=True)
class PeerAnswer:
    """The answer of a peer.

    Attributes:
        text: what it said; a stranger's text.
        context_id: what a remote peer knows the conversation by; None where it keeps none.
        parts: the answer again, where it holds more than text.
    """

    text: str
    context_id: str | None = None
    parts: tuple[ContentPart, ...] = ()


def action_of(peer: str) -> str:
    """Return the qualified name of the action that asks a peer.

    >>> action_of("checker")
    'agent.peer__checker'
    """
    return f"{CATEGORY}__{peer}"


class PeerConnection(Protocol):
    """A way to one peer behind an address, kept for the session.

    Before it is used, the call has consent to the host of the peer's address and to its secret; no other host is asked
    anything. A cancellation of `ask` ends the work at the peer.
    """

    async def ask(self, request: str, *, context_id: str | None, report: ProgressReport) -> PeerAnswer:
        """Send a request and wait for the answer.

        Args:
            request: what is asked, without secrets.
            context_id: of an earlier answer, so that the peer remembers; None begins anew.
            report: takes how far the peer is.

        Raises:
            ActionError: the peer cannot be reached, or failed; says why, with a code.
        """

    async def close(self) -> None:
        """End the connection; the next request opens it again."""


# Makes the connection to a peer, by its name and what the settings say of it; the token is revealed where it is sent.
ConnectPeer = Callable[[str, Peer, Secret | None], Awaitable[PeerConnection]]


class PeerAccess(Protocol):
    """The peers of a session."""

    @property
    def missing(self) -> str | None:
        """Return why no peer can be asked, in a sentence; None where one can."""

    async def ask(
        self, name: str, peer: Peer, request: str, *, fresh: bool, report: ProgressReport
    ) -> PeerAnswer:
        """Ask a peer for the call under way, and wait for its answer.

        Args:
            name: of the peer.
            peer: what the settings say of it, as the call was judged.
            request: what is asked.
            fresh: whether the peer forgets first what it was asked before.
            report: takes how far the peer is.

        Raises:
            ActionError: it would wait for its own answer, failed, or reached a limit.
            PermissionDeniedError: its model or its address is on a host that the call may not reach.
        """

    async def close(self) -> None:
        """End the connections to remote peers."""


class NoPeers:
    """Stands where a session has no peers."""

    @property
    def missing(self) -> str | None:
        return "Peers are not available here."

    async def ask(
        self, name: str, peer: Peer, request: str, *, fresh: bool, report: ProgressReport
    ) -> NoReturn:
        raise ActionError(
            f"The peer {name} is not available here.", "Go on without it.", code="not_available"
        )

    async def close(self) -> None:
        """End nothing."""
