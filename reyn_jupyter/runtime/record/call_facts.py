"""Facts about the calls of a run that need only its trace.

Invariant: a fact states what the record says. A call that did not finish has neither succeeded nor failed.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Literal

import pydantic_core
from pydantic import BaseModel, ConfigDict

from reyn_jupyter.catalog.names import WRAPPERS
from reyn_jupyter.runtime.record.events import ActionResolved, Flag, Problem
from reyn_jupyter.runtime.record.run_steps import Call
from reyn_jupyter.runtime.record.trace import Trace

Surface = Literal["universal", "flat"]
LONGEST_WRAPPER = 200  # characters
LONGEST_ERROR = 500  # characters
MOST_INNER = 200  # calls that one call made in turn, beside the first one of each action
_LISTING = frozenset({"list_actions", "search_actions"})
_LOOKS = frozenset(WRAPPERS) - {"invoke_action"}  # a peer's; what one describes is not called


class CallFact(BaseModel):
    """One tool call of the model, as it was resolved.

    Attributes:
        step: the model call that asked for it, from 1.
        wrapper: the tool that was called, as the model wrote it (cut to 200 characters).
        name: the resolved qualified name; for a problem, what the model wrote for it where known.
        problem: why no action was resolved, or what stood in the way.
        flags: what was forgiven.
        args: the action's own arguments after forgiveness; the wrapper's where no action was resolved.
        ok: whether it worked; None when it did not finish.
        error: what it answered when it did not work (cut to 500 characters).
        code: the action's own name for that error, where it gave one.
        listed: the names that its answer listed, for listings, searches and the gate.
        distractor: whether the action is one that the variant's `catalog_size` added to the scenario's.
        inner: the calls that its action made in turn and that worked, at any depth (the steps of a workflow): equal
            ones once, the first of each action, and 200 more at most.
        unread: why a part of those calls is not known, in a sentence: the record of an inner run cannot be read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    step: int
    wrapper: str
    name: str | None = None
    problem: Problem | None = None
    flags: tuple[Flag, ...] = ()
    args: Any = None
    ok: bool | None = None
    error: str | None = None
    code: str | None = None
    listed: tuple[str, ...] = ()
    distractor: bool = False
    inner: tuple[CallFact, ...] = ()
    unread: str | None = None


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
    """Return the successful calls of an inner run and of the runs within it, without duplicates.

    The number of calls is limited, but the first call of each action is always included.
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
