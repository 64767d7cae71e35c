"""Workers for the tests of executors; in a module, since a process imports them."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reyn_jupyter.executors.executor import SentSpec, Task


@dataclass(frozen=True)
class Toolbox:
    """A worker that does what a payload names: ("double", 3)."""

    name: str = "toolbox"

    def open(self, folder: Path) -> Toolbox:
        (folder / "opened").touch()
        return self

    async def run(self, payload: tuple[str, Any]) -> Any:
        verb, value = payload
        return await getattr(self, verb)(value)

    async def release(self) -> None:
        pass

    def close(self) -> None:
        pass

    async def double(self, value: int) -> int:
        await asyncio.sleep(0)
        return 2 * value

    async def who(self, value: Any) -> tuple[int, Any]:
        return os.getpid(), value

    async def fail(self, value: str) -> None:
        raise LookupError(value)

    async def fail_with_what_cannot_be_sent(self, value: str) -> None:
        raise type("Local", (Exception,), {})(value)

    async def function(self, value: Any) -> Any:
        return lambda: value

    async def die(self, value: int) -> None:
        os.kill(os.getpid(), value)

    async def leave(self, value: int) -> None:
        os._exit(value)

    async def die_once(self, marker: str) -> str:
        """Die the first time, and say so the second time."""
        if not Path(marker).exists():
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "alive"

    async def die_with_parent(self, marker: str) -> None:
        """Note that it began, then end what started this process, too."""
        await self.note(marker)
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    async def large(self, size: int) -> bytes:
        return bytes(size)

    async def note(self, marker: str) -> str:
        with Path(marker).open("a") as file:
            file.write("x")
        return marker

    async def hold(self, marker: str) -> str:
        """Keep the process busy until `marker` is there."""
        Path(f"{marker}.held").touch()
        while not Path(marker).exists():
            time.sleep(0.01)
        return "held"

    async def compute(self, marker: str) -> None:
        """Keep the process busy for good, once `marker` is there, with the number of the process in it."""
        Path(f"{marker}.part").write_text(str(os.getpid()))
        Path(f"{marker}.part").rename(marker)
        while True:
            time.sleep(0.01)


@dataclass(frozen=True)
class Unopenable(Toolbox):
    """A spec of which no worker can be made."""

    def open(self, folder: Path) -> Toolbox:
        raise LookupError("there is no such tool")


SPEC = SentSpec.of(Toolbox(), "executor")


def task(verb: str, value: Any = None, spec: SentSpec = SPEC) -> Task:
    return Task(spec, (verb, value))
