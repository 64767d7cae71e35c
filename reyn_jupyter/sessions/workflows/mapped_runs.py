"""A workflow mapped over inputs: each input is a run of its own, and what comes of it is one row of a table.

Invariant: every input that was begun is answered once, by its outputs or its error, also when the rest was interrupted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reyn_jupyter.executors.bounded import run_bounded
from reyn_jupyter.runtime.engine import publisher
from reyn_jupyter.sessions.error_sentence import error_sentence
from reyn_jupyter.sessions.result_objects import Table
from reyn_jupyter.support.text import count
from reyn_jupyter.workflows.execution.sent_utility import UtilitySender, steps_sent_by
from reyn_jupyter.workflows.execution.workflow_run import PARTLY_DONE
from reyn_jupyter.workflows.workflow_library import SKILL

if TYPE_CHECKING:
    from reyn_jupyter.sessions.async_session import AsyncSession

_OWN = ("input", "status", "error", "run")


@dataclass(frozen=True)
class MappedRun:
    """What came of one input.

    Attributes:
        number: its place among the inputs, from 0.
        inputs: as they were given.
        outputs: what the workflow gave; None where it failed.
        error: why it failed, and which of its arguments was wrong; None where it did not.
        code: which error it is.
        run: the id of the run in the record.
    """

    number: int
    inputs: Any
    outputs: Any = None
    error: str | None = None
    code: str | None = None
    run: str = ""

    @property
    def status(self) -> str:
        """How it ended: "done", "partly done", or the code of its error."""
        if self.error is not None:
            return self.code or "failed"
        is_whole = not isinstance(self.outputs, Mapping) or PARTLY_DONE not in self.outputs
        return "done" if is_whole else "partly done"

    @property
    def row(self) -> dict[str, Any]:
        """A row of the table: what it gave by name, what is no plain value as JSON."""
        given = self.outputs if isinstance(self.outputs, Mapping) else {"result": self.outputs}
        made = {f"{name}_output" if name in _OWN else name: _plain(value) for name, value in given.items()}
        own = {"input": self.number, "status": self.status}
        return {**own, **({} if self.error is not None else made), "error": self.error, "run": self.run}


async def map_workflow(
    aio: AsyncSession, name: str, inputs: Iterable[Any], sender: UtilitySender | None, window: int
) -> Table:
    """Run a workflow on each of many inputs, on the engine, and publish each `MappedRun` as it ends.

    Args:
        aio: the session.
        name: of a workflow.
        inputs: taken in their order as there is room.
        sender: sends steps elsewhere; None runs them here.
        window: runs at a time.
    """
    done: list[MappedRun] = []
    publish, note = publisher(), ""

    async def run_one(numbered: tuple[int, Any]) -> MappedRun:
        number, given = numbered
        with steps_sent_by(sender):
            result = await aio.invoke_action(f"{SKILL}__{name}", given)
        run = result.trace.run if result.trace is not None else ""
        if result.error is not None:
            said = error_sentence(result.payload) if isinstance(result.payload, dict) else result.error
            return MappedRun(number, given, None, said, result.code, run)
        return MappedRun(number, given, result.value, run=run)

    try:
        async with aclosing(run_bounded(_wanted(inputs, sender), run_one, window=max(1, window))) as runs:
            async for each in runs:
                done.append(each)
                if publish is not None:
                    publish(each)
    except asyncio.CancelledError:
        note = "Interrupted: what had ended by then."
    if sender is not None and sender.lost is not None:
        note = f"No further input was begun: {sender.lost}"
    return table_of(name, done, note)


def _wanted(inputs: Iterable[Any], sender: UtilitySender | None) -> Iterator[tuple[int, Any]]:
    for numbered in enumerate(inputs):
        if sender is not None and sender.lost is not None:
            return
        yield numbered


def table_of(name: str, done: Iterable[MappedRun], note: str = "") -> Table:
    """Return the table of what came of inputs, in their order."""
    ordered = tuple(sorted(done, key=lambda each: each.number))
    columns = dict.fromkeys(key for each in ordered for key in each.row)
    order = ["input", "status", *(key for key in columns if key not in _OWN), "error", "run"]
    rows = tuple({key: row.get(key) for key in order} for row in (each.row for each in ordered))
    failed = sum(each.error is not None for each in ordered)
    partly = sum(each.status == "partly done" for each in ordered)
    counted = [
        count(len(ordered), "input"),
        f"{failed} failed",
        *([f"{partly} partly done"] if partly else []),
    ]
    said = f"{', '.join(counted)}. {note}".strip()
    return Table("mapped", rows, f"{name} over inputs", said, ordered)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
