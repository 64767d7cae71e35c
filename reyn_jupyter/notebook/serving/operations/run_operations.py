"""The messages of the trace viewer: a run opened, one of its lines, a list of runs, two of them compared.

Runs for the trace viewer: opened, looked into, listed, compared, stopped.

Invariant: a run is read, cut and redacted on a thread, never on the engine's loop; of finished runs the last few
stay read, so that going through the steps of a long one costs one reading.
"""

from __future__ import annotations

import asyncio
import time
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from reyn_jupyter.backends.charts.chart_request import ChartError
from reyn_jupyter.backends.charts.chart_result import StoredChart
from reyn_jupyter.backends.charts.quick_chart import quick_chart
from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import Badge, Block, Notice, View
from reyn_jupyter.notebook.render.chart_view import chart_blocks
from reyn_jupyter.notebook.render.file_changes_view import previous_bytes
from reyn_jupyter.notebook.render.parts_view import MediaRoom
from reyn_jupyter.notebook.render.trace.card import about, details_line, run_badges, run_title, trace_view
from reyn_jupyter.notebook.render.trace.run_diff import (
    PairRow,
    answers_differing,
    diff_head,
    pair_blocks,
    pair_rows,
    side_view,
)
from reyn_jupyter.notebook.render.trace.step_details import PART, call_views, part
from reyn_jupyter.notebook.render.trace.steps import ROWS, StepRow, count_rows, step_rows
from reyn_jupyter.notebook.serving.operation import (
    OperationContext,
    OperationError,
    ServedOperation,
    WireMessage,
)
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.record.compare import RunDiff, compare
from reyn_jupyter.runtime.record.run_result import NoTableError
from reyn_jupyter.runtime.record.run_steps import Call
from reyn_jupyter.runtime.record.run_store import RunNotFoundError
from reyn_jupyter.runtime.record.runlog import RunLogError
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.support.text import count

Id = Annotated[str, Field(max_length=200)]


class OpenRun(WireMessage):
    run: Id


class OpenedRun(WireMessage):
    """Describe a run to its viewer.

    Attributes:
        run: its whole id, by which the rest is asked for.
        view: the head, the answer and what can be done with it.
        summary: what stands beside the heading of the details.
        about: the details beside the steps: rules, what was sent, the prompt.
        steps: the list; `more` says what of it was left out.
        running: whether its record still grows; `stoppable` whether `run.stop` ends it.
    """

    run: str
    view: View
    summary: str
    about: tuple[Block, ...]
    steps: tuple[StepRow, ...]
    more: str = ""
    running: bool = False
    stoppable: bool = False


class OpenPart(WireMessage):
    run: Id
    id: Id


class OpenedPart(WireMessage):
    """Show the details of one step; `blob` is the id of its blob, "" for none."""

    request: View
    response: View
    blob: str = ""


class DrawChart(WireMessage):
    run: Id


class DrawnChart(WireMessage):
    """Show a chart of the table that a run's answer rests on; where none suggests itself, the blocks say so."""

    blocks: tuple[Block, ...]


class ListRuns(WireMessage):
    limit: Annotated[int, Field(ge=1, le=200)] = 40


class RunRow(WireMessage):
    """Offer one run: `title` is its prompt or its call, `facts` model, steps and time, `when` its start."""

    run: str
    title: str
    facts: str
    when: str
    state: Badge


class ListedRuns(WireMessage):
    rows: tuple[RunRow, ...]
    more: str = ""


class CompareRuns(WireMessage):
    a: Id
    b: Id


class OpenedComparison(WireMessage):
    """Show two runs side by side: totals and prompts, the calls aligned, the answers and each side's own."""

    a: str
    b: str
    view: View
    pairs: tuple[PairRow, ...]
    answers: tuple[Block, ...]
    sides: tuple[View, ...]
    more: str = ""


class OpenPair(WireMessage):
    a: Id
    b: Id
    id: Id


class OpenedPair(WireMessage):
    """Show the difference of two calls, and each of them in its column; a missing one has no blocks."""

    differing: tuple[Block, ...]
    sides: tuple[View, ...]


class StopRun(WireMessage):
    run: Id


class RunStop(WireMessage):
    """Confirm a stop; `stopping` is False when the run had ended already."""

    stopping: bool


