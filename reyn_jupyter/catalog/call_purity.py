"""The purity of one call.

Invariant: a call is repeatable only if its action always is, or if the tool's own function says so of these very
arguments. What cannot be known is `UNKNOWN`: a function that fails, and arguments that are references still.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reyn_jupyter.catalog.action import Arguments, Purity
from reyn_jupyter.catalog.arguments.references import find_references
from reyn_jupyter.catalog.dispatch import CatalogError
from reyn_jupyter.catalog.resolve import bind

if TYPE_CHECKING:
    from reyn_jupyter.catalog.action import Action
    from reyn_jupyter.catalog.snapshot import CatalogSnapshot


def purity_of_call(snapshot: CatalogSnapshot, action: Action, target_args: Arguments) -> Purity:
    """Return the purity of a call, by its arguments as the target gets them.

    Args:
        snapshot: the one that the action is of.
        action: the one that is invoked.
        target_args: references opened, transformed by the category.
    """
    rule = snapshot.tools[action.target_tool_name].purity
    if not action.purity_varies or isinstance(rule, Purity):
        return action.purity
    try:
        found = rule(dict(target_args))
    except (Exception, SystemExit):  # noqa: BLE001 - a category's own function fails as it likes
        return Purity.UNKNOWN
    return found if isinstance(found, Purity) else Purity.UNKNOWN


def purity_before_opening(snapshot: CatalogSnapshot, action: Action, args: Arguments) -> Purity:
    """Return the purity of a call as far as it is known before its references are opened, for its scheduling.

    Args:
        snapshot, action: as for `purity_of_call`.
        args: the caller's arguments, validated.
    """
    if not action.purity_varies:
        return action.purity
    try:
        if find_references(args):
            return Purity.UNKNOWN
        return purity_of_call(snapshot, action, bind(snapshot, action, args)[1])
    except (CatalogError, RecursionError):
        return Purity.UNKNOWN
