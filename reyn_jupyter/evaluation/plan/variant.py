"""A variant: a model and the router settings that it is tried with.

Invariant: a variant is a pure function from a scenario to a request; its defaults are those of the Universal Action
Catalog (FP-0034), never those of the model's tier, so that a comparison changes exactly what it names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field, JsonValue

from reyn_jupyter.config.settings import ReasoningEffort
from reyn_jupyter.evaluation.plan.validation import Stated
from reyn_jupyter.models.base import canonical


class Variant(Stated):
    """A model and how it is held to the catalog. Each field but the first three, `without` and
    `catalog_size` is the router setting of that name.

    Args:
        name: what tables call it.
        model: a tier, "offline", "simulator", a LiteLLM model string, or the name of a model given to the study.
        parameters: sent with every request (temperature, seed, max_tokens).
        reinforcement: how often the list-first mandate is placed.
        reasoning_effort: How much a reasoning model thinks; the provider's default when None.
        without: categories that its trials are not offered, of those in a scenario's catalog.
        catalog_size: actions that a trial's catalog is filled up to, with recorded actions that do not do what is asked
            (`distractors`); None leaves it as the scenario has it.
        reinforce_with: "mandate" says the same sentence each time, "reminder" a shorter one after the first.

    Raises:
        FieldError: a field that there is not, or a value that does not fit; names the nearest.

    Example:
        >>> base = Variant("generic-1x", model="light", mandate="generic")
        >>> base.but("explicit-3x", mandate="explicit", reinforcement=3).reinforcement
        3
    """

    name: str = Field(min_length=1, max_length=100)
    model: str = Field(default="standard", min_length=1, max_length=200)
    parameters: Mapping[str, JsonValue] = Field(default_factory=dict)
    surface: Literal["universal", "flat", "auto"] = "universal"
    discovery: Literal["prompt", "gate", "forced", "two_steps"] = "prompt"
    mandate: Literal["none", "generic", "explicit"] = "none"
    reinforcement: int = Field(default=1, ge=0, le=10)
    reinforce_with: Literal["mandate", "reminder"] = "mandate"
    edit_rule: Literal["none", "reasoned", "must"] = "none"
    list_schemas: bool = True
    listing_order: Literal["name", "reads_first"] = "name"
    listing_limit: int = Field(default=100, ge=1, le=100)
    names: Literal["hidden", "shown"] = "hidden"
    constrain_names: bool = False
    repair: bool = False
    forgive: bool = True
    hot_list_n: int = Field(default=0, ge=0, le=100)
    text_calls: bool = False
    stop_repeats: bool = False
    check_support: bool = False
    fit_context: bool = False
    short_errors: bool = False
    required_first: bool = False
    search: bool = False
    reasoning_effort: ReasoningEffort | None = None
    without: tuple[str, ...] = ()
    catalog_size: int | None = Field(default=None, ge=1)
    max_steps: int = Field(default=8, ge=1, le=1000)
    writes_per_completion: int = Field(default=50, ge=1, le=10_000)

    def __init__(self, name: str, **fields: Any) -> None:
        """Make it from its name and the fields above."""
        super().__init__(name=name, **fields)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        said = dict(super().__repr_args__())
        yield None, said.pop("name")
        yield "model", said.pop("model", self.model)
        yield from said.items()

    def but(self, name: str, **changes: Any) -> Self:
        """Return the same variant under another name, with these fields changed; a field that there is not is an
        error."""
        return type(self)(name, **{**self.model_dump(exclude={"name"}), **changes})

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Variant:
        """Return a variant from its plain data, as `model_dump` gives it. Raises FieldError."""
        return cls(**data)

    @cached_property
    def behaviour_digest(self) -> str:
        """SHA-256 over everything but the name: variants that behave alike share their trials."""
        return hashlib.sha256(canonical(self.model_dump(mode="json", exclude={"name"}))).hexdigest()

    @property
    def config(self) -> dict[str, Any]:
        """The settings that a session of this variant gets."""
        router = ("surface", "discovery", "mandate", "reinforcement", "reinforce_with", "edit_rule", "list_schemas",
                  "listing_order", "listing_limit", "names", "constrain_names", "repair", "forgive",
                  "reasoning_effort")  # fmt: skip
        weak = (
            "text_calls",
            "stop_repeats",
            "check_support",
            "fit_context",
            "short_errors",
            "required_first",
        )
        retrieval: dict[str, Any] = {"hot_list_n": self.hot_list_n}
        if not self.search:
            retrieval["embedding_class"] = None
        return {
            "router": {
                **{key: getattr(self, key) for key in router},
                "weak": {key: getattr(self, key) for key in weak},
                "limits": {
                    "max_steps": self.max_steps,
                    "writes_per_completion": self.writes_per_completion,
                },
            },
            "action_retrieval": retrieval,
        }

    def differences(self, other: Variant) -> dict[str, tuple[Any, Any]]:
        """Field → (here, there) for every field but the name in which the two differ."""
        mine, theirs = self.model_dump(), other.model_dump()
        return {key: (mine[key], theirs[key]) for key in mine if key != "name" and mine[key] != theirs[key]}
