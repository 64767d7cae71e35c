"""Trials in processes of their own, so that models in this process use more than one core.

Invariants: a worker has a bench of its own, made from the same plain data, and gives back trials and events; it never
sees the study's file. What it would try differently (another version of the code, another catalog) is refused. No
worker outlives the study, and one that is killed costs no more than the trials that it was at, which are tried again.

Only models that answer in the process are run so: a hosted model gains nothing, and its calls are paced here.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reyn_jupyter.config import Settings
from reyn_jupyter.evaluation.plans import PlanError
from reyn_jupyter.evaluation.suite import Suite
from reyn_jupyter.evaluation.trial import Trial
from reyn_jupyter.evaluation.trial_run import Bench, TrialPlan
from reyn_jupyter.evaluation.worker_process import Asked, LostError, Seat
from reyn_jupyter.evaluation.workspaces import Scratch
from reyn_jupyter.runtime.events import Event

_ATTEMPTS = 2  # processes that may die of one trial


@dataclass(frozen=True)
class Recipe:
    """What a bench is made from, as plain data that can be sent to another process; see `Bench`."""

    suite: Suite
    models: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] | None = None
    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    timeout: float = 300.0

    def bench(self, scratch: Path | None = None) -> Bench:
        """The bench; its temporary folder lies in `scratch`."""
        return Bench(
            self.suite, models=self.models, config=self.config, settings=self.settings, seed=self.seed,
            timeout=self.timeout, scratch=scratch,
        )  # fmt: skip


class Workers:
    """Processes that run trials, each started with its first one.

    Args:
        recipe: what each makes its bench from.
        count: how many there are.

    Attributes:
        most: how many trials keep all of them busy: one that runs and one that waits for each.

    Raises:
        PlanError: the suite or a model cannot be sent to another process.

    Example:
        >>> workers = Workers(Recipe(suite), 2)                        # doctest: +SKIP
        >>> trial, events = await workers.run(bench.plan(s, v, 0))     # doctest: +SKIP
    """

    def __init__(self, recipe: Recipe, count: int) -> None:
        try:
            self._sent = pickle.dumps(recipe)
        except Exception as error:
            raise PlanError(
                f"workers={count} needs a suite and models that can be sent to another process ({error}). "
                "Leave workers out, or define them in a module instead of a cell."
            ) from error
        main = sys.modules.get("__main__")
        if main is not None and not hasattr(main, "__spec__"):
            # An embedded shell puts a bare namespace there; a spawned process asks it where it came from.
            main.__spec__ = None
        self.most = 2 * count
        self._count = count
        self._scratch = Scratch()
        self._seats: list[Seat] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        weakref.finalize(self, _end, self._seats, os.getpid())

    async def run(self, plan: TrialPlan, catalog: str) -> tuple[Trial, tuple[Event, ...]]:
        """Run one trial in a worker. A cancellation ends that worker: what it does cannot be stopped otherwise.

        Args:
            plan: what is tried.
            catalog: the hash of the frozen catalog that it is to be tried on.

        Raises:
            PlanError: the worker has other code or another catalog, or it died of this trial, and another one too.
        """
        how = ""
        for _ in range(_ATTEMPTS):
            seat = min(self._at_hand(), key=lambda each: each.load)
            try:
                trial, events = await seat.ask(Asked(plan.scenario.digest, plan.variant, plan.repeat))
            except LostError as lost:
                how = str(lost)
                continue
            if (trial.key, trial.catalog) != (plan.key, catalog):
                raise PlanError(
                    "A worker process has another catalog or other code than this one, since files changed after "
                    "this one was started. Restart the kernel, or leave workers out."
                )
            return trial, events
        raise PlanError(
            f"A worker process died at a trial of {plan.scenario.id!r}, and so did the one after it ({how}). Was "
            "there too little memory? Take fewer workers, or none. A script must keep its work under "
            'if __name__ == "__main__".'
        )

    def _at_hand(self) -> list[Seat]:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the first run, or the engine before this one was given up
            _end(self._seats, os.getpid())
            self._seats += [Seat(self._sent, self._scratch.path) for _ in range(self._count)]
            self._loop = loop
        return self._seats

    def close(self) -> None:
        """End the workers; what they are doing is given up."""
        _end(self._seats, os.getpid())
        self._loop = None
        self._scratch.close()


def _end(seats: list[Seat], owner: int) -> None:
    if os.getpid() == owner:  # a fork of this process does not own them
        for seat in seats:
            seat.end()
        seats.clear()
