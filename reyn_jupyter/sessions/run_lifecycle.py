"""Runs begin, are recorded and end here, whether a person or an MCP client calls an action, or the router runs.

Invariant: every run that began has a `RunStarted` and, unless the process was killed, a `RunEnded`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.models.base import Model, ModelError
from reyn_jupyter.models.providers import is_local
from reyn_jupyter.router.conversation import Conversation, TurnPlace
from reyn_jupyter.router.history import Disclosure, Reader
from reyn_jupyter.router.loop import RouterLoop
from reyn_jupyter.router.router_options import RouterOptions
from reyn_jupyter.router.turn_budget import ManualBudget, TurnBudget
from reyn_jupyter.runtime.large_values import look_through
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.events import RunEnded, RunKind, RunStarted, RunStatus
from reyn_jupyter.runtime.record.trace import Call, Trace
from reyn_jupyter.runtime.run import Discovery, RecordedCalls, Run, new_run_id
from reyn_jupyter.runtime.services import VariablesPolicy
from reyn_jupyter.sessions.assembly import Parts, keep_out_of_git
from reyn_jupyter.sessions.turn_options import TurnOptions
from reyn_jupyter.support.text import count, enumerate_words
from reyn_jupyter.support.versions import versions

NAMED = 4  # contents that a note names
CLIENT_PATIENCE = 1.0  # seconds that a client's call or turn waits for what a running cell keeps busy


def variables_for(parts: Parts, model: Model) -> VariablesPolicy:
    """Return how much of a variable a model may see: as set, else the schema for hosted, the head for local models."""
    configured = parts.settings.variables
    if configured is not None:
        return configured
    return "head" if model.host is None or is_local(model.host) else "schema"


def reader_of(parts: Parts, model: Model) -> Reader:
    """Return what of the history a model may be sent, and how much of it it reads."""
    return Reader(
        model.host,
        variables_for(parts, model),
        parts.settings.local_history,
        getattr(model, "history_turns", None),
    )


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
    return parts.runs.trace_of(run.log.events)


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
    )
    if options.client is not None:
        run.note_origins([f"the A2A client {options.client}"])
    try:
        run.model = model = parts.find_model(options.model)
    except ModelError as error:
        run.log.append(_started(parts, shown, options, run, None, None, conversation, replay_of))
        return finish(parts, run, "error", error=error.message, hint=error.hint)
    run.variables = variables_for(parts, model)
    if options.client is not None:  # who reads the answer, and where, is not known
        run.variables = settings.variables or "schema"

    async def refresh(of: Run) -> None:
        of.snapshot = await _current(parts, patience)

    place = conversation.begin(options.cell, reader_of(parts, model))
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
        unforced=parts.unforced,
        history=place.history,
    )
    in_force = loop.prepare(run, place.at)
    run.log.append(_started(parts, shown, options, run, model, in_force, conversation, replay_of, place))
    notes, withheld = _notes(place, model, run), _withheld(place, model)
    budget = TurnBudget(settings, parts.spent, options.budget)
    try:
        await loop.turn(
            prompt, run, budget, cell=options.cell, at=place.at, notes=notes, notes_if_sent=withheld
        )
    finally:  # a turn that failed stands in the history too
        trace = _closed(parts, run)
        conversation.remember(run.id, _shown(trace, conversation), run.variables)
        if model.host is not None and trace.sent.requests:
            conversation.mark_sent(place.history.runs | {run.id}, model.host)
    return trace


def _notes(place: TurnPlace, model: Model, run: Run) -> list[str]:
    """Return what the card says of the history: what stood on a replaced answer, what was left out, and its size."""
    notes, history = [], place.history
    if place.later:
        before = count(place.at, "turn") if place.at else "no turn"
        notes.append(
            f"asked again as turn {(place.at or 0) + 1}: {before} before it went along, "
            f"{count(place.later, 'later turn')} did not; %reyn history shows them"
        )
    if history.left_out:
        notes.append(
            f"{history.left_out} earlier results with a variable's content were left out (variables: {run.variables})"
        )
    if history.tokens >= run.settings.router.limits.history_tokens // 4:
        notes.append(
            f"≈ {history.tokens:,} tokens of history go with every step; --new starts a conversation afresh"
        )
    return notes


def _withheld(place: TurnPlace, model: Model) -> list[str]:
    """Return what the card says of the earlier turns that a request to the model left out."""
    withheld = place.history.withheld
    if not withheld:
        return []
    shown = [item for turn in withheld for item in turn.shown]
    names = list(dict.fromkeys("a stored result" if item.kind == "blob" else item.name for item in shown))
    more = " and more" if len(names) > NAMED else ""
    of = f", with {enumerate_words(names[:NAMED])}{more}," if names else ""
    note = (
        f"{count(len(withheld), 'earlier turn')}{of} stayed on this machine, and {model.label} was sent no "
        "answer or result of that; %reyn config local_history on sends them too"
    )
    return [note]


def _shown(trace: Trace, conversation: Conversation) -> tuple[Disclosure, ...]:
    """Return the person's contents that the run put before the model, marked where they describe variables."""
    calls = set()
    for call in trace.calls:
        sources = call.finished.sources if call.finished is not None else ()
        looked = any(
            source["kind"] == "blob" and source["name"] in conversation.described for source in sources
        )
        if looked or _describes(trace, call):
            calls.add(call.id)
            if call.finished is not None and call.finished.blob is not None:
                conversation.described.add(call.finished.blob)
    return tuple(
        Disclosure(item["call"], item["kind"], item["name"], item["bytes"], item["call"] in calls)
        for item in trace.contents_by_call
    )


def _describes(trace: Trace, call: Call) -> bool:
    """Return whether a call, or one that it made in its turn, looked at a variable or an output of the notebook."""
    inner = trace.inner.get(call.id)
    return (call.resolved.name or "").startswith(("variable__", "notebook__read_cell")) or (
        inner is not None and any(_describes(inner, each) for each in inner.calls)
    )


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
