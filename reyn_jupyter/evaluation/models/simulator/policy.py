"""Choose what the simulator does next: one move from what a request shows, the table, and its dice.

Invariant: each question that the table answers is asked once, under its own name, so that decisions are independent
of each other and a change of one entry moves nothing else.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from reyn_jupyter.evaluation.models.simulator import hallucinations as args
from reyn_jupyter.evaluation.models.simulator.behaviour_table import BehaviourTable
from reyn_jupyter.evaluation.models.simulator.copula import Latent
from reyn_jupyter.evaluation.models.simulator.dialogue_state import (
    AnsweredCall,
    DialogueState,
    SeenAction,
    direct_items,
    named_action,
    with_schema,
)
from reyn_jupyter.evaluation.models.simulator.features import RequestFeatures
from reyn_jupyter.evaluation.models.simulator.hallucinations import concept
from reyn_jupyter.evaluation.models.simulator.relevance import (
    FITS,
    asks_for_a_change,
    category,
    fit,
    obscure,
    ways_to_change,
)
from reyn_jupyter.models.base import Request

MOST_ATTEMPTS = 3  # errors after which it gives up
MOST_LISTINGS = 3
_HEAD = 1_500  # characters of a result that an answer repeats
NOTHING_FITS = "Nothing in the catalog fits this, so I did not do anything."


@dataclass(frozen=True)
class TextReply:
    """An answer in words."""

    text: str


@dataclass(frozen=True)
class ToolUse:
    """A tool call."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)


Move = TextReply | ToolUse


@dataclass(frozen=True)
class MoveContext:
    """All that a move may depend on."""

    request: Request
    features: RequestFeatures
    situation: DialogueState
    table: BehaviourTable
    latent: Latent

    def draw(self, decision: str, attempt: int = 0) -> float:
        """Return the number in (0, 1) that a decision hangs on; `attempt` tells repeated ones apart."""
        name = f"{decision} {attempt}" if attempt else decision
        return self.latent.uniform(_digest(self.situation.text), self.request.repeat, self.features.arm, name)

    def decides(self, decision: str, probability: float, attempt: int = 0) -> bool:
        """Return whether it does what has this probability."""
        if probability <= 0.0 or probability >= 1.0:
            return probability >= 1.0
        return self.draw(decision, attempt) < probability

    @property
    def direct(self) -> tuple[SeenAction, ...]:
        return direct_items(self.request.tools, self.features.direct) if self.features.direct else ()


def next_move(view: MoveContext) -> Move:
    """Return the next move of a turn."""
    choice = view.request.tool_choice
    if choice == "none" or not view.request.tools.specs:
        return _summary(view)
    if choice in view.request.tools.names:
        return _listing(view) if choice == "list_actions" else ToolUse(choice)
    last = view.situation.last
    move = _opening(view) if last is None else _going_on(view, last)
    if choice == "required" and isinstance(move, TextReply):
        return (
            _listing(view) if view.features.surface == "universal" else ToolUse(view.request.tools.names[0])
        )
    return move


def _opening(view: MoveContext) -> Move:
    seen, table = view.features, view.table
    if seen.surface == "flat":
        return _select(view, view.direct)
    if view.situation.earlier:
        return _select(view, view.situation.earlier)
    first = table.lists_first(
        mandate=seen.mandate,
        times=seen.times,
        obscure=obscure(view.situation.text, seen.categories),
        names_shown=bool(seen.names),
    )
    if view.decides("lists first", first):
        return _listing(view)
    if view.decides("answers at once", table.answers_at_once):
        return TextReply("As far as I remember, this is already the case.")
    return _guess(view)


def _going_on(view: MoveContext, last: AnsweredCall) -> Move:
    """Return what follows an answer of a tool."""
    match last.answer.kind:
        case "ok":
            return _summary(view)
        case "listing":
            return _select(view, last.answer.items)
        case "description":
            return _invoke(view, last.answer.items[-1])
    failures = view.situation.count("unknown", "invalid", "error")
    if failures > MOST_ATTEMPTS or not view.decides("tries again", view.table.retries, failures):
        return TextReply("This did not work, and I do not know another way.")
    if last.answer.kind == "unknown":
        return _after_unknown(view, last, failures)
    arguments = last.arguments.get("args") if last.call.name == "invoke_action" else last.arguments
    given = arguments if isinstance(arguments, dict) else {}
    if last.answer.kind == "error":
        return _call(view, _item(view, last), args.meant(given, last.answer.hint))
    item = with_schema(_item(view, last), last.answer.schema if last.call.name == "invoke_action" else None)
    right = view.decides("corrects its arguments", view.table.corrects_arguments, failures)
    return _call(view, item, args.fill_arguments(view.situation.text, item) if right else given)


