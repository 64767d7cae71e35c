"""The awaited face of a study.

Invariant: it runs what `Study.run` runs, and shows it in the same way; it only never blocks the loop that awaits it
while trials go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from reyn_jupyter.config.wording import shown
from reyn_jupyter.evaluation.ordering import Wish
from reyn_jupyter.evaluation.plans import PlanError
from reyn_jupyter.evaluation.progress import Progress, RunSummary
from reyn_jupyter.evaluation.variant import Variant
from reyn_jupyter.evaluation.watching import watcher
from reyn_jupyter.sessions.wiring import ENGINE

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.study import Study

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class AsyncStudy:
    """The awaited face of a study, for code that has a loop of its own."""

    study: Study

    async def run(
        self, *variants: Variant, on_progress: OnProgress | None = None, **chosen: Any
    ) -> RunSummary:
        """As `Study.run`, with the same choices. Progress is heard on the loop that awaits this.

        Raises:
            asyncio.CancelledError: it was cancelled; the run ended, and what was done is kept.
            PlanError, BudgetError, StudyBusyError, StoreError: as `Study.run`.

        Example:
            >>> summary = await study.aio.run(base, best, stop="evalue")   # doctest: +SKIP
        """
        unknown = chosen.keys() - _CHOICES
        if unknown:
            raise PlanError(
                f"run has no option {', '.join(sorted(unknown))}; it has {', '.join(sorted(_CHOICES))}."
            )
        wish = Wish(**chosen)
        watching = watcher() if on_progress is None else None
        hear = only_progress(on_progress or watching)
        ended: list[RunSummary] = []

        async def noted() -> RunSummary:
            ended.append(await self.study.running(variants, wish))
            return ended[0]

        try:
            return await ENGINE.awaited(noted(), hear)
        finally:
            if watching is not None and ended:  # a cancelled run has its summary too
                watching.finish(ended[0])


_CHOICES = frozenset(each.name for each in fields(Wish))


def only_progress(listener: OnProgress | None) -> Callable[[Any], None] | None:
    """A listener for all that is published meanwhile, the events of each trial among it."""
    if listener is None:
        return None
    if not callable(listener):
        raise PlanError(f"on_progress={shown(listener)}: give a function of the progress, such as print.")

    def hear(event: Any) -> None:
        if isinstance(event, Progress):
            listener(event)

    return hear
