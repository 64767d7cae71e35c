"""Limits of a turn and a session in tokens and dollars; a reached limit stops a run and keeps what there is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from reyn_jupyter.config import Settings
from reyn_jupyter.config.settings import PeerLimits
from reyn_jupyter.models.base import Response
from reyn_jupyter.runtime.run import LimitReachedError, RunBudget
from reyn_jupyter.support.text import count


@dataclass
class SessionSpend:
    """Tokens and US dollars used so far."""

    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def add(self, tokens: int, cost: float | None) -> None:
        """Count one model call; `cost` is None where its price is not known."""
        self.tokens += tokens
        if cost is None:
            self.unpriced += 1
        else:
            self.cost += cost


class LoopBudget(RunBudget, Protocol):
    """What a turn of the router may use up.

    Attributes:
        own_steps: model calls of the turn itself; its loop counts them.
        inner_steps: those of inner runs, which are steps of the turn too.
    """

    own_steps: int
    inner_steps: int

    @property
    def steps_key(self) -> str:
        """Return the setting that moves the limit of steps, for people."""

    def begin_step(self) -> None:
        """Raise LimitReachedError where the turn may not call its model any more."""

    def notes(self) -> list[str]:
        """Return what the person should know of the limits."""


@dataclass
class TurnBudget:
    """The limits of one turn within its session's.

    Args:
        session: what the session has spent, shared by all its turns.
        usd: the person's own limit for this turn (``--budget``), in US dollars.
    """

    settings: Settings
    session: SessionSpend
    usd: float | None = None
    turn: SessionSpend = field(default_factory=SessionSpend)
    own_steps: int = 0
    inner_steps: int = 0

    def spend(self, response: Response) -> None:
        """Count a model call of the turn."""
        tokens = response.usage.total
        self.turn.add(tokens, response.cost)
        self.session.add(tokens, response.cost)

    def spend_step(self, response: Response) -> None:
        """Count a model call of an inner run, which is a step of this turn."""
        self.inner_steps += 1
        self.spend(response)

    @property
    def steps_key(self) -> str:
        """Return the setting that moves the limit of steps, for people."""
        return "router.limits.max_steps, or --max-steps"

    def begin_step(self) -> None:
        """Raise LimitReachedError where tokens or dollars are used up; the loop counts its steps itself."""
        self.check()

    def check_step(self) -> None:
        """Raise LimitReachedError where an inner run may not call a model any more."""
        TurnBudget.check(self)
        most = self.settings.router.limits.max_steps
        if self.own_steps + self.inner_steps >= most:
            raise LimitReachedError(
                "router.limits.max_steps", f"the limit of {count(most, 'step')} is reached"
            )

    def notes(self) -> list[str]:
        """Return the notes for the person: that a limit in dollars does not count the calls without a price."""
        limits = self.settings.router.limits
        if not self.turn.unpriced or (limits.turn_cost is None and limits.session_cost is None):
            return []
        which = "router.limits.turn_cost and session_cost"
        return [f"{self.turn.unpriced} model calls have no known price; {which} do not count them"]

    def check(self) -> None:
        """Raise LimitReachedError where a limit is reached; asked before each model call and each action."""
        limits = self.settings.router.limits
        if self.usd is not None and self.turn.unpriced:
            raise LimitReachedError(
                "--budget", "the price of this model is not known, so the budget cannot be kept"
            )
        for name, used, most, unit in (
            ("--budget", self.turn.cost, self.usd, "US dollars"),
            ("router.limits.turn_cost", self.turn.cost, limits.turn_cost, "US dollars"),
            ("router.limits.session_cost", self.session.cost, limits.session_cost, "US dollars"),
            ("router.limits.turn_tokens", self.turn.tokens, limits.turn_tokens, "tokens"),
            ("router.limits.session_tokens", self.session.tokens, limits.session_tokens, "tokens"),
        ):
            if most is not None and used >= most:
                raise LimitReachedError(name, f"the limit of {most:,} {unit} is reached ({used:,.4g} used)")


@dataclass
class PeerBudget:
    """The limits of one request to a peer, within the budget of the run that asks.

    What is spent here is spent there too, so no limit around it is passed, whoever calls the model.

    Args:
        name: of the peer.
        limits: its own.
        around: the budget of the run that asks.
    """

    name: str
    limits: PeerLimits
    around: RunBudget
    used: SessionSpend = field(default_factory=SessionSpend)
    own_steps: int = 0
    inner_steps: int = 0

    @property
    def steps_key(self) -> str:
        """Return the setting that moves the limit of steps, for people."""
        return self._key("max_steps") if self.limits.max_steps is not None else "router.limits.max_steps"

    def spend(self, response: Response) -> None:
        """Count a model call of the peer, which is a step of the run that asks."""
        self.used.add(response.usage.total, response.cost)
        self.around.spend_step(response)

    def spend_step(self, response: Response) -> None:
        """Count a model call of what the peer calls, which is a step of the peer and of the run that asks."""
        self.inner_steps += 1
        self.spend(response)

    def begin_step(self) -> None:
        """Raise LimitReachedError where the run that asks, or the peer, may not call a model any more."""
        self.around.check_step()
        self._check_own()

    def check_step(self) -> None:
        """Raise LimitReachedError where what the peer calls may not call a model any more."""
        self.begin_step()
        most = self.limits.max_steps
        if most is not None and self.own_steps + self.inner_steps >= most:
            raise self._reached("max_steps", f"the limit of {count(most, 'step')} is reached")

    def check(self) -> None:
        """Raise LimitReachedError where a limit in tokens or dollars is reached; asked before each action."""
        self.around.check()
        self._check_own()

    def notes(self) -> list[str]:
        """Return that a limit in dollars does not count the calls without a price."""
        if not self.used.unpriced or self.limits.cost is None:
            return []
        return [
            f"{self.used.unpriced} model calls have no known price; {self._key('cost')} does not count them"
        ]

    def _check_own(self) -> None:
        for name, used, most, unit in (
            ("tokens", self.used.tokens, self.limits.tokens, "tokens"),
            ("cost", self.used.cost, self.limits.cost, "US dollars"),
        ):
            if most is not None and used >= most:
                raise self._reached(name, f"the limit of {most:,} {unit} is reached ({used:,.4g} used)")

    def _reached(self, limit: str, message: str) -> LimitReachedError:
        return LimitReachedError(self._key(limit), message)

    def _key(self, limit: str) -> str:
        return f"peers.{self.name}.limits.{limit}"


class ManualBudget(TurnBudget):
    """The limits of a call by hand: none for the call itself, a turn's for the models that it calls."""

    def check(self) -> None:
        return None
