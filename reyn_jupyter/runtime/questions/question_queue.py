"""The questions of calls that run beside each other: asked in turn, and not again where one answer covers several.

Invariants: an "always" answers every waiting question that it would have kept from being asked; any other answer is for
the question that was shown, and shared only by those of the same run that show the very same and hide nothing. A call
that ends while it is asked takes its own question back, and nobody else's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field

from reyn_jupyter.guard.permissions import PermissionVerdict
from reyn_jupyter.runtime.questions.consent import Answer


@dataclass(eq=False)
class _Asked:
    """A question under way: what may share its answer, and the answer once there is one."""

    shared_by: Hashable | None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    answer: Answer | None = None


class QuestionQueue:
    """The questions of one session, on its engine.

    A question waits in a lane until those before it are answered, and is put only if the rules still ask then.
    """

    def __init__(self) -> None:
        self._open: dict[Hashable, _Asked] = {}
        self._open_elsewhere: set[asyncio.Event] = set()

    async def answer(
        self,
        lane: Hashable,
        shared_by: Hashable | None,
        put: Callable[[], Awaitable[Answer]],
        judge: Callable[[], PermissionVerdict],
    ) -> Answer | PermissionVerdict:
        """Wait for this question's turn, and for its answer.

        Args:
            lane: where questions wait for each other.
            shared_by: what is equal for questions that may share an answer; None for one that shares none.
            put: asks the person.
            judge: the rules' verdict as it is now.

        Returns:
            The person's answer, or the verdict of the rules that made it needless.
        """
        while (before := self._open.get(lane)) is not None:
            await before.over.wait()
            same = shared_by is not None and before.shared_by == shared_by
            if before.answer in ("nobody", "unanswered") or (same and before.answer in ("once", "deny")):
                return before.answer
            verdict = judge()
            if verdict.decision != "ask":
                return verdict
        asked = self._open[lane] = _Asked(shared_by)
        try:
            given = await self._recallable(put, judge)
            asked.answer = None if isinstance(given, PermissionVerdict) else given
            return given
        finally:
            del self._open[lane]
            asked.over.set()

    def rules_moved(self) -> None:
        """Look at every open question again: an "always" was kept."""
        for event in self._open_elsewhere:
            event.set()

    async def _recallable(
        self, put: Callable[[], Awaitable[Answer]], judge: Callable[[], PermissionVerdict]
    ) -> Answer | PermissionVerdict:
        """Ask, and give up as soon as the rules allow the call."""
        moved = asyncio.Event()
        self._open_elsewhere.add(moved)
        asking = asyncio.ensure_future(put())
        try:
            while True:
                moving = asyncio.ensure_future(moved.wait())
                try:
                    await asyncio.wait({asking, moving}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    moving.cancel()
                if asking.done():
                    return asking.result()
                moved.clear()
                verdict = judge()
                if verdict.decision == "allow":
                    return verdict
        finally:
            self._open_elsewhere.discard(moved)
            asking.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await asking
