"""The simulator behind the seam that every model stands behind.

Invariants: an answer is a pure function of the request (its messages, tools, tool choice, parameters and repeat) and of
the simulator's own table and seed; it never sees a variant's name, the catalog or a scenario; it is never "real".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from reyn_jupyter.evaluation.models.simulator.behaviour_table import BehaviourTable
from reyn_jupyter.evaluation.models.simulator.copula import Latent
from reyn_jupyter.evaluation.models.simulator.dialogue_state import situation
from reyn_jupyter.evaluation.models.simulator.features import features
from reyn_jupyter.evaluation.models.simulator.policy import Move, MoveContext, TextReply, next_move
from reyn_jupyter.evaluation.models.simulator.relevance import obscure
from reyn_jupyter.models.base import Request, Response, Tier, ToolCall, Usage, estimate_tokens


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """A weak model whose true rates are known.

    Args:
        table: what it does how often.
        seed: another seed, another sample.
        icc: how much repeats of one prompt resemble each other, on the normal scale (see `copula.Latent`).
        arm_correlation: how much two arms resemble each other at the same repeat of a prompt.
        interaction: the part of `icc` that belongs to a prompt in one arm alone.

    Raises:
        ValueError: the correlations cannot hold together.

    Example:
        >>> from reyn_jupyter.catalog.wrapper_specs import wrapper_specs
        >>> from reyn_jupyter.models.base import Message, Request, ToolSet
        >>> tools = ToolSet(tuple(wrapper_specs(["file"], search=False, inspect=False)))
        >>> request = Request("simulator", (Message("user", "Read notes.md"),), tools)
        >>> Simulator(table=BehaviourTable(lists_first_unasked=1)).answer(request).tool_calls[0].name
        'list_actions'
    """

    table: BehaviourTable = field(default_factory=BehaviourTable)
    seed: int = 0
    icc: float = 0.2
    arm_correlation: float = 0.4
    interaction: float = 0.0
    _latent: Latent = field(init=False, repr=False, compare=False)

    label: ClassVar[str] = "simulator"
    tier: ClassVar[Tier] = "light"
    host: ClassVar[str | None] = None
    real: ClassVar[bool] = False
    source: ClassVar[str] = "simulated"

    def __post_init__(self) -> None:
        made = Latent(self.seed, self.icc, self.arm_correlation, self.interaction)
        object.__setattr__(self, "_latent", made)

    @property
    def independent(self) -> Simulator:
        """The same rates without any correlation: its repeats are independent draws, for large simulations."""
        return replace(self, icc=0.0, arm_correlation=0.0, interaction=0.0)

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Everything that its answers depend on besides the request, as plain JSON."""
        return {
            "model": self.label,
            "table": self.table.model_dump(mode="json"),
            "table_digest": self.table.digest,
            "seed": self.seed,
            "icc": self.icc,
            "arm_correlation": self.arm_correlation,
            "interaction": self.interaction,
        }

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """Return one completion; `on_text` gets the whole text at once. Raises nothing."""
        response = self.answer(request)
        if on_text is not None and response.text:
            on_text(response.text)
        return response

    def answer(self, request: Request) -> Response:
        """Return what it says to a request."""
        where = situation(request)
        view = MoveContext(request, features(request), where, self.table, self._latent)
        move = next_move(view)
        usage = Usage(
            sum(message.tokens for message in request.messages) + request.tools.tokens,
            estimate_tokens(move.text if isinstance(move, TextReply) else str(move.arguments)) + 4,
            estimated=True,
        )
        return _response(move, where.length, usage)

    def lists_first(self, request: Request) -> float:
        """Return the probability that it answers an opening request with a listing; 1 where the listing is forced."""
        if request.tool_choice == "list_actions":
            return 1.0
        seen = features(request)
        if seen.surface == "flat":
            return 0.0
        return self.table.lists_first(
            mandate=seen.mandate,
            times=seen.times,
            obscure=obscure(situation(request).text, seen.categories),
            names_shown=bool(seen.names),
        )


def _response(move: Move, length: int, usage: Usage) -> Response:
    if isinstance(move, TextReply):
        return Response(move.text, usage=usage, cost=0.0, model=Simulator.label)
    call = ToolCall(f"call_{length}", move.tool, json.dumps(move.arguments, ensure_ascii=False))
    return Response(
        tool_calls=(call,), finish_reason="tool_calls", usage=usage, cost=0.0, model=Simulator.label
    )
