"""Prices of models, from the list that LiteLLM brings along; nothing is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.models.providers import litellm_loader


@dataclass(frozen=True)
class Price:
    """The price of a model in US dollars a token, and the most tokens of one call."""

    prompt: float
    completion: float
    context: int
    answer: int

    @property
    def call(self) -> float:
        """US dollars of the dearest call: the whole context in, the longest answer out."""
        return self.context * self.prompt + self.answer * self.completion


def price_of(model: str) -> Price | None:
    """Return the price of a LiteLLM model string, None where LiteLLM's own list has none. Imports LiteLLM.

    Where a price depends on the length of a call, the higher one counts.
    """
    listed: Mapping[str, Any] = litellm_loader.load().model_cost
    entry = listed.get(model) or listed.get(model.partition("/")[2])
    if not entry:
        return None
    prompt = _dearest(entry, "input_cost_per_token")
    completion = _dearest(entry, "output_cost_per_token", "output_cost_per_reasoning_token")
    context = entry.get("max_input_tokens") or entry.get("max_tokens")
    answer = entry.get("max_output_tokens") or entry.get("max_tokens")
    if prompt is None or completion is None or not isinstance(context, int) or not isinstance(answer, int):
        return None
    return Price(prompt, completion, context, answer)


def _dearest(entry: Mapping[str, Any], *names: str) -> float | None:
    prices = [
        float(value)
        for key, value in entry.items()
        if isinstance(value, int | float) and (key in names or key.startswith(f"{names[0]}_above_"))
    ]
    return max(prices, default=None)
