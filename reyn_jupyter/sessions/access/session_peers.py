"""The peers of a session: each a router loop of its own within the call that asks, or a connection to one elsewhere.

Invariants: a peer's turn is the inner run of the call that asks, so it is recorded, interrupted, undone and paid for
with it. It has no more than whoever asks: the categories that both may use, as much of variables as both may see, the
same rules and answers to questions; and what either has read of strangers counts for both. No peer waits for itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from reyn_jupyter.backends.a2a.sdk import A2A_SDK
from reyn_jupyter.config import Settings
from reyn_jupyter.config.settings import Limits, Peer
from reyn_jupyter.models.base import Model, ModelError, Tier
from reyn_jupyter.router.context.conversation import Conversation, TurnPlace
from reyn_jupyter.router.context.fit_context import ContextLengths
from reyn_jupyter.router.context.history import LOOSENESS
from reyn_jupyter.router.loop import RouterLoop
from reyn_jupyter.router.request.forced_choice import Known
from reyn_jupyter.router.request.prompt import peer_identity
from reyn_jupyter.router.request.router_options import RouterOptions
from reyn_jupyter.router.turn_budget import PeerBudget
from reyn_jupyter.runtime.access.peer_access import (
    ConnectPeer,
    PeerAnswer,
    PeerConnection,
    action_of,
)
from reyn_jupyter.runtime.access.progress_report import ProgressReport
from reyn_jupyter.runtime.action_error import ActionError, PermissionDeniedError
from reyn_jupyter.runtime.call.call_scope import ScopedCall, current_call
from reyn_jupyter.runtime.call.wrappers import Wrappers
from reyn_jupyter.runtime.deadline import Deadline, DeadlineError
from reyn_jupyter.runtime.large_values import look_through
from reyn_jupyter.runtime.live_catalog.catalog_cache import CatalogCache
from reyn_jupyter.runtime.record.events import ActionFinished, ParentCall, RunStarted
from reyn_jupyter.runtime.record.run_store import RunStore
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.runtime.run import Discovery, Run, new_run_id
from reyn_jupyter.runtime.services import Services, Source
from reyn_jupyter.sessions.access.remote_peers import connect_remote, peers_around
from reyn_jupyter.sessions.access.session_models import permit_model
from reyn_jupyter.sessions.turn_history import (
    history_notes,
    reader_of,
    remember_turn,
    variables_for,
    withheld_notes,
)
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.support.text import count

DEEPEST = 3  # peers that ask one another, the first among them


class PeerHost(Protocol):
    """What of a session its peers work with; `sessions.assembly.Parts` has it."""

    @property
    def services(self) -> Services: ...
    @property
    def wrappers(self) -> Wrappers: ...
    @property
    def catalog(self) -> CatalogCache: ...
    @property
    def runs(self) -> RunStore: ...
    @property
    def choice_forms(self) -> dict[str, Known]: ...
    @property
    def contexts(self) -> ContextLengths: ...
    @property
    def settings(self) -> Settings: ...
    def find_model(self, wanted: Any) -> Model: ...
    def router_options(self, settings: Settings, tier: Tier) -> RouterOptions: ...


@dataclass
class PeerUse:
    """What was asked of a peer in this session.

    Attributes:
        requests: how many, those that failed among them.
        tokens: to its model and from it.
        cost: US dollars of the model calls whose price is known; None when none is.
        last: how the last request ended, in a word; "" before the first.
    """

    requests: int = 0
    tokens: int = 0
    cost: float | None = None
    last: str = ""

    def add(self, trace: Trace) -> None:
        """Count a turn."""
        self.tokens += trace.tokens
        if trace.cost is not None:
            self.cost = (self.cost or 0.0) + trace.cost


@dataclass
class _Memory:
    """What a peer knows of earlier requests.

    Attributes:
        peer: what the settings said of it then; another peer of the name knows nothing of them.
        conversation: its turns.
        context_id: what a remote peer knows them by.
        origins: where strangers' texts in them come from.
        connection: the way to a remote peer.
    """

    peer: Peer
    conversation: Conversation = field(default_factory=lambda: Conversation(new_run_id()))
    context_id: str | None = None
    origins: dict[str, None] = field(default_factory=dict)
    connection: PeerConnection | None = None
    remote_requests: int = 0

    @property
    def requests(self) -> int:
        """Return how many requests it knows of."""
        return len(self.conversation.turns) + self.remote_requests

    def forget(self) -> None:
        """Know of none."""
        self.conversation, self.context_id, self.remote_requests = Conversation(new_run_id()), None, 0
        self.origins = {}


class SessionPeers:
    """Asks peers for the calls of a session, see `PeerAccess`.

    Args:
        session: what they work with; asked once a peer is.

    Attributes:
        connect: makes the connection to a remote peer.
    """

    def __init__(self, session: Callable[[], PeerHost]) -> None:
        self._session = session
        self.connect: ConnectPeer = self._connect
        self._memories: dict[str, _Memory] = {}
        self._uses: dict[str, PeerUse] = {}

    @property
    def missing(self) -> str | None:
        """See `PeerAccess.missing`."""
        if self._session().settings.peers:
            return None
        return "No peer is configured: name one under peers in the settings."

    @property
    def uses(self) -> Mapping[str, PeerUse]:
        """Return what was asked of each peer."""
        return self._uses

    def problem(self, name: str) -> str | None:
        """Return why a peer of the settings cannot answer, in words; None where nothing is known against it."""
        peer = self._session().settings.peers[name]
        if peer.url is not None:
            return A2A_SDK.missing()
        try:
            self._session().find_model(peer.model)
        except ModelError as error:
            return error.message
        return None

    def remembered(self, name: str) -> int:
        """Return how many requests a peer remembers."""
        return self._memories[name].requests if name in self._memories else 0

    def forget(self, name: str | None = None) -> int:
        """Let a peer, or all of them, forget what they were asked; how many requests that were."""
        forgetting = [memory for each, memory in self._memories.items() if name in (None, each)]
        forgotten = sum(memory.requests for memory in forgetting)
        for memory in forgetting:
            memory.forget()
        return forgotten

    async def close(self) -> None:
        """See `PeerAccess.close`."""
        for memory in self._memories.values():
            await _end(memory)

    async def ask(
        self, name: str, peer: Peer, request: str, *, fresh: bool, report: ProgressReport
    ) -> PeerAnswer:
        """See `PeerAccess.ask`."""
        call = current_call()
        if call is None:
            raise PermissionDeniedError("Denied: a peer is asked within a call.", "Invoke its action.")
        _check_way(call.run, name)
        use = self._uses.setdefault(name, PeerUse())
        use.requests, use.last = use.requests + 1, "failed"
        memory, passing = await self._memory(name, peer, call.run.outermost, fresh)
        asked = self._turn if peer.url is None else self._request
        try:
            answer: Any = await Deadline(peer.limits.seconds).within(
                lambda: asked(call, name, memory, request, report)
            )
        except DeadlineError:
            use.last = "too slow"
            raise ActionError(
                f"The peer {name} was stopped after {peer.limits.seconds:g} s.",
                f"Ask for less at once; the setting peers.{name}.limits.seconds moves the limit.",
                code="peer_timeout",
            ) from None
        except asyncio.CancelledError:
            use.last = "interrupted"
            raise
        finally:
            if passing:
                await _end(memory)
        use.last = "answered"
        assert isinstance(answer, PeerAnswer)
        return answer

    async def _memory(self, name: str, peer: Peer, outermost: Run, fresh: bool) -> tuple[_Memory, bool]:
        """Return what a peer remembers of whoever asks, and whether that is for this request alone.

        It is for a replay, and for a client, who is not the person and says by itself who it is.
        """
        if outermost.recorded is not None or outermost.client is not None:
            return _Memory(peer), True
        memory = self._memories.get(name)
        if memory is None or memory.peer != peer:
            if memory is not None:
                await _end(memory)
            memory = self._memories[name] = _Memory(peer)
        elif fresh:
            memory.forget()
        return memory, False

    # A peer behind an address

    async def _request(
        self, call: ScopedCall, name: str, memory: _Memory, request: str, report: ProgressReport
    ) -> PeerAnswer:
        """Ask a remote peer. The call has consent to its host and its secret: they are the action's effects."""
        session, peer = self._session(), memory.peer
        if memory.connection is None:
            token = await session.services.secrets.get(peer.token) if peer.token is not None else None
            memory.connection = await self.connect(name, peer, token)
        said = await look_through(request, lambda: session.services.redactor.text(request))
        answer = await memory.connection.ask(said, context_id=memory.context_id, report=report)
        memory.context_id = answer.context_id
        memory.remote_requests = memory.remote_requests + 1 if answer.context_id is not None else 0
        return answer

    async def _connect(self, name: str, peer: Peer, token: Secret | None) -> PeerConnection:
        return connect_remote(name, peer, token, self._session().settings.web)

    # A router loop of this session

    async def _turn(
        self, call: ScopedCall, name: str, memory: _Memory, request: str, report: ProgressReport
    ) -> PeerAnswer:
        session, peer, outer = self._session(), memory.peer, call.run
        try:
            model = session.find_model(peer.model) if peer.model is not None else outer.model
            model = session.find_model(None) if model is None else model
        except ModelError as error:
            raise _failure(session, name, error.message, error.hint) from None
        await permit_model(call, model)
        report(f"asking {model.label}")
        shown = await look_through(request, lambda: session.services.redactor.text(request))
        run, conversation = call.begin_turn(), memory.conversation
        self._equip(run, outer, peer, model, name)
        place = conversation.begin(None, reader_of(run.settings, model))
        loop = self._loop(session, run, name, memory, model, place)
        options = loop.prepare(run)
        run.log.append(_started(run, shown, model, options, conversation, place))
        notes = history_notes(place, run)
        assert isinstance(run.budget, PeerBudget)
        try:
            await loop.turn(request, run, run.budget, notes=notes, notes_if_sent=withheld_notes(place, model))
        finally:
            trace = session.runs.trace_of(run.log.events)
            remember_turn(conversation, trace, run, place, model)
            self._uses[name].add(trace)
            _carry(call, memory, trace)
        return _answer(session, name, trace)

    @staticmethod
    def _equip(run: Run, outer: Run, peer: Peer, model: Model, name: str) -> None:
        """Give an inner run what the peer has of its own, within what whoever asks has."""
        run.actor, run.model, run.discovery = "peer", model, Discovery()
        run.budget = PeerBudget(name, peer.limits, outer.budget)
        run.variables = min(outer.variables, variables_for(run.settings, model), key=LOOSENESS.__getitem__)
        run.narrow(frozenset(peer.categories))

    def _loop(
        self, session: PeerHost, run: Run, name: str, memory: _Memory, model: Model, place: TurnPlace
    ) -> RouterLoop:
        async def refresh(of: Run) -> None:
            of.see(await session.catalog.refresh())

        options = session.router_options(run.settings, model.tier)
        if not len(run.snapshot):  # it answers by itself, and there is nothing to be found
            options = replace(options, surface="flat")
        return RouterLoop(
            session.services,
            session.wrappers,
            model,
            memory.conversation,
            options,
            _limits(run.settings, memory.peer),
            refresh=refresh,
            is_pushed=lambda: session.catalog.is_pushed,
            parameters=dict(getattr(model, "parameters", {}) or {}),
            contexts=session.contexts,
            choice_forms=session.choice_forms,
            history=place.history,
            identity=peer_identity(name, memory.peer.prompt),
        )


