"""What is sent to providers so that they cache the beginning of a request, and what they say that they cached."""

from __future__ import annotations

import asyncio
import copy
import json
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.base import Attachment, Message, ModelError, Request, ToolCall, ToolSet
from reyn_jupyter.models.providers import cache_marks, litellm_loader
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel
from reyn_jupyter.notebook.render.trace.card import details_line
from reyn_jupyter.notebook.render.trace.step_details import part
from reyn_jupyter.notebook.render.value_text import Look

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*`ReadOnly` qualifier", "ignore:Pydantic serializer warnings"
)

CLAUDE = "anthropic/claude-sonnet-4-5"
KEYS = {f"{name}_API_KEY": "no-real-key-0000" for name in ("OPENAI", "ANTHROPIC", "OPENROUTER", "DEEPSEEK")}
TOOLS = ToolSet(
    tuple(
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
        for name in ("list_actions", "inspect")
    )
)
THREE = (("list_actions", {"category": ["file"]}), ("describe_action", {"name": "file__list"}), None)


class Provider:
    """A server that speaks the protocols of Anthropic, OpenAI, and Bedrock, and keeps what it is sent, as text.

    Its first replies are calls, as `calls` says; every further one is an answer. `refuses` may answer with an error.
    """

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]] | None] = []
        self.usage: dict[str, Any] = {}
        self.refuses: Callable[[str], str | None] = lambda body: None
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                provider.bodies.append(body)
                refusal = provider.refuses(body)
                status, kind = 200, "text/event-stream"
                if refusal is not None:
                    status, kind = 400, "application/json"
                    error = {"type": "invalid_request_error", "message": refusal}
                    sent = json.dumps({"type": "error", "error": error}).encode()
                elif "/converse" in self.path:
                    kind = "application/vnd.amazon.eventstream"
                    sent = _bedrock(provider.usage)
                else:
                    called = provider.calls.pop(0) if provider.calls else None
                    reply = _anthropic if "/messages" in self.path else _openai
                    sent = reply(called, provider.usage).encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def sent(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]


def _anthropic(called: tuple[str, dict[str, Any]] | None, usage: dict[str, Any]) -> str:
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": "Done."}
    if called:
        block = {"type": "tool_use", "id": "toolu_1", "name": called[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(called[1])}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "claude-sonnet-4-5",
    }
    message["usage"] = {"input_tokens": 25, "output_tokens": 1, **usage}
    ended = {"stop_reason": "tool_use" if called else "end_turn", "stop_sequence": None}
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def _openai(called: tuple[str, dict[str, Any]] | None, usage: dict[str, Any]) -> str:
    delta: dict[str, Any] = {"role": "assistant", "content": None if called else "Done."}
    if called:
        function = {"name": called[0], "arguments": json.dumps(called[1])}
        delta["tool_calls"] = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    counted = {"prompt_tokens": 2000, "completion_tokens": 100, "total_tokens": 2100, **usage}
    chunks = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if called else "stop"}]},
        {"choices": [], "usage": counted},
    ]
    return "".join(f"data: {json.dumps({**base, **chunk})}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def _bedrock(usage: dict[str, Any]) -> bytes:
    """Return an answer in Amazon's event stream encoding."""
    events = {
        "messageStart": {"role": "assistant"},
        "contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Done."}},
        "contentBlockStop": {"contentBlockIndex": 0},
        "messageStop": {"stopReason": "end_turn"},
        "metadata": {"usage": usage, "metrics": {"latencyMs": 5}},
    }
    stream = b""
    for name, data in events.items():
        named = ((":event-type", name), (":content-type", "application/json"), (":message-type", "event"))
        headers = b"".join(
            bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
            for key, value in named
        )
        payload = json.dumps(data).encode()
        prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
        message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
        stream += message + struct.pack(">I", zlib.crc32(message))
    return stream


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    made = Provider()
    yield made
    made.server.shutdown()
    made.server.server_close()