CHART_BY_HAND = "%reyn invoke chart__draw data=… mark=bar x=… y=… draws what you name."
STOP = "The Stop button ends it; what it did is kept."
_KEPT = 6
_BEGINS = 0.05  # seconds between two looks whether a record has begun


async def open_run(context: OperationContext, arguments: OpenRun) -> OpenedRun:
    trace = await _load(context, arguments.run)
    return await asyncio.to_thread(_describe_run, context, trace)


def _describe_run(context: OperationContext, trace: Trace) -> OpenedRun:
    stoppable = trace.grows and _background(context, trace.run) is not None
    look = context.look
    look.now = now = look.now or time.time()
    view = trace_view(trace, look, "" if trace.grows else None, stop=STOP if stoppable else "", details=False)
    total = count_rows(trace)
    more = f"… {total - ROWS:,} more not shown here; all of them: trace.call_log" if total > ROWS else ""
    rows = step_rows(trace, look, now if trace.grows else None)
    return OpenedRun(
        run=trace.run,
        view=view,
        summary=details_line(trace),
        about=tuple(about(trace, look)),
        steps=rows,
        more=more,
        running=trace.grows,
        stoppable=stoppable,
    )


async def open_part(context: OperationContext, arguments: OpenPart) -> OpenedPart:
    trace = await _load(context, arguments.run)

    def compute() -> OpenedPart:
        found = part(trace, arguments.id, context.look, previous_bytes(trace), trace.grows)
        return OpenedPart(request=found.request, response=found.response, blob=found.blob)

    try:
        return await asyncio.to_thread(compute)
    except LookupError as error:
        raise OperationError(str(error.args[0]), "Choose another line of the list.") from None


async def draw_chart(context: OperationContext, arguments: DrawChart) -> DrawnChart:
    trace = await _load(context, arguments.run)

    def compute() -> DrawnChart:
        services = context.session.parts.services
        try:
            drawn = quick_chart(trace.df, services.children, "df", services.redactor.text, trace.sql or "")
        except (NoTableError, BlobStoreError, ChartError) as error:
            raise OperationError(context.look.text(str(error), 400), CHART_BY_HAND) from None
        stored = None if drawn is None else StoredChart.of_parts(drawn.parts)
        if stored is None:
            return DrawnChart(
                blocks=(Notice("No chart suggests itself for this table.", "muted", CHART_BY_HAND),)
            )
        return DrawnChart(blocks=chart_blocks(stored, context.look, MediaRoom().take))

    return await asyncio.to_thread(compute)


async def list_runs(context: OperationContext, arguments: ListRuns) -> ListedRuns:
    def compute() -> ListedRuns:
        runs = context.session.parts.runs
        rows = tuple(_run_row(trace, context) for trace in islice(runs.back(), arguments.limit))
        left = len(runs.ids()) - len(rows)
        return ListedRuns(
            rows=rows, more=f"… {left:,} older ones: %reyn diff names any run" if left > 0 else ""
        )

    return await asyncio.to_thread(compute)


def _run_row(trace: Trace, context: OperationContext) -> RunRow:
    look = context.look
    facts = [
        run_title(trace, look),
        count(len(trace.calls), "call"),
        formatting.seconds(trace.seconds),
    ]
    return RunRow(
        run=look.line(trace.run, 60),
        title=look.line(trace.prompt or trace.run[-12:], 100),
        facts=" · ".join(facts),
        when=formatting.moment(trace.started.at),
        state=run_badges(trace, trace.grows)[0],
    )


async def compare_runs(context: OperationContext, arguments: CompareRuns) -> OpenedComparison:
    a, b = await _load(context, arguments.a), await _load(context, arguments.b)

    def compute() -> OpenedComparison:
        diff = _difference(context, a, b)
        rows = pair_rows(diff, context.look)
        more = (
            f"… {len(rows) - ROWS:,} more pairs; all of them: session.diff(…).df" if len(rows) > ROWS else ""
        )
        return OpenedComparison(
            a=a.run,
            b=b.run,
            view=diff_head(diff, context.look),
            pairs=rows[:ROWS],
            answers=tuple(answers_differing(diff, context.look)),
            sides=(side_view(a, "a", context.look), side_view(b, "b", context.look)),
            more=more,
        )

    return await asyncio.to_thread(compute)


