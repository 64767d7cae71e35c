"""The facts of a trial, projected from its run's events.

Invariant: what is stated is what the record says: a cost that is not known stays unknown, a call that did not finish is
neither good nor bad, and whatever the model itself did is no error of the trial.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any

import pydantic_core

from reyn_jupyter.catalog.names import WRAPPERS
from reyn_jupyter.evaluation.trial.confinement import BY
from reyn_jupyter.evaluation.trial.trial import CallFact, Outcome, Surface, Trial
from reyn_jupyter.runtime.record.events import NOT_FORCED, ActionResolved, ModelReplied
from reyn_jupyter.runtime.record.run_steps import Call
from reyn_jupyter.runtime.record.trace import Trace

NOT_THE_VARIANT = f"the variant was not in force: {NOT_FORCED}"
LONGEST_WRAPPER = 200  # characters
LONGEST_ERROR = 500  # characters
MOST_INNER = 200  # calls that one call made in turn, beside the first one of each action
_OVERFLOW = "context_too_long"
_LISTING = frozenset({"list_actions", "search_actions"})
_LOOKS = frozenset(WRAPPERS) - {"invoke_action"}  # a peer's; what one describes is not called


def call_facts(trace: Trace, distractors: Collection[str] = ()) -> tuple[CallFact, ...]:
    """Return every tool call of a run, in order.

    Args:
        distractors: the actions that fill the catalog up, by qualified name.
    """
    return tuple(_whole_call(trace, call, distractors) for call in trace.calls)


def _whole_call(trace: Trace, call: Call, distractors: Collection[str]) -> CallFact:
    """Return a call of a run with what it called in turn."""
    run = trace.inner.get(call.id)
    fact = _call(call, distractors, _inner_facts(run, distractors))
    problem = trace.inner_problems.get(call.id)
    for inner in () if run is None else (run, *run.all_inner):
        problem = problem or next(iter(inner.inner_problems.values()), None)
    return fact if problem is None else fact.model_copy(update={"unread": problem[:LONGEST_ERROR]})


def _inner_facts(run: Trace | None, distractors: Collection[str]) -> tuple[CallFact, ...]:
    """Return the calls of an inner run, and of those inside it, that worked; equal ones once.

    Of each action the first call is among them, however many others came before it.
    """
    found: list[CallFact] = []
    named, seen, room = set[str](), set[tuple[str, str]](), MOST_INNER
    for call in () if run is None else (each for inner in (run, *run.all_inner) for each in inner.calls):
        name = call.resolved.name
        if not call.ok or name is None or call.resolved.wrapper in _LOOKS:
            continue
        if name in named and not room:
            continue
        fact = _call(call, distractors)
        key = name, repr(fact.args)
        if key in seen:
            continue
        room -= name in named
        named.add(name)
        seen.add(key)
        found.append(fact)
    return tuple(found)


def denied_actions(trace: Trace) -> tuple[str, ...]:
    """Return the actions of a run that were denied because a trial acts on nothing outside its workspace, each once."""
    calls = (call for run in (trace, *trace.all_inner) for call in run.calls)
    decisions = (each for call in calls for each in (call.decision, *call.further))
    return tuple(
        dict.fromkeys(each.name for each in decisions if each and (each.by, each.decision) == (BY, "denied"))
    )


def help_counts(trace: Trace) -> dict[str, int]:
    """Return how often the harness helped the model of a run, by kind; see `Trial.helped`."""
    counts = dict(trace.ended.helped) if trace.ended is not None else {}
    asked = (step.requested for step in trace.steps if step.requested is not None)
    counts["shrunk"] = sum(len(request.shrunk) for request in asked)
    return {kind: times for kind, times in counts.items() if times}


def offered_surface(trace: Trace) -> Surface:
    """Return what the model of a run was offered: every action as a tool of its own, or the wrappers over all."""
    return "flat" if trace.started.settings.get("surface") == "flat" else "universal"


def _call(call: Call, distractors: Collection[str], inner: tuple[CallFact, ...] = ()) -> CallFact:
    resolved, finished = call.resolved, call.finished
    error = finished.error if finished is not None and not finished.ok else None
    return CallFact(
        step=resolved.step,
        wrapper=resolved.wrapper[:LONGEST_WRAPPER],
        name=resolved.name or _written_name(resolved),
        problem=resolved.problem,
        flags=resolved.flags,
        args=resolved.arguments if resolved.inner is None else resolved.inner,
        ok=None if finished is None else finished.ok,
        error=None if error is None else error[:LONGEST_ERROR],
        code=None if finished is None else finished.code,
        distractor=resolved.name in distractors,
        listed=() if finished is None else _listed_names(resolved, finished.output),
        inner=inner,
    )


def _written_name(resolved: ActionResolved) -> str | None:
    """Return what the model wrote for an action's name where none was resolved."""
    if resolved.problem is None:
        return None
    given = resolved.arguments
    if resolved.wrapper in ("invoke_action", "describe_action"):
        name = given.get("action_name", given.get("name")) if isinstance(given, dict) else None
        return name if isinstance(name, str) else None
    return None if resolved.wrapper in WRAPPERS else resolved.wrapper[:LONGEST_WRAPPER]


