"""The call that code runs for, which a service of the session goes by: it asks for that call, and records under it.

Invariant: it is set by what runs a handler, never by the handler itself. A start, a listing and a long-lived task
belong to no call: nobody can be asked for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Protocol

from reyn_jupyter.catalog.action import Effect
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.runtime.services import Source


class ScopedCall(Protocol):
    """A call under way, as services see it."""

    async def permit(self, effect: Effect, reason: str) -> None:
        """Wait for consent to an effect, unless the call has it. Raises PermissionDeniedError."""

    @property
    def run(self) -> Run:
        """The run that the call is of."""

    def begin_turn(self) -> Run:
        """Return the call's inner run for a turn of another agent, see `InnerCalls.begin_turn`."""

    def carry(self, sources: Iterable[Source], origins: Iterable[str]) -> None:
        """Note whose content the call's result carries, and where strangers' texts in it come from."""

    def inner_step(self) -> tuple[Run, int]:
        """Return the call's inner run and the number of its next step. Raises PermissionDeniedError."""


_call: ContextVar[ScopedCall | None] = ContextVar("call", default=None)


def current_call() -> ScopedCall | None:
    """Return the call that the running code is of; None outside a handler."""
    return _call.get()


def enter_call(call: ScopedCall) -> None:
    """Let what runs in this context from now on run for a call."""
    _call.set(call)
