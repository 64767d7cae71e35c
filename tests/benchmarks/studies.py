"""What a study's file costs: storing a trial, reading it, and grading ten thousand of them again without a model."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Gold, Scenario
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.grading import grade_stored
from reyn_jupyter.evaluation.store.rows import TrialEntry
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.record.events import Event

TRIALS = 10_000
LIMIT = 5_000  # trials graded again a second and core
CHECKS = ("first_call_is", "arguments_correct", "chain")
VARIANT = Variant("plain", model="scripted")
SCRIPT = (
    call("list_actions", category=["file"]),
    call("invoke_action", action_name="file__read", args={"path": "notes.md"}),
    "The notes say hello.",
)


def scenario(number: int) -> Scenario:
    gold = Gold(steps=((AcceptedCall(action="file__read", args={"path": ("notes.md",)}),),))
    return Scenario(
        id=f"read-{number}", family="discover", prompts={"natural": f"What do the notes say? ({number})"},
        workspace={"notes.md": "hello\n"}, gold=gold, says=("hello",),
    )  # fmt: skip


def one_trial(scenarios: tuple[Scenario, ...]) -> tuple[Trial, tuple[Event, ...]]:
    suite = Suite(
        name="benchmark",
        title="",
        primary=CHECKS[0],
        scenarios=scenarios,
        catalogs={"standard": Catalog.standard},
    )
    with TrialRunner(suite, models={"scripted": ScriptedModel(*SCRIPT)}) as bench:
        return asyncio.run(bench.run(bench.plan(scenarios[0], VARIANT, 0)))


def main() -> None:
    scenarios = tuple(scenario(number) for number in range(100))
    trial, events = one_trial(scenarios)
    checks = [find_check(name) for name in CHECKS]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "study.sqlite")
        store.begin("run", 0.0, {}, scenarios, [VARIANT])
        began = time.process_time()
        for number in range(TRIALS):
            what = scenarios[number % len(scenarios)]
            made = trial.model_copy(update={"key": f"{number:064x}", "scenario": what.id})
            verdicts = {check.name: (check.version, check.grade(made, what)) for check in checks}
            store.add("run", TrialEntry(made, events, what, VARIANT, "catalog", verdicts))
        print(f"store a trial, graded by {len(checks)} checks: {_each(began):.2f} ms CPU")
        began = time.process_time()
        sum(1 for _ in store.trials())
        print(f"read:  {1000 / _each(began):>9,.0f} trials/s/core")
        began = time.process_time()
        grade_stored(store, find_check("arguments_correct"), again=True)
        print(
            f"grade: {1000 / _each(began):>9,.0f} trials/s/core, verdicts stored (limit: at least {LIMIT:,})"
        )
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        print(f"{size / TRIALS / 1000:.1f} kB a trial of {len(events)} events")
        store.close()


def _each(began: float) -> float:
    """Milliseconds of CPU a trial."""
    return (time.process_time() - began) / TRIALS * 1000


if __name__ == "__main__":
    main()