def _listed_names(resolved: ActionResolved, output: str) -> tuple[str, ...]:
    if resolved.wrapper not in _LISTING and resolved.problem != "gated":
        return ()
    return _names_in_listing(output)


@lru_cache(maxsize=256)
def _names_in_listing(output: str) -> tuple[str, ...]:
    """Return the names of a listing; the same listing is read once for many trials."""
    try:
        payload = pydantic_core.from_json(output)
    except ValueError:
        return ()
    items = payload.get("items") if isinstance(payload, dict) else None
    if not isinstance(items, list):
        return ()
    names = (item.get("qualified_name") for item in items if isinstance(item, dict))
    return tuple(name for name in names if isinstance(name, str))


def outcome_of(trace: Trace, *, timed_out: bool) -> tuple[Outcome, str | None]:
    """Return how a trial ended, and why in words. Where the model answered to the last, it is not the trial that
    failed; where the provider refused what the variant is about, it is none of that variant; and a request that grew
    longer than the model takes is a limit that the trial reached."""
    if timed_out:
        return "timeout", "the trial took longer than it may"
    notes = trace.ended.notes if trace.ended else ()
    if any(step.requested is not None and step.requested.not_forced for step in trace.steps):
        return "error", NOT_THE_VARIANT
    if trace.status == "limit":
        return "limit", trace.error or "; ".join(notes) or None
    if trace.status == "ok":
        return "ok", None
    last = _last_reply(trace)
    if trace.status == "error" and last is not None and last.error is None:
        return "ok", trace.error  # the model was heard, and said nothing that could be used
    if last is not None and last.error_kind == _OVERFLOW:  # it is the model that filled its context
        return "limit", f"{_OVERFLOW}: {trace.error or trace.status}"
    kind = f"{last.error_kind}: " if last is not None and last.error_kind else ""
    return "error", f"{kind}{trace.error or trace.status}"


def is_overflow(trial: Trial) -> bool:
    """Return whether a trial ended because its request was longer than the model takes."""
    return (trial.error or "").startswith(f"{_OVERFLOW}:")


def _last_reply(trace: Trace) -> ModelReplied | None:
    return next((step.replied for step in reversed(trace.steps) if step.replied is not None), None)


def effort(trace: Trace) -> dict[str, Any]:
    """Return the fields of a trial that say what was offered, what it took, who answered and whether to the end."""
    replies = [step.replied for step in trace.steps if step.replied is not None]
    answered = [reply for reply in replies if reply.error is None]
    costs = [reply.cost for reply in answered]
    known = [cost for cost in costs if cost is not None]
    prints = dict.fromkeys(reply.fingerprint for reply in replies if reply.fingerprint)
    return {
        "surface": offered_surface(trace),
        "cut_off": bool(answered) and answered[-1].finish_reason == "length",
        "model_calls": len(replies),
        "prompt_tokens": sum(reply.prompt_tokens for reply in replies),
        "completion_tokens": sum(reply.completion_tokens for reply in replies),
        "cost": sum(known) if len(known) == len(costs) else None,
        "seconds": trace.seconds,
        "retries": sum(reply.retries for reply in replies),
        "model": trace.model or "",
        "host": trace.started.host,
        "fingerprints": tuple(prints),
        "started": trace.started.at,
        "run": trace.run,
    }
