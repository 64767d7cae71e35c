"""Finds the action of a name and the tool that runs for it, or answers why there is none.

Invariant: over a snapshot, `find` is total: a name in any shape gives a result or an
`UnknownActionError` whose payload can be answered as it is. Visibility is enforced here, so that listing,
describing and invoking agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reyn_jupyter.catalog.dispatch import (
    NO_SEPARATOR,
    CatalogError,
    DispatchTables,
    ToolRegistry,
    UnknownActionError,
    unknown_action,
)
from reyn_jupyter.catalog.names import LONGEST_NAME, ActionName, MalformedNameError
from reyn_jupyter.catalog.suggest import suggest
from reyn_jupyter.catalog.taxonomy import REDIRECTS, TAXONOMY, nearest_category_name
from reyn_jupyter.catalog.text_normalization import quoted
from reyn_jupyter.support.encoding import clip_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reyn_jupyter.catalog.action import Action, Arguments, Tool
    from reyn_jupyter.catalog.snapshot import CatalogSnapshot

_WHOLE = 12  # actions of a category that are all suggested where its name was taken for an action's

__all__ = [
    "CatalogError",
    "DispatchTables",
    "ToolRegistry",
    "UnknownActionError",
    "bind",
    "find",
]


def find(snapshot: CatalogSnapshot, name: ActionName | str) -> Action:
    """Return the action on offer under a name.

    Raises:
        UnknownActionError: with the problem and the answer: error, reason, suggestions, hint.
    """
    if isinstance(name, ActionName):
        parsed = name
    elif isinstance(name, str):
        if (exact := snapshot.named(name)) is not None:
            return exact
        if (second := snapshot.aliases.get(name)) is not None:
            return second
        try:
            parsed = ActionName.parse(name)
        except MalformedNameError:
            raise _malformed(snapshot, name) from None
    else:
        raise unknown_action(name, "malformed", "An action name is a text.")
    action = snapshot.get(parsed)
    if action is None:
        raise _missing(snapshot, parsed)
    return action


def bind(snapshot: CatalogSnapshot, action: Action, args: Mapping[str, object]) -> tuple[Tool, Arguments]:
    """Return what runs for an action that `find` gave, and the arguments that it gets.

    Args:
        snapshot: the one that the action is of.
        args: the caller's arguments, validated with the action's schema (`arguments.preparation.prepare`).

    Raises:
        CatalogError: the category's own transform failed.
    """
    rule = snapshot.tables.rule(action.name)
    if rule is None:
        raise CatalogError(action.name.category, f"it has no rule for {quoted(action.name.text)}")
    return snapshot.tools[rule.target_tool_name], rule.target_args(action.name, args)


def _malformed(snapshot: CatalogSnapshot, text: str) -> UnknownActionError:
    if len(text) > 2 * LONGEST_NAME:
        return unknown_action(text, "malformed", "This is longer than any action name.")
    reason = NO_SEPARATOR
    if text.strip() in snapshot.counts:
        category = text.strip()
        reason = f"{quoted(category)} is a category, not an action."
        names = snapshot.slices[category].texts
        # Which of them is meant does not show in the name: the nearest ones would be the first by the alphabet.
        return unknown_action(text, "malformed", reason, names if len(names) <= _WHOLE else (), category)
    return unknown_action(text, "malformed", reason, suggest(snapshot, text))


def _missing(snapshot: CatalogSnapshot, name: ActionName) -> UnknownActionError:
    category = name.category
    part = snapshot.slices.get(category)
    if part is not None and not part.visible:
        error = unknown_action(
            name.text, "hidden", f"The category {quoted(category)} is not available in this session.", ()
        )
        error.payload["error"] = f"Action {quoted(name.text)} is not available"
        error.hidden = part.hidden
        return error
    if part is not None:
        reason = f"The category {quoted(category)} has no action {quoted(name.entry)}."
        error = unknown_action(name.text, "unknown", reason, suggest(snapshot, name.text), category)
        if (code := part.category.error_codes.unknown_entry) is not None:
            error.payload["code"] = code
        return error
    if category in REDIRECTS:
        return _stale(snapshot, name, REDIRECTS[category])
    if category in TAXONOMY:
        reason = f"The category {quoted(category)} ({TAXONOMY[category]}) is known but not installed in this session."
        return unknown_action(name.text, "not_installed", reason, suggest(snapshot, name.text))
    reason = f"There is no category {quoted(category)}."
    near = nearest_category_name(category, snapshot.category_names)
    if near is None:
        return unknown_action(name.text, "unknown", reason, suggest(snapshot, name.text))
    on_offer = near in snapshot.counts
    reason += f" The nearest is {quoted(near)}"
    reason += "." if on_offer else f" ({TAXONOMY[near]}), which is not available in this session."
    return unknown_action(
        name.text, "unknown", reason, suggest(snapshot, name.text), near if on_offer else None
    )


def _stale(snapshot: CatalogSnapshot, name: ActionName, live: str) -> UnknownActionError:
    installed = live in snapshot.counts
    reason = f"The category name {quoted(name.category)} is out of date; it is now {quoted(live)}"
    reason += "." if installed else ", which is not installed in this session."
    near = suggest(snapshot, ActionName(live, name.entry).text)
    error = unknown_action(name.text, "stale", reason, near, live if installed else None)
    error.payload["redirects"] = {clip_line(name.category): live}
    return error
