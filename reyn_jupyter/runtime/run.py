"""A run under way: the state that its calls share, and nothing that outlives it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import uuid_utils.compat as uuid_utils

from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.config import Settings
from reyn_jupyter.runtime.consent import Answer, Question
from reyn_jupyter.runtime.record.runlog import RunLog
from reyn_jupyter.runtime.services import Actor, VariablesPolicy

Approve = Literal["ask", "read", "all"]


def new_run_id() -> str:
    """Return a new, time-ordered id (UUID version 7)."""
    return str(uuid_utils.uuid7())


class LimitReachedError(Exception):
    """A limit that the person set was reached. `name` is the key that moves it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass
class Discovery:
    """The part of the catalog that a conversation has been shown already.

    `gate` answers an invoke or describe before any listing with a listing; `listed` is whether there was one;
    `hint_due` is whether the hidden-search hint is still to be given; `names` are the last listing's names.
    """

    gate: bool = False
    listed: bool = False
    hint_due: bool = True
    names: tuple[str, ...] = ()


class RecordedCalls(Protocol):
    """The calls of an earlier run, for a replay (`sessions.replay`)."""

    def runs_again(self, step: int, repeatable: bool) -> bool: ...
    def take(self, name: str, arguments: Any) -> Outcome | None: ...


def no_limit() -> None:
    """Raise nothing: a call by hand has no budget."""


@dataclass
class Run:
    """One run: a turn of the router, or a call by hand. In a replay, `recorded` gives what was done before.

    `within_budget` raises LimitReachedError once a limit of the person's is reached; it is asked before each action.
    `ask` answers this run's questions about consent, in place of the input of a cell; a call by hand that has one is
    not consent by itself. `settings` are those that the run began with: they hold for all of it.
    """

    id: str
    actor: Actor
    log: RunLog
    snapshot: CatalogSnapshot
    settings: Settings
    approve: Approve = "ask"
    variables: VariablesPolicy = "head"
    discovery: Discovery = field(default_factory=Discovery)
    recorded: RecordedCalls | None = None
    within_budget: Callable[[], None] = no_limit
    attended: bool = True
    ask: Callable[[Question], Awaitable[Answer]] | None = None
    started: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.clock


@dataclass(frozen=True)
class Outcome:
    """The outcome of a call.

    Attributes:
        text: exactly what the history holds for it.
        ok: whether the inner action worked.
        payload: the text, or for a failure the error as a dict.
        value: the handler's own value, for the person.
        blob: id of the blob.
        name: the resolved qualified name, None for a wrapper's own answer.
        error: what went wrong, in words; `code` is the handler's own name for it, where it gave one.
        partial: whether the content is what a call that did not come to its end had reported until then.
    """

    text: str
    ok: bool
    payload: str | dict[str, Any]
    value: Any = None
    blob: str | None = None
    content_kind: str = "text"
    size: int = 0
    name: str | None = None
    error: str | None = None
    code: str | None = None
    partial: bool = False
    changes: Sequence[Mapping[str, Any]] = ()
    sources: Sequence[Mapping[str, str]] = ()
