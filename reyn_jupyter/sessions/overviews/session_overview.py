"""Tables and cards about a session: projections of its parts, each made when it is asked for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import pydantic_core
import yaml

from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.models.base import Model, ModelError, estimate_tokens
from reyn_jupyter.models.providers.provider_facts import key_status, provider_host, required_key
from reyn_jupyter.models.server_finder import PORTS, TRIED, find_servers
from reyn_jupyter.outputs.blob import Blob
from reyn_jupyter.outputs.blobs.random_access import is_local
from reyn_jupyter.router.request import prompt as prompts
from reyn_jupyter.router.request.router_options import RouterOptions
from reyn_jupyter.router.request.surface import flat_tools, universal_tools
from reyn_jupyter.runtime.questions.consent import EXCERPT
from reyn_jupyter.runtime.record.events import ActionProgressed
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.sessions.overviews.server_overview import describe_server
from reyn_jupyter.sessions.result_objects import Card, Table
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import age, count, enumerate_words, shorten

TIERS = ("light", "standard", "strong")


def runs(parts: Parts) -> Table:
    found = parts.runs.all()
    traces = [*reversed(found), *reversed(list(parts.runs.orphans(found)))]
    unread = [printable(problem) for problem in parts.runs.problems.values()]
    note = (
        ("; ".join(unread[:3]) + (f"; {len(unread) - 3} more" if len(unread) > 3 else "")) if unread else ""
    )
    return Table("runs", tuple(_run_row(trace) for trace in traces), "Runs", note, tuple(traces))


def _run_row(trace: Trace) -> dict[str, Any]:
    return {
        "run": trace.run,
        "time": _time(trace.started.at),
        "kind": trace.started.run_kind,
        "prompt": trace.prompt,
        "model": trace.model or trace.started.client or "by hand",
        "status": trace.status,
        "outcome": trace.outcome.value,
        "steps": len(trace.steps),
        "calls": len(trace.calls),
        "inner": sum(len(inner.calls) for inner in trace.all_inner),
        "tokens": trace.tokens,
        "cost": trace.cost,
        "seconds": round(trace.seconds, 3),
    }


def blobs(parts: Parts) -> Table:
    store = parts.services.blobs
    if store is None:
        return Table("blobs", (), "Blobs", "This session keeps no blobs (store=None).")
    if not is_local(store):
        return Table("blobs", (), "Blobs", f"{type(store).__name__} cannot list what it holds.")
    items = [Blob(info, store) for info in reversed(store.list())]
    rows = tuple(
        {
            "blob": blob.id,
            "kind": blob.kind,
            "bytes": blob.size,
            "entries": blob.entries,
            "action": blob.action,
            "run": blob.run,
            "time": _time(blob.created),
        }
        for blob in items
    )
    return Table("blobs", rows, "Blobs", "", tuple(items))


def events(parts: Parts, run: str | int | None) -> Table:
    trace = parts.runs.load(run)
    start = trace.started.at
    rows = []
    for event in trace.events:
        at = getattr(event, "at", start)
        rows.append(
            {"ms": round((at - start) * 1000, 1), "event": type(event).__name__, "what": _what(event)}
        )
    return Table("events", tuple(rows), f"Events of run {trace.run[-12:]}", "", trace.events)


def _what(event: Any) -> str:
    if isinstance(event, ActionProgressed):
        return event.text
    for name in ("prompt", "name", "wrapper", "answer", "text", "blob", "error"):
        value = getattr(event, name, None)
        if value:
            line = " ".join(str(value).split())
            return shorten(line, 120)
    calls = getattr(event, "tool_calls", ())
    return ", ".join(call["name"] for call in calls) or str(
        getattr(event, "status", getattr(event, "model", "")) or ""
    )


def history(parts: Parts) -> Table:
    conversation = parts.conversation
    rows = tuple(
        {
            "turn": number,
            "prompt": turn.prompt,
            "status": turn.status,
            "messages": len(turn.messages),
            "tokens": turn.tokens,
            "run": turn.run,
        }
        for number, turn in enumerate(conversation.turns, start=1)
    )
    note = f"≈ {conversation.tokens:,} tokens of history"
    if conversation.shrunk:
        note += (
            f"; {conversation.shrunk} old turns shrank to question and answer (router.limits.history_tokens)"
        )
    return Table("history", rows, "Conversation", note, conversation.turns)


def config(parts: Parts) -> Table:
    effective = parts.effective
    rows = [
        {"key": key, "value": _plain(value), "from": effective.origins.get(key, "default")}
        for key, value in effective.values()
    ]
    held = "; ".join(f"{item.key}: {item.why}" for item in effective.held_back)
    problems = "; ".join(str(problem) for problem in effective.problems)
    notes = [f"held back until %reyn trust: {held}" if held else "", problems]
    return Table("config", tuple(rows), "Configuration", " · ".join(note for note in notes if note))


def _dollars(cost: float) -> str:
    return f"${cost:.4f}" if cost else "$0"


def _plain(value: Any) -> Any:
    """Return a value as it stands in reyn.yaml."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    words = yaml.safe_dump(
        pydantic_core.to_jsonable_python(value, fallback=str),
        default_flow_style=True, allow_unicode=True, width=10**6, sort_keys=False,
    )  # fmt: skip
    return words.strip()


