"""The offer to reflect, made to a model whose calls keep failing: a tool of its own may do what no action does.

Source: dynamic tool generation, API reference (tool_reflection: three failures recommend a tool).
"""

from __future__ import annotations

from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.models.base import Message
from reyn_jupyter.runtime.record.events import ActionFinished
from reyn_jupyter.runtime.run import Run

REFLECT = ActionName("dynamic_tool_operation", "reflect")
FAILURES = 3  # in one turn
_OFFER = (
    "({count} calls of this turn failed. If no action does what the task needs, call {name}: it says whether a tool of "
    "your own would help, and how to make it.)"
)


def reflection_offer(run: Run) -> Message | None:
    """Return the message that offers to reflect; None before the third failure, and where no tool can be made."""
    if run.snapshot.get(REFLECT) is None:
        return None
    finished = [event for event in run.log.events if isinstance(event, ActionFinished)]
    failures = sum(not event.ok for event in finished)
    if failures < FAILURES or any(event.name == REFLECT.text for event in finished):
        return None
    return Message("user", _OFFER.format(count=failures, name=REFLECT.text))
