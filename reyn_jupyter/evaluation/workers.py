"""Trials in processes of their own, so that models in this process use more than one core.

Invariant: a worker has a bench of its own, made from the same plain data, and gives back trials and events; it never
sees the study's file. What it would try differently (another version of the code, another catalog) is refused.

Only models that answer in the process are run so: a hosted model gains nothing, and its calls are paced here.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.util import Finalize
from typing import Any

from reyn_jupyter.config import Settings
from reyn_jupyter.evaluation.plans import PlanError
from reyn_jupyter.evaluation.suite import Suite
from reyn_jupyter.evaluation.trial import Trial
from reyn_jupyter.evaluation.trial_run import Bench, TrialPlan
from reyn_jupyter.runtime.events import Event


@dataclass(frozen=True)
class Recipe:
    """What a bench is made from, as plain data that can be sent to another process; see `Bench`."""

    suite: Suite
    models: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] | None = None
    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    timeout: float = 300.0

    def bench(self) -> Bench:
        return Bench(
            self.suite, models=self.models, config=self.config, settings=self.settings, seed=self.seed,
            timeout=self.timeout,
        )  # fmt: skip


class Workers:
    """Processes that run trials, started with the first one.

    Args:
        recipe: what each makes its bench from.
        count: how many there are.

    Raises:
        PlanError: the suite or a model cannot be sent to another process.

    Example:
        >>> workers = Workers(Recipe(suite), 2)                        # doctest: +SKIP
        >>> trial, events = await workers.run(bench.plan(s, v, 0))     # doctest: +SKIP
    """

    def __init__(self, recipe: Recipe, count: int) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise PlanError(f"workers={count!r}: give a whole number from 1 on, or 0 for none")
        try:
            sent = pickle.dumps(recipe)
        except Exception as error:
            raise PlanError(
                f"workers={count} needs a suite and models that can be sent to another process ({error}). "
                "Leave workers out, or define them in a module instead of a cell."
            ) from error
        main = sys.modules.get("__main__")
        if main is not None and not hasattr(main, "__spec__"):
            # An embedded shell puts a bare namespace there; a spawned process asks it where it came from.
            main.__spec__ = None
        # Forking a process that has threads, as a kernel has, may copy a lock that nobody opens again.
        self._pool = ProcessPoolExecutor(
            count, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(sent, os.getpid())
        )

    async def run(self, plan: TrialPlan, catalog: str) -> tuple[Trial, tuple[Event, ...]]:
        """Run one trial in a worker.

        Args:
            plan: what is tried.
            catalog: the hash of the frozen catalog that it is to be tried on.

        Raises:
            PlanError: the worker has other code or another catalog.
        """
        trial, events = await asyncio.get_running_loop().run_in_executor(self._pool, _tried, plan)
        if (trial.key, trial.catalog) != (plan.key, catalog):
            raise PlanError(
                "A worker process has another catalog or other code than this one, since files changed after this "
                "one was started. Restart the kernel, or leave workers out."
            )
        return trial, events

    def close(self) -> None:
        """Let the workers end; what they are doing is given up."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class _Worker:
    """The bench of this process and the loop that its trials run in."""

    bench: Bench
    loop: asyncio.AbstractEventLoop


def _begin(sent: bytes, parent: int) -> None:
    """Make this process a worker. An interrupt is the parent's business; without the parent it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    recipe: Recipe = pickle.loads(sent)  # noqa: S301 - from the parent, through its own pipe
    _Worker.bench = recipe.bench()
    _Worker.loop = asyncio.new_event_loop()
    Finalize(None, _Worker.bench.close, exitpriority=1)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    _Worker.bench.close()
    os._exit(1)


def _tried(plan: TrialPlan) -> tuple[Trial, tuple[Event, ...]]:
    plan = _Worker.bench.plan(
        plan.scenario, plan.variant, plan.repeat
    )  # with the key by this process's own code
    return _Worker.loop.run_until_complete(_Worker.bench.run(plan))