async def compare_part(context: OperationContext, arguments: OpenPair) -> OpenedPair:
    a, b = await _load(context, arguments.a), await _load(context, arguments.b)

    def compute() -> OpenedPair:
        pairs = _difference(context, a, b).pairs
        place = int(arguments.id[1:]) if arguments.id[1:].isdecimal() else -1
        if arguments.id[:1] != "p" or not 0 <= place < len(pairs):
            raise OperationError(
                f"there is no pair {arguments.id[:20]!r} of calls", "Choose another line of the list."
            )
        pair = pairs[place]
        differing = tuple(pair_blocks(pair, context.look)) if pair.a and pair.b else ()
        sides = (_side(a, pair.a, "a", context), _side(b, pair.b, "b", context))
        return OpenedPair(differing=differing, sides=sides)

    return await asyncio.to_thread(compute)


def _difference(context: OperationContext, a: Trace, b: Trace) -> RunDiff:
    """Return the difference of two runs; the last one is kept, since its pairs are looked at one after the other."""
    last: RunDiff | None = context.caches.get("runs.difference")
    if last is None or last.a is not a or last.b is not b:
        last = context.caches["runs.difference"] = compare(a, b)
    return last


def _side(trace: Trace, call: Call | None, name: str, context: OperationContext) -> View:
    if call is None:
        return View("part", f"{name}: no such call")
    place = next(place for place, each in enumerate(trace.calls) if each is call)
    request, response = call_views(call, trace, place, context.look, previous_bytes(trace), PART // 2)
    badges = (*response.badges, *request.badges)
    title = f"{name}: {context.look.line(call.label, 100)}"
    return View("part", title, badges, response.facts, (*request.blocks, *response.blocks), request.knob)


async def stop_run(context: OperationContext, arguments: StopRun) -> RunStop:
    found = _background(context, arguments.run)
    if found is None:
        raise OperationError(
            "this is no background run of this session",
            "A run in a cell is stopped by interrupting the cell.",
        )
    if found.done:
        return RunStop(stopping=False)
    found.cancel()
    return RunStop(stopping=True)


def _background(context: OperationContext, run: str) -> Any:
    return context.session.background.get(run)


def _read(context: OperationContext, run: str) -> Trace | None:
    """Return a recorded run; None while a background run, shown as soon as it has an id, has no record yet."""
    found = _background(context, run)
    begins = found is not None and not found.done
    try:
        return context.session.parts.runs.load(run)
    except RunNotFoundError as error:
        if begins:
            return None
        said = context.look.text(error.args[0], 400)
        raise OperationError(said, "%reyn runs lists the runs of this workspace.") from None
    except (RunLogError, OSError, ValueError) as error:
        if begins:
            return None
        hint = "Its file under .reyn/runs is damaged; the other runs are untouched, %reyn runs lists them."
        raise OperationError(context.look.text(str(error), 400), hint) from None


async def _load(context: OperationContext, run: str) -> Trace:
    kept: dict[str, Trace] = context.caches.setdefault("runs", {})
    if run in kept:
        return kept[run]
    while (trace := await asyncio.to_thread(_read, context, run)) is None:  # noqa: ASYNC110 (a record on the disk tells nobody)
        await asyncio.sleep(_BEGINS)
    if trace.ended is not None:
        for key in (run, trace.run):
            kept[key] = trace
        _forget(kept)
    return trace


def _forget(kept: dict[str, Trace]) -> None:
    for key in list(kept)[: max(0, len(kept) - _KEPT)]:
        kept.pop(key, None)


OPERATIONS: tuple[ServedOperation, ...] = (
    ServedOperation("trace.open", OpenRun, OpenedRun, open_run),
    ServedOperation("trace.part", OpenPart, OpenedPart, open_part),
    ServedOperation("trace.diff", CompareRuns, OpenedComparison, compare_runs),
    ServedOperation("trace.pair", OpenPair, OpenedPair, compare_part),
    ServedOperation("trace.chart", DrawChart, DrawnChart, draw_chart),
    ServedOperation("runs.list", ListRuns, ListedRuns, list_runs),
    ServedOperation("run.stop", StopRun, RunStop, stop_run),
)
