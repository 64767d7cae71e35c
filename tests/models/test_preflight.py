"""What a model says of itself before the first call: what no call could do, and nothing that only a call can tell."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import Any

import pytest

from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.providers.litellm_loader import load
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel
from reyn_jupyter.models.providers.provider_facts import meant_provider


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


def test_a_mistyped_provider_is_said_before_litellm_is_imported() -> None:
    code = """
import asyncio, sys
from reyn_jupyter.models.base import ModelError, Request
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel
try:
    asyncio.run(LiteLLMModel("opnai/gpt-4o-mini", environ={}).complete(Request("opnai/gpt-4o-mini", ())))
except ModelError as error:
    print(error.message, error.hint, "litellm" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "knows no provider of 'opnai/gpt-4o-mini'" in ran.stdout
    assert "Did you mean openai/gpt-4o-mini?" in ran.stdout and ran.stdout.strip().endswith("False")


def test_no_provider_of_litellm_is_taken_for_a_mistyped_one() -> None:
    names = [str(getattr(each, "value", each)) for each in load().provider_list]
    assert [name for name in names if meant_provider(f"{name}/model")] == []
