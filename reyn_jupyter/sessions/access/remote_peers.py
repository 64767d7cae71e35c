"""The way to peers behind an address: by the A2A protocol."""

from __future__ import annotations

from reyn_jupyter.backends.a2a.remote_peer import RemotePeer
from reyn_jupyter.backends.a2a.sdk import A2A_SDK
from reyn_jupyter.config.settings import Peer, Web
from reyn_jupyter.runtime.access.peer_access import PeerAnswer, PeerReport
from reyn_jupyter.runtime.action_error import ActionError
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


class RemoteConnection:
    """A peer behind an address, see `PeerConnection`."""

    def __init__(self, remote: RemotePeer) -> None:
        self._remote = remote

    async def ask(self, request: str, *, context_id: str | None, report: PeerReport) -> PeerAnswer:
        """See `PeerConnection.ask`."""
        answer = await self._remote.ask(request, context_id=context_id, report=report)
        text = answer.text
        if answer.asks:
            text = f"[the peer asks something before it goes on; the next request to it answers that]\n{text}"
        has_more = not answer.asks and any(part.text is None for part in answer.parts)
        return PeerAnswer(text, answer.context_id, parts=answer.parts if has_more else ())

    async def close(self) -> None:
        """See `PeerConnection.close`."""
        await self._remote.close()
