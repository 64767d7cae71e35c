"""An agent elsewhere, asked over HTTP: the SDK's own server answers in every way that the protocol knows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from reyn_jupyter.backends.a2a.remote_peer import RemotePeer
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.secret import Secret
from tests.support.a2a_agents import EveryAnswer, HelloWorldExecutor, agent
from tests.support.waiting import LoopClock, awaited


@pytest.fixture(scope="module")
def every() -> Iterator[SimpleNamespace]:
    """One agent with every kind of answer."""
    executor = EveryAnswer()
    with agent(executor) as site:
        yield SimpleNamespace(executor=executor, url=site.url)


async def asked(url: str, request: str, **options: Any) -> Any:
    peer = RemotePeer("sales", url, **options)
    try:
        return await peer.ask(request)
    finally:
        await peer.close()


@pytest.mark.parametrize(
    "card",
    [{}, {"streaming": False}, {"binding": "HTTP+JSON"}, {"version": "0.3"}],
    ids=["streaming", "polling", "rest", "0.3"],
)
async def test_the_sample_of_the_sdk_answers(card: dict[str, Any]) -> None:
    with agent(HelloWorldExecutor(), **card) as site:
        answer = await asked(site.url, "hi")
        assert answer.text == "Hello, World!" and answer.context_id


async def test_the_token_goes_with_every_request() -> None:
    with agent(HelloWorldExecutor()) as site:
        await asked(site.url, "hi", token=Secret("PEER_TOKEN", "correct-horse"))
        assert [headers["authorization"] for _, _, headers in site.requests] == ["Bearer correct-horse"] * 2


async def test_progress_is_reported_and_pieces_become_one_text(every: SimpleNamespace) -> None:
    peer, heard = RemotePeer("sales", every.url), []
    answer = await peer.ask("work", report=heard.append)
    assert answer.text == "The answer is forty-two."
    assert heard == ["sales: looking at the first half", "sales: looking at the second half"]
    await peer.close()


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_second_request_goes_on_with_the_conversation_and_answers_what_the_agent_asked(
    streaming: bool,
) -> None:
    executor = EveryAnswer()
    with agent(executor, streaming=streaming) as site:
        peer = RemotePeer("sales", site.url)
        asks = await peer.ask("ask how many")
        assert asks.asks and asks.text == "For which year?"
        answer = await peer.ask("year 2024", context_id=asks.context_id)
        assert not answer.asks and answer.text == "In that year: 7."
        again = await peer.ask("work", context_id=answer.context_id)
        assert again.context_id == answer.context_id == asks.context_id
        assert len(set(executor.contexts)) == 1 and len(executor.heard) == 3
        await peer.close()


async def test_texts_data_files_and_links_are_parts(every: SimpleNamespace) -> None:
    answer = await asked(every.url, "parts")
    text, data, raw, link = answer.parts
    assert text.text == "The figures:" and data.json == {"rows": [1, 2]}
    assert (raw.mime, raw.name, raw.data) == ("text/csv", "figures.csv", b"a,b\n1,2\n")
    assert link.uri == "https://example.org/more"
    assert "figures.csv" in answer.text and '"rows": [1, 2]' in answer.text


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        ("auth", "peer_sign_in", "Please sign in."),
        ("fail", "peer_failed", "The disk␛[2K is full."),
        ("reject", "peer_rejected", "Not my subject."),
    ],
)
async def test_what_is_no_answer_is_an_error_with_the_agents_words(
    every: SimpleNamespace, request_: str, code: str, words: str
) -> None:
    with pytest.raises(ActionError) as caught:
        await asked(every.url, request_)
    assert caught.value.code == code and words in caught.value.message


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_interrupt_cancels_the_task_of_the_agent(streaming: bool) -> None:
    executor = EveryAnswer()
    with agent(executor, streaming=streaming) as site:
        peer = RemotePeer("sales", site.url)
        asking = asyncio.create_task(peer.ask("forever"))
        await awaited(executor.begun.is_set)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await awaited(lambda: executor.cancelled)
        await peer.close()


async def test_a_deadline_cancels_the_task_of_the_agent() -> None:
    async def ask_within(seconds: float) -> None:
        async with asyncio.timeout(seconds):
            await asked(site.url, "forever")

    executor, clock = EveryAnswer(), LoopClock()
    with agent(executor) as site:
        asking = asyncio.create_task(ask_within(1000))
        await awaited(executor.begun.is_set)
        clock.advance(1000)
        with pytest.raises(TimeoutError):
            await asking
        await awaited(lambda: executor.cancelled)
