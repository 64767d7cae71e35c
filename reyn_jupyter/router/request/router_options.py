"""The router's options for a model: from the settings, and where they are silent, from the model's tier.

Weak models obey mechanical mandates and skip discovery; strong ones need neither (Universal Action Catalog,
"Weak-model discovery + selection reliability"). Tier is a property of the configured model, not of its name.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

from reyn_jupyter.config import Settings
from reyn_jupyter.config.settings import ReasoningEffort
from reyn_jupyter.models.base import Tier

Surface = Literal["universal", "flat", "auto"]
Discovery = Literal["prompt", "gate", "forced", "two_steps"]
Mandate = Literal["none", "generic", "explicit"]
ReinforceWith = Literal["mandate", "reminder"]
ListingOrder = Literal["name", "reads_first"]
EditRule = Literal["none", "reasoned", "must"]
Names = Literal["hidden", "shown"]
WRITES, WRITES_WEAK = 50, 1  # calls of one reply that may change something, unless the settings say otherwise


@dataclass(frozen=True)
class RouterOptions:
    """The router's effective keys for one model.

    >>> from reyn_jupyter.config import Settings
    >>> RouterOptions.of(Settings(), "light").discovery, RouterOptions.of(Settings(), "strong").mandate
    ('gate', 'none')
    """

    surface: Surface = "universal"
    discovery: Discovery = "prompt"
    mandate: Mandate = "none"
    reinforcement: int = 1
    reinforce_with: ReinforceWith = "mandate"
    edit_rule: EditRule = "none"
    list_schemas: bool = True
    listing_order: ListingOrder = "name"
    listing_limit: int = 100
    names: Names = "hidden"
    constrain_names: bool = False
    repair: bool = False
    forgive: bool = True
    hot_list_n: int = 0
    text_calls: bool = False
    stop_repeats: bool = False
    check_support: bool = False
    fit_context: bool = False
    short_errors: bool = False
    required_first: bool = False
    writes_per_completion: int = WRITES
    reasoning_effort: ReasoningEffort | None = None

    @classmethod
    def of(cls, settings: Settings, tier: Tier) -> RouterOptions:
        weak = tier == "light"
        router = settings.router
        surface: Surface = router.surface or (
            "universal" if settings.action_retrieval.universal_wrappers_enabled else "flat"
        )
        return cls(
            surface=surface,
            discovery=router.discovery or ("gate" if weak else "prompt"),
            mandate=router.mandate or ("explicit" if weak else "none"),
            reinforcement=router.reinforcement if router.reinforcement is not None else (3 if weak else 1),
            reinforce_with=router.reinforce_with,
            edit_rule=router.edit_rule or ("must" if weak else "none"),
            list_schemas=router.list_schemas,
            listing_order=router.listing_order or ("reads_first" if weak else "name"),
            listing_limit=router.listing_limit,
            names=router.names,
            constrain_names=router.constrain_names,
            repair=router.repair,
            forgive=router.forgive,
            hot_list_n=settings.action_retrieval.hot_list_n,
            reasoning_effort=router.reasoning_effort,
            writes_per_completion=router.limits.writes_per_completion or (WRITES_WEAK if weak else WRITES),
            **{key: weak if given is None else given for key, given in router.weak.model_dump().items()},
        )

    @cached_property
    def lists_first(self) -> bool:
        """Whether the prompt tells the model to list first; never where it is shown a list of its own accord."""
        told = self.mandate != "none" and self.reinforcement > 0
        return told and self.surface != "flat" and self.discovery != "two_steps"

    @cached_property
    def mandates(self) -> tuple[str, ...]:
        """The mandates in force, as a trace shows them."""
        listed = []
        if self.lists_first:
            reminder = " (reminders)" if self.reinforce_with == "reminder" and self.reinforcement > 1 else ""
            listed.append(f"list-first: {self.mandate} ×{self.reinforcement}{reminder}")
        if self.edit_rule != "none":
            listed.append(f"edit rule: {self.edit_rule}")
        if self.discovery != "prompt" and self.surface != "flat":
            listed.append(f"discovery: {self.discovery}")
        return tuple(listed)

    @cached_property
    def record(self) -> dict[str, Any]:
        """The keys as plain data, for a run's record."""
        return {name: getattr(self, name) for name in _KEYS}


_KEYS = tuple(field.name for field in fields(RouterOptions))
