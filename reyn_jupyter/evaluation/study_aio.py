"""The awaited face of a study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from reyn_jupyter.evaluation.ordering import Wish
from reyn_jupyter.evaluation.plans import PlanError
from reyn_jupyter.evaluation.progress import Progress, RunSummary
from reyn_jupyter.evaluation.variant import Variant
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
        """As `Study.run`; cancelling it cancels the run, and keeps what is done."""
        unknown = chosen.keys() - _CHOICES
        if unknown:
            raise PlanError(
                f"run has no option {', '.join(sorted(unknown))}; it has {', '.join(sorted(_CHOICES))}."
            )
        order = self.study.parts.order(variants, Wish(**chosen))
        return await ENGINE.awaited(self.study.running(order), only_progress(on_progress))


_CHOICES = frozenset(each.name for each in fields(Wish))


def only_progress(listener: OnProgress | None) -> Callable[[Any], None] | None:
    """A listener for all that is published meanwhile, the events of each trial among it."""
    if listener is None:
        return None

    def hear(event: Any) -> None:
        if isinstance(event, Progress):
            listener(event)

    return hear
