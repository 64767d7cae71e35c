"""The few tools that a model sees instead of one tool an action.

Invariant: their size depends on the number of categories alone, never on that of the actions, and no action
is named in them; names stand in answers only. Source: Universal Action Catalog (FP-0034), the wrappers and
the no-names catalog; tool-output design for `inspect`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.discovery.listing import LARGEST_LIMIT, LIMIT
from reyn_jupyter.catalog.discovery.search_results import SEARCH_LIMIT
from reyn_jupyter.catalog.names import CHOOSE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reyn_jupyter.catalog.action import Action

_LIST = (
    "Find out which actions exist. Pass category to get, for each action, its exact qualified name, its description "
    "and its input schema: all you need to invoke it. Without category only names and short descriptions come back. "
    "Never guess an action's name; take it from here."
)
_LIST_BRIEF = (
    "Find out which actions exist: their exact qualified names and short descriptions. "
    "Never guess an action's name; take it from here."
)
_DESCRIBE = "Show one action in full: description, input schema, what it may do. Not needed when a listing showed them."
_INVOKE = (
    "Run one action and get its result. The action's own arguments go inside args, as a JSON object that matches the "
    "action's input_schema; pass {} when it takes none."
)
_SEARCH = (
    "Find actions by what they do, over all categories. Each item has the exact qualified name, the description and "
    "the input schema: all you need to invoke it. Search for one capability at a time. When the answer says weak, "
    "nothing fits well: list a category instead."
)
_QUERY = (
    'What the action should do, as a short phrase: a verb and its object ("convert an amount between currencies"), '
    "not the data it should do it with."
)
_INSPECT = (
    "Look into a stored result. A result that is too long for the conversation is kept, and you see only a summary "
    "that begins with [blob:<id>]; pass that id here to read the rest in parts."
)
_SELECTOR = (
    "Which part. Leave it out for kind, size and the beginning. Text: lines:20-50 (from 1, both ends included; "
    "lines:20- and lines:-20 too). Array: slice:3..8 (from 0, end excluded; slice:3.. too). Object: key:name. "
    "Any JSON: path:/a/0/b. Anything: bytes:8192..16384, grep:regex."
)
_ACTION_NAME = "The action's qualified name, copied exactly from an answer."
_ARGS = (
    "The action's arguments: a JSON object (not a string) that matches its input_schema. Where that has "
    'x-reference, a reference may stand instead of data: {"$blob": "<id>", "path": "/rows"} for a stored result, '
    '{"$var": "<name>"} for a notebook variable.'
)


ANSWER, OTHER = "answer", "other"  # what may be chosen beside an action
_CHOOSE = "Choose the one action that does the next thing that the person asks for. There is:"
_ANSWER = "no action: what is here is enough to answer the person, or no action can help"
_OTHER = "none of these actions fits: show others"

_ITEM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "qualified_name": {"type": "string"},
        "short_description": {"type": "string"},
        "description": {"type": "string"},
        "score": {"type": "number"},
    },
    "required": ["qualified_name"],
}
_PAGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": _ITEM},
        "total": {"type": "integer"},
        "note": {"type": "string"},
        "hint": {"type": "string"},
    },
    "required": ["items", "total"],
}
# The JSON Schema of each wrapper's successful answer; the results of the other wrappers have no fixed form.
OUTPUTS: dict[str, dict[str, Any]] = {
    "list_actions": {
        **_PAGE,
        "properties": {
            **_PAGE["properties"],
            "categories": {"type": "object", "additionalProperties": {"type": "integer"}},
            "next_offset": {"type": "integer"},
        },
    },
    "search_actions": {
        **_PAGE,
        "properties": {
            **_PAGE["properties"],
            "weak": {"type": "boolean"},
            "nearest_categories": {"type": "array", "items": {"type": "string"}},
        },
    },
    "describe_action": {
        **_ITEM,
        "properties": {**_ITEM["properties"], "metadata": {"type": "object"}},
    },
}


def choose_spec(actions: Sequence[Action], *, more: bool) -> dict[str, Any]:
    """Return the tool by which a model picks one of a few actions, or none.

    Args:
        actions: the candidates, best first.
        more: whether others follow, so that it may ask for them.
    """
    choices = {action.name.text: " ".join(action.short_description.split()) for action in actions}
    choices |= {ANSWER: _ANSWER} | ({OTHER: _OTHER} if more else {})
    lines = [f"- {name}: {what}" for name, what in choices.items()]
    action = {"type": "string", "enum": list(choices)}
    return _spec(CHOOSE, "\n".join([_CHOOSE, *lines]), {"action": action}, ["action"])


def wrapper_specs(
    categories: Sequence[str],
    *,
    search: bool,
    inspect: bool,
    constrain: Sequence[str] | None = None,
    schemas: bool = True,
    args: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return the wrappers as function specs of the chat-completions API.

    Args:
        categories: the names on offer, for the enum.
        search: whether search by meaning is offered.
        inspect: whether there is a store to look into.
        constrain: names just listed, as an enum for `action_name`; None leaves it open.
        schemas: whether narrowed listings carry schemas.
        args: the input schema of the one action that `constrain` leaves; None leaves an invocation's arguments open.
    """
    action_name: dict[str, Any] = {"type": "string", "description": _ACTION_NAME}
    if constrain:
        action_name["enum"] = list(constrain)
    category: dict[str, Any] = {
        "type": "array",
        "items": {"type": "string", **({"enum": list(categories)} if categories else {})},
        "description": "Categories to look into; leave out for all.",
    }
    specs = [
        _spec("list_actions", _LIST if schemas else _LIST_BRIEF, _listing_properties(category), []),
        _spec("describe_action", _DESCRIBE, {"action_name": action_name}, ["action_name"]),
        _spec(
            "invoke_action",
            _INVOKE,
            {"action_name": action_name, "args": {"type": "object", "description": _ARGS, **(args or {})}},
            ["action_name", "args"],
        ),
    ]
    if search:
        query = {"type": "string", "description": _QUERY}
        limit = _whole("Actions at most.", 1, SEARCH_LIMIT)
        properties = {"query": query, "category": category, "limit": limit}
        specs.append(_spec("search_actions", _SEARCH, properties, ["query"]))
    if inspect:
        blob_id = {"type": "string", "description": "The id from [blob:<id>]."}
        selector = {"type": "string", "description": _SELECTOR}
        specs.append(_spec("inspect", _INSPECT, {"blob_id": blob_id, "selector": selector}, ["blob_id"]))
    return specs


def _listing_properties(category: dict[str, Any]) -> dict[str, Any]:
    return {
        "category": category,
        "filter": {
            "type": "string",
            "description": "A part of the name or short description. Not a path, not a category.",
        },
        "offset": _whole("Actions to skip; pass next_offset of the last answer to go on.", 0, 0),
        "limit": {**_whole("Actions at most.", 1, LIMIT), "maximum": LARGEST_LIMIT},
    }


def _whole(description: str, smallest: int, default: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": smallest, "default": default, "description": description}


def _spec(name: str, description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }
