"""The options that one question may set for itself: model, surface, limits, consent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from reyn_jupyter.config import Effective, Settings
from reyn_jupyter.config.settings import ReasoningEffort
from reyn_jupyter.router.request.router_options import Discovery, Surface
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.run import Approve


def check_question(prompt: object) -> str:
    """Return the question unchanged. Raises ValueError for one that is blank or no text."""
    if not isinstance(prompt, str):
        raise ValueError(
            f'Ask what? A question is a text, not a {type(prompt).__name__}: ask("how many rows …?")'
        )
    if not prompt.strip():
        raise ValueError('Ask what? For example: ask("how many rows has orders.csv?")')
    return prompt


class TurnOptions(BaseModel):
    """The options of `Session.ask` and ``%%reyn``; an unknown one is an error.

    Attributes:
        model: a tier, "offline", a LiteLLM model string, or an object behind the model seam.
        surface, discovery, max_steps: override the settings for this turn.
        effort: How much a reasoning model thinks; the setting when None.
        budget: US dollars that this turn may cost.
        approve: "ask" asks the person, "read" denies what would ask, "all" allows it; deny rules hold in all three.
        new: start a conversation afresh.
        sent: contents of the notebook that were put into the prompt: ({kind, name, bytes}, …).
        cell: id of the asking cell; asking again from it replaces its turn.
        attended: False in background runs, which hold no cell to ask in.
        ask: answers the run's questions about consent, in place of the input of a cell.
        run: the id that the run gets; a fresh one when None.
        client: what the A2A client that asks says of itself; None where the person does.
        depth: how many peers ask one another already, where such a client is another session's peer.
        repeat: the index (from 0) of a repeated trial; it is part of every request's key.
        keys: any other settings for this turn, by dotted key (a replay's are those of its run).
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, frozen=True)

    model: Any = None
    surface: Surface | None = None
    discovery: Discovery | None = None
    max_steps: int | None = Field(default=None, ge=1, le=1000)
    effort: ReasoningEffort | None = None
    budget: float | None = Field(default=None, gt=0)
    approve: Approve = "ask"
    new: bool = False
    sent: tuple[dict[str, Any], ...] = ()
    cell: str | None = None
    attended: bool = True
    ask: Callable[[Question], Awaitable[Answer]] | None = None
    run: str | None = None
    client: str | None = None
    depth: int = Field(default=0, ge=0)
    kind: Literal["turn", "replay"] = "turn"
    repeat: int = Field(default=0, ge=0)
    keys: dict[str, Any] = Field(default_factory=dict)

    def settings(self, effective: Effective) -> Settings:
        """Return the settings with this question's own values over them."""
        for key, value in (
            ("router.surface", self.surface),
            ("router.discovery", self.discovery),
            ("router.limits.max_steps", self.max_steps),
            ("router.reasoning_effort", self.effort),
            *self.keys.items(),
        ):
            if value is not None:
                effective = effective.with_value(key, value)
        return effective.settings
