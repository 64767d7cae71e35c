"""The context length of a model: asked of a server on this machine, or read out of the words of a refusal.

Invariants: only a server on this machine is asked, by name of the model alone; what it does not say in time, or says in
another shape, is not known. Nothing here raises for what a server answers.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

_PATIENCE = 2.0  # seconds for one question
_OLLAMA_DEFAULT = 4_096  # tokens, where neither model nor server says otherwise. Source: Ollama, FAQ
_LARGEST = 100_000_000  # tokens: beyond it, nobody counted
_NUMBER = r"([\d][\d,]{0,11})"
# What providers say of a request that is too long. Sources: the errors of llama.cpp, OpenAI, vLLM, Anthropic, Ollama,
# Gemini and llama-cpp-python, as they are quoted in the issues of those projects.
_ASKED = tuple(
    re.compile(each, re.IGNORECASE)
    for each in (
        rf"request \({_NUMBER} tokens\)",
        rf"n_prompt_tokens\W{{1,4}}{_NUMBER}",
        rf"\({_NUMBER} in the (?:messages|prompt)",
        rf"(?:resulted in|you requested|request has|contains at least|token count(?: is)?) \(?{_NUMBER}",
        rf"requested tokens \({_NUMBER}",
        rf"prompt is too long: {_NUMBER} tokens",
        rf"input (?:prompt )?\({_NUMBER} tokens\)",
        rf"input token count \({_NUMBER}\)",
    )
)
_TAKEN = tuple(
    re.compile(each, re.IGNORECASE)
    for each in (
        rf"context size(?: of)? \(?{_NUMBER}",
        rf"n_ctx\W{{1,4}}{_NUMBER}",
        rf"(?:maximum|max) context length (?:is|of)(?: only)? {_NUMBER}",
        rf"> {_NUMBER} maximum",
        rf"exceeds? (?:the )?limit of {_NUMBER}",
        rf"context (?:window|length|limit) (?:of|is) {_NUMBER}",
        rf"maximum number of tokens allowed \({_NUMBER}\)",
        rf"maximum model length of {_NUMBER}",
    )
)


@dataclass(frozen=True)
class Overflow:
    """What a provider says of a request that is too long, in its own tokens; None where it does not say.

    Attributes:
        asked: tokens of the request.
        taken: tokens that the model takes.
    """

    asked: int | None = None
    taken: int | None = None


def read_overflow(said: str) -> Overflow:
    """Return the figures in the words of a provider that refused a request for its length.

    Example:
        >>> read_overflow("request (10814 tokens) exceeds the available context size (8192 tokens)")
        Overflow(asked=10814, taken=8192)
        >>> read_overflow("prompt is too long: 215000 tokens > 200000 maximum")
        Overflow(asked=215000, taken=200000)
    """
    return Overflow(_first(_ASKED, said), _first(_TAKEN, said))


def _first(patterns: tuple[re.Pattern[str], ...], said: str) -> int | None:
    for pattern in patterns:
        if found := pattern.search(said):
            return _tokens(found[1].replace(",", ""))
    return None


async def served_context(base: str, model: str, key: str | None = None) -> int | None:
    """Ask a server on this machine how many tokens a model of it takes.

    It knows the ways of llama.cpp's server, vLLM, LM Studio and Ollama.

    Args:
        base: the address of its OpenAI protocol, or the one of Ollama.
        model: the model's name there.
        key: what the server wants to see.

    Returns:
        None where it does not say.
    """
    import httpx  # LiteLLM brings it along

    root = base.rstrip("/").removesuffix("/v1")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(timeout=_PATIENCE, headers=headers, trust_env=False) as client:

        async def ask(path: str, body: Mapping[str, Any] | None = None) -> Any:
            with suppress(httpx.HTTPError, ValueError):
                address = f"{root}{path}"
                answer = await (client.get(address) if body is None else client.post(address, json=body))
                return answer.json() if answer.is_success else None
            return None

        entry = _entry(await ask("/v1/models"), model)
        stated = _tokens(_at(entry, "max_model_len")) or _tokens(_at(entry, "meta", "n_ctx"))
        stated = stated or _tokens(_at(entry, "max_context_length"))
        if stated is None and _at(entry, "owned_by") == "llamacpp":
            stated = _tokens(_at(await ask("/props"), "default_generation_settings", "n_ctx"))
            stated = stated or _tokens(_at(entry, "meta", "n_ctx_train"))
        return stated or await _ollama_context(model, ask)


async def _ollama_context(model: str, ask: Callable[..., Awaitable[Any]]) -> int | None:
    """Return what Ollama gives a model: what it runs with now, else what its file or Ollama itself sets."""
    if _at(await ask("/api/version"), "version") is None:
        return None
    shown = await ask("/api/show", {"model": model})
    if not isinstance(shown, dict):
        return None
    running = _at(await ask("/api/ps"), "models")
    for each in running if isinstance(running, list) else ():
        if model in (_at(each, "name"), _at(each, "model")) and (
            found := _tokens(_at(each, "context_length"))
        ):
            return found
    set_ = re.search(r"^num_ctx\s+(\d{1,9})$", str(shown.get("parameters") or ""), re.MULTILINE)
    if set_ is not None:
        return _tokens(set_[1])
    facts = shown.get("model_info")
    own = (
        [value for key, value in facts.items() if str(key).endswith(".context_length")]
        if isinstance(facts, dict)
        else []
    )
    return min(filter(None, (_OLLAMA_DEFAULT, *map(_tokens, own))))


def _entry(listed: Any, model: str) -> Any:
    """Return what a list of models says of one; of the only one where the server calls it otherwise."""
    entries = _at(listed, "data")
    entries = entries if isinstance(entries, list) else []
    named = [each for each in entries if _at(each, "id") == model]
    return next(iter(named or (entries if len(entries) == 1 else [])), None)


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _tokens(value: Any) -> int | None:
    """Return a number of tokens that can be one; None for anything else."""
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if 0 < found <= _LARGEST else None