def models(parts: Parts) -> Table:
    settings = parts.settings
    rows = []
    for tier in TIERS:
        entry = getattr(settings.models, tier)
        if entry is None:
            rows.append({"name": tier, "model": None, "tier": tier, "host": None, "key": "not configured"})
            continue
        variable = required_key(entry.model)
        state = (
            "none needed"
            if variable is None
            else f"{variable} {'set' if parts.environ.get(variable) else 'missing'}"
        )
        host = provider_host(entry.model, entry.api_base, parts.environ)
        own = "light" if entry.model == "offline" else entry.tier or tier
        rows.append({"name": tier, "model": entry.model, "tier": own, "host": host, "key": state})
    rows.append({"name": "offline", "model": "offline", "tier": "light", "host": None, "key": "none needed"})
    keys = ", ".join(variable for _, variable, state in key_status(parts.environ) if state == "set") or "none"
    note = f"in use: {model_label(parts)} · keys in the environment: {keys}"
    return Table("models", tuple(rows), "Models", note)


async def found_models(addresses: Sequence[str], quick: bool) -> Table:
    """Return the models that are served on this machine. Raises ModelError."""
    found = await find_servers(addresses, quick=quick)
    rows = tuple(
        {
            "server": each.server,
            "address": each.address,
            "model": shorten(printable(each.model), 200) or None,
            "context": each.context,
            **(
                {} if quick else {"tools": each.tools, "forced call": each.forced, "JSON schema": each.schema}
            ),
            "note": each.note or None,
            "to use it": each.line or None,
        }
        for each in found
    )
    where = ", ".join(addresses) or ", ".join(f"{name} {port}" for port, name in PORTS.items())
    note = f"looked on this machine alone, at: {where}"
    if not rows:
        note = (
            f"No server of models answers; {note}. Start one, or take a model from a file: -m local/smollm2"
        )
    if rows and not quick:
        note += f" · tried with tiny requests, {TRIED} models a server at most"
    return Table("found models", rows, "Models served on this machine", note, found)


def model_label(parts: Parts) -> str:
    try:
        return parts.find_model(None).label
    except ModelError as error:
        return f"none ({error.message})"


def approvals(parts: Parts) -> Table:
    settings = parts.settings.permissions
    waiting = parts.questions.pending()
    rows = [
        {
            "pattern": " ".join(each.question.patterns) or each.question.action,
            "decision": "asks",
            "from": f"question {each.id}",
        }
        for each in waiting
    ]
    rows += [
        {"pattern": pattern, "decision": "always allow", "from": "you"} for pattern in parts.approvals.list()
    ]
    for decision in ("deny", "ask", "allow"):
        rows += [
            {"pattern": str(pattern), "decision": decision, "from": "configuration"}
            for pattern in getattr(settings, decision)
        ]
    note = "" if rows else "No rules: pure actions and reads in the workspace are allowed, the rest asks."
    if waiting:
        first = waiting[0]
        asked = "\n\n".join(each.question.excerpt(EXCERPT) for each in waiting[:3])
        verbs = "|".join(each.verb for each in first.question.choices_after(EXCERPT))
        whole = f"%reyn approvals show {first.id} shows all of it"
        note = f"{asked}\n\n{whole}, %reyn approvals {verbs} {first.id} answers it."
    return Table("approvals", tuple(rows), "Approvals", note)


def python(parts: Parts, switch: Literal["on", "off"] | None) -> Card:
    held = parts.services.python
    if switch is not None:
        held.on = switch == "on"
    state = "on" if held.on else "off"
    meaning = (
        "a model may propose code for this kernel; each piece is shown whole, and runs once you say yes"
        if held.on
        else "no model can run code in this kernel"
    )
    facts = (("Python", state), ("that means", meaning), ("until", "%reyn python off, or the kernel's end"))
    lines = ("%reyn python off",) if held.on else ("%reyn python on",)
    return Card("python", f"Python in this kernel is {state}", facts if held.on else facts[:2], (), lines)


