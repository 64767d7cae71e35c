"""The tools that a model is offered: the wrappers (universal), every action as a tool (flat), or what fits (auto).

Decided once a conversation, so that the tool list stays cacheable. With a hot list, the actions used most and
last appear as direct tools beside the wrappers; it never reorders a listing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reyn_jupyter.catalog.action import Action
from reyn_jupyter.catalog.names import NameEncoder
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.catalog.wrapper_specs import wrapper_specs
from reyn_jupyter.models.base import ToolSet
from reyn_jupyter.router.request.router_options import RouterOptions
from reyn_jupyter.runtime.record.action_usage import ActionUse

DAY = 86_400.0


@dataclass(frozen=True)
class Offer:
    """The tools of a conversation, the surface they make, and the codec of direct tools' names."""

    surface: Literal["universal", "flat"]
    tools: ToolSet
    encoder: NameEncoder


def universal_tools(
    snapshot: CatalogSnapshot,
    *,
    inspect: bool,
    search: bool = False,
    constrain: Sequence[str] | None = None,
    hot: Sequence[Action] = (),
    schemas: bool = True,
) -> ToolSet:
    encoder = NameEncoder([action.name for action in hot])
    only = snapshot.named(constrain[0]) if constrain and len(constrain) == 1 else None
    specs = wrapper_specs(
        snapshot.category_names,
        search=search,
        inspect=inspect,
        constrain=constrain,
        schemas=schemas,
        args=None if only is None else only.input_schema,
    )
    return ToolSet((*specs, *(direct_tool(action, encoder) for action in hot)))


def flat_tools(snapshot: CatalogSnapshot, *, inspect: bool) -> ToolSet:
    encoder = NameEncoder([action.name for action in snapshot.actions])
    wrappers = wrapper_specs(snapshot.category_names, search=False, inspect=inspect)
    own = tuple(spec for spec in wrappers if spec["function"]["name"] == "inspect")
    return ToolSet((*(direct_tool(action, encoder) for action in snapshot.actions), *own))


def direct_tool(action: Action, encoder: NameEncoder) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": encoder.encode(action.name),
            "description": action.description,
            "parameters": dict(action.input_schema),
        },
    }


def make_offer(
    snapshot: CatalogSnapshot,
    options: RouterOptions,
    *,
    inspect: bool,
    search: bool,
    flat_tokens: int,
    uses: Mapping[str, ActionUse] | None = None,
    decided: Literal["universal", "flat"] | None = None,
    constrain: Sequence[str] | None = None,
) -> Offer:
    """Return the tools for a conversation.

    Args:
        search: whether actions can be searched by meaning in this conversation.
        decided: what an automatic surface came to earlier in it, if it did.
        constrain: names just listed, which `action_name` may be narrowed to.
        flat_tokens: `auto` is flat while all definitions fit into this many tokens.
    """
    surface = options.surface
    if surface == "auto":
        flat = decided == "flat" or (
            not decided and flat_tools(snapshot, inspect=inspect).tokens <= flat_tokens
        )
        surface = "flat" if flat else "universal"
    if surface == "flat":
        return Offer(
            "flat",
            flat_tools(snapshot, inspect=inspect),
            NameEncoder([action.name for action in snapshot.actions]),
        )
    hot = hot_list(snapshot, uses or {}, options.hot_list_n)
    tools = universal_tools(
        snapshot,
        inspect=inspect,
        search=search,
        constrain=constrain,
        hot=hot,
        schemas=options.list_schemas,
    )
    return Offer("universal", tools, NameEncoder([action.name for action in hot]))


def hot_list(
    snapshot: CatalogSnapshot, uses: Mapping[str, ActionUse], count: int, now: float | None = None
) -> list[Action]:
    """Return up to `count` actions of the highest score, uses × (1 + 1 / (1 + age in days)); at ties fixed reads first.

    Places that no use has filled go to actions that only read: nobody chose the others.

    Source of the score: Universal Action Catalog, hot list.
    """
    if count <= 0:
        return []
    moment = time.time() if now is None else now

    def score(action: Action) -> tuple[float, bool]:
        use = uses.get(str(action.name))
        heat = use.count * (1 + 1 / (1 + max(0.0, moment - use.last) / DAY)) if use else 0.0
        return heat, action.canonical_default is None and action.purity.repeatable

    offered = [action for action in snapshot.actions if str(action.name) in uses or action.purity.repeatable]
    ranked = sorted(offered, key=lambda action: (*(-value for value in score(action)), str(action.name)))
    return ranked[:count]
