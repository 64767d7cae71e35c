"""Facts of model providers, without importing LiteLLM: their keys, and where requests go.

A key's value is never read out of here: only the name of its variable, and whether it is set. `provider_host`
says where a request would really go, the addresses that the environment overrides included, because the card
shows it as the place that a person's data is sent to.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from reyn_jupyter.config.settings import MODEL_TIMEOUT
from reyn_jupyter.support.text import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

LOCAL_SILENCE = 300.0  # seconds before the first word of a model on this machine


@dataclass(frozen=True)
class Provider:
    """A provider as LiteLLM names it: the first of `keys` is the variable to set, `bases` override `host`."""

    name: str
    keys: tuple[str, ...]
    host: str | None
    bases: tuple[str, ...] = ()


_TABLE = (
    Provider("openai", ("OPENAI_API_KEY",), "api.openai.com", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    Provider(
        "anthropic",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        "api.anthropic.com",
        ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
    ),
    Provider(
        "gemini",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "generativelanguage.googleapis.com",
        ("GEMINI_API_BASE",),
    ),
    Provider("azure", ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_AD_TOKEN"), None, ("AZURE_API_BASE",)),
    Provider("mistral", ("MISTRAL_API_KEY",), "api.mistral.ai", ("MISTRAL_API_BASE",)),
    Provider("groq", ("GROQ_API_KEY",), "api.groq.com", ("GROQ_API_BASE",)),
    Provider("openrouter", ("OPENROUTER_API_KEY", "OR_API_KEY"), "openrouter.ai", ("OPENROUTER_API_BASE",)),
    Provider("deepseek", ("DEEPSEEK_API_KEY",), "api.deepseek.com", ("DEEPSEEK_API_BASE",)),
    Provider(
        "together_ai",
        ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_AI_TOKEN"),
        "api.together.xyz",
        ("TOGETHER_AI_API_BASE",),
    ),
    Provider("fireworks_ai", ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"), "api.fireworks.ai"),
    Provider("xai", ("XAI_API_KEY",), "api.x.ai", ("XAI_API_BASE",)),
    Provider("cohere", ("COHERE_API_KEY", "CO_API_KEY"), "api.cohere.com", ("COHERE_API_BASE",)),
    Provider("cohere_chat", ("COHERE_API_KEY", "CO_API_KEY"), "api.cohere.com", ("COHERE_API_BASE",)),
    Provider("cerebras", ("CEREBRAS_API_KEY",), "api.cerebras.ai", ("CEREBRAS_API_BASE",)),
    Provider("perplexity", ("PERPLEXITYAI_API_KEY",), "api.perplexity.ai", ("PERPLEXITY_API_BASE",)),
    Provider("nvidia_nim", ("NVIDIA_NIM_API_KEY",), "integrate.api.nvidia.com", ("NVIDIA_NIM_API_BASE",)),
    Provider("huggingface", ("HF_TOKEN", "HUGGINGFACE_API_KEY"), "router.huggingface.co"),
    Provider("litellm_proxy", ("LITELLM_PROXY_API_KEY",), None, ("LITELLM_PROXY_API_BASE",)),
    Provider("hosted_vllm", (), None, ("HOSTED_VLLM_API_BASE",)),
    Provider("local", (), "127.0.0.1"),
    Provider("ollama", (), "localhost:11434", ("OLLAMA_API_BASE",)),
    Provider("ollama_chat", (), "localhost:11434", ("OLLAMA_API_BASE",)),
    Provider("lm_studio", (), "localhost:1234", ("LM_STUDIO_API_BASE",)),
    Provider("llamafile", (), "localhost:8080", ("LLAMAFILE_API_BASE",)),
)
PROVIDERS: dict[str, Provider] = {provider.name: provider for provider in _TABLE}

# Model families that LiteLLM recognises without their provider in front.
_BARE = {
    "gpt-": "openai",
    "chatgpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude-": "anthropic",
}


# Providers of LiteLLM without a row above whose names are as near to one of those as a typing mistake.
_SIMILAR = frozenset({"anthropic_text", "azure_ai", "nvidia_riva"})
ALIKE_NAMES = 0.75  # names of providers are short, and those of models begin alike


def provider_name(model: str) -> str | None:
    """The provider of a LiteLLM model string, None when it cannot be told ("openai/gpt-4o" → "openai")."""
    prefix, slash, _ = model.partition("/")
    if slash:
        return prefix
    return next((provider for start, provider in _BARE.items() if model.startswith(start)), None)


def meant_provider(model: str) -> str | None:
    """Return the provider whose name is mistyped in a LiteLLM model string, None where none of those here is.

    Example: ``meant_provider("opnai/gpt-4o-mini")`` → ``"openai"``.
    """
    prefix, slash, _ = model.partition("/")
    if not slash or prefix in PROVIDERS or prefix in _SIMILAR:
        return None
    return nearest(prefix, PROVIDERS, cutoff=ALIKE_NAMES)


def required_key(model: str) -> str | None:
    """The environment variable with a model's key, None when it needs none or its provider is unknown.

    Example: ``required_key("anthropic/claude-sonnet-4-5")`` → ``"ANTHROPIC_API_KEY"``.
    """
    provider = PROVIDERS.get(provider_name(model) or "")
    return provider.keys[0] if provider is not None and provider.keys else None


def set_key(model: str, environ: Mapping[str, str]) -> str | None:
    """The variable in which a key for the model's provider is set, under any name that LiteLLM reads."""
    provider = PROVIDERS.get(provider_name(model) or "")
    return _first_set(provider.keys, environ) if provider is not None else None