def surface(parts: Parts, snapshot: CatalogSnapshot) -> Table:
    inspect = parts.services.blobs is not None
    decided = parts.conversation.search
    search = parts.search.offered if decided is None else decided
    router_options = _router_options(parts)
    prompt = estimate_tokens(prompts.static_prompt(snapshot, router_options, inspect=inspect, search=search))
    limit = parts.settings.router.limits.flat_tokens
    sizes = {
        "universal": universal_tools(snapshot, inspect=inspect, search=search),
        "flat": flat_tools(snapshot, inspect=inspect),
    }
    auto = "flat" if sizes["flat"].tokens <= limit else "universal"
    rows = tuple(
        {
            "surface": name,
            "tools": len(tool_set.specs),
            "tool tokens": tool_set.tokens,
            "prompt tokens": prompt,
            "in use": "yes"
            if name == router_options.surface or (router_options.surface == "auto" and name == auto)
            else "",
            "auto": "chosen" if name == auto else "",
        }
        for name, tool_set in sizes.items()
    )
    note = f"≈ tokens, as bytes / 4. auto is flat up to {limit:,} tokens (router.limits.flat_tokens)."
    return Table("surface", rows, f"Surfaces for {len(snapshot.actions):,} actions", note)


def _router_options(parts: Parts) -> RouterOptions:
    try:
        return RouterOptions.of(parts.settings, parts.find_model(None).tier)
    except ModelError:
        return RouterOptions.of(parts.settings, "standard")


def status(parts: Parts, snapshot: CatalogSnapshot) -> Card:
    model = _model(parts)
    filled = {name: count for name, count in snapshot.counts.items() if count}
    counts = ", ".join(f"{name} {count}" for name, count in filled.items())
    empty = len(snapshot.counts) - len(filled)
    rest = f"; {empty} more with none yet" if empty else ""
    conversation = parts.conversation
    facts = [
        ("workspace", str(parts.root)),
        ("model", _model_fact(model)),
        ("actions", f"{len(snapshot.actions):,} in {len(filled)} categories ({counts}{rest})"),
        ("conversation", f"{len(conversation.turns)} turns, ≈ {conversation.tokens:,} tokens of history"),
        ("spent", f"{parts.spent.tokens:,} tokens, {_dollars(parts.spent.cost)}"),
        ("runs kept", str(len(parts.runs.ids()))),
        *_served_facts(parts),
    ]
    if waiting_questions := len(parts.questions.pending()):
        facts.append(("waits for you", f"{count(waiting_questions, 'question')}: %reyn approvals"))
    sections = []
    held = [f"{item.key}: {item.why}" for item in parts.effective.held_back]
    if held:
        sections.append(("Held back from reyn.yaml until you say %reyn trust", tuple(held)))
    waiting = () if parts.mcp_store is None else parts.mcp_store.held_back()
    if waiting:
        lines = tuple(f"{each.entry.name}: {describe_server(each)}" for each in waiting)
        sections.append(("Servers of .mcp.json that wait until you say %reyn trust", lines))
    problems = list(parts.problems)
    resolved = parts.search.resolved
    if resolved.kind == "wrong":
        problems.append(f"search by meaning is off: {resolved.reason}. {resolved.hint}")
    if "mcp" in snapshot.hidden:
        problems.append(f"the category mcp is not on offer: {snapshot.hidden['mcp']}")
    if problems:
        sections.append(("Problems", tuple(str(problem) for problem in problems)))
    tries = (
        '%reyn ask "what files are here?"',
        "%reyn list",
        '%reyn search "group and count rows"',
        "%reyn models",
        "%reyn help",
    )
    return Card("status", "reyn", tuple(facts), tuple(sections), tries)


def _served_facts(parts: Parts) -> list[tuple[str, str]]:
    """Return that the session is served, and to whom; nothing where it is not."""
    served = parts.served
    if served is None or not served.running:
        return []
    there = [each for each in served.connections if not each.left]
    here = [each.name for each in there if each.is_connected]
    now = time.time()
    silent = [
        f"{each.name}, last heard of {age(now - each.last)} ago" for each in there if not each.is_connected
    ]
    said = "; ".join(
        f"{what}: {enumerate_words(names[:3] + [f'{len(names) - 3} more'] * (len(names) > 3))}"
        for what, names in (("connected", here), ("silent", silent))
        if names
    )
    said = said or "no client now" if served.connections else "no client yet"
    return [(served.title, f"on at {served.origin}; {said}; %reyn serve shows it")]


def model_fact(parts: Parts) -> str:
    """Return the model in use with where its requests go, or why there is none and what to do."""
    return _model_fact(_model(parts))


def _model(parts: Parts) -> Model | ModelError:
    try:
        return parts.find_model(None)
    except ModelError as error:
        return error


def _model_fact(model: Model | ModelError) -> str:
    if isinstance(model, ModelError):
        return f"none: {model.message} {model.hint}"
    if model.label == "offline":
        return "offline: rules and retrieval, not a language model (nothing leaves this kernel)"
    return f"{model.label} (tier {model.tier}, {model.host or 'in this process'})"


def _time(at: float | datetime) -> str:
    moment = at if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return moment.astimezone().isoformat(timespec="seconds")