def _check_way(run: Run, name: str) -> None:
    """Check that a peer would neither wait for its own answer nor stand too deep. Raises ActionError."""
    action = action_of(name)
    around = peers_around(run)
    way = " → ".join([*around, action])
    if action in around:
        raise ActionError(
            f"{action} was not asked: it would wait for its own answer.",
            f"The requests are {way}. Answer from what is known, or ask another peer.",
            code="peer_circle",
        )
    deep = len(around) + run.outermost.depth
    if deep >= DEEPEST:
        raise ActionError(
            f"{action} was not asked: {count(deep, 'peer')} ask one another already, and {DEEPEST} may.",
            f"The requests are {way}. Answer without it.",
            code="peer_too_deep",
        )


def _limits(settings: Settings, peer: Peer) -> Limits:
    """Return the limits of a turn, with fewer steps where the peer's own are fewer."""
    limits, own = settings.router.limits, peer.limits.max_steps
    return limits if own is None or own >= limits.max_steps else limits.model_copy(update={"max_steps": own})


def _started(
    run: Run, request: str, model: Model, options: RouterOptions, conversation: Conversation, place: TurnPlace
) -> RunStarted:
    caller = run.caller
    assert caller is not None
    began = caller.run.log.events[0]
    assert isinstance(began, RunStarted)
    return RunStarted(
        run=run.id,
        at=time.time(),
        run_kind="inner",
        session=conversation.id,
        prompt=request,
        model=model.label,
        tier=model.tier,
        host=model.host,
        real=model.real,
        turn=len(conversation.turns) + 1,
        history_tokens=place.history.tokens,
        mandates=options.mandates,
        settings=options.record,
        catalog=run.snapshot.hash,
        parent=ParentCall(caller.run.id, caller.call),
        sent=tuple(
            {"kind": item.kind, "name": f"{item.name}, from an earlier request", "bytes": item.size}
            for item in place.history.resent
        ),
        versions=began.versions,
    )