def key_status(environ: Mapping[str, str]) -> list[tuple[str, str, Literal["set", "missing"]]]:
    """For each provider that needs a key: its name, the variable, and whether it is set. Never a value."""
    found = [(provider, _first_set(provider.keys, environ)) for provider in _TABLE if provider.keys]
    return [
        (provider.name, name or provider.keys[0], "missing" if name is None else "set")
        for provider, name in found
    ]


def _first_set(names: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    return next((name for name in names if environ.get(name, "").strip()), None)


def base_override(model: str, environ: Mapping[str, str]) -> str | None:
    """The address that the environment sets for the model's provider, None when it sets none."""
    provider = PROVIDERS.get(provider_name(model) or "")
    if provider is None:
        return None
    name = _first_set(provider.bases, environ)
    return environ[name].strip() if name is not None else None


def provider_host(model: str, api_base: str | None, environ: Mapping[str, str] | None = None) -> str | None:
    """Host, and port where one is given, that requests for a model go to; None when it cannot be told.

    Example: ``provider_host("openai/gpt-4o-mini", None)`` → ``"api.openai.com"``;
    ``provider_host("openai/qwen", "http://127.0.0.1:8000/v1")`` → ``"127.0.0.1:8000"``.
    """
    base = api_base or base_override(model, environ or {})
    if base:
        return host_of(base)
    provider = PROVIDERS.get(provider_name(model) or "")
    return provider.host if provider is not None else None


def first_word_patience(host: str | None, timeout: float) -> float:
    """Return the seconds that a model may be silent before its first word.

    A server on this machine reads a long prompt for minutes on a processor; one that is to be given up sooner than any
    other is by default (`timeout` below `MODEL_TIMEOUT`) gets no more than that.

    >>> first_word_patience("127.0.0.1:8080", 60.0), first_word_patience("api.example.com", 60.0)
    (300.0, 60.0)
    >>> first_word_patience("localhost:11434", 5.0)
    5.0
    """
    waits = host is not None and is_local(host) and timeout >= MODEL_TIMEOUT
    return max(timeout, LOCAL_SILENCE) if waits else timeout


def is_local(host: str | None) -> bool:
    """Return whether a host is this machine: None (nothing leaves the process), localhost, or a loopback address."""
    if host is None:
        return True
    name = (urlsplit(f"//{host}").hostname or "").rstrip(".") if _parses(host) else ""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _parses(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname is not None
    except ValueError:
        return False


def host_of(base: str) -> str | None:
    """Return host and port of an address, its user name and password left out; None where it has none."""
    try:
        parts = urlsplit(base if "//" in base else f"//{base}")
        port = parts.port
    except ValueError:
        return None
    if parts.hostname is None:
        return None
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{name}:{port}" if port else name
