"""What a run says was sent is what went out: hosts and bytes as a real server counts them."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.providers import litellm_loader
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.notebook.render import to_text, view
from reyn_jupyter.runtime.record.events import RequestSent
from reyn_jupyter.runtime.record.trace import Trace
from tests.support.openai_server import Answer, Call, Failure, OpenAIServer, Received

HOST = "api.models.test"
READ = Answer(calls=(Call("invoke_action", {"action_name": "file__read", "args": {"path": "notes.txt"}}),))


@pytest.fixture(scope="module")
def running() -> Iterator[OpenAIServer]:
    litellm_loader.load()
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def server(running: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    """A server that answers under names of hosts elsewhere too."""
    resolve = socket.getaddrinfo

    def resolved(host: Any, *args: Any, **options: Any) -> Any:
        named = host.decode() if isinstance(host, bytes) else str(host)
        return resolve("127.0.0.1" if named.endswith(".models.test") else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-0123456789abcdefghijklmnop")
    running.clear()
    running.otherwise = Answer("ok")
    return running


def address(server: OpenAIServer, host: str = HOST) -> str:
    return server.url.replace("127.0.0.1", host)


@pytest.fixture
def session(workspace: Path, server: OpenAIServer) -> Callable[..., reyn.Session]:
    def make(base: str | None = None, model: str = "openai/gpt-4o-mini") -> reyn.Session:
        entry = {"model": model, "api_base": base or address(server)}
        config = {"models": {"standard": entry}, "router": {"limits": {"retries": 1}}}
        return reyn.Session(workspace, config=config)

    return make


def lengths(requests: list[Received]) -> int:
    return sum(int(request.headers["content-length"]) for request in requests)


def card(trace: Trace) -> str:
    return to_text(view(trace))


def names(items: Any) -> list[str]:
    return [item["name"] for item in items]


def test_hosts_and_bytes_are_those_that_the_server_got(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(READ, Answer("three lines"))
    trace = session().ask("what is in notes.txt?")
    port = server.url.split(":")[2].partition("/")[0]
    assert len(server.requests) == 2 and trace.answer == "three lines"
    assert dict(trace.sent.hosts) == {f"{HOST}:{port}": lengths(server.requests)}
    assert (trace.sent.requests, trace.sent.counted, dict(trace.sent.local)) == (2, True, {})
    assert names(trace.sent.contents) == ["notes.txt"]
    assert f"to {HOST}:{port}: notes.txt (file" in card(trace)


def test_a_server_on_this_machine_is_named_as_that(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    trace = session(server.url).ask("hello")
    assert list(trace.sent.local.values()) == [lengths(server.requests)] and not trace.sent.hosts
    assert "on this machine" in card(trace)


def test_each_attempt_counts(session: Callable[..., reyn.Session], server: OpenAIServer) -> None:
    server.script(Failure(429, headers={"Retry-After": "0"}), Answer("hello"))
    trace = session().ask("hello")
    assert len(server.requests) == 2 and trace.sent.bytes == lengths(server.requests)


def test_a_refused_request_left_all_the_same(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(Failure(401, "bad key"))
    trace = session().ask("hello")
    assert trace.status == "error" and trace.sent.bytes == lengths(server.requests) > 0
    assert f"to {HOST}" in card(trace)


def test_a_host_that_refuses_the_connection_got_nothing(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        trace = session(f"http://{HOST}:{closed.getsockname()[1]}/v1").ask("hello")
    assert trace.status == "error" and trace.sent.requests == 0 and trace.sent.contents == []
    assert re.search(r"sent +nothing left the kernel\n", card(trace))


def test_without_a_key_nothing_left(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    trace = reyn.Session(workspace, model="openai/gpt-4o-mini").ask("hello")
    assert trace.status == "error" and trace.sent.requests == 0
    assert "nothing left the kernel" in card(trace) and "api.openai.com:" not in card(trace)


def test_with_a_typo_in_the_models_name_nothing_left(workspace: Path) -> None:
    trace = reyn.Session(workspace, model="opnai-gpt").ask("hello")
    assert trace.status == "error" and trace.sent.requests == 0
    assert "nothing left the kernel" in card(trace) and "unknown host" not in card(trace)


def test_the_result_of_a_call_that_no_request_carried_did_not_leave(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(READ)
    trace = session().ask("what is in notes.txt?", max_steps=1)
    # The closing call carries it; without that one, the last result stays.
    assert names(trace.sent.contents) == ["notes.txt"]
    cut = Trace.from_events(
        [event for event in trace.events if not (isinstance(event, RequestSent) and event.step > 1)]
    )
    assert cut.sent.contents == [] and names(cut.contents) == ["notes.txt"]


def test_a_redirect_counts_at_both_hosts(session: Callable[..., reyn.Session], server: OpenAIServer) -> None:
    other = address(server, "other.models.test")
    server.script(Failure(307, headers={"Location": f"{other}/chat/completions"}), Answer("hello"))
    trace = session().ask("hello")
    assert trace.answer == "hello"
    assert {host.partition(":")[0] for host in trace.sent.hosts} == {HOST, "other.models.test"}
    assert trace.sent.bytes == lengths(server.requests)


def test_an_interrupted_request_that_had_left_counts(workspace: Path, server: OpenAIServer) -> None:
    server.script(Answer("a long answer", trouble="stall", after=1))
    base = address(server)
    s = reyn.Session(workspace, config={"models": {"standard": {"model": "openai/x", "api_base": base}}})

    async def interrupted() -> Trace:
        asking = asyncio.ensure_future(s.aio.ask("hello"))
        while not server.requests:
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        return s.trace()

    trace = asyncio.run(interrupted())
    assert trace.status == "interrupted" and trace.sent.bytes == lengths(server.requests) > 0


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-flash", "GEMINI_API_KEY"),
        ("azure/gpt-4o", "AZURE_API_KEY"),
        ("mistral/mistral-large-latest", "MISTRAL_API_KEY"),
        ("groq/llama-3.3-70b", "GROQ_API_KEY"),
        ("ollama_chat/llama3.2", ""),
        ("hosted_vllm/x", ""),
        ("litellm_proxy/x", "LITELLM_PROXY_API_KEY"),
    ],
)
def test_every_provider_is_counted(
    session: Callable[..., reyn.Session],
    server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    key: str,
) -> None:
    if key:
        monkeypatch.setenv(key, "sk-proj-0123456789abcdefghijklmnop")
    monkeypatch.setenv("AZURE_API_VERSION", "2024-10-21")
    trace = session(model=model).ask("hello")
    assert server.requests, trace.error
    assert trace.sent.counted and trace.sent.bytes == lengths(server.requests)


def test_a_replay_sends_nothing(session: Callable[..., reyn.Session], server: OpenAIServer) -> None:
    server.script(READ, Answer("three lines"))
    s = session()
    run = s.ask("what is in notes.txt?").run
    server.clear()
    again = s.replay(run)
    assert again.answer == "three lines" and not server.requests
    assert again.sent.requests == 0 and "nothing left the kernel" in card(again)


def test_a_model_that_does_not_count_is_taken_at_its_word(workspace: Path) -> None:
    model = ScriptedModel("hello", host="api.example.org")
    trace = reyn.Session(workspace, model=model).ask("hi")
    assert list(trace.sent.hosts) == ["api.example.org"] and not trace.sent.counted
    assert "about" in card(trace) and trace.sent.bytes >= len(json.dumps(model.requests[0].wire)) // 2


def test_a_model_in_this_process_sends_nothing(workspace: Path) -> None:
    trace = reyn.Session(workspace).ask("read notes.txt")
    assert trace.sent.requests == 0 and trace.sent.contents == []
    assert "notes.txt" in names(trace.contents)
    assert "nothing left the kernel; read here: notes.txt" in card(trace)


def bodies(server: OpenAIServer) -> str:
    return json.dumps([request.body["messages"] for request in server.requests])


def test_what_an_offline_turn_saw_is_not_sent_to_a_hosted_model_unasked(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    s = session()
    s.ask("read notes.txt", model="offline")
    trace = s.ask("hello")
    sent = bodies(server)
    assert "second line" not in sent and "read notes.txt" in sent
    assert trace.sent.contents == [] and "the conversation alone" in card(trace)
    assert "1 earlier turn, with notes.txt, stayed on this machine" in card(trace)
    assert "%reyn config local_history on" in card(trace)


def test_with_local_history_it_is_sent_and_said(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    s = session()
    s.ask("read notes.txt", model="offline")
    s.configure("local_history", True)
    trace = s.ask("hello")
    assert "second line" in bodies(server)
    assert "notes.txt, from an earlier turn" in names(trace.sent.contents)
    assert "stayed on this machine" not in card(trace)


def test_a_call_that_never_left_says_why_and_nothing_of_what_was_not_sent(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    s = session()
    s.ask("read notes.txt", model="offline")
    trace = s.ask("hello", model="nosuchprovider/x")
    assert trace.ended is not None and trace.ended.error is not None
    assert "stayed on this machine" not in card(trace) and not server.requests


def test_a_failed_call_of_a_hosted_model_does_not_make_a_local_turn_one_that_left(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    s = session()
    s.ask("read notes.txt", model="offline")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        base = f"http://{HOST}:{closed.getsockname()[1]}/v1"
        s.configure("models.standard", {"model": "openai/gpt-4o-mini", "api_base": base})
        s.ask("hello")
    s.configure("models.standard", {"model": "openai/gpt-4o-mini", "api_base": address(server)})
    s.ask("hello again")
    assert "second line" not in bodies(server)


def test_a_local_model_is_sent_what_a_local_turn_saw_also_after_a_hosted_one(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    local = ScriptedModel("fine", label="local", host=None)
    s = session()
    s.ask("read notes.txt", model="offline")
    s.ask("hello")
    s.ask("and now?", model=local)
    assert "second line" in json.dumps([message.wire for message in local.requests[0].messages])


def test_a_prompt_that_carried_a_variable_to_the_offline_model_stays_whole_at_home(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    s = session()
    given = ({"kind": "variable", "name": "code", "bytes": 12},)
    s.ask("what is alice-of-the-hill?", model="offline", sent=given)
    s.ask("hello")
    assert "alice-of-the-hill" not in bodies(server)


def test_a_stored_result_that_stayed_is_told_without_its_id(session: Callable[..., reyn.Session]) -> None:
    s = session()
    s.ask("hello", model="offline", sent=({"kind": "blob", "name": "01a214f1-c87f-7000", "bytes": 12},))
    shown = card(s.ask("and now?"))
    assert "1 earlier turn, with a stored result, stayed on this machine" in shown
    assert "01a214f1" not in shown
