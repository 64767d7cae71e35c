"""Plans of workflows as blocks: their steps as a picture and a table, what they lack, and Mermaid for elsewhere."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Cell,
    Chart,
    Code,
    Column,
    Commands,
    Fold,
    Grid,
    Notice,
    Section,
    Span,
    Tone,
    View,
    missing_cell,
)
from reyn_jupyter.notebook.render.graph_picture import GraphNode, graph_picture
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.text import count
from reyn_jupyter.workflows.planning.plan import layers, to_mermaid
from reyn_jupyter.workflows.planning.router import CONTEXT, UNUSED
from reyn_jupyter.workflows.utilities.manifest import is_capability

if TYPE_CHECKING:
    from reyn_jupyter.sessions.workflows.plan_run import PlanRun
    from reyn_jupyter.workflows.execution.workflow_run import WorkflowRun
    from reyn_jupyter.workflows.planning.plan import Gap, MissingInput, WorkflowPlan, WorkflowStep

MOST_DRAWN = 60  # steps; more are a table alone
_MOST_GAPS = 20
_FIRST = 3  # facts of the first line
_NO_INPUT = "input missing"
_STATUS: dict[str, Tone] = {"complete": "good", "partial-complete": "warn", "unroutable": "bad"}


def plan_view(plan: WorkflowPlan, look: Look) -> View:
    """Return a plan: its steps, what it lacks, and what to do next."""
    gaps = {gap.step_id for gap in plan.gaps}
    lacking = {each.step_id for each in plan.missing_inputs}
    states: dict[str, tuple[str, Tone]] = {
        step.step_id: ("gap", "warn")
        if step.step_id in gaps
        else (_NO_INPUT, "warn")
        if step.step_id in lacking
        else ("ready", "plain")
        for step in plan.steps
    }
    facts = [count(len(plan.steps), "step")]
    if plan.gaps:
        facts.append(count(len(plan.gaps), "gap"))
    if plan.llm_calls:
        facts.append(count(plan.llm_calls, "call") + " of a language model")
    facts += _unused(plan, look)
    blocks: list[Block] = []
    if plan.steps:
        blocks.append(steps_chart(plan, states, look))
    blocks += gap_blocks(plan.gaps, look)
    blocks += missing_input_blocks(plan.missing_inputs, look)
    blocks += [Notice(look.text(note, 600), "muted") for note in plan.notes]
    if plan.steps:
        blocks.append(mermaid_fold(plan, look))
    badges = (Badge(plan.status, _STATUS.get(plan.status, "plain")), *_missing_badge(plan))
    return View("plan", f"Plan: {_title(plan, look)}", badges, tuple(facts), tuple(blocks), "plan.as_json()")


def _unused(plan: WorkflowPlan, look: Look) -> list[str]:
    """Return what of the request is in no step or is not there, for the first line."""
    asked = (gap for gap in plan.gaps if gap.step_id is None or gap.reason == "input_missing")
    said = [look.line(gap.reason_message, 160) for gap in asked]
    notes = (
        note.removeprefix(CONTEXT).removeprefix(UNUSED)
        for note in plan.notes
        if note.startswith((CONTEXT, UNUSED))
    )
    return [*said[:_FIRST], *(f"not used: {look.line(note, 120)}" for note in notes)][:_FIRST]


def steps_chart(plan: WorkflowPlan, states: dict[str, tuple[str, Tone]], look: Look) -> Chart:
    """Return the steps of a plan as a picture with the same in words and as a table.

    Args:
        plan: a sound one.
        states: of each step by its id: a few words, and their tone.
    """
    drawn = len(plan.steps) <= MOST_DRAWN
    picture = _picture(plan, states, look) if drawn else ""
    words = "; ".join(_sentence(step, states[step.step_id][0], look) for step in plan.steps[:MOST_DRAWN])
    if not drawn:
        words += f"; and {len(plan.steps) - MOST_DRAWN:,} more"
    rows = tuple(_row(step, states[step.step_id], look) for step in plan.steps)
    columns = (
        Column("step", header=True, whole=True),
        Column("does", whole=True),
        Column("state"),
        Column("by"),
        Column("inputs", wide=True),
        Column("waits for"),
        Column("on failure"),
    )
    return Chart(
        "Steps",
        look.text(words, 1_500),
        "image/svg+xml" if picture else "",
        base64.b64encode(picture.encode()).decode(),
        Grid("", columns, rows),
    )


def gap_blocks(gaps: Sequence[Gap], look: Look) -> list[Block]:
    """Return what a plan lacks as a table, each with the lines that close it."""
    if not gaps:
        return []
    columns = (
        Column("missing", header=True, whole=True),
        Column("reason"),
        Column("why", wide=True),
        Column("priority"),
        Column("step"),
        Column("a utility could be", whole=True),
    )
    rows = tuple(
        (
            Cell(look.line(gap.missing_capability, 80), face="code"),
            Cell(gap.reason, "warn", "badge"),
            Cell(look.text(gap.reason_message, 400)),
            Cell(gap.priority),
            Cell(gap.step_id) if gap.step_id else missing_cell(),
            Cell(look.line(gap.proposed_tool_name, 80), face="code")
            if gap.proposed_tool_name
            else missing_cell(),
        )
        for gap in gaps[:_MOST_GAPS]
    )
    more = f"… and {len(gaps) - _MOST_GAPS} more: plan.gaps" if len(gaps) > _MOST_GAPS else ""
    named = dict.fromkeys(name for gap in gaps if is_capability(name := gap.missing_capability))
    lines = tuple(reyn_line("scaffold", name) for name in list(named)[:3])
    blocks: list[Block] = [
        Section("Gaps: nothing runs until they are closed", (Grid("", columns, rows, more),))
    ]
    if lines:
        blocks.append(Commands(lines, "Close a gap"))
    return blocks


def missing_input_blocks(missing: Sequence[MissingInput], look: Look) -> list[Block]:
    """Return a line for each file that a step is to read and that is not there."""
    blocks: list[Block] = [
        Notice(f"{each.step_id}: {look.text(each.message, 400)}; this step would fail.", "warn")
        for each in missing[:_MOST_GAPS]
    ]
    if len(missing) > _MOST_GAPS:
        blocks.append(Notice(f"… and {len(missing) - _MOST_GAPS} more: plan.missing_inputs", "muted"))
    return blocks


def _missing_badge(plan: WorkflowPlan) -> tuple[Badge, ...]:
    return (Badge(_NO_INPUT, "warn"),) if plan.missing_inputs else ()


def mermaid_fold(plan: WorkflowPlan, look: Look) -> Fold:
    """Return the plan as Mermaid, for wherever that is drawn."""
    return Fold((Span("Mermaid"),), blocks=(Code(look.text(to_mermaid(plan), 20_000), "mermaid"),))


def _title(plan: WorkflowPlan, look: Look) -> str:
    return look.line(" ".join(plan.request_text.split()) or plan.plan_id, 120)


def _picture(plan: WorkflowPlan, states: dict[str, tuple[str, Tone]], look: Look) -> str:
    rows = [
        [
            GraphNode(
                step.step_id,
                look.line(step.operation, 60),
                look.line(_note(step, states[step.step_id][0]), 60),
                states[step.step_id][1],
            )
            for step in layer
        ]
        for layer in layers(plan)
    ]
    edges = [(before, step.step_id) for step in plan.steps for before in step.needed_steps]
    return graph_picture(rows, edges)


def _note(step: WorkflowStep, state: str) -> str:
    """Return the second line of a box: of a step that is ready, what serves it."""
    return (step.tool or "an action") if state == "ready" else state


def _sentence(step: WorkflowStep, state: str, look: Look) -> str:
    waits = f" after {', '.join(step.needed_steps)}" if step.needed_steps else ""
    return f"{step.step_id}: {look.line(step.operation, 80)} ({look.line(state, 80)}){waits}"


def _row(step: WorkflowStep, state: tuple[str, Tone], look: Look) -> tuple[Cell, ...]:
    return (
        Cell(step.step_id),
        Cell(look.line(step.operation, 80), face="code"),
        Cell(look.line(state[0], 80), state[1], "badge"),
        Cell(look.line(step.tool, 80), face="code") if step.tool else missing_cell(),
        Cell(look.line(_inputs(step.inputs), 300)),
        Cell(", ".join(step.needed_steps)) if step.needed_steps else missing_cell(),
        Cell(step.on_failure),
    )


def _inputs(inputs: Any) -> str:
    return ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in inputs.items()
    )


_RUN_TONES: dict[str, Tone] = {
    "executed": "good", "preview": "info", "partly_done": "warn", "completed_with_skips": "warn", "running": "info",
    "partial-complete": "warn", "unroutable": "bad", "blocked_by_policy": "bad", "execution_failed": "bad",
    "interrupted": "warn",
}  # fmt: skip
_STEP_TONES: dict[str, Tone] = {
    "done": "good", "running": "info", "failed": "bad", "timed_out": "bad", "skipped": "warn", "interrupted": "warn",
    "not_run": "muted", "waiting": "muted", "preview": "info", "gap": "warn", _NO_INPUT: "warn",
}  # fmt: skip
_PHASES = ("planning", "gap check", "policy check")  # before anything runs
_UNJUDGED = ("partial-complete", "unroutable")  # runs that end before the policy is asked
_LOG = 50  # lines
_LATEST = 3  # lines of the log, while the run goes on
_MOST_FILES = 10
_OUTPUT = 2_000  # characters of what one step gave


def run_view(shown: PlanRun, look: Look) -> View:
    """Return a run of a plan: its steps with their states, what they gave, and what went wrong."""
    run, plan = shown.run, shown.plan
    blocks: list[Block] = [Notice(look.text(run.problem, 2_000), "bad")] if run.problem else []
    blocks += _step_notices(run, look)
    if plan.steps:
        blocks.append(steps_chart(plan, _run_states(shown), look))
    if run.status in ("interrupted", "execution_failed") and run.run_id:
        blocks.append(Commands((f"%reyn dispatch --resume {run.run_id}",), "Go on"))
    blocks += gap_blocks(plan.gaps, look)
    preview = run.status == "preview"
    if preview:
        blocks += missing_input_blocks(plan.missing_inputs, look)
    blocks += _said_blocks(shown, look)
    blocks += [Notice(look.text(note, 600), "muted") for note in plan.notes]
    if plan.steps:
        blocks.append(mermaid_fold(plan, look))
    done = sum(step.status == "done" for step in run.steps)
    facts = [
        f"plan of {count(len(plan.steps), 'step')}" + (", nothing ran" if preview else f", {done} done"),
        count(len(plan.gaps), "gap") if plan.gaps else "no gaps",
    ]
    facts = [*(f"{each.undone} failed in {each.step_id}" for each in run.steps if each.undone), *facts]
    facts += _unused(plan, look)
    if shown.phase in _PHASES:
        facts = [] if shown.phase == "planning" else facts
        facts.insert(0, f"{shown.phase} …")
    elif run.status == "blocked_by_policy":
        facts.append("the policy forbids it")
    elif run.status not in _UNJUDGED and run.run_id + run.text:
        facts.append("the policy allows it")
    if run.seconds:
        facts.append(formatting.seconds(run.seconds))
    if run.run_id:
        facts.append(f"state/runs/{run.run_id}.json")
    badges = (
        Badge(_in_words(run.status), _RUN_TONES.get(run.status, "plain")),
        *(_missing_badge(plan) if preview else ()),
    )
    return View(
        "run of a plan", f"Run: {_title(plan, look)}", badges, tuple(facts), tuple(blocks), "run.as_json()"
    )


def _step_notices(run: WorkflowRun, look: Look) -> Iterator[Notice]:
    """Yield what went wrong in steps, and which ones were run again or could not be compared."""
    for each in run.steps:
        if each.error is not None:
            words = (str(each.error.get(part) or "") for part in ("message", "hint"))
            said = look.text(" ".join(filter(None, words)), 1_000)
            yield Notice(f"{each.step_id} {look.line(each.operation, 80)}: {said}", "bad")
        if each.again:
            yield Notice(f"{each.step_id} was run again, because {look.text(each.again, 600)}.", "info")
        if each.carried and each.unchecked:
            said = f"whether {look.text(each.unchecked, 600)} has changed since is not known"
            yield Notice(f"{each.step_id} was not run again; {said}.", "warn")


def _run_states(shown: PlanRun) -> dict[str, tuple[str, Tone]]:
    """Return the state of each step in words, with its tone."""
    runs = {step.step_id: step for step in shown.run.steps}
    gaps = {gap.step_id for gap in shown.plan.gaps}
    lacking = {each.step_id for each in shown.plan.missing_inputs}
    states: dict[str, tuple[str, Tone]] = {}
    for step in shown.plan.steps:
        run = runs.get(step.step_id)
        words: str = "gap" if step.step_id in gaps else "waiting" if run is None else run.status
        if words == "preview" and step.step_id in lacking:
            words = _NO_INPUT
        took = f" · {formatting.seconds(run.seconds)}" if run is not None and run.seconds else ""
        states[step.step_id] = (f"{_in_words(words)}{took}", _STEP_TONES.get(words, "plain"))
    return states


def _said_blocks(shown: PlanRun, look: Look) -> list[Block]:
    """Return what the steps would run, what they said meanwhile, and what they gave."""
    run = shown.run
    blocks: list[Block] = []
    if files := [each.path for step in run.steps for each in step.artifacts]:
        more = [f"… and {len(files) - _MOST_FILES:,} more"] if len(files) > _MOST_FILES else []
        names = "\n".join([*look.lines(files[:_MOST_FILES], 300), *more])
        blocks.append(Section("Files", (Code(names),)))
    if run.status == "preview":
        lines = tuple(
            f"{each.step_id}: {each.reason or each.operation}  <  {_pretty(each.inputs, None)}"
            for each in run.steps
        )
        blocks.append(Section("Would run", (Code(look.text("\n".join(lines), 8_000)),)))
    elif run.status == "running" and shown.log:
        # What a program said is told at once, what the run says of its step a moment later.
        latest = look.lines(shown.log[-_LATEST:], 300)
        blocks.append(Code("\n".join(latest)))
    elif shown.log or any(step.log for step in run.steps):
        logs = tuple(Code(look.text(step.log, 8_000), step.step_id) for step in run.steps if step.log)
        # What a program said stands with its step, whole; meanwhile only some of it was seen.
        logged = {line.strip() for step in run.steps for line in step.log.splitlines()}
        own = [line for line in shown.log if line.strip() not in logged][-_LOG:]
        words = (Code("\n".join(look.lines(own, 300))),) if own else ()
        blocks.append(Fold((Span("Log"),), blocks=(*words, *logs), printed=True))
    if given := [step for step in run.steps if step.outputs]:
        outputs = tuple(Code(look.text(_pretty(step.outputs), _OUTPUT), step.step_id) for step in given)
        blocks.append(Fold((Span("Outputs"),), blocks=outputs, open=not files))
    if run.text and run.status not in ("preview", "running"):
        said = (Code(look.text(run.text, 4_000)),)
        blocks.append(Fold((Span("In words"),), blocks=said, printed=True))
    return blocks


def _in_words(state: str) -> str:
    """Return a state as people write it: "blocked by policy"."""
    return state.replace("_", " ")


def _pretty(value: Any, indent: int | None = 1) -> str:
    return json.dumps(dict(value), ensure_ascii=False, indent=indent, default=str)
