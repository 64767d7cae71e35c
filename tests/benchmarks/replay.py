"""Trials a second and core through the real router loop, the model being a script or a recording.

A trial is three model calls (list, invoke, answer) in a world of its own: a session, a workspace, memories, stored
results. Nothing is kept of it: what a study's file costs is another figure. One that reads shares its files with the
others, one that writes gets a copy. The best of ten blocks counts, since whatever else the machine does only adds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.trial.trial_model import replaying_model
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.models.base import Model, Tier
from reyn_jupyter.models.scripted import ScriptedModel, Step, call

BLOCKS, TRIALS, WARM = 10, 100, 20
LIMIT = 300  # trials a second and core
LIST = call("list_actions", category=["file"])
SCRIPTS: dict[str, tuple[Step, ...]] = {
    "reads": (LIST, call("invoke_action", action_name="file__read", args={"path": "notes.md"}), "Read."),
    "writes": (
        LIST,
        call("invoke_action", action_name="file__write", args={"path": "notes.md", "content": "new\n"}),
        "Written.",
    ),
}


class Scripted:
    """Gives every trial a scripted model of its own."""

    label, host, real = "scripted", None, False
    tier: Tier = "standard"

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self._steps = steps

    def for_scenario(self, scenario: Scenario) -> Model:
        return ScriptedModel(*self._steps)


async def block(bench: TrialRunner, count: int, instead: Callable[[], Model | None]) -> float:
    """CPU seconds of a trial."""
    variant, scenario = Variant("plain", model="scripted"), bench.suite.scenarios[0]
    began = time.process_time()
    for repeat in range(count):
        trial, _ = await bench.run(bench.plan(scenario, variant, repeat), instead())
        if trial.outcome != "ok" or not all(made.ok for made in trial.calls):
            raise RuntimeError(f"a trial went wrong: {trial.error}, {trial.calls}")
    return (time.process_time() - began) / count


async def measure(steps: tuple[Step, ...]) -> dict[str, float]:
    task = Scenario(id="one", family="f", prompts={"natural": "Do it."}, workspace={"notes.md": "hello\n"})
    suite = Suite(
        name="one", title="One", primary="calls", scenarios=(task,), catalogs={"standard": Catalog.standard}
    )
    with TrialRunner(suite, models={"scripted": Scripted(steps)}) as bench:
        _, events = await bench.run(bench.plan(task, Variant("plain", model="scripted"), 0))
        ways: dict[str, Callable[[], Model | None]] = {
            "scripted": lambda: None,
            "replayed": lambda: replaying_model(events),
        }
        found = {}
        for way, instead in ways.items():
            await block(bench, WARM, instead)
            found[way] = min([await block(bench, TRIALS, instead) for _ in range(BLOCKS)])
        return found


def main() -> None:
    print(f"{'trial':<20}{'ms CPU':>10}{'trials/s/core':>16}")
    for what, steps in SCRIPTS.items():
        for way, seconds in asyncio.run(measure(steps)).items():
            print(f"{what + ', ' + way:<20}{seconds * 1e3:>10.2f}{1 / seconds:>16.0f}")
    print(f"limit: {LIMIT} trials a second and core")


if __name__ == "__main__":
    main()
