"""Small suites, benches and scripted models for the tests of evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Expected, Gold, Scenario
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.models.scripted import ScriptedModel, Step, call
from reyn_jupyter.runtime.record.events import Event
from reyn_jupyter.sessions import assembly

ENGINE = assembly.ENGINE
READ = (
    call("list_actions", category=["file"]),
    call("invoke_action", action_name="file__read", args={"path": "notes.md"}),
    "The notes say hello.",
)
WRITE = (
    call("list_actions", category=["file"]),
    call("invoke_action", action_name="file__write", args={"path": "notes.md", "content": "changed\n"}),
    "Done.",
)


class Scripts:
    """An agent: every trial gets a scripted model of its own.

    Args:
        steps: the script, or a function from the scenario to it.
    """

    real = False
    host: str | None = None
    tier = "standard"

    def __init__(
        self, *steps: Step, make: Callable[[Scenario], Any] | None = None, label: str = "scripted"
    ) -> None:
        self._steps = steps
        self._make = make
        self.label = label
        self.models: list[ScriptedModel] = []

    def for_scenario(self, scenario: Scenario) -> ScriptedModel:
        steps = self._steps if self._make is None else tuple(self._make(scenario))
        model = ScriptedModel(*steps, label=self.label)
        self.models.append(model)
        return model


def scenario(identity: str = "read-1", **fields: Any) -> Scenario:
    """A scenario over one short file, solved by reading it."""
    chosen: dict[str, Any] = {
        "id": identity,
        "family": "discover",
        "prompts": {"explicit": "Read notes.md.", "natural": "What do the notes say?"},
        "workspace": {"notes.md": "hello\n"},
        "gold": Gold(steps=((AcceptedCall(action="file__read", args={"path": ("notes.md",)}),),)),
        "says": ("hello",),
    }
    return Scenario(**{**chosen, **fields})


def writing(identity: str = "write-1", **fields: Any) -> Scenario:
    """A scenario that is solved by writing the file."""
    gold = Gold(steps=((AcceptedCall(action="file__write", args={"path": ("notes.md",)}),),))
    expected = (Expected(path="notes.md", text="changed\n"),)
    return scenario(identity, **{"family": "edit", "gold": gold, "expected": expected, "says": (), **fields})


def suite(*scenarios: Scenario, **fields: Any) -> Suite:
    """A suite over the standard catalog."""
    chosen: dict[str, Any] = {
        "name": "small",
        "title": "A small suite",
        "primary": "first_call_is",
        "scenarios": scenarios or (scenario(),),
        "catalogs": {"standard": Catalog.standard},
    }
    return Suite(**{**chosen, **fields})


def bench(*scenarios: Scenario, models: Mapping[str, Any] | None = None, **options: Any) -> TrialRunner:
    """A bench whose model "scripted" reads the file, unless other models are given."""
    return TrialRunner(suite(*scenarios), models=models or {"scripted": Scripts(*READ)}, **options)


def run(
    on: TrialRunner, what: Scenario | None = None, variant: Variant | None = None, repeat: int = 0
) -> tuple[Trial, tuple[Event, ...]]:
    """Run one trial on the engine."""
    chosen = variant or Variant("plain", model="scripted")
    return ENGINE.run(on.run(on.plan(what or on.suite.scenarios[0], chosen, repeat)))