def turn(provider: Provider, folder: Path, model: str, **router: Any) -> Any:
    """Return the trace of a turn of three requests."""
    provider.bodies.clear()
    provider.calls = list(THREE)
    base = provider.url if model.startswith("anthropic") else f"{provider.url}/v1"
    config = {"models": {"standard": {"model": model, "api_base": base}}, "router": router}
    s = reyn.Session(folder, config=config, store="memory", namespace={})
    try:
        return s.ask("what can you do?")
    finally:
        s.close()


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: unmarked(each) for name, each in value.items() if name != "cache_control"}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("discovery", ["prompt", "gate", "forced"])
def test_marked_prefix_of_a_turn_stays_the_same_byte_for_byte(
    provider: Provider, tmp_path: Path, discovery: str
) -> None:
    provider.usage = {"cache_read_input_tokens": 2000, "cache_creation_input_tokens": 300}
    trace = turn(provider, tmp_path, CLAUDE, discovery=discovery)

    sent = provider.sent
    assert trace.answer.startswith("Done.") and len(sent) >= 3, (trace.error, len(sent))
    prefixes = {json.dumps([body["tools"], body["system"]]) for body in sent}
    assert len(prefixes) == 1, "the tools or the system prompt changed"
    for first, second, body in zip(sent, sent[1:], provider.bodies, strict=False):
        assert "cache_control" in first["tools"][-1] and "cache_control" in first["system"][-1]
        assert 3 <= body.count('"cache_control"') <= 4
        ended = first["messages"]
        assert "cache_control" in ended[-1]["content"][-1]
        # What was sent before comes again, so that the provider finds it in its cache.
        if discovery == "prompt":
            assert unmarked(second["messages"][: len(ended)]) == unmarked(ended)
            assert "cache_control" in second["messages"][len(ended) - 1]["content"][-1]
    assert trace.cached_tokens == 2000 * len(sent)
    assert [step.replied.cache_write_tokens for step in trace.steps] == [300] * len(sent)
    assert f"({2000 * len(sent):,} cached)" in details_line(trace)
    facts = part(trace, "m1", Look(), lambda _: None).response.facts
    assert "2,000 of them cached" in facts and "300 written to the cache" in facts


@pytest.mark.parametrize("discovery", ["prompt", "gate"])
def test_provider_that_caches_by_itself_gets_the_same_prefix_without_marks(
    provider: Provider, tmp_path: Path, discovery: str
) -> None:
    for model in ("openai/gpt-4o-mini", "deepseek/deepseek-chat", "openai/claude-sonnet-4-5"):
        turn(provider, tmp_path, model, discovery=discovery)
        sent = provider.sent
        assert len(sent) >= 3
        assert len({json.dumps([body["tools"], body["messages"][0]]) for body in sent}) == 1
        assert not any("cache_control" in body for body in provider.bodies), model


def test_claude_through_openrouter_is_marked_in_its_content(provider: Provider, tmp_path: Path) -> None:
    turn(provider, tmp_path, "openrouter/anthropic/claude-sonnet-4.5")
    for body, text in zip(provider.sent, provider.bodies, strict=True):
        assert body["messages"][0]["content"][-1]["cache_control"] == {"type": "ephemeral"}
        assert "cache_control" in body["tools"][-1]
        assert text.count('"cache_control"') <= 4
    turn(provider, tmp_path, "openrouter/openai/gpt-4o")
    assert provider.bodies and not any("cache_control" in body for body in provider.bodies)


@pytest.mark.parametrize(
    "said",
    [
        "tools.0.cache_control: Extra inputs are not permitted",
        "You invoked an unsupported model or your request did not allow prompt caching.",
        "extraneous key [cachePoint] is not permitted",
    ],
)
def test_provider_that_refuses_marks_is_asked_without_them(provider: Provider, said: str) -> None:
    provider.refuses = lambda body: said if "cache_control" in body else None
    model = LiteLLMModel(CLAUDE, api_base=provider.url, environ=KEYS)
    request = Request(CLAUDE, (Message("system", "Be terse."), Message("user", "Hi")), TOOLS)

    assert [asyncio.run(model.complete(request)).text for _ in "ab"] == ["Done.", "Done."]
    assert ["cache_control" in body for body in provider.bodies] == [True, False, False]


def test_refusal_of_a_request_without_marks_is_not_asked_again(provider: Provider) -> None:
    provider.refuses = lambda body: "your request did not allow prompt caching"
    model = LiteLLMModel("openai/gpt-4o-mini", api_base=f"{provider.url}/v1", environ=KEYS)
    with pytest.raises(ModelError, match="prompt caching"):
        asyncio.run(model.complete(Request("openai/gpt-4o-mini", (Message("user", "Hi"),))))
    assert len(provider.bodies) == 1


