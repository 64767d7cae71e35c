"""A study that is killed again and again (`kill -9`), and what is left each time; `make soak` kills two hundred times.

Every attempt is a fork of this process, so that only the first one pays for the imports. The attempt dies at a named
moment of a write, or at a random one. A second fork then looks at the file: nothing that was stored may be lost,
nothing may be there twice or half, and what is stored is never asked for again.

    python -m tests.soak.kills 200            # random moments, seeded
    python -m tests.soak.kills before trial   # named moments
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.run.progress import Progress
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.evaluation.trial.code_version import code_version
from tests.evaluation.study_support import BASE, BEST, ByVariant
from tests.evaluation.trial_support import scenario, suite

MOMENTS = ("before", "trial", "events", "commit", "after", "progress")
COUNT = 12  # scenarios; two variants, two repeats
PLANNED = COUNT * 4
# Done once, before any fork.
find_check("first_call_is")
code_version()


class Logged(ByVariant):
    """The model, with a line in a file for every trial that begins."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def complete(self, request: Any, on_text: Any = None) -> Any:
        if not any(message.role == "assistant" for message in request.messages):
            explicit = (
                "MUST" in request.messages[0].content and "editing anything" in request.messages[0].content
            )
            told = [request.messages[-1].content, request.repeat, "best" if explicit else "base"]
            os.write(self._log, json.dumps(told).encode() + b"\n")
        return await super().complete(request, on_text)


def opened(folder: Path) -> Study:
    numbered = [scenario(f"s{n:02}", prompts={"natural": f"Read notes.md for {n:02}."}) for n in range(COUNT)]
    return Study(folder / "a.sqlite", suite(*numbered), models={"scripted": Logged(folder / "asked.jsonl")})


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def attempt(folder: Path, moment: str, nth: int, after: float) -> None:
    """Run the study until it dies, or is complete."""
    study = opened(folder)
    seen = 0

    def at(point: str) -> None:
        nonlocal seen
        seen += point == moment
        if point == moment and seen == nth:
            die()

    def hear(progress: Progress) -> None:
        if moment == "progress" and progress.done:
            die()

    study.parts.store.at = at
    if moment == "random":
        timer = threading.Timer(after, die)
        timer.daemon = True
        timer.start()
    study.run(BASE, BEST, on_progress=hear)


def looked_at(folder: Path) -> dict[str, Any]:
    """What is in the file, and what the model was asked, after an attempt."""
    path, log = folder / "a.sqlite", folder / "asked.jsonl"
    asked = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    if not path.exists() or not path.stat().st_size:
        return {"stored": [], "doubled": 0, "faults": [], "asked": asked}
    study = opened(folder)
    rows = [stored.trial for stored in study.parts.store.trials()]
    stored = sorted(
        [f"Read notes.md for {trial.scenario[1:]}.", trial.repeat, trial.variant] for trial in rows
    )
    return {
        "stored": stored,
        "doubled": len(rows) - len({trial.key for trial in rows}),
        "faults": list(study.verify().faults),
        "asked": asked,
    }


def forked(work: Any, *arguments: Any) -> tuple[int, Any]:
    """Do something in a fork; its exit status (negative for a signal), and what it returned."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        try:
            data = json.dumps(work(*arguments)).encode()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(data)
            status = 0
        except BaseException as error:  # whatever it is, the fork ends here
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), json.loads(data) if data else None


def killed_once(folder: Path, moment: str, nth: int, after: float) -> dict[str, Any]:
    """One attempt and a look at what is left; AssertionError where the file does not keep its promise."""
    _, before = forked(looked_at, folder)
    began = time.monotonic()
    status, _ = forked(attempt, folder, moment, nth, after)
    seconds = time.monotonic() - began
    assert status in (0, -signal.SIGKILL), status
    code, left = forked(looked_at, folder)
    assert code == 0
    assert left["faults"] == [] and left["doubled"] == 0, left
    assert all(each in left["stored"] for each in before["stored"]), "a stored trial is lost"
    asked = left["asked"][len(before["asked"]) :]
    assert not [each for each in asked if each in before["stored"]], "a stored trial was tried again"
    assert len(asked) == len({json.dumps(each) for each in asked}), "a trial was tried twice in one run"
    fresh = [each for each in left["stored"] if each not in before["stored"]]
    assert all(each in asked for each in fresh), "a trial is there that nobody tried"
    return {
        "killed": status != 0, "moment": moment, "stored": len(left["stored"]), "fresh": len(fresh),
        "asked": len(asked), "seconds": seconds,
    }  # fmt: skip


def completed(folder: Path) -> None:
    """Run to the end; everything is there, once."""
    found = killed_once(folder, "never", 0, 0.0)
    assert not found["killed"] and found["stored"] == PLANNED, found


def main(*arguments: str) -> None:
    if arguments and arguments[0].isdigit():
        randomly(int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0)
        return
    for moment in arguments or MOMENTS:
        with tempfile.TemporaryDirectory() as name:
            found = killed_once(Path(name), moment, 5, 0.0)
            assert found["killed"], f"{moment} was never reached"
            completed(Path(name))
            print(json.dumps(found), flush=True)


def randomly(kills: int, seed: int) -> None:
    """Kill at random moments, the same study until it is complete, then another."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        began = time.monotonic()
        completed(Path(name))
        whole = time.monotonic() - began
    done = 0
    while done < kills:
        with tempfile.TemporaryDirectory() as name:
            finished = False
            while done < kills and not finished:
                found = killed_once(Path(name), "random", 0, chance.uniform(0, whole))
                finished = found["stored"] == PLANNED
                done += found["killed"]
                print(json.dumps(found), flush=True)
            completed(Path(name))


if __name__ == "__main__":
    main(*sys.argv[1:])
