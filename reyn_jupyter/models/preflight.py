"""Whether LiteLLM knows where a model's calls would go, asked without one.

Invariant: nothing here touches the network. A provider that LiteLLM lists is taken at its word, since asking further
signs in to some of them.
"""

from __future__ import annotations

import difflib
from typing import Any

from reyn_jupyter.models.providers import PROVIDERS
from reyn_jupyter.models.seam import ModelError

_LONGEST = 200


def unknown_provider(litellm: Any, model: str, api_base: str | None) -> ModelError | None:
    """What any call would fail with where LiteLLM cannot tell the provider of a model; None where it can.

    Args:
        litellm: the module, as `litellm_loader.load` gives it.
        model: a LiteLLM model string.
        api_base: an address of one's own.
    """
    providers = [str(getattr(each, "value", each)) for each in litellm.provider_list]
    prefix, slash, rest = model.partition("/")
    if slash and prefix in providers:
        return None
    try:
        litellm.get_llm_provider(model, api_base=api_base)
    except litellm.BadRequestError:
        said = f"LiteLLM knows no provider of {model!r}, so no call could be made."
        return ModelError(
            "configuration", said, _way_on(litellm, providers, model, prefix if slash else "", rest)
        )
    return None


def _way_on(litellm: Any, providers: list[str], model: str, prefix: str, rest: str) -> str:
    short = model[:_LONGEST]
    near = [
        f"{each}/{rest[:_LONGEST]}"
        for names in (PROVIDERS, providers)
        for each in difflib.get_close_matches(prefix.casefold(), names, 1, 0.75)
    ] or difflib.get_close_matches(short, litellm.model_cost, 1, 0.75)
    meant = f"Did you mean {near[0]}? " if near else ""
    return f"{meant}A model is named with its provider, as openai/gpt-4o-mini or ollama_chat/llama3.2."