def test_marks_change_no_request_and_never_exceed_four(provider: Provider) -> None:
    calls = tuple(ToolCall(f"c{n}", "list_actions", "{}") for n in range(12))
    results = tuple(Message("tool", f"r{n}", tool_call_id=f"c{n}") for n in range(12))
    picture = Attachment("image/png", "0" * 64, 4, "b", "p", 10, 10, data=b"\x89PNG")
    begun = (Message("system", "Be terse."), Message("user", "Hi"))
    conversations: dict[str, tuple[Message, ...]] = {
        "first request": begun,
        "no system message": begun[1:],
        "many calls": (*begun, Message("assistant", "", calls), *results),
        "empty result": (*begun, Message("assistant", "", calls[:1]), Message("tool", "", tool_call_id="c0")),
        "two turns": (*begun, Message("assistant", "Hello."), Message("user", "Again")),
        "image": (begun[0], Message("user", "Look", attachments=(picture,))),
        "ends with the assistant": (*begun, Message("assistant", "Well,")),
    }
    for model in (CLAUDE, "openrouter/anthropic/claude-sonnet-4.5"):
        base = provider.url if model == CLAUDE else f"{provider.url}/v1"
        asked = LiteLLMModel(model, api_base=base, environ=KEYS, media=("image",))
        for name, messages in conversations.items():
            for tools in (TOOLS, ToolSet()):
                request = Request(model, messages, tools)
                key, wire = Request(model, messages, tools).key, json.dumps(request.wire)
                asyncio.run(asked.complete(request))
                assert (request.key, json.dumps(request.wire)) == (key, wire), name
                marks = provider.bodies[-1].count('"cache_control"')
                assert 1 <= marks <= 4, (name, marks)
                assert all(block.get("text") != "" for block in _marked_blocks(provider.sent[-1])), (
                    f"{name}: an empty text is marked"
                )


def _marked_blocks(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "cache_control" in value:
            yield value
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _marked_blocks(each)


def test_marks_of_the_user_are_the_only_ones(provider: Provider) -> None:
    own = {"cache_control_injection_points": [{"location": "message", "role": "system"}]}
    model = LiteLLMModel(CLAUDE, api_base=provider.url, environ=KEYS, parameters=own)
    asyncio.run(model.complete(Request(CLAUDE, (Message("system", "S"), Message("user", "Hi")), TOOLS)))
    assert provider.bodies[-1].count('"cache_control"') == 1


def test_only_claude_models_that_cache_are_marked() -> None:
    litellm = litellm_loader.load()
    marked = (
        "claude-sonnet-4-5", "anthropic/claude-of-tomorrow", "vertex_ai/claude-sonnet-4-5@20250929",
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock/converse/anthropic.claude-of-tomorrow",
        "bedrock/invoke/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "openrouter/anthropic/claude-sonnet-4.5",
        "azure_ai/claude-sonnet-4-5", "litellm_proxy/claude-sonnet-4-5",
    )  # fmt: skip
    bare = (
        "gpt-4o", "openai/gpt-4o", "openai/claude", "gemini/gemini-2.5-flash", "vertex_ai/gemini-2.5-flash",
        "bedrock/anthropic.claude-v2:1", "bedrock/meta.llama3-70b-instruct-v1:0", "mistral/mistral-large-latest",
        "openrouter/deepseek/deepseek-chat", "ollama_chat/claude", "hosted_vllm/claude", "groq/llama-3",
    )  # fmt: skip
    assert [name for name in marked if not cache_marks.takes_marks(litellm, name, {})] == []
    assert [name for name in bare if cache_marks.takes_marks(litellm, name, {})] == []


def test_marks_reach_vertex() -> None:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}]
    tools: list[dict[str, Any]] = copy.deepcopy(list(TOOLS.specs))
    cache_marks.mark(messages, tools)
    # A request to Vertex needs an account, so that this looks at what LiteLLM makes of it.
    config, model = litellm_loader.load().VertexAIAnthropicConfig(), "claude-sonnet-4-5@20250929"
    mapped = config.map_openai_params({"tools": tools}, {}, model, drop_params=True)
    sent = json.dumps(config.transform_request(model, messages, mapped, {}, {}))
    assert sent.count('"cache_control": {"type": "ephemeral"}') == 3


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens_details": {"cached_tokens": 1500}},
        {"cache_read_input_tokens": 1500},
        {"prompt_cache_hit_tokens": 1500, "prompt_cache_miss_tokens": 500},
        {"cached_tokens": 1500},
        {"cacheReadInputTokens": 1500},
        {"cachedContentTokenCount": 1500},
        {"prompt_tokens_details": {"cached_tokens": 0}, "prompt_cache_hit_tokens": 1500},
    ],
    ids=lambda usage: next(reversed(usage)),
)
def test_cached_tokens_are_read_and_priced_in_every_spelling(
    provider: Provider, usage: dict[str, Any]
) -> None:
    provider.usage = usage
    model = LiteLLMModel("openai/gpt-4o-mini", api_base=f"{provider.url}/v1", environ=KEYS)
    got = asyncio.run(model.complete(Request("openai/gpt-4o-mini", (Message("user", "Hi"),))))

    assert got.usage.cached_tokens == 1500
    listed = litellm_loader.load().get_model_info("gpt-4o-mini")
    dollars = 500 * listed["input_cost_per_token"] + 1500 * listed["cache_read_input_token_cost"]
    assert got.cost == pytest.approx(dollars + 100 * listed["output_cost_per_token"])


