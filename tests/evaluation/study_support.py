"""Studies of small suites, and child processes that run them, for the tests of running and resuming."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.models.base import Response
from reyn_jupyter.models.scripted import ScriptedModel, Step, call
from tests.evaluation.trial_support import READ, Scripts, scenario, suite

BASE = Variant("base", model="scripted")
BEST = BASE.but("best", mandate="explicit", reinforcement=3)
BLIND = (call("invoke_action", action_name="file__read", args={"path": "notes.md"}), "The notes say hello.")


def scenarios(count: int, **fields: Any) -> tuple[Scenario, ...]:
    return tuple(scenario(f"s{number:03}", **fields) for number in range(count))


def small(count: int = 4, **fields: Any) -> Suite:
    return suite(*scenarios(count), **{"checks": ("first_call_is", "arguments_correct"), **fields})


def study(path: Path | None = None, count: int = 4, *steps: Step, **options: Any) -> Study:
    """A study of scenarios that a scripted model solves."""
    options.setdefault("models", {"scripted": Scripts(*(steps or READ))})
    return Study(path, options.pop("suite", None) or small(count), **options)


class ByVariant:
    """A model that answers by what it is sent: the explicit mandate gets one script, everything else another.

    It counts its first calls, one a trial, by (prompt, repeat, mandate).
    """

    label, tier, host, real = "by-variant", "standard", None, False

    def __init__(self, explicit: tuple[Step, ...] = READ, other: tuple[Step, ...] = BLIND) -> None:
        self._scripts = {True: explicit, False: other}
        self.asked: Counter[tuple[str, int, bool]] = Counter()
        self.hook: Callable[[Any], Any] | None = None

    async def complete(self, request: Any, on_text: Any = None) -> Any:
        explicit = "list_actions" in request.messages[0].content and "MUST" in request.messages[0].content
        position = sum(message.role == "assistant" for message in request.messages)
        if position == 0:
            self.asked[request.messages[-1].content, request.repeat, explicit] += 1
        if self.hook is not None:
            await self.hook(request)
        script = self._scripts[explicit]
        return await ScriptedModel(script[min(position, len(script) - 1)], label=self.label).complete(request)


class Holding(ScriptedModel):
    """A model that answers so many calls, and none more before it is let go; so nothing ends before a test says so."""

    def __init__(self, count: int) -> None:
        super().__init__(otherwise="Done.")
        self.count, self.calls, self.go_on = count, 0, threading.Event()

    async def complete(self, request: Any, on_text: Any = None) -> Any:
        self.calls += 1
        held = self.calls > self.count
        while held and not self.go_on.is_set():
            await asyncio.sleep(0.01)
        return await super().complete(request, on_text)


class HoldingAnywhere:
    """A model that answers so many calls over all processes, and none more before the file `go on` is there.

    It keeps no thread or process busy, so that it can be asked to stop.

    Args:
        folder: an empty folder, where every call leaves a file.
    """

    label, tier, host, real = "holding", "standard", None, False

    def __init__(self, folder: Path, count: int) -> None:
        self._folder, self._count = folder, count
        folder.mkdir(parents=True, exist_ok=True)

    def go_on(self) -> None:
        (self._folder / "go on").touch()

    async def complete(self, request: Any, on_text: Any = None) -> Response:
        (self._folder / uuid.uuid4().hex).touch()
        while len(list(self._folder.iterdir())) > self._count and not (self._folder / "go on").exists():
            await asyncio.sleep(0.02)
        return Response("Done.")


def killed(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == -signal.SIGKILL
