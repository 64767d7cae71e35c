"""Which model a name means, where it is, and what key it wants."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter.models
from reyn_jupyter.config import Settings
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.model_registry import (
    is_local,
    key_status,
    provider_host,
    required_key,
    resolve_model,
)


def configured(**models: Any) -> Settings:
    extra = {"router_model": models.pop("router_model")} if "router_model" in models else {}
    return Settings.model_validate({"models": models, **extra})


def test_nothing_configured_means_the_offline_model() -> None:
    model = resolve_model(Settings(), None, {})

    assert (model.label, model.tier, model.host, model.real) == ("offline", "light", None, False)


def test_offline_can_be_asked_for_beside_a_configured_model() -> None:
    assert resolve_model(configured(standard="openai/gpt-4o-mini"), "offline", {}).label == "offline"


@pytest.mark.parametrize("tier", ["light", "standard", "strong"])
def test_a_tier_means_its_entry(tier: str) -> None:
    model = resolve_model(configured(**{tier: "openai/gpt-4o-mini"}), tier, {})

    assert (model.label, model.tier, model.real) == ("openai/gpt-4o-mini", tier, True)


def test_no_name_means_the_router_model() -> None:
    settings = configured(
        light="groq/llama-3.1-8b-instant", standard="openai/gpt-4o-mini", router_model="light"
    )

    assert resolve_model(settings, None, {}).label == "groq/llama-3.1-8b-instant"


def test_an_entry_may_name_another_tier_an_address_and_parameters() -> None:
    entry = {
        "model": "openai/qwen3",
        "tier": "light",
        "api_base": "http://127.0.0.1:8000/v1",
        "parameters": {"temperature": 0},
    }
    model: Any = resolve_model(configured(standard=entry), None, {})

    assert (model.tier, model.host, model.parameters) == ("light", "127.0.0.1:8000", {"temperature": 0})


def test_a_bare_model_string_has_tier_standard() -> None:
    model = resolve_model(Settings(), "ollama_chat/llama3.2", {})

    assert (model.label, model.tier, model.host) == ("ollama_chat/llama3.2", "standard", "localhost:11434")


@pytest.mark.parametrize("name", ["strong", None])
def test_a_tier_that_is_not_configured_is_an_error_with_the_missing_line(name: str | None) -> None:
    settings = configured(light="openai/gpt-4o-mini", router_model="strong")

    with pytest.raises(ModelError) as raised:
        resolve_model(settings, name, {})

    assert raised.value.kind == "configuration"
    assert "tier strong" in raised.value.message
    assert "models:\n  strong: " in raised.value.hint
    assert "light" in raised.value.hint.splitlines()[-1]


@pytest.mark.parametrize("name", ["", "  ", "two words", "line\nbreak", "bell\a"])
def test_what_cannot_be_a_model_is_refused(name: str) -> None:
    with pytest.raises(ModelError) as raised:
        resolve_model(Settings(), name, {})

    assert raised.value.kind == "configuration"


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/gpt-4o-mini", "OPENAI_API_KEY"),
        ("gpt-4o-mini", "OPENAI_API_KEY"),
        ("claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-flash-lite", "GEMINI_API_KEY"),
        ("openrouter/meta/llama-3", "OPENROUTER_API_KEY"),
        ("ollama_chat/llama3.2", None),
        ("offline/x", None),
        ("nowhere/model", None),
    ],
)
def test_the_key_that_a_model_wants(model: str, variable: str | None) -> None:
    assert required_key(model) == variable


def test_key_status_names_variables_and_never_values() -> None:
    status = key_status({"OPENAI_API_KEY": "sk-secret", "GROQ_API_KEY": " ", "GOOGLE_API_KEY": "AIza-secret"})

    assert ("openai", "OPENAI_API_KEY", "set") in status
    assert ("groq", "GROQ_API_KEY", "missing") in status
    assert ("gemini", "GOOGLE_API_KEY", "set") in status
    assert "secret" not in repr(status)


@pytest.mark.parametrize(
    ("model", "base", "environ", "host"),
    [
        ("openai/gpt-4o-mini", None, {}, "api.openai.com"),
        ("openai/gpt-4o-mini", None, {"OPENAI_API_BASE": "https://proxy.example/v1"}, "proxy.example"),
        ("openai/x", "http://user:password@127.0.0.1:8000/v1", {}, "127.0.0.1:8000"),
        ("openai/x", "http://[::1]:8000/v1", {}, "[::1]:8000"),
        ("openai/x", "gateway.example:8443/v1", {}, "gateway.example:8443"),
        ("openai/x", "http://[broken", {}, None),
        ("nowhere/model", None, {}, None),
    ],
)
def test_where_requests_go(model: str, base: str | None, environ: dict[str, str], host: str | None) -> None:
    assert provider_host(model, base, environ) == host


@pytest.mark.parametrize(
    "host", [None, "localhost", "localhost:11434", "127.0.0.1:8000", "127.9.9.9", "[::1]:80", "a.localhost"]
)
def test_what_is_this_machine(host: str | None) -> None:
    assert is_local(host)


@pytest.mark.parametrize(
    "host", ["api.openai.com", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil.example", "", "[::1"]
)
def test_what_is_not_this_machine(host: str) -> None:
    assert not is_local(host)


def test_importing_the_room_imports_nothing_heavy() -> None:
    room = Path(reyn_jupyter.models.__file__).parent
    files = (
        path.relative_to(room) for path in room.rglob("*.py") if path.stem not in ("__init__", "__main__")
    )
    modules = sorted(".".join(path.with_suffix("").parts) for path in files)
    code = (
        "import sys\n"
        + "".join(f"import reyn_jupyter.models.{name}\n" for name in modules)
        + "heavy = {'litellm', 'openai', 'httpx', 'aiohttp', 'tenacity', 'pandas', 'numpy', 'yaml', 'jsonschema'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