def test_bedrock_is_marked_in_its_own_form_and_its_cached_tokens_are_read(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_REGION_NAME"):
        monkeypatch.setenv(name, "us-east-1")
    provider.usage = {
        "inputTokens": 80,
        "outputTokens": 9,
        "cacheReadInputTokens": 1700,
        "cacheWriteInputTokens": 300,
    }
    name = "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    messages = (Message("system", "Be terse."), Message("user", "Hi"))
    got = asyncio.run(LiteLLMModel(name, api_base=provider.url).complete(Request(name, messages, TOOLS)))

    (body,) = provider.sent
    ends = (body["toolConfig"]["tools"], body["system"], body["messages"][-1]["content"])
    assert [end[-1] for end in ends] == [{"cachePoint": {"type": "default"}}] * 3
    assert provider.bodies[0].count("cachePoint") == 3
    assert (got.text, got.finish_reason) == ("Done.", "stop")
    usage = got.usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.cache_write_tokens) == (2080, 1700, 300)
    listed = litellm_loader.load().get_model_info(name)
    dollars = (
        80 * listed["input_cost_per_token"]
        + 1700 * listed["cache_read_input_token_cost"]
        + 300 * listed["cache_creation_input_token_cost"]
        + 9 * listed["output_cost_per_token"]
    )
    assert got.cost == pytest.approx(dollars)


@pytest.mark.parametrize("given", [-1, 5000, "many", None, True, 1.5])
def test_senseless_cached_tokens_are_none(provider: Provider, given: object) -> None:
    provider.usage = {"cached_tokens": given}
    model = LiteLLMModel("openai/gpt-4o-mini", api_base=f"{provider.url}/v1", environ=KEYS)
    got = asyncio.run(model.complete(Request("openai/gpt-4o-mini", (Message("user", "Hi"),))))
    assert got.usage.cached_tokens == 0 and got.usage.prompt_tokens == 2000


def test_cost_of_a_cached_claude_request_is_anthropics(provider: Provider) -> None:
    provider.usage = {"cache_read_input_tokens": 2000, "cache_creation_input_tokens": 300}
    model = LiteLLMModel(CLAUDE, api_base=provider.url, environ=KEYS)
    got = asyncio.run(model.complete(Request(CLAUDE, (Message("user", "Hi"),))))

    listed = litellm_loader.load().get_model_info("claude-sonnet-4-5")
    dollars = (
        25 * listed["input_cost_per_token"]
        + 2000 * listed["cache_read_input_token_cost"]
        + 300 * listed["cache_creation_input_token_cost"]
        + 10 * listed["output_cost_per_token"]
    )
    assert (got.usage.prompt_tokens, got.usage.cached_tokens, got.usage.cache_write_tokens) == (
        2325,
        2000,
        300,
    )
    assert got.cost == pytest.approx(dollars)
