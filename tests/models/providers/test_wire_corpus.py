"""Every recorded reply of a model server becomes what it means, over HTTP and through LiteLLM."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from reyn_jupyter.models.base import Message, ModelError, Request, Response, ToolSet
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel
from reyn_jupyter.models.providers.overflow import read_overflow
from reyn_jupyter.models.written_calls import read_calls
from reyn_jupyter.router.reply.normalize_reply import readable, with_bare_names, without_thoughts
from tests.models.providers.wire_replay import Replay, corpus, forms

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*`ReadOnly` qualifier", "ignore:Pydantic serializer warnings"
)

PROVIDERS = ("OPENAI", "ANTHROPIC", "OLLAMA", "GEMINI", "MISTRAL", "DEEPSEEK", "OPENROUTER", "LITELLM_PROXY")
KEYS = {f"{name}_API_KEY": "no-real-key-0000" for name in PROVIDERS}
AWS_KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIANOREALKEY",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_REGION_NAME": "us-east-1",
}
OWN_PATH = ("ollama", "anthropic", "bedrock")  # LiteLLM adds the version to the address of these
TOOLS = ToolSet(
    tuple(
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
        for name in ("list_actions", "inspect")
    )
)


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch) -> Iterator[Replay]:
    for name, value in AWS_KEYS.items():
        monkeypatch.setenv(name, value)
    made = Replay()
    yield made
    made.server.shutdown()


def facts(got: Response | ModelError) -> dict[str, Any]:
    """Return what an entry can expect of a response or an error."""
    if isinstance(got, ModelError):
        length = read_overflow(got.message)
        return {
            "error": got.kind,
            "retryable": got.retryable,
            "retry_after": got.retry_after,
            "asked": length.asked,
            "taken": length.taken,
        }
    blocks = {
        name: block[name] for block in got.reasoning.blocks for name in ("signature", "data") if name in block
    }
    return {
        "text": got.text,
        "calls": [[call.name, _parsed(call.arguments)] for call in got.tool_calls],
        "written": [[call.name, call.arguments] for call in read_calls(got.text)],
        "finish": got.finish_reason,
        "reasoning": got.reasoning.text,
        "signature": blocks.get("signature"),
        "redacted": blocks.get("data"),
        "prompt_tokens": got.usage.prompt_tokens,
        "cached_tokens": got.usage.cached_tokens,
        "cache_write_tokens": got.usage.cache_write_tokens,
        "reasoning_tokens": got.usage.reasoning_tokens,
    }


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def problems(expect: dict[str, Any], got: Response | ModelError) -> Iterator[str]:
    known = facts(got)
    said = f"{got.message} {got.hint}" if isinstance(got, ModelError) else ""
    for name, value in expect.items():
        if name in ("says", "hint"):
            if str(value) not in said:
                yield f"{name}: {value!r} is not in {said!r}"
        elif known.get(name) != value:
            yield f"{name}: {known.get(name)!r} in place of {value!r} ({said or got})"


def test_every_recorded_reply_is_read_right(replay: Replay) -> None:
    wrong: list[str] = []
    read = 0

    async def ask(model: str) -> Response | ModelError:
        base = replay.url if model.startswith(OWN_PATH) else f"{replay.url}/v1"
        asked = LiteLLMModel(model, api_base=base, environ=KEYS)
        try:
            came = await asked.complete(Request(model, (Message("user", "How many?"),), TOOLS, timeout=20.0))
        except ModelError as error:
            return error
        return with_bare_names(without_thoughts(readable(came)), TOOLS.names)

    async def ask_all() -> None:
        nonlocal read
        for name, entry in corpus():
            assert entry["source"], name
            for form, body, kind in forms(entry):
                replay.set(entry, form, body, kind)
                expect = entry["expect"] | (entry.get("expect_whole", {}) if form == "whole" else {})
                wrong.extend(
                    f"{name} ({form}): {each}" for each in problems(expect, await ask(entry["model"]))
                )
                read += 1

    asyncio.run(ask_all())
    assert not wrong, f"{len(wrong)} of {read}\n" + "\n".join(wrong)
