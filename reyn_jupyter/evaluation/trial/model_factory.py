"""Make the model that answers under a variant, live, on record, or from a recording.

Invariant: while a recording is replayed nothing here calls a model, so that no request can reach the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast, get_args

from reyn_jupyter.config import Settings
from reyn_jupyter.evaluation.plan.scenario import Scenario, Source
from reyn_jupyter.evaluation.plan.suite import SuiteError
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.trial.trial import trial_key
from reyn_jupyter.evaluation.trial.trial_model import (
    AbsentModel,
    Agent,
    OnModelError,
    TrialModel,
    UsageMeter,
    source_of,
)
from reyn_jupyter.models.base import Model, ModelError, Tier
from reyn_jupyter.models.cassettes.cassette import CassettePlayer, CassetteRecorder
from reyn_jupyter.models.model_registry import OFFLINE, resolve_model
from reyn_jupyter.support.key_shapes import contains_key_shape
from reyn_jupyter.support.text import did_you_mean, nearest

CassetteMode = Literal["off", "record", "replay"]
SIMULATOR = "simulator"


class ModelFactory:
    """The models of a study.

    Args:
        given: by the name that variants use; these come first.
        settings: where tiers are looked up.
        seed: the simulator's.
        cassette, path: whether the model calls are recorded, or replayed, and where.
        on_model_error: gets (provider, error) for each failed attempt of a call.

    Raises:
        SuiteError: a cassette without a path.
        ModelError: the recording to replay cannot be read.
    """

    def __init__(
        self,
        given: Mapping[str, Model | Agent],
        settings: Settings,
        *,
        seed: int = 0,
        cassette: CassetteMode = "off",
        path: Path | None = None,
        on_model_error: OnModelError | None = None,
    ) -> None:
        if cassette != "off" and path is None:
            raise SuiteError(f'cassette="{cassette}" needs a file; give cassette_path')
        self._given = dict(given)
        self._settings = settings
        self._seed = seed
        self.on_model_error = on_model_error
        self._record = path if cassette == "record" else None
        self._player: CassettePlayer | None = None
        if cassette == "replay" and path is not None:
            self._player = CassettePlayer(path, contains_key_shape)
        self._made: dict[str, Model | Agent] = {}

    def source(self, variant: Variant) -> Source:
        """Return what kind of source answers under a variant. Raises ModelError where there is no such model."""
        return (
            "replayed" if self._player is not None else source_of(cast("Model", self._model(variant.model)))
        )

    def check(self, variant: Variant) -> None:
        """Refuse a model that no call could reach, as far as it can say so without one (`LiteLLMModel.check`).

        Raises:
            ModelError: a key that is not set, a provider that there is not.
        """
        if self._player is not None:
            return
        check = getattr(self._model(variant.model), "check", None)
        try:
            if check is not None:
                check()
        except ModelError as error:
            near = nearest(variant.model, (*self._given, SIMULATOR, OFFLINE, *get_args(Tier)))
            meant = did_you_mean([near] if near else [])
            raise ModelError(error.kind, error.message, f"{meant} {error.hint}".strip()) from error

    def provider(self, variant: Variant) -> str:
        """Return whose limits its calls come under: a host, or a label in this process. Raises ModelError."""
        if self._player is not None:
            return "cassette"
        model: Any = self._model(variant.model)
        return str(model.host or model.label)

    def slots(self, variant: Variant) -> int | None:
        """Return how many trials its model takes at a time, None where it does not say. Raises ModelError."""
        return None if self._player is not None else getattr(self._model(variant.model), "slots", None)

    def loading(self, variant: Variant) -> str:
        """Return what its model loads at this moment, in a few words; empty where it loads nothing or does not say.

        It makes no model: one that no trial has asked loads nothing.
        """
        return getattr(self._made.get(variant.model), "loading", "")

    def label(self, variant: Variant) -> str:
        """Return what people call the model that answers under a variant. Raises ModelError."""
        return str(getattr(self._model(variant.model), "label", variant.model))

    def made_of(self, variant: Variant) -> Mapping[str, Any] | None:
        """Return what a stand-in's answers depend on besides the request (its `provenance`), where it says so."""
        return getattr(self._model(variant.model), "provenance", None)

    def to(
        self,
        scenario: Scenario,
        variant: Variant,
        repeat: int,
        instead: Model | None = None,
        meter: UsageMeter | None = None,
    ) -> tuple[Model, Source]:
        """Return what answers in one trial, and what kind of source it is; a model that cannot be had says so when
        called.

        Args:
            instead: a model that takes the variant's place.
            meter: reads what the trial uses.
        """
        try:
            if instead is not None:
                return self._of_trial(instead, variant, meter), source_of(instead)
            conversation = trial_key(scenario, variant, repeat, "")
            if self._player is not None:
                return self._replaying(self._player, scenario, variant, conversation, meter), "replayed"
            inner = self._live(variant.model, scenario)
            answering: Model = inner
            if self._record is not None:
                answering = CassetteRecorder(
                    inner, self._record, contains_key_shape, conversation=conversation
                )
            return self._of_trial(answering, variant, meter, _parameters(inner)), source_of(inner)
        except ModelError as error:
            return AbsentModel(variant.model, error), "scripted"

    def _replaying(
        self,
        player: CassettePlayer,
        scenario: Scenario,
        variant: Variant,
        conversation: str,
        meter: UsageMeter | None,
    ) -> Model:
        label: str | None = None
        tier: Tier | None = None
        own: Mapping[str, Any] = {}
        try:  # only asked what it is called
            model = self._live(variant.model, scenario)
            label, tier, own = model.label, model.tier, _parameters(model)
        except ModelError:
            own = player.parameters
        view = player.within(conversation, label, tier)
        return self._of_trial(view, variant, meter, own, view.system)

    def _of_trial(
        self,
        model: Model,
        variant: Variant,
        meter: UsageMeter | None,
        own: Mapping[str, Any] | None = None,
        system: str | None = None,
    ) -> Model:
        parameters = {**(_parameters(model) if own is None else own), **variant.parameters}
        return TrialModel(model, parameters, model.host or model.label, self.on_model_error, system, meter)

    def _live(self, name: str, scenario: Scenario) -> Model:
        made = self._model(name)
        return made.for_scenario(scenario) if isinstance(made, Agent) else made

    def _model(self, name: str) -> Model | Agent:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._make(name)
        return made

    def _make(self, name: str) -> Model | Agent:
        if name in self._given:
            return self._given[name]
        if name == SIMULATOR:
            from reyn_jupyter.evaluation.models.simulator import Simulator

            return Simulator(seed=self._seed)
        return resolve_model(self._settings, name)


def _parameters(model: Model) -> Mapping[str, Any]:
    return getattr(model, "parameters", None) or {}
