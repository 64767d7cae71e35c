"""A run under way: the state that its calls share, and nothing that outlives it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import uuid_utils

from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.config import Settings
from reyn_jupyter.models.base import Model, Response
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.questions.person_wait import PersonWait
from reyn_jupyter.runtime.record.runlog import RunLog
from reyn_jupyter.runtime.services import Actor, VariablesPolicy

Approve = Literal["ask", "read", "all"]
NOT_ALLOWED = "The peer may not use it: its categories in the settings do not name it."


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
    `reads_first` and `most` are the order and the size of a listing's page.
    `choices` is what the model may choose now, where it is asked to choose; `chosen` is what it chose.
    """

    gate: bool = False
    listed: bool = False
    hint_due: bool = True
    reads_first: bool = False
    most: int = 100
    names: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    chosen: str | None = None


class RecordedCalls(Protocol):
    """The calls of an earlier run, for a replay (`sessions.runs.replay`)."""

    def runs_again(self, step: int, repeatable: bool) -> bool: ...
    def take(self, name: str, arguments: Any) -> Outcome | None: ...


class RunBudget(Protocol):
    """What a run may use up, its inner runs included."""

    def check(self) -> None:
        """Raise LimitReachedError where a limit of the person's is reached; asked before each action."""

    def check_step(self) -> None:
        """Raise LimitReachedError where an inner run may not call a model any more."""

    def spend(self, response: Response) -> None:
        """Count a model call of the run's own."""

    def spend_step(self, response: Response) -> None:
        """Count a model call of an inner run, which is a step of this one."""


class NoBudget:
    """Sets no limit, and counts nothing."""

    def check(self) -> None:
        return None

    def check_step(self) -> None:
        return None

    def spend(self, response: Response) -> None:
        return None

    def spend_step(self, response: Response) -> None:
        return None


@dataclass(frozen=True)
class Caller:
    """The call that calls others: an inner run belongs to it.

    Attributes:
        run: the run that the call is of.
        call: its id in it.
        action: what it runs, by its qualified name.
        key: the action with its arguments, by which a call that leads back to itself is found.
        lends: the places for calls at once that it holds, and the keys under which it lends them to calls within it.
        mark: tells it from all other calls.
    """

    run: Run
    call: str
    action: str
    key: bytes
    lends: Mapping[Hashable, Hashable]
    mark: object


@dataclass
class Run:
    """One run: a turn of the router, a call by hand, or what a call of another run calls (`caller`).

    `model` is that of a turn. In a replay, `recorded` gives what was done before. An inner run has the budget of the
    run around it.
    `ask` answers this run's questions about consent, in place of the input of a cell; a call by hand that has one is
    not consent by itself. `settings` are those that the run began with: they hold for all of it. `client` is what the
    MCP or A2A client that asks says of itself; it is no person, and answers no question. `depth` is how
    many peers ask one another already where a peer of another session asks for the turn.
    `origins` are where strangers' texts came from that the conversation holds, in their order; of an inner run, those
    of the outermost one count. `snapshot` shows the categories in `allowed` alone, where these are given (of a peer).
    `reword` puts the outcomes of its calls into other words, before they are recorded.
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
    budget: RunBudget = field(default_factory=NoBudget)
    attended: bool = True
    ask: Callable[[Question], Awaitable[Answer]] | None = None
    started: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.perf_counter)
    caller: Caller | None = None
    model: Model | None = None
    client: str | None = None
    depth: int = 0
    waits: PersonWait = field(default_factory=PersonWait)
    origins: dict[str, None] = field(default_factory=dict)
    allowed: frozenset[str] | None = None
    reword: Callable[[Outcome], Outcome] | None = None
    _whole: CatalogSnapshot | None = field(default=None, repr=False)

    @property
    def whole(self) -> CatalogSnapshot:
        """The snapshot with the categories that the run may not use; what indexes actions goes by this one."""
        return self.snapshot if self._whole is None else self._whole

    def narrow(self, categories: frozenset[str]) -> None:
        """Let the run use these categories alone, as far as it could until now."""
        whole = self.whole
        self.allowed = categories if self.allowed is None else categories & self.allowed
        self._whole = None
        self.see(whole)

    def see(self, snapshot: CatalogSnapshot) -> None:
        """Take over the catalog as it is now, as far as the run may use it."""
        if self.allowed is None:
            self.snapshot = snapshot
        elif snapshot is not self._whole:
            self._whole, self.snapshot = snapshot, snapshot.only(self.allowed, NOT_ALLOWED)

    def note_origins(self, origins: Iterable[str]) -> None:
        """Keep where strangers' texts came from that the model has read."""
        self.outermost.origins.update(dict.fromkeys(origins))

    @property
    def callers(self) -> tuple[Caller, ...]:
        """The calls around this run, the nearest first."""
        return () if self.caller is None else (self.caller, *self.caller.run.callers)

    @property
    def outermost(self) -> Run:
        """The run that a person or a model began; this one where it is no inner run."""
        return self if self.caller is None else self.caller.run.outermost

    @property
    def seconds(self) -> float:
        """The seconds since it began, without those for which the person was asked."""
        return max(0.0, time.perf_counter() - self.clock - self.waits.seconds())

    @contextmanager
    def waiting_for_person(self, call: str) -> Iterator[None]:
        """Count the time of this block as waiting for the person: of the call of an id, and of all around it."""
        with ExitStack() as waits:
            waits.enter_context(self.waits.of(call))
            for caller in self.callers:
                waits.enter_context(caller.run.waits.of(caller.call))
            yield


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
        error: what went wrong, in words; `code` names it for programs, where it has a name.
        partial: whether the content is what a call that did not come to its end had reported until then.
        frame: what restores the table whose records the text holds; a stored one has it in its manifest.
        note: one sentence for whoever reads a table: that it was cut, say.
        origins: where strangers' texts in it come from.
        advice: what the person can do about it, in words that no model was told.
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
    sources: Sequence[Mapping[str, Any]] = ()
    frame: Mapping[str, Any] | None = None
    note: str = ""
    origins: tuple[str, ...] = ()
    advice: str = ""
