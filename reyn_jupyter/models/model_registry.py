"""Find the model that a name means: a tier of the configuration, the offline model, one from a file of this machine, or
a LiteLLM model string.

Nothing configured means the offline model; a tier that is named but not configured is an error with the
missing line. Nothing here imports LiteLLM, and no key's value is read.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, get_args

from reyn_jupyter.models.base import Model, ModelError, Tier
from reyn_jupyter.models.local.local_model import PREFIX, LocalModel
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel
from reyn_jupyter.models.providers.provider_facts import is_local, key_status, provider_host, required_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reyn_jupyter.config import ModelEntry, Settings

__all__ = ["is_local", "key_status", "provider_host", "required_key", "resolve_model"]

OFFLINE = "offline"
_TIERS: tuple[Tier, ...] = get_args(Tier)
_DEFAULT_TIER: Tier = "standard"
_EXAMPLES: dict[Tier, str] = {
    "light": "gemini/gemini-2.5-flash-lite",
    "standard": "openai/gpt-4o-mini",
    "strong": "anthropic/claude-sonnet-4-5",
}


def resolve_model(
    settings: Settings,
    name: str | ModelEntry | None = None,
    environ: Mapping[str, str] | None = None,
) -> Model:
    """The model to use.

    Args:
        settings: the effective settings.
        name: "offline", a tier, "local/smollm2" or "local/~/FILE.gguf" (tier "light"), a LiteLLM model string (tier
            "standard"), or None for `router_model`; or an entry of the settings, which stands for its name where it
            says no more.
        environ: where keys and addresses are looked up later; the process's environment when None.

    Raises:
        ModelError: kind "configuration" for a tier that is not configured, or a name that cannot be one.

    Example: ``resolve_model(settings, "openai/gpt-4o-mini").label`` → ``"openai/gpt-4o-mini"``.
    """
    environ = os.environ if environ is None else environ
    if name is not None and not isinstance(name, str):
        if name.model_fields_set - {"model"}:
            return _from_entry(name, _DEFAULT_TIER, environ)
        name = name.model
    if name is None:
        if settings.router_model == _DEFAULT_TIER and not _configured(settings):
            return _offline()
        name = settings.router_model
    name = name.strip()
    if name == OFFLINE:
        return _offline()
    tier = next((tier for tier in _TIERS if tier == name), None)
    if tier is not None:
        entry = _entry(settings, tier)
        if entry is None:
            raise _not_configured(settings, tier)
        return _from_entry(entry, tier, environ)
    if name.startswith(PREFIX) and name.isprintable():
        return LocalModel(name)
    if not name or any(character.isspace() or not character.isprintable() for character in name):
        raise ModelError(
            "configuration",
            f"{name!r} is not the name of a model.",
            f"Give offline, {', '.join(_TIERS)}, or a LiteLLM model string as {_EXAMPLES['standard']}.",
        )
    return LiteLLMModel(name, tier=_DEFAULT_TIER, environ=environ)


def _from_entry(entry: ModelEntry, tier: Tier, environ: Mapping[str, str]) -> Model:
    if entry.model == OFFLINE:
        return _offline()
    if entry.model.startswith(PREFIX):
        return LocalModel(entry.model, tier=entry.tier or tier, parameters=entry.parameters)
    return LiteLLMModel(
        entry.model,
        tier=entry.tier or tier,
        api_base=entry.api_base,
        headers=entry.headers,
        parameters=entry.parameters,
        media=entry.media,
        environ=environ,
    )


def _offline() -> Model:
    from reyn_jupyter.models.offline import OfflineModel

    return OfflineModel()


def _entry(settings: Settings, tier: Tier) -> ModelEntry | None:
    entry: ModelEntry | None = getattr(settings.models, tier)
    return entry


def _configured(settings: Settings) -> list[Tier]:
    return [tier for tier in _TIERS if _entry(settings, tier) is not None]


def _not_configured(settings: Settings, tier: Tier) -> ModelError:
    configured = _configured(settings)
    hint = f"Add to reyn.yaml:\nmodels:\n  {tier}: {_EXAMPLES[tier]}"
    if configured:
        hint += f"\nor name one that is there: -m {configured[0]}"
        hint += f", or for all questions: %reyn config router_model {configured[0]}"
    return ModelError("configuration", f"No model is configured for the tier {tier}.", hint)
