"""Marks that tell a provider which beginning of a request to cache.

Invariants: only messages and tools in the wire form are marked, so that a request's key does not depend on marks. A
request has at most four marks, which is Anthropic's limit. Providers that cache by themselves, or that do not know
marks, get none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reyn_jupyter.models.providers.provider_facts import provider_name

if TYPE_CHECKING:
    from collections.abc import Mapping

# LiteLLM passes `cache_control` on to these, to Bedrock in its own form; its proxy removes it if the model behind it
# does not take it. Sources: Anthropic, Bedrock, Vertex AI, Microsoft Foundry, and OpenRouter on prompt caching.
_PROVIDERS = frozenset({"anthropic", "azure_ai", "bedrock", "litellm_proxy", "openrouter", "vertex_ai"})
_USERS_OWN = ("cache_control", "cache_control_injection_points")  # parameters of LiteLLM that set marks
_REFUSALS = ("cache_control", "cachepoint", "prompt caching")


def takes_marks(litellm: Any, model: str, parameters: Mapping[str, Any]) -> bool:
    """Return whether the requests of a model are marked: those of Claude models, unless LiteLLM's list objects.

    Args:
        litellm: the module, as `litellm_loader.load` gives it.
        model: a LiteLLM model string.
        parameters: of the request. If they set marks, no others are added.
    """
    if provider_name(model) not in _PROVIDERS or "claude" not in model.lower():
        return False
    if any(name in parameters for name in _USERS_OWN):
        return False
    try:
        listed = litellm.get_model_info(model)
    except Exception:  # noqa: BLE001 - it raises what it likes for a name that is not in its list
        return True
    return bool(listed.get("supports_prompt_caching"))


def is_refusal(error: Exception) -> bool:
    """Return whether a provider refused a request for the marks in it."""
    said = str(error).lower()
    return getattr(error, "status_code", None) in (400, 422) and any(each in said for each in _REFUSALS)


def mark(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> None:
    """Mark, in place, the ends of what the next request repeats.

    These are the tools, the system message, the last message, and the last message of the request before. The last one
    is needed because Anthropic looks back only 20 blocks from a mark, and one reply may have more calls than that.
    """
    if tools:
        tools[-1]["cache_control"] = _ephemeral()
    if messages and messages[0]["role"] == "system":
        _mark_message(messages[0])
    replies = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    for end in (len(messages), *replies[-1:]):
        if end and messages[end - 1]["role"] in ("user", "tool"):
            _mark_message(messages[end - 1])


def _mark_message(message: dict[str, Any]) -> None:
    """Mark the end of a message; providers refuse a mark on an empty text."""
    content = message.get("content")
    if not content:
        return
    target = content[-1] if isinstance(content, list) else message
    target["cache_control"] = _ephemeral()


def _ephemeral() -> dict[str, str]:
    return {"type": "ephemeral"}
