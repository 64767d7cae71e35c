"""Real LiteLLM over real sockets: what a provider may send, and what comes out at the seam."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from reyn_jupyter.models.base import Message, ModelError, Request, Response, ToolCall, ToolSet
from reyn_jupyter.models.call_log import ModelCallLog
from reyn_jupyter.models.providers import litellm_model
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel
from reyn_jupyter.models.retry import RetryingModel, RetryPolicy
from reyn_jupyter.support.secrets import Redactor
from tests.support.openai_server import (
    CONTEXT_TOO_LONG,
    Answer,
    Call,
    Failure,
    OpenAIServer,
    Raw,
    Scripted,
    echo,
    refuses,
)
from tests.support.waiting import PATIENCE, LoopClock, awaited

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    # One loop for the module: LiteLLM keeps its HTTP clients a loop.
    pytest.mark.asyncio(loop_scope="module"),
    # LiteLLM filters this warning when it is imported, and each test begins with pytest's filters again.
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier"),
]

KEY = "sk-live-4f9a8b7c6d5e4f3a2b1c"
ENVIRONMENT = {"OPENAI_API_KEY": KEY}
TOOLS = ToolSet(
    (
        {
            "type": "function",
            "function": {"name": "list_actions", "parameters": {"type": "object", "properties": {}}},
        },
    )
)


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def warmed(server: OpenAIServer) -> None:
    """The first call of a process takes seconds, which a test of short timeouts cannot have."""
    await model_at(server).complete(ask())


@pytest.fixture(autouse=True)
def fresh(server: OpenAIServer, warmed: None) -> None:
    server.clear()


def model_at(server: OpenAIServer, **options: Any) -> LiteLLMModel:
    return LiteLLMModel("openai/gpt-4o-mini", api_base=server.url, environ=ENVIRONMENT, **options)


def ask(text: str = "Which files are there?", **options: Any) -> Request:
    return Request("openai/gpt-4o-mini", (Message("user", text),), **{"timeout": 20.0, **options})


async def answer(server: OpenAIServer, reply: Scripted, **options: Any) -> Response:
    return await model_at(server.script(reply)).complete(ask(**options))


async def failure(server: OpenAIServer, reply: Scripted, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await answer(server, reply, **options)
    return raised.value


TWO_CALLS = (Call("file", {"path": "a b.md", "text": 'quotes " and ünïcode'}), Call("list_actions", {}))


@pytest.mark.parametrize("shape", ["fragments", "whole", "interleaved", "no index", "no id", "same id"])
@pytest.mark.parametrize("fragment", [1, 7])
async def test_tool_calls_are_rebuilt_however_they_are_cut(
    server: OpenAIServer, shape: Any, fragment: int
) -> None:
    response = await answer(server, Answer(calls=TWO_CALLS, shape=shape, fragment=fragment), tools=TOOLS)

    assert [(call.name, json.loads(call.arguments)) for call in response.tool_calls] == [
        ("file", {"path": "a b.md", "text": 'quotes " and ünïcode'}),
        ("list_actions", {}),
    ]
    ids = [call.id for call in response.tool_calls]
    assert all(ids) and len(set(ids)) == 2
    assert response.finish_reason == "tool_calls"


async def test_text_streams_to_the_listener_as_it_comes(server: OpenAIServer) -> None:
    pieces: list[str] = []
    server.script(Answer("Three files: ä, 日本, 🙂.", fragment=3))

    response = await model_at(server).complete(ask(), pieces.append)

    assert response.text == "Three files: ä, 日本, 🙂."
    assert "".join(pieces) == response.text
    assert len(pieces) > 3
    assert response.finish_reason == "stop"
    assert response.fingerprint == "fp_loopback"


async def test_text_and_tool_calls_may_come_together(server: OpenAIServer) -> None:
    response = await answer(server, Answer("Let me look.", calls=(Call("list_actions"),)))

    assert response.text == "Let me look."
    assert response.tool_calls == (ToolCall("call_0", "list_actions", "{}"),)


async def test_malformed_arguments_are_handed_on_as_they_came(server: OpenAIServer) -> None:
    response = await answer(server, Answer(calls=(Call("file", '{"path": "a'),)))

    assert response.tool_calls[0].arguments == '{"path": "a'


async def test_an_empty_completion_is_an_empty_response(server: OpenAIServer) -> None:
    response = await answer(server, Answer(""))

    assert (response.text, response.tool_calls, response.finish_reason) == ("", (), "stop")


@pytest.mark.parametrize(("sent", "seen"), [("length", "length"), ("content_filter", "content_filter")])
async def test_the_finish_reason_is_the_providers(server: OpenAIServer, sent: str, seen: str) -> None:
    assert (await answer(server, Answer("cut", finish_reason=sent))).finish_reason == seen


@pytest.mark.parametrize("streams", [True, False])
async def test_the_log_shows_the_very_body_that_the_provider_sent(
    server: OpenAIServer, streams: bool
) -> None:
    shown: list[str] = []

    async def show(text: str) -> None:
        shown.append(text)

    server.script(Answer("The answer."))
    log = ModelCallLog(lambda: True, show, Redactor({}))
    model = RetryingModel(model_at(server), RetryPolicy(), log=log)
    await model.complete(ask(), *([lambda text: None] if streams else []))
    body = json.loads(shown[-1].partition("raw body:\n")[2].partition("\nextracted content:")[0])
    parts = body if isinstance(body, list) else [body]
    # What only a provider says: ids of its own, and the choices as they came.
    assert all(each["id"].startswith("chatcmpl") and each["choices"] is not None for each in parts)
    assert "The answer." in json.dumps(parts) or len(parts) > 1


@pytest.mark.parametrize("answer", ["text", "call"])
async def test_the_log_shows_no_secret_that_a_stream_brings_in_pieces(
    server: OpenAIServer, answer: str
) -> None:
    shown: list[str] = []

    async def show(text: str) -> None:
        shown.append(text)

    secret = "correct-horse-battery-staple-" + "x" * 40
    made = (
        Answer(f"It is {secret}.") if answer == "text" else Answer("", calls=(Call("look", {"key": secret}),))
    )
    server.script(made)
    log = ModelCallLog(lambda: True, show, Redactor({"DEMO_API_KEY": secret}))
    model = RetryingModel(model_at(server), RetryPolicy(), log=log)
    await model.complete(ask(), lambda text: None)
    assert "[redacted:DEMO_API_KEY]" in shown[-1]
    assert "battery" not in shown[-1] and "x" * 5 not in shown[-1]


async def test_usage_and_cost_are_the_providers(server: OpenAIServer) -> None:
    usage = {
        "prompt_tokens": 1_000_000,
        "completion_tokens": 10,
        "total_tokens": 1_000_010,
        "prompt_tokens_details": {"cached_tokens": 400},
    }
    response = await answer(server, Answer("hello", usage=usage))

    assert (response.usage.prompt_tokens, response.usage.completion_tokens) == (1_000_000, 10)
    assert response.usage.cached_tokens == 400
    assert not response.usage.estimated
    assert response.cost is not None and 0.1 < response.cost < 0.2


async def test_without_usage_tokens_are_estimated_and_marked(server: OpenAIServer) -> None:
    response = await answer(server, Answer("12345678", usage=False))

    assert response.usage.estimated
    assert response.usage.completion_tokens == 2
    assert response.usage.prompt_tokens > 5


async def test_an_unknown_price_is_none_and_not_zero(server: OpenAIServer) -> None:
    model = LiteLLMModel("openai/my-own-finetune", api_base=server.url, environ=ENVIRONMENT)

    assert (await model.complete(ask())).cost is None


async def test_5000_tool_calls_in_one_completion_all_come_through(server: OpenAIServer) -> None:
    calls = tuple(Call("list_actions", {"page": page}) for page in range(5_000))

    response = await answer(server, Answer(calls=calls, shape="whole"), timeout=60.0)

    assert len(response.tool_calls) == 5_000
    assert json.loads(response.tool_calls[-1].arguments) == {"page": 4_999}


async def test_a_megabyte_of_text_comes_through(server: OpenAIServer) -> None:
    text = "".join(f"line {number}\n" for number in range(90_000))

    assert (await answer(server, Answer(text, fragment=20_000))).text == text


async def test_a_model_that_does_not_stop_writing_is_stopped(server: OpenAIServer) -> None:
    text = "".join(f"{number:09d}" for number in range(1_900_000))

    error = await failure(server, Answer(text, fragment=500_000))

    assert error.kind == "stream" and not error.retryable
    assert "16 MB" in error.message


async def test_a_model_that_repeats_itself_is_stopped(server: OpenAIServer) -> None:
    error = await failure(server, Answer("again" * 500, fragment=5))

    assert error.kind == "stream"
    assert "repeating the same words" in error.message


async def test_the_request_goes_out_as_it_was_given(server: OpenAIServer) -> None:
    history = (
        Message("system", "Be brief."),
        Message("user", "Look."),
        Message("assistant", "", (ToolCall("call_1", "list_actions", "{}"),)),
        Message("tool", "nothing there", tool_call_id="call_1"),
    )
    request = Request(
        "openai/gpt-4o-mini",
        history,
        TOOLS,
        tool_choice="list_actions",
        parameters={"temperature": 0.3, "seed": 7},
    )
    server.script(echo)

    model = model_at(
        server, parameters={"temperature": 1.0, "max_tokens": 50}, headers={"X-Team": "notebooks"}
    )
    body = json.loads((await model.complete(request)).text)

    assert body["messages"] == [message.wire for message in history]
    assert body["tools"] == list(TOOLS.specs)
    assert body["tool_choice"] == {"type": "function", "function": {"name": "list_actions"}}
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.3, 7, 50)
    assert body["stream"] is True
    assert server.requests[0].headers["x-team"] == "notebooks"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_without_tools_no_tool_choice_is_sent(server: OpenAIServer) -> None:
    server.script(echo)

    body = json.loads((await model_at(server).complete(ask())).text)

    assert "tools" not in body and "tool_choice" not in body


async def test_a_local_server_needs_no_key(server: OpenAIServer) -> None:
    model = LiteLLMModel("openai/qwen3", api_base=server.url, environ={})

    assert (await model.complete(ask())).text == "ok"
    assert model.host is not None and model.host.startswith("127.0.0.1:")


async def test_a_server_that_refuses_usage_in_streams_is_asked_without_and_remembered(
    server: OpenAIServer,
) -> None:
    server.script(*[refuses("stream_options", Answer("fine"))] * 3)
    model = model_at(server)

    assert (await model.complete(ask())).text == "fine"
    assert (await model.complete(ask())).text == "fine"
    assert [bool(request.body.get("stream_options")) for request in server.requests] == [True, False, False]
    assert server.requests[2].body["stream"] is True


async def test_a_server_that_refuses_streams_is_asked_for_the_whole(server: OpenAIServer) -> None:
    pieces: list[str] = []
    server.script(*[refuses("stream", Answer("whole", calls=TWO_CALLS, shape="same id"))] * 2)

    response = await model_at(server).complete(ask(), pieces.append)

    assert (response.text, pieces) == ("whole", ["whole"])
    assert [call.name for call in response.tool_calls] == ["file", "list_actions"]
    assert len({call.id for call in response.tool_calls}) == 2
    assert not response.usage.estimated


async def test_a_server_that_ignores_stream_is_asked_for_the_whole(server: OpenAIServer) -> None:
    def ignoring(received: Any) -> Raw | Answer:
        return Raw(b"{}", content_type="application/json") if received.body.get("stream") else Answer("whole")

    server.script(ignoring, ignoring)

    assert (await model_at(server).complete(ask())).text == "whole"


PER_MINUTE = (
    "You exceeded your current quota, please check your plan and billing details. "
    + "For more, read on. " * 30
    + "Quota exceeded for free requests, limit: 15. Please retry in 33.9s."
)
ERRORS = [
    (Failure(401, f"Incorrect API key provided: {KEY}."), "auth", False),
    (Failure(403, "This key may not use the model."), "auth", False),
    (Failure(404, "The model gpt-9 does not exist"), "not_found", False),
    (Failure(429, "Slow down", headers={"Retry-After": "7"}), "rate_limited", True),
    (Failure(429, "You exceeded your current quota", "insufficient_quota"), "quota", False),
    (Failure(402, "This request requires more credits"), "quota", False),
    (Failure(400, "Your credit balance is too low to access the API."), "quota", False),
    (Failure(429, PER_MINUTE), "rate_limited", True),
    (Failure(400, "The model `gpt-9` does not exist", "model_not_found"), "not_found", False),
    (Failure(400, "house/gpt-9 is not a valid model ID"), "not_found", False),
    (Failure(400, "Tool message: 'call_1' not found in the message before it"), "bad_request", False),
    (Failure(400, "registry.example.com/gemma:2b does not support tools"), "unsupported", False),
    (Failure(404, "No endpoints found that support tool use."), "unsupported", False),
    (
        Failure(400, "'temperature' does not support 0 with this model", "unsupported_value"),
        "unsupported",
        False,
    ),
    (Failure(400, "unsupported tool_choice"), "tool_choice", False),
    (Failure(404, "No endpoints found that support the provided 'tool_choice' value."), "tool_choice", False),
    (
        Failure(403, "Your chosen model requires moderation and your input was flagged"),
        "content_filter",
        False,
    ),
    (Failure(500, "engine down"), "unavailable", True),
    (Failure(502, "bad gateway"), "unavailable", True),
    (Failure(503, "overloaded", headers={"Retry-After": "3"}), "unavailable", True),
    (Failure(529, "overloaded"), "unavailable", True),
    (CONTEXT_TOO_LONG, "context_too_long", False),
    (Failure(400, "blocked", "content_policy_violation"), "content_filter", False),
    (Failure(400, "temperature must be below 2"), "bad_request", False),
    (Failure(422, "tools[0] is no object"), "bad_request", False),
    (Raw(b"<html>gateway</html>", status=502), "unavailable", True),
    (Raw(b"<html>a login page</html>"), "stream", False),
    (Answer("half of an answer", trouble="drop"), "stream", True),
    (Answer("half of an answer", trouble="cut"), "stream", True),
    (Answer("half of an answer", trouble="malformed"), "stream", True),
    (Answer("half of an answer", trouble="error"), "stream", True),
]


@pytest.mark.parametrize(
    ("reply", "kind", "retryable"), ERRORS, ids=lambda value: str(getattr(value, "status", value))[:40]
)
async def test_every_failure_is_told_in_plain_words(
    server: OpenAIServer, reply: Scripted, kind: str, retryable: bool
) -> None:
    server.otherwise = reply
    try:
        error = await failure(server, reply)
    finally:
        server.otherwise = Answer("ok")

    assert (error.kind, error.retryable) == (kind, retryable), error.message
    assert error.message and error.hint
    shown = f"{error.message} {error.hint} {error!r}"
    assert KEY not in shown
    assert error.__context__ is None and error.__cause__ is None
    assert "litellm" not in shown.lower() and "Exception" not in shown and "Traceback" not in shown


async def test_the_refused_keys_variable_is_named(server: OpenAIServer) -> None:
    error = await failure(server, Failure(401, "no"))

    assert "OPENAI_API_KEY" in error.hint


async def test_a_key_that_a_provider_quotes_is_taken_out(server: OpenAIServer) -> None:
    error = await failure(
        server, Failure(400, f"I got {KEY} and sk-proj-abcdefgh12345678 and Bearer abcdefgh1234")
    )

    assert "‹key›" in error.message
    for secret in (KEY, "sk-proj-abcdefgh12345678", "abcdefgh1234"):
        assert secret not in error.message


async def test_a_configured_header_is_not_quoted_either(server: OpenAIServer) -> None:
    server.script(Failure(400, "header said s3cret-team-value"))

    with pytest.raises(ModelError) as raised:
        await model_at(server, headers={"X-Auth": "s3cret-team-value"}).complete(ask())

    assert "s3cret" not in raised.value.message


async def test_retry_after_is_read_as_seconds(server: OpenAIServer) -> None:
    assert (await failure(server, Failure(429, headers={"Retry-After": "7"}))).retry_after == 7.0


async def test_retry_after_is_read_as_a_date(server: OpenAIServer) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)

    wait = (await failure(server, Failure(429, headers={"Retry-After": soon}))).retry_after

    assert wait is not None and 60 < wait <= 90


async def test_nobody_listening_is_a_connection_error() -> None:
    model = LiteLLMModel("openai/gpt-4o-mini", api_base="http://127.0.0.1:9/v1", environ=ENVIRONMENT)

    with pytest.raises(ModelError) as raised:
        await model.complete(ask())

    assert (raised.value.kind, raised.value.retryable) == ("connection", True)
    assert "127.0.0.1:9" in raised.value.message


async def test_a_missing_key_is_told_with_its_variable_and_without_a_call() -> None:
    model = LiteLLMModel("anthropic/claude-sonnet-4-5", environ={})

    with pytest.raises(ModelError) as raised:
        await model.complete(ask())

    assert raised.value.kind == "auth"
    assert "ANTHROPIC_API_KEY" in raised.value.message and "ANTHROPIC_API_KEY" in raised.value.hint


async def test_an_unknown_provider_is_a_configuration_error() -> None:
    with pytest.raises(ModelError) as raised:
        await LiteLLMModel("nowhere/model", environ={}).complete(ask())

    assert raised.value.kind == "configuration"
    assert "provider/model" in raised.value.hint


@pytest.mark.parametrize("after", [0, 3])
async def test_silence_longer_than_the_timeout_ends_the_call(server: OpenAIServer, after: int) -> None:
    clock, stalls = LoopClock(), Answer("one two three four", trouble="stall", after=after)
    failing = asyncio.create_task(failure(server, stalls, timeout=60.0))
    await awaited(lambda: server.requests)
    await awaited(lambda: (clock.advance(61), failing.done())[1])
    error = await failing

    assert (error.kind, error.retryable) == ("timeout", True)
    assert "60 s" in error.message
    assert await asyncio.to_thread(server.disconnected.wait, PATIENCE)


async def test_a_slow_answer_that_keeps_coming_is_no_silence(server: OpenAIServer) -> None:
    clock, words = LoopClock(), "a slow answer, but it comes"
    model = model_at(server.script(Answer(words, pace=0.01)))
    # Longer in all than the silence that it may keep.
    response = await model.complete(ask(timeout=60.0), lambda text: clock.advance(20))

    assert response.text == words and clock.ahead > 60


async def test_an_answer_that_trickles_without_end_is_ended(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litellm_model, "_TOTAL_FACTOR", 0.02)  # so that no silence can come first
    error = await failure(server, Answer("x" * 30_000, fragment=3, pace=0.02), timeout=100.0)

    assert error.kind == "timeout"
    assert "not finished after 2 s" in error.message


@pytest.mark.parametrize("after", [0, 3])
async def test_cancelling_in_a_stall_hangs_up_at_once(server: OpenAIServer, after: int) -> None:
    started = asyncio.Event()
    server.script(Answer("one two three four", trouble="stall", after=after))
    task = asyncio.create_task(model_at(server).complete(ask(), lambda text: started.set()))
    await awaited(lambda: server.requests and (started.is_set() or not after))

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await asyncio.to_thread(server.disconnected.wait, PATIENCE)


async def test_a_listener_that_fails_is_not_taken_for_the_model(server: OpenAIServer) -> None:
    def broken(text: str) -> None:
        raise LookupError("no such cell")

    server.script(Answer("hello"))
    with pytest.raises(LookupError):
        await model_at(server).complete(ask(), broken)


@pytest.mark.parametrize("name", ["api_key", "api_base", "mock_response", "stream", "messages", "callbacks"])
async def test_parameters_cannot_redirect_or_replace_a_call(server: OpenAIServer, name: str) -> None:
    with pytest.raises(ModelError) as configured:
        model_at(server, parameters={name: "x"})
    with pytest.raises(ModelError) as asked:
        await model_at(server).complete(ask(parameters={name: "x"}))

    assert configured.value.kind == asked.value.kind == "configuration"
    assert name in configured.value.message
    assert not server.requests


async def test_calls_run_side_by_side(server: OpenAIServer) -> None:
    model = model_at(server)
    server.script(*(Answer(f"answer {number}") for number in range(8)))

    texts = await asyncio.gather(*(model.complete(ask(str(number))) for number in range(8)))

    assert sorted(response.text for response in texts) == [f"answer {number}" for number in range(8)]
