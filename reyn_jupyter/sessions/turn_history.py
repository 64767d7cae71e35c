"""What a turn takes from the history of its conversation, what is said of that, and what the history keeps of it.

Invariant: it holds for the conversation of a person and for that of a peer alike: a model is sent no more of the
notebook's contents than the settings allow its host.
"""

from __future__ import annotations

from reyn_jupyter.config import Settings
from reyn_jupyter.models.base import Model
from reyn_jupyter.models.providers.provider_facts import is_local
from reyn_jupyter.router.context.conversation import Conversation, TurnPlace
from reyn_jupyter.router.context.history import Disclosure, Reader
from reyn_jupyter.runtime.record.events import RequestSent
from reyn_jupyter.runtime.record.run_steps import Call
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.runtime.services import VariablesPolicy
from reyn_jupyter.support.text import count, enumerate_words

NAMED = 4  # contents that a note names


def variables_for(settings: Settings, model: Model) -> VariablesPolicy:
    """Return how much of a variable a model may see: as set, else the schema for hosted, the head for local models."""
    configured = settings.variables
    if configured is not None:
        return configured
    return "head" if model.host is None or is_local(model.host) else "schema"


def reader_of(settings: Settings, model: Model) -> Reader:
    """Return what of the history a model may be sent, and how much of it it reads."""
    return Reader(
        model.host,
        variables_for(settings, model),
        settings.local_history,
        getattr(model, "history_turns", None),
    )


def history_notes(place: TurnPlace, run: Run) -> list[str]:
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
        anew = "--new starts a conversation afresh" if run.caller is None else "fresh: true begins anew"
        notes.append(f"≈ {history.tokens:,} tokens of history go with every step; {anew}")
    return notes


def withheld_notes(place: TurnPlace, model: Model) -> list[str]:
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


def remember_turn(conversation: Conversation, trace: Trace, run: Run, place: TurnPlace, model: Model) -> None:
    """Keep with a finished turn, and those that went along, what it showed of the person's contents and to whom."""
    conversation.remember(run.id, _shown(trace, conversation), run.variables)
    if model.host is not None and any(isinstance(event, RequestSent) for event in trace.events):
        conversation.mark_sent(place.history.runs | {run.id}, model.host)


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