def _carry(call: ScopedCall, memory: _Memory, trace: Trace) -> None:
    """Note that the result of the call carries what the peer read, of the person's and of strangers."""
    finished = [event for event in trace.events if isinstance(event, ActionFinished)]
    memory.origins.update(dict.fromkeys(origin for event in finished for origin in event.origins))
    sources = {
        (source["kind"], source["name"]): Source(**source)  # type: ignore[arg-type]
        for event in finished
        for source in event.sources
    }
    call.carry(sources.values(), memory.origins)


def _answer(session: PeerHost, name: str, trace: Trace) -> PeerAnswer:
    """Return the answer of a turn. Raises ActionError where it has none, and the cancellation that ended it."""
    ended = trace.ended
    assert ended is not None
    if ended.status == "interrupted":
        raise asyncio.CancelledError
    if ended.status == "limit" and ended.error is not None:
        raise ActionError(
            f"The peer {name} has no answer: {ended.error}.", ended.hint or "", code="peer_limit"
        )
    if ended.error is not None:
        raise _failure(session, name, ended.error, ended.hint or "")
    if ended.status == "limit":
        return PeerAnswer(f"{ended.answer}\n\n[the peer stopped: {'; '.join(ended.notes)}]")
    return PeerAnswer(ended.answer)


def _failure(session: PeerHost, name: str, why: str, hint: str) -> ActionError:
    redact = session.services.redactor.text
    return ActionError(redact(f"The peer {name} has no answer: {why}"), redact(hint), code="peer_failed")


async def _end(memory: _Memory) -> None:
    connection, memory.connection = memory.connection, None
    if connection is not None:
        await connection.close()
