"""Limits of a turn and a session in tokens and dollars; a reached limit stops a run and keeps what there is."""

from __future__ import annotations

from dataclasses import dataclass, field

from reyn_jupyter.config import Settings
from reyn_jupyter.models.base import Response
from reyn_jupyter.runtime.run import LimitReachedError
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
    own_steps: int = 0  # model calls of the turn itself; its loop counts them
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

    def check_step(self) -> None:
        """Raise LimitReachedError where the turn may not call a model any more."""
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


class ManualBudget(TurnBudget):
    """The limits of a call by hand: none for the call itself, a turn's for the models that it calls."""

    def check(self) -> None:
        return None
