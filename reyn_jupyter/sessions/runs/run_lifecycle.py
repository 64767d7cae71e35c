"""Runs begin, are recorded and end here, whether a person or an MCP client calls an action, or the router runs.

Invariant: every run that began has a `RunStarted` and, unless the process was killed, a `RunEnded`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.models.base import Model, ModelError
from reyn_jupyter.router.context.conversation import Conversation, TurnPlace
from reyn_jupyter.router.loop import RouterLoop
from reyn_jupyter.router.request.router_options import RouterOptions
from reyn_jupyter.router.turn_budget import ManualBudget, TurnBudget
from reyn_jupyter.runtime.large_values import look_through
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.events import RunEnded, RunKind, RunStarted, RunStatus
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.runtime.run import Discovery, RecordedCalls, Run, new_run_id
from reyn_jupyter.sessions.assembly import Parts, keep_out_of_git
from reyn_jupyter.sessions.runs.turn_options import TurnOptions
from reyn_jupyter.sessions.turn_history import (
    history_notes,
    reader_of,
    remember_turn,
    variables_for,
    withheld_notes,
)
from reyn_jupyter.support.versions import versions

CLIENT_PATIENCE = 1.0  # seconds that a client's call or turn waits for what a running cell keeps busy


async def by_hand(parts: Parts, what: str, ask: Callable[[Question], Awaitable[Answer]] | None = None) -> Run:
    """Begin a run of kind "manual": the person's own call, which is consent unless there is an `ask`."""
    snapshot = await _prepared(parts)
    run_id = new_run_id()
    log = parts.runs.open(run_id)
    budget = ManualBudget(parts.settings, parts.spent)
    run = Run(run_id, "person", log, snapshot, parts.settings, ask=ask, budget=budget)
    _begin_alone(parts, run, "manual", await _without_secrets(parts, what))
    return run


async def by_client(
    parts: Parts, client: str, what: str, ask: Callable[[Question], Awaitable[Answer]]
) -> Run:
    """Begin a run of kind "client": one call of an MCP client, which is no consent, and judged as a model's.

    Args:
        client: what the client says of itself.
        ask: asks the person in the notebook.
    """
    snapshot = await _prepared(parts, CLIENT_PATIENCE)
    run_id, settings = new_run_id(), parts.effective.settings
    run = Run(
        run_id,
        "model",
        parts.runs.open(run_id),
        snapshot,
        settings,
        variables=settings.variables or "schema",  # who reads it, and where, is not known
        attended=False,
        ask=ask,
        budget=ManualBudget(settings, parts.spent),
        client=client,
    )
    _begin_alone(parts, run, "client", await _without_secrets(parts, what))
    return run


async def _prepared(parts: Parts, patience: float | None = None) -> CatalogSnapshot:
    """Return the catalog for a run that begins.

    Args:
        patience: seconds after which the last one does, since a cell that runs keeps the notebook's variables.
    """
    parts.redactor.refresh()
    snapshot = await _current(parts, patience)
    parts.search.begin(snapshot)
    return snapshot


async def _current(parts: Parts, patience: float | None) -> CatalogSnapshot:
    """Return the catalog as it is, or as it last was where that takes too long."""
    snapshot = None
    try:
        async with asyncio.timeout(patience):
            snapshot = await parts.catalog.refresh()
    except TimeoutError:
        snapshot = parts.catalog.latest
    return await parts.catalog.refresh() if snapshot is None else snapshot


async def _without_secrets(parts: Parts, text: str) -> str:
    return await look_through(text, lambda: parts.redactor.text(text))


def _begin_alone(parts: Parts, run: Run, kind: RunKind, what: str) -> None:
    """Record the first event of a run that has no turn."""
    run.log.append(
        RunStarted(
            run=run.id,
            at=run.started,
            run_kind=kind,
            session=parts.conversation.id,
            prompt=what,
            catalog=run.snapshot.hash,
            notebook=parts.notebook,
            client=run.client,
            versions=versions(),
        )
    )


def finish(
    parts: Parts,
    run: Run,
    status: RunStatus,
    *,
    answer: str = "",
    error: str | None = None,
    hint: str | None = None,
) -> Trace:
    """End a run that had no turn: record its last event and the uses of actions, and close its log."""
    notes = (run.log.problem,) if run.log.problem else ()
    run.log.append(
        RunEnded(
            run=run.id,
            at=time.time(),
            status=status,
            answer=answer,
            error=error,
            hint=hint,
            notes=notes,
            seconds=run.seconds,
            waited=run.waits.seconds(),
        )
    )
    return _closed(parts, run)


