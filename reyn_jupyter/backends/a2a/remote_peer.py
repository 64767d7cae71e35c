"""One agent elsewhere, asked by the A2A protocol.

Invariants: requests and their token go to the origin that the person configured, and nowhere else; by plain http a
token goes to this machine alone. Each exchange ends: with an answer, an error in words, or, where the caller is
interrupted or its time is over, with word to the agent that its task is cancelled. What an agent says is a stranger's
text, and is handed on as nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from reyn_jupyter.backends.a2a.agent_card import BINDINGS, TOO_LARGE, card_address, read_card, refused_status
from reyn_jupyter.backends.a2a.peer_answer import LONGEST_WORDS, AnswerInParts, RemoteAnswer
from reyn_jupyter.backends.a2a.sdk import A2A_SDK
from reyn_jupyter.backends.web.web_client import WebClient, WebError
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from a2a.client import Client
    from a2a.types import AgentCard, Message

CARD_SECONDS = 300.0  # for which a card that was read is believed
ONE_SECONDS = 30.0  # for a request that is answered at once: the card, a look at a task, its end
POLL_FIRST, POLL_LAST = 0.5, 5.0  # seconds between two looks at a task that goes on
DEPTH_KEY = "reyn.depth"  # in a message's metadata
MOST_LOST = 5  # looks in a row that may fail
_WAIT_FOR_CANCEL = 2.0  # seconds that an interrupted call waits for the agent to hear of it
_MOST_OPEN = 200  # conversations in which an agent has asked something
_WORDS = 200  # characters of progress

Report = Callable[[str], None]


def _unheard(words: str) -> None:
    """Take a word on the progress that nobody wants."""


class RemotePeer:
    """Asks one agent. One a session; `close` ends its connections. It belongs on the engine's loop.

    Args:
        name: what the agent is called here.
        url: its base address, or that of its card.
        token: what each request carries; None where the agent takes everybody.
        private_hosts: hosts that may be on this machine or in a private network, as `str(Host)`. The agent's own is
            one of them where its url is an address or localhost, and so says itself where it leads.
        proxy: the URL of a proxy that all requests go through, but for those to this machine.

    Example:
        >>> peer = RemotePeer("sales", "https://agent.example.org")                      # doctest: +SKIP
        >>> answer = await peer.ask("How many orders are open?")                         # doctest: +SKIP
        >>> (await peer.ask("And in March?", context_id=answer.context_id)).text         # doctest: +SKIP
    """

    def __init__(
        self,
        name: str,
        url: str,
        token: Secret | None = None,
        *,
        private_hosts: Collection[str] = (),
        proxy: str | None = None,
    ) -> None:
        self.name = name
        self.url = url
        self._at = card_address(url)
        host = self._at.host
        says_itself = host.address is not None or host.is_here
        own = {str(host)} if says_itself else set()
        self._web = WebClient({*private_hosts, *own}, None if host.is_here else proxy)
        self._token = token
        self._card: tuple[float, AgentCard] | None = None
        # Conversations in which the agent has asked something → the task that the answer belongs to.
        self._asked: LRUCache[str, str] = LRUCache(_MOST_OPEN)
        self._cancelling: set[asyncio.Task[None]] = set()

    async def ask(
        self, request: str, *, context_id: str | None = None, report: Report = _unheard, depth: int = 0
    ) -> RemoteAnswer:
        """Send a request, and return the answer once there is one. How long that may take is the caller's to say: who
        cancels this ends the agent's task.

        Args:
            request: the words.
            context_id: the conversation that it goes on with; None begins one.
            report: takes the agent's words on its progress.
            depth: how many peers ask one another, this one among them; an agent that is such a session keeps count.

        Raises:
            ActionError: there is no answer; it says why, and what to do.
        """
        if (missing := A2A_SDK.missing()) is not None:
            raise ActionError(missing, "The person can install it.", code="peer_not_installed")
        await A2A_SDK.load()
        try:
            return await self._exchange(request, context_id, report, depth)
        except WebError as error:
            raise ActionError(str(error), error.hint, code=error.code) from None

    async def close(self) -> None:
        """End all connections."""
        for task in self._cancelling:
            task.cancel()
        await self._web.close()

    async def _exchange(
        self, request: str, context_id: str | None, report: Report, depth: int
    ) -> RemoteAnswer:
        from a2a.helpers import new_text_message
        from a2a.types import Role

        headers = self._headers()
        card = await self._read_card(headers)
        asked = self._asked.pop(context_id, None) if context_id is not None else None
        message = new_text_message(request, context_id=context_id, task_id=asked, role=Role.ROLE_USER)
        if depth:
            message.metadata.update({DEPTH_KEY: depth})
        answer, cut = AnswerInParts(), ""
        # In a task of its own, so that an interrupt can still hear which task of the agent's it ends.
        talk = asyncio.create_task(self._converse(headers, card, message, answer, report))
        try:
            cut = await asyncio.shield(talk)
        except BaseException as error:
            self._card = None  # it may be another agent by now
            await self._end(headers, card, answer, talk)
            if isinstance(error, Exception) and not isinstance(error, ActionError | WebError):
                raise self._explained(error) from None
            raise
        if cut:
            await self._end(headers, card, answer, talk)
        return self._result(answer, context_id, cut)

    @asynccontextmanager
    async def _client(self, headers: dict[str, str], card: AgentCard) -> AsyncIterator[Client]:
        """Yield the SDK's client; what it has open ends with it."""
        import httpx
        from a2a.client import ClientConfig
        from a2a.client.client_factory import ClientFactory

        from reyn_jupyter.backends.a2a.peer_transport import PeerTransport

        transport = PeerTransport(self._web, self._at)
        async with httpx.AsyncClient(transport=transport, headers=headers, trust_env=False) as http:
            streams = card.capabilities.streaming
            config = ClientConfig(
                streaming=streams,
                # Where nothing streams, the agent is to say at once which task it is, so that it can be cancelled.
                polling=not streams,
                httpx_client=http,
                supported_protocol_bindings=list(BINDINGS),
            )
            yield ClientFactory(config).create(card)

    def _headers(self) -> dict[str, str]:
        if self._token is None:
            return {}
        if self._at.scheme == "http" and not self._at.host.is_here:
            raise ActionError(
                f"{self.name} is configured with a token and a url of plain http, which would show it on the way.",
                "The person can configure an https:// url.",
                code="peer_not_secure",
            )
        return {"Authorization": f"Bearer {self._token.reveal()}"}

    async def _read_card(self, headers: dict[str, str]) -> AgentCard:
        now = asyncio.get_running_loop().time()
        if self._card is None or now - self._card[0] > CARD_SECONDS:
            self._card = (now, await read_card(self._web, self.url, headers, self.name))
        return self._card[1]

    async def _converse(
        self,
        headers: dict[str, str],
        card: AgentCard,
        message: Message,
        answer: AnswerInParts,
        report: Report,
    ) -> str:
        """Send a message, take what comes until it is over; return why the rest was left out, "" where nothing is."""
        from a2a.client.errors import A2AClientError
        from a2a.types import SendMessageRequest

        async with self._client(headers, card) as client:
            try:
                async for event in client.send_message(SendMessageRequest(message=message)):
                    if words := answer.take(event):
                        report(shorten(f"{self.name}: {words}", _WORDS))
                    if answer.is_over:
                        break
            except (WebError, A2AClientError) as error:
                if isinstance(error, WebError) and error.code == TOO_LARGE and answer.holds_something:
                    return str(error)
                if not answer.task or not _is_lost(error):
                    raise
            await self._poll(client, answer, report)
        return ""

    async def _poll(self, client: Client, answer: AnswerInParts, report: Report) -> None:
        """Look at a task until it is over, more and more seldom."""
        from a2a.client.errors import A2AClientError
        from a2a.types import GetTaskRequest

        wait, lost = POLL_FIRST, 0
        while not answer.is_over:
            if not answer.task:
                raise ActionError(
                    f"{self.name} ended its answer before there was one.", "Ask again, or go on without it.",
                    code="peer_wrong",
                )  # fmt: skip
            await asyncio.sleep(wait)
            wait = min(2 * wait, POLL_LAST)
            try:
                async with asyncio.timeout(ONE_SECONDS):
                    task = await client.get_task(GetTaskRequest(id=answer.task))
                lost = 0
            except (WebError, A2AClientError) as error:
                lost += 1
                if lost > MOST_LOST or not _is_lost(error):
                    raise
                continue
            if words := answer.take_task(task):
                report(shorten(f"{self.name}: {words}", _WORDS))

    async def _end(
        self, headers: dict[str, str], card: AgentCard, answer: AnswerInParts, talk: asyncio.Task[str]
    ) -> None:
        """Tell the agent that its task is cancelled, and wait a moment for that; also where this call is cancelled."""
        import anyio

        with anyio.CancelScope(shield=True):
            if not talk.done():
                named = asyncio.create_task(answer.named.wait())
                await asyncio.wait(
                    [talk, named], timeout=_WAIT_FOR_CANCEL, return_when=asyncio.FIRST_COMPLETED
                )
                named.cancel()
                talk.cancel()
                await asyncio.wait([talk], timeout=_WAIT_FOR_CANCEL)
            if not answer.task or answer.is_over:
                return
            task = asyncio.create_task(self._cancel(headers, card, answer.task))
            self._cancelling.add(task)
            task.add_done_callback(self._cancelling.discard)
            await asyncio.wait([task], timeout=_WAIT_FOR_CANCEL)

    async def _cancel(self, headers: dict[str, str], card: AgentCard, task: str) -> None:
        from a2a.types import CancelTaskRequest

        try:
            async with asyncio.timeout(ONE_SECONDS), self._client(headers, card) as client:
                await client.cancel_task(CancelTaskRequest(id=task))
        except Exception:  # noqa: BLE001 - it may be gone, have ended, or know no cancelling: nothing is left to do
            return

    def _result(self, answer: AnswerInParts, context_id: str | None, cut: str) -> RemoteAnswer:
        """Return the answer. Raises ActionError where the agent's task did not come to its end."""
        said = f" It said: {answer.words}" if answer.words else ""
        match answer.state:
            case "AUTH_REQUIRED":
                raise ActionError(
                    f"{self.name} wants somebody to sign in with it.{said}",
                    "The person can do that, or configure another token for it.",
                    code="peer_sign_in",
                )
            case "FAILED":
                raise ActionError(f"{self.name} failed.{said}", "Go on without it.", code="peer_failed")
            case "REJECTED":
                raise ActionError(
                    f"{self.name} declined the request.{said}", "Ask otherwise.", code="peer_rejected"
                )
            case "CANCELED":
                raise ActionError(
                    f"The task of {self.name} was cancelled there.{said}", "Ask again.", code="peer_cancelled"
                )
        found = answer.answer(context_id, f"Cut: {cut}" if cut else "")
        if found.asks and found.context_id is not None:
            self._asked[found.context_id] = answer.task
        return found

    def _explained(self, error: Exception) -> ActionError:
        """Return the error for what the SDK raised."""
        import httpx
        from a2a.client.errors import A2AClientError
        from a2a.utils.errors import A2AError

        cause: Any = error.__cause__
        if isinstance(cause, httpx.HTTPStatusError):
            response = cause.response
            return refused_status(
                self.name, str(self._at.host), response.status_code, response.headers.get("location")
            )
        words = shorten(visible(" ".join(str(error).split())), LONGEST_WORDS // 4)
        if isinstance(error, A2AError) and not isinstance(error, A2AClientError):
            return ActionError(
                f"{self.name} answered with an error ({type(error).__name__}): {words}",
                "Ask otherwise, or go on without it.",
                code="peer_failed",
            )
        return ActionError(
            f"{self.name} sent an answer that is none of the A2A protocol ({type(error).__name__}): {words}",
            "Go on without it.",
            code="peer_wrong",
        )


def _is_lost(error: Exception) -> bool:
    """Return whether a failure says that the connection was lost, and nothing of the task."""
    return isinstance(error, WebError) and error.code in ("web_unreachable", "web_wrong")
