"""What a model says of itself before the first call: what no call could do, and nothing that only a call can tell."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.litellm_model import LiteLLMModel


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def network(*_: object, **__: object) -> None:
        raise AssertionError("a check calls nothing")

    monkeypatch.setattr(socket.socket, "connect", network)
    monkeypatch.setattr(socket, "getaddrinfo", network)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("openai/a-model-of-tomorrow", {"environ": {"OPENAI_API_KEY": "k"}}),
        ("openai/qwen", {"environ": {}, "api_base": "http://127.0.0.1:1/v1"}),
        ("openai/qwen", {"environ": {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}}),
        ("ollama_chat/llama3.2", {"environ": {}}),
        ("gpt-4o-mini", {"environ": {"OPENAI_API_KEY": "k"}}),
        ("github_copilot/gpt-4o", {"environ": {}}),
        ("bedrock/anthropic.claude-3", {"environ": {}}),
        ("offline/anything", {"environ": {}}),
    ],
)
def test_what_only_a_call_can_tell_is_left_to_the_call(model: str, options: dict[str, Any]) -> None:
    LiteLLMModel(model, **options).check()


@pytest.mark.parametrize(
    ("model", "kind", "said"),
    [
        ("openai/gpt-4o-mini", "auth", "OPENAI_API_KEY is not set"),
        ("gemini/gemini-2.5-flash", "auth", "GEMINI_API_KEY is not set"),
        ("nosuch/model", "configuration", "no provider of 'nosuch/model'"),
        ("antropic/claude-sonnet-4-5", "configuration", "Did you mean anthropic/claude-sonnet-4-5?"),
        ("llama3", "configuration", "A model is named with its provider"),
    ],
)
def test_what_no_call_could_do_is_said_with_the_way_on(model: str, kind: str, said: str) -> None:
    with pytest.raises(ModelError) as caught:
        LiteLLMModel(model, environ={}).check()
    assert caught.value.kind == kind and said in f"{caught.value.message} {caught.value.hint}"
