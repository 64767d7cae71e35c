"""Agents that send too much, too slowly, the wrong thing or nothing, and cards that lead elsewhere."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from reyn_jupyter.backends.a2a import remote_peer
from reyn_jupyter.backends.a2a.agent_card import LARGEST_CARD
from reyn_jupyter.backends.a2a.peer_transport import LARGEST_ANSWER
from reyn_jupyter.backends.a2a.remote_peer import RemoteAnswer, RemotePeer
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.secret import Secret
from tests.support.a2a_agents import App, Loopback, card_json, served

CARD = "/.well-known/agent-card.json"


def by_hand(
    card: Callable[[str], Any] = card_json,
    post: Callable[..., Any] | None = None,
    *,
    status: int = 200,
    headers: tuple[tuple[bytes, bytes], ...] = ((b"content-type", b"application/json"),),
) -> Callable[[str], App]:
    """Return an application whose card is `card(url)` and whose answer to a POST is written by `post(body, write)`."""

    def make(url: str) -> App:
        async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
            body = b""
            while (message := await receive())["type"] == "http.request":
                body += message.get("body", b"")
                if not message.get("more_body"):
                    break

            async def write(piece: bytes, more: bool = True) -> None:
                await send({"type": "http.response.body", "body": piece, "more_body": more})

            if scope["path"] == CARD:
                found = card(url)
                said = found if isinstance(found, bytes) else json.dumps(found).encode()
                await send({"type": "http.response.start", "status": status, "headers": list(headers)})
                await write(said, False)
            elif scope["method"] == "POST" and post is not None:
                await post(json.loads(body), send, write)

        return app

    return make


EVENTS = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}


def event(request: dict[str, Any], result: Any) -> bytes:
    return f"data: {json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': result})}\n\n".encode()


TASK = {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}


def text(words: str) -> dict[str, Any]:
    artifact = {"artifactId": "a", "parts": [{"text": words}]}
    return {"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": artifact, "append": True}}


async def asked(site: Loopback, url: str = "", **options: Any) -> RemoteAnswer:
    peer = RemotePeer("sales", url or site.url, **options)
    try:
        return await peer.ask("hi")
    finally:
        await peer.close()


async def code_of(make: Callable[[str], App], **options: Any) -> tuple[str | None, str]:
    with served(make) as site, pytest.raises(ActionError) as caught:
        await asked(site, **options)
    return caught.value.code, caught.value.message


async def test_a_card_that_leads_to_another_host_is_not_followed_and_the_token_stays() -> None:
    with served(by_hand()) as other:
        elsewhere = by_hand(lambda url: card_json(other.url))
        code, words = await code_of(elsewhere, token=Secret("PEER_TOKEN", "correct-horse"))
        assert code == "peer_elsewhere" and other.url in words
        assert other.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/",
        "file:///etc/passwd",
        "http://127.0.0.1:1/",
        "https://127.0.0.1/",
        "\x1b[2K",
        "",
    ],
)
async def test_no_other_address_in_a_card_is_used(url: str) -> None:
    assert (await code_of(by_hand(lambda own: card_json(url))))[0] == "peer_elsewhere"


async def test_an_address_elsewhere_beside_the_right_one_is_left_out() -> None:
    async def post(request: Any, send: Any, write: Any) -> None:
        await send(EVENTS)
        await write(
            event(request, {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}})
        )
        await write(b"", False)

    def both(url: str) -> dict[str, Any]:
        card = card_json(url)
        card["supportedInterfaces"].insert(
            0, {**card["supportedInterfaces"][0], "url": "http://169.254.169.254/"}
        )
        return card

    with served(by_hand(both, post)) as site:
        assert (await asked(site)).text == "hi"


@pytest.mark.parametrize(
    "card",
    [
        b"x" * (2 * LARGEST_CARD),
        b"<html>not found</html>",
        b"[" * 100_000,
        b"[]",
        b"null",
        b"{}",
        b'{"name": {"a": 1}, "supportedInterfaces": "x"}',
        b'{"skills": [1], "securitySchemes": [1]}',
    ],
    ids=["huge", "html", "deep", "list", "null", "empty", "wrong types", "wrong items"],
)
async def test_what_is_no_card_is_said_to_be_none(card: bytes) -> None:
    assert (await code_of(by_hand(lambda url: card)))[0] == "peer_no_card"


@pytest.mark.parametrize(
    ("status", "code"), [(302, "peer_elsewhere"), (401, "peer_denied"), (500, "peer_failed")]
)
async def test_a_card_that_is_refused_or_moved_is_not_followed(status: int, code: str) -> None:
    location = ((b"location", b"http://169.254.169.254/latest/"),)
    assert (await code_of(by_hand(status=status, headers=location)))[0] == code


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1.nip.invalid/", "http://user:pw@127.0.0.1/", "ftp://127.0.0.1/", "javascript:1"]
)
async def test_addresses_that_are_none_or_unknown_are_errors(url: str) -> None:
    with pytest.raises(ActionError):
        await asked(Loopback(0), url)


async def test_a_name_that_leads_into_this_machine_has_to_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    import ipaddress

    from reyn_jupyter.backends.web import web_client

    async def here(name: str, port: int) -> Any:
        return (ipaddress.ip_address("127.0.0.1"),)

    monkeypatch.setattr(web_client, "look_up", here)
    with served(by_hand()) as site:
        url = f"http://agent.example.org:{site.port}"
        with pytest.raises(ActionError) as caught:
            await asked(site, url)
        assert caught.value.code == "address_private" and site.requests == []
        with pytest.raises(ActionError) as caught:
            await asked(site, url, private_hosts=[f"agent.example.org:{site.port}"])
        assert caught.value.code == "peer_elsewhere"  # it was read


async def test_a_token_goes_by_http_to_this_machine_alone() -> None:
    with pytest.raises(ActionError) as caught:
        await asked(Loopback(0), "http://agent.example.org/", token=Secret("PEER_TOKEN", "correct-horse"))
    assert caught.value.code == "peer_not_secure"


async def test_an_endless_stream_is_cut_and_its_task_cancelled() -> None:
    heard = []

    async def post(request: Any, send: Any, write: Any) -> None:
        heard.append(request["method"])
        if request["method"] != "SendStreamingMessage":
            return
        await send(EVENTS)
        await write(event(request, TASK))
        piece = event(request, text("x" * (1 << 20)))
        for _ in range(100):
            await write(piece)

    with served(by_hand(post=post)) as site:
        answer = await asked(site)
    (part,) = answer.parts
    assert part.text is not None and len(part.text) < LARGEST_ANSWER and "Cut:" in answer.text
    assert heard == ["SendStreamingMessage", "CancelTask"]


async def test_an_answer_of_100_mb_in_one_is_refused_while_it_arrives() -> None:
    async def post(request: Any, send: Any, write: Any) -> None:
        await send({**EVENTS, "headers": [(b"content-type", b"application/json")]})
        await write(b'{"jsonrpc": "2.0", "id": 1, "result": {"message": {"parts": [{"text": "')
        for _ in range(100):
            await write(b"x" * (1 << 20))

    tracemalloc.start()
    try:
        assert (await code_of(by_hand(post=post)))[0] == "peer_too_large"
        assert tracemalloc.get_traced_memory()[1] < 4 * LARGEST_ANSWER
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "body",
    [
        b"data: {not json\n\n",
        b"data: []\n\n",
        b'data: {"jsonrpc": "2.0", "id": 1}\n\n',
        b'data: {"jsonrpc": "2.0", "id": 1, "result": {"task": 7}}\n\n',
        b"event: error\ndata: x\n\n",
        b"data: " + b"[" * 100_000 + b"\n\n",
        b"<html>",
        b"",
    ],
    ids=["no json", "list", "nothing", "wrong type", "error event", "deep", "html", "empty"],
)
async def test_an_answer_that_is_none_is_an_error_in_words(body: bytes) -> None:
    async def post(request: Any, send: Any, write: Any) -> None:
        await send(EVENTS)
        await write(body, False)

    code, words = await code_of(by_hand(post=post))
    assert code == "peer_wrong" and "\x1b" not in words


async def test_an_agent_that_dies_in_the_middle_is_asked_about_its_task_and_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_peer, "POLL_LAST", 0.01)
    heard = []

    async def post(request: Any, send: Any, write: Any) -> None:
        heard.append(request["method"])
        if request["method"] != "SendStreamingMessage":
            await send({**EVENTS, "headers": [(b"content-length", b"100")]})
        else:
            await send(EVENTS)
            await write(event(request, TASK))
        # It ends here, and so does the connection.

    code, _ = await code_of(by_hand(post=post))
    assert code in ("web_wrong", "web_unreachable") and set(heard[1:]) == {"GetTask", "CancelTask"}


async def test_an_agent_that_is_not_there_is_said_to_be_unreachable() -> None:
    with served(by_hand()) as site:
        pass
    with pytest.raises(ActionError) as caught:
        await asked(site)
    assert caught.value.code == "web_unreachable"


async def test_a_slow_drip_ends_with_the_time_that_the_caller_gives() -> None:

    async def post(request: Any, send: Any, write: Any) -> None:
        await send(EVENTS)
        while True:
            await write(b": wait\n")
            await asyncio.sleep(0.05)

    with served(by_hand(post=post)) as site, pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await asked(site)


async def test_ids_of_an_agent_are_bounded() -> None:
    async def post(request: Any, send: Any, write: Any) -> None:
        await send(EVENTS)
        message = {"messageId": "m", "contextId": "c" * 10_000, "parts": [{"text": "hi"}]}
        await write(event(request, {"message": message}), False)

    with served(by_hand(post=post)) as site:
        assert (await asked(site)).context_id is None


async def test_an_error_of_an_agent_is_shown_with_its_words_cleaned() -> None:
    async def post(request: Any, send: Any, write: Any) -> None:
        await send(EVENTS)
        error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no\x1b[2K room"}}
        await write(f"data: {json.dumps(error)}\n\n".encode(), False)

    code, words = await code_of(by_hand(post=post))
    assert code == "peer_failed" and "no␛[2K room" in words


@pytest.mark.parametrize(
    ("status", "code"), [(302, "peer_elsewhere"), (401, "peer_denied"), (500, "peer_failed")]
)
async def test_a_request_that_is_refused_or_moved_is_not_followed(status: int, code: str) -> None:
    async def post(request: Any, send: Any, write: Any) -> None:
        location = [(b"location", other.url.encode())]
        await send({**EVENTS, "status": status, "headers": location})
        await write(b"", False)

    with served(by_hand()) as other:
        assert (await code_of(by_hand(post=post)))[0] == code
        assert other.requests == []


async def test_a_token_for_this_machine_goes_through_no_proxy() -> None:
    with served(by_hand()) as proxy, served(by_hand(lambda url: b"[]")) as site:
        with pytest.raises(ActionError):
            await asked(site, token=Secret("PEER_TOKEN", "correct-horse"), proxy=proxy.url)
        assert site.requests and not proxy.requests