def _after_unknown(view: MoveContext, last: AnsweredCall, failures: int) -> Move:
    offered = last.answer.suggestions
    if offered and view.decides("takes a suggestion", view.table.takes_suggestion, failures):
        return _invoke(view, fit(view.situation.text, tuple(map(named_action, offered))).ranked[0])
    return _listing(view)


def _listing(view: MoveContext) -> Move:
    """Return a listing, narrowed to the category that the text is nearest to."""
    near = category(view.situation.text, view.features.categories)
    if near is not None and view.decides("narrows", view.table.narrows):
        return ToolUse("list_actions", {"category": [near]})
    return ToolUse("list_actions")


def _guess(view: MoveContext) -> Move:
    """Something without having looked: a tool in sight, a name in sight, or a name made up."""
    if view.direct:
        return _select(view, view.direct)
    if view.features.names:
        return _select(view, tuple(map(named_action, view.features.names)))
    kind, verb = concept(view.situation.text, view.features.categories)
    if verb in ("edit", "write"):
        verb = (
            "edit" if view.decides("edits in place", view.table.edits(view.features.edit_rule)) else "write"
        )
    form = view.draw("form of the name")
    if form < view.table.guess_malformed:
        name = f"{kind}.{verb}"
    elif form < view.table.guess_malformed + view.table.guess_unknown:
        name = f"{kind}__{verb}_{kind.partition('_')[0]}"
    else:
        name = f"{kind}__{verb}"
    return _invoke(view, named_action(name))


def _select(view: MoveContext, items: tuple[SeenAction, ...]) -> Move:
    """Choose among actions in sight, look further, or say that nothing fits."""
    text, table = view.situation.text, view.table
    found = fit(text, items)
    listings = len(view.situation.calls("list_actions"))
    universal = view.features.surface == "universal"
    if found.score < FITS:
        if universal and 0 < listings < MOST_LISTINGS and _is_narrowed(view):
            return ToolUse("list_actions")
        if not found.ranked or view.decides("abstains", table.abstains):
            return TextReply(NOTHING_FITS)
    ways = ways_to_change(items) if asks_for_a_change(text) else None
    if ways is not None:
        item = ways[0] if view.decides("edits in place", table.edits(view.features.edit_rule)) else ways[1]
    else:
        best = len(found.ranked) == 1 or view.decides("picks the best", table.picks_best)
        item = found.ranked[0 if best else 1]
    looking = item.known.tool is None and listings > 0
    more = view.features.schemas_promised and listings < MOST_LISTINGS
    if looking and more and item.seen == "unseen":
        return ToolUse("list_actions", {"category": [item.known.category]})
    if looking and view.decides("describes", table.describes(item.seen)):
        return ToolUse("describe_action", {"action_name": item.name})
    return _invoke(view, item)


def _is_narrowed(view: MoveContext) -> bool:
    """Return whether every listing so far was of one category."""
    return all(made.arguments.get("category") for made in view.situation.calls("list_actions"))


def _invoke(view: MoveContext, item: SeenAction) -> Move:
    attempt = len(view.situation.made) - view.situation.count("listing", "description")
    right = args.fill_arguments(view.situation.text, item)
    if view.decides("arguments", view.table.arguments(item.seen), attempt):
        return _call(view, item, right)
    kind = view.draw("mistake", attempt)
    if kind < view.table.mistake_omits:
        return _call(view, item, args.mistaken(right, "omit"))
    renames = kind < view.table.mistake_omits + view.table.mistake_renames
    return _call(view, item, args.mistaken(right, "rename" if renames else "value"))


def _call(view: MoveContext, item: SeenAction, arguments: dict[str, Any]) -> Move:
    if item.known.tool is not None:
        return ToolUse(item.known.tool, arguments)
    name = item.name
    if view.features.constrained and name not in view.features.constrained:
        name = view.features.constrained[0]  # a strict provider lets no other name through
    return ToolUse("invoke_action", {"action_name": name, "args": arguments})


def _item(view: MoveContext, made: AnsweredCall) -> SeenAction:
    """Return the action of a call that was made, with what is known of it."""
    if made.call.name != "invoke_action":
        return next(
            (item for item in view.direct if item.known.tool == made.call.name), named_action(made.invoked)
        )
    return view.situation.item(made.invoked) or named_action(made.invoked)


def _summary(view: MoveContext) -> TextReply:
    """Return an answer from the last result, or from none."""
    done = [made for made in view.situation.made if made.answer.kind == "ok"]
    if not done:
        return TextReply("I could not do this with what the catalog offers.")
    text = done[-1].answer.text
    return TextReply(f"Here is what I found:\n\n{text[:_HEAD]}" if text.strip() else "Done.")


@lru_cache(4096)
def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