def _closed(parts: Parts, run: Run) -> Trace:
    parts.runs.close(run.id, run.log)
    keep_out_of_git(parts.root)
    parts.usage.record(run.log.events)
    trace = parts.runs.trace_of(run.log.events)
    if parts.sender is not None:
        parts.sender.send(trace, parts.effective.settings.otel)
    return trace


async def turn(
    parts: Parts,
    prompt: str,
    options: TurnOptions,
    *,
    conversation: Conversation | None = None,
    recorded: RecordedCalls | None = None,
    replay_of: str | None = None,
) -> Trace:
    """Run one turn of the router, from the person's text to the answer.

    Args:
        conversation: the one that the turn belongs to; the session's own when None.
        recorded, replay_of: for a replay, the calls to take from the record and the run they are of.
    """
    settings = options.settings(parts.effective)
    parts.override(settings)
    if options.new:
        parts.conversation = Conversation(new_run_id())
    conversation = parts.conversation if conversation is None else conversation
    patience = None if options.client is None else CLIENT_PATIENCE
    snapshot = await _prepared(parts, patience)
    shown = await _without_secrets(parts, prompt)
    run_id = options.run or new_run_id()
    run = Run(
        run_id,
        "model",
        parts.runs.open(run_id),
        snapshot,
        settings,
        options.approve,
        discovery=Discovery(),
        recorded=recorded,
        attended=options.attended,
        ask=options.ask,
        client=options.client,
        depth=options.depth,
    )
    if options.client is not None:
        run.note_origins([f"the A2A client {options.client}"])
    try:
        run.model = model = parts.find_model(options.model)
    except ModelError as error:
        run.log.append(_started(parts, shown, options, run, None, None, conversation, replay_of))
        return finish(parts, run, "error", error=error.message, hint=error.hint)
    run.variables = variables_for(settings, model)
    if options.client is not None:  # who reads the answer, and where, is not known
        run.variables = settings.variables or "schema"

    async def refresh(of: Run) -> None:
        of.see(await _current(parts, patience))

    place = conversation.begin(options.cell, reader_of(settings, model))
    router_options = parts.router_options(settings, model.tier)
    loop = RouterLoop(
        parts.services,
        parts.wrappers,
        model,
        conversation,
        router_options,
        settings.router.limits,
        refresh=refresh,
        is_pushed=lambda: parts.catalog.is_pushed,
        uses=parts.usage.uses if router_options.hot_list_n else None,
        parameters=dict(getattr(model, "parameters", {}) or {}),
        repeat=options.repeat,
        contexts=parts.contexts,
        choice_forms=parts.choice_forms,
        history=place.history,
    )
    in_force = loop.prepare(run, place.at)
    run.log.append(_started(parts, shown, options, run, model, in_force, conversation, replay_of, place))
    notes, withheld = history_notes(place, run), withheld_notes(place, model)
    budget = TurnBudget(settings, parts.spent, options.budget)
    try:
        await loop.turn(
            prompt, run, budget, cell=options.cell, at=place.at, notes=notes, notes_if_sent=withheld
        )
    finally:  # a turn that failed stands in the history too
        trace = _closed(parts, run)
        remember_turn(conversation, trace, run, place, model)
    return trace


def _started(
    parts: Parts,
    prompt: str,
    options: TurnOptions,
    run: Run,
    model: Model | None,
    router_options: RouterOptions | None,
    conversation: Conversation,
    replay_of: str | None,
    place: TurnPlace | None = None,
) -> RunStarted:
    at = place.at if place is not None else None
    return RunStarted(
        run=run.id,
        at=run.started,
        run_kind=options.kind,
        session=conversation.id,
        prompt=prompt,
        model=model.label if model else str(options.model or parts.settings.router_model),
        tier=model.tier if model else None,
        host=model.host if model else None,
        real=model.real if model else False,
        turn=(len(conversation.turns) if at is None else at) + 1,
        history_tokens=place.history.tokens if place is not None else 0,
        mandates=router_options.mandates if router_options else (),
        settings=router_options.record if router_options else {},
        catalog=run.snapshot.hash,
        replay_of=replay_of,
        cell=options.cell,
        notebook=parts.notebook,
        client=options.client,
        sent=(
            *options.sent,
            *(
                {"kind": item.kind, "name": f"{item.name}, from an earlier turn", "bytes": item.size}
                for item in (place.history.resent if place is not None else ())
            ),
        ),
        versions=versions(),
    )
