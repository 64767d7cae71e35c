"""The way to peers behind an address: by the A2A protocol.

Invariant: a request says how many peers ask one another already, so that sessions that ask each other come to an end.
"""

from __future__ import annotations

from reyn_jupyter.backends.a2a.remote_peer import RemotePeer
from reyn_jupyter.backends.a2a.sdk import A2A_SDK
from reyn_jupyter.config.settings import Peer, Web
from reyn_jupyter.runtime.access.peer_access import CATEGORY, PeerAnswer
from reyn_jupyter.runtime.access.progress_report import ProgressReport
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.call.call_scope import current_call
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.support.secret import Secret


def connect_remote(name: str, peer: Peer, token: Secret | None, web: Web) -> RemoteConnection:
    """Return the connection to a peer behind an address. Raises ActionError.

    Args:
        name, peer: as the settings have it.
        token: what it is shown; None where it takes everybody.
        web: what the settings say of hosts in private networks, and of a proxy.
    """
    if (missing := A2A_SDK.missing()) is not None:
        raise ActionError(missing, "Go on without the peer.", code="peer_unreachable")
    assert peer.url is not None
    remote = RemotePeer(name, peer.url, token, private_hosts=web.private_hosts, proxy=web.proxy)
    return RemoteConnection(remote)


def peers_around(run: Run) -> list[str]:
    """Return the actions of peers that a run is within, the outermost first."""
    return [each.action for each in reversed(run.callers) if each.action.startswith(f"{CATEGORY}__")]


class RemoteConnection:
    """A peer behind an address, see `PeerConnection`."""

    def __init__(self, remote: RemotePeer) -> None:
        self._remote = remote

    async def ask(self, request: str, *, context_id: str | None, report: ProgressReport) -> PeerAnswer:
        """See `PeerConnection.ask`."""
        call = current_call()
        depth = 1 if call is None else len(peers_around(call.run)) + call.run.outermost.depth + 1
        answer = await self._remote.ask(request, context_id=context_id, report=report, depth=depth)
        text = answer.text
        if answer.asks:
            text = f"[the peer asks something before it goes on; the next request to it answers that]\n{text}"
        has_more = not answer.asks and any(part.text is None for part in answer.parts)
        return PeerAnswer(text, answer.context_id, parts=answer.parts if has_more else ())

    async def close(self) -> None:
        """See `PeerConnection.close`."""
        await self._remote.close()
