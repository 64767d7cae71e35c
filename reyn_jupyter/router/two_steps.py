"""`discovery: two_steps`: a model chooses an action from a short list, then fills the schema of that action alone.

Invariants: what is chosen runs through the same wrappers, gates and record as any call; every page shows a few
actions, best first, found by the person's request, and after the last page nothing else is promised. A choice is held
to by force where the provider can; where it cannot, the tool alone is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.catalog.action import Action
from reyn_jupyter.catalog.names import CHOOSE, ActionName, NameEncoder
from reyn_jupyter.catalog.wrapper_specs import ANSWER, OTHER, choose_spec
from reyn_jupyter.models.base import Message, ToolSet
from reyn_jupyter.router.model_call import TurnState
from reyn_jupyter.router.request.surface import Offer, direct_tool
from reyn_jupyter.runtime.record.events import ActionResolved, ModelReplied
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.runtime.services import ActionSearch
from reyn_jupyter.support.encoding import clip

PAGE = 6  # actions that a model chooses from
PAGES = 5
_QUERY = 1_000  # characters of the request that are searched with
_BLOB = "[blob:"
SAID_AGAIN = 400  # bytes of the request that are said again
# Keywords of a schema by which one argument can call for another.
_TIES = frozenset({
    "allOf", "anyOf", "oneOf", "not", "if", "$ref", "$dynamicRef", "dependencies", "dependentRequired",
    "dependentSchemas", "minProperties", "patternProperties", "unevaluatedProperties",
})  # fmt: skip
FILL_NUDGE = "(Take the arguments from this request: {request})"


@dataclass(frozen=True)
class Stage:
    """What the next request offers.

    Attributes:
        forced: the tool that has to be called; None where the model may answer.
        closing: whether no tool may be called.
        nudge: a last message, for this request alone.
    """

    offer: Offer
    forced: str | None = None
    closing: bool = False
    nudge: Message | None = None


class TwoSteps:
    """The two steps of one turn, as often as it takes.

    Args:
        search: finds actions; None where nothing does, and they come by name.
        inspect: the tool that looks into stored results; None where nothing is stored.
        redact: takes secrets out of what an action's author wrote.
        required_first: whether an action is first offered with the arguments alone that it requires. Small models
            fill in each one that they are shown, an optional number with its least value (`docs/evidence.md`).
    """

    def __init__(
        self,
        search: ActionSearch | None,
        inspect: dict[str, Any] | None,
        redact: Callable[[Any], Any],
        required_first: bool = False,
    ) -> None:
        self._search, self._inspect, self._redact = search, inspect, redact
        self._required_first = required_first
        self._filled: set[ActionName] = set()  # the actions that were offered to be filled
        self._ranked: tuple[Action, ...] = ()
        self._of: object = None  # the snapshot that was ranked
        self._page = 0
        self._seen = 0  # events of the run
        self._acted = False
        self._closing = False  # whether the model chose to answer, and has not done so yet
        self._again = False  # whether the chosen action was called with arguments that do not fit

    async def stage(self, state: TurnState, run: Run) -> Stage:
        """Return what the model is offered now; what it chose, and what it called, is read from the run."""
        if run.snapshot is not self._of:
            self._ranked, self._of = await self._rank(state.messages[0].content, run), run.snapshot
        self._look_back(run)
        discovery = run.discovery
        if discovery.chosen == OTHER:
            self._page, discovery.chosen = self._page + 1, None
        if discovery.chosen == ANSWER:
            discovery.chosen, self._closing = None, True
        if self._closing:
            return Stage(self._choice(run, state), closing=True)
        action = run.snapshot.named(discovery.chosen) if discovery.chosen is not None else None
        if action is not None:
            return self._filling(action, state)
        discovery.chosen = None
        return Stage(self._choice(run, state), None if self._acted else CHOOSE)

    def _look_back(self, run: Run) -> None:
        """Note what was called since the last look: once an action has run, the model may answer, or choose again."""
        new = run.log.events[self._seen :]
        self._seen += len(new)
        if any(isinstance(event, ModelReplied) and event.error is None for event in new):
            self._closing = False
        made = [event for event in new if isinstance(event, ActionResolved)]
        acts = [event for event in made if event.wrapper not in (CHOOSE, "inspect")]
        if not acts:
            return
        self._acted = True
        wrong = all(event.problem == "invalid" for event in acts)
        if not wrong or self._again:
            run.discovery.chosen = None
        self._again = wrong and not self._again

    def _filling(self, action: Action, state: TurnState) -> Stage:
        """Offer the chosen action alone. The request is said again once results stand between."""
        encoder = NameEncoder([action.name])
        spec = self._redact(direct_tool(action, encoder))
        whole = spec["function"]["parameters"]
        alone = required_alone(whole) if self._required_first and action.name not in self._filled else whole
        if alone != whole:
            spec["function"]["parameters"] = alone
            state.helped["required_first"] += 1
        self._filled.add(action.name)
        request = state.messages[0].content
        name = spec["function"]["name"]
        nudge = None
        if self._acted:
            nudge = Message("user", FILL_NUDGE.format(request=clip(request, SAID_AGAIN)))
        return Stage(Offer("universal", ToolSet((spec,)), encoder), name, nudge=nudge)

    def _choice(self, run: Run, state: TurnState) -> Offer:
        start = self._page * PAGE
        page = self._ranked[start : start + PAGE]
        spec = self._redact(choose_spec(page, more=start + PAGE < len(self._ranked)))
        run.discovery.choices = tuple(spec["function"]["parameters"]["properties"]["action"]["enum"])
        stored = self._inspect is not None and any(_BLOB in message.content for message in state.messages)
        beside = (self._inspect,) if stored and self._inspect is not None else ()
        return Offer("universal", ToolSet((spec, *beside)), NameEncoder([action.name for action in page]))

    async def _rank(self, text: str, run: Run) -> tuple[Action, ...]:
        """Return the actions on offer that come nearest to a text, best first; others follow by name."""
        most = PAGE * PAGES
        found: list[Action] = []
        if self._search is not None and text.strip():
            await self._search.ready(run.whole)
            answer = await self._search.find(
                run.whole, text[:_QUERY], most, [part.category.name for part in run.snapshot.visible]
            )
            found = [action for action, _ in answer.hits if run.snapshot.get(action.name) is not None]
        return (*found, *_others(run.snapshot.actions, found, most - len(found)))


def required_alone(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of arguments without those that may be left out.

    One that requires nothing, or that ties its arguments to each other, stays whole.

    Example:
        >>> required_alone({"properties": {"path": {}, "limit": {}}, "required": ["path"]})
        {'properties': {'path': {}}, 'required': ['path']}
    """
    required, given = schema.get("required"), schema.get("properties")
    if not required or not isinstance(given, Mapping) or not _TIES.isdisjoint(schema):
        return dict(schema)
    return {**schema, "properties": {name: each for name, each in given.items() if name in required}}


def forget_choice(state: TurnState, run: Run) -> None:
    """Take a choice out of the conversation, once it was made: it is in the record, and says nothing by itself.

    Small models copy what stands near: with the choice before it, a call gets the action's name as its argument.
    """
    calls = next(
        (message.tool_calls for message in reversed(state.messages) if message.role == "assistant"), ()
    )
    if run.discovery.chosen is not None and [call.name for call in calls] == [CHOOSE]:
        del state.messages[state.logged :]


def _others(actions: Sequence[Action], known: Sequence[Action], most: int) -> list[Action]:
    names = {action.name for action in known}
    return [action for action in actions if action.name not in names][: max(0, most)]
