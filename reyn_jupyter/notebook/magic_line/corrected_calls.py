"""The ready lines beside an error whose way out is known: another name, another argument, what an action offers itself.

Invariant: a line is offered, never run, and makes the very call that was meant, with all of its other arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reyn_jupyter.catalog.action import Action
from reyn_jupyter.catalog.resolve import UnknownActionError, find
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.notebook.magic_line.invoke_line import invoke_command
from reyn_jupyter.sessions.result_objects import Result
from reyn_jupyter.support.text import nearest

_MOST = 3  # names that are offered
LABEL = "Instead"


def corrected_lines(
    catalog: CatalogSnapshot, arguments: Mapping[str, Any], result: Result, *, forgive: bool = True
) -> tuple[str, ...]:
    """Return `%reyn invoke` lines that do what a call that failed was meant to do, best first; none where unknown.

    Args:
        catalog: in which the actions are.
        arguments: of the call.
        result: what it came to.
        forgive: the setting `router.forgive`, see `invoke_command`.
    """
    if not isinstance(result.payload, Mapping) or result.error is None:
        return ()
    return tuple(
        invoke_command(action, corrected, forgive=forgive)
        for action, corrected in _calls(catalog, arguments, result)
    )


def _calls(
    catalog: CatalogSnapshot, arguments: Mapping[str, Any], result: Result
) -> Iterator[tuple[Action, Mapping[str, Any]]]:
    payload: Any = result.payload
    for name in _listed(payload, "suggestions")[:_MOST]:
        action = _action(catalog, name)
        if action is not None:
            yield action, arguments
    action = _action(catalog, result.name)
    if action is None:
        return
    if result.fix is not None:
        yield action, result.fix
    renamed = _renamed(action, arguments, payload)
    if renamed != arguments:
        yield action, renamed


def _renamed(action: Action, arguments: Mapping[str, Any], payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arguments with the names that the action has, where those that it does not have are near to one."""
    known = action.input_schema.get("properties") or {}
    wrong = {str(item.get("path", "")) for item in _listed(payload, "invalid") if isinstance(item, Mapping)}
    free = [name for name in known if name not in arguments]
    found = {}
    for name, value in arguments.items():
        meant = nearest(name, free) if name not in known and f"/{name}" in wrong else None
        found[name if meant is None else meant] = value
    return found


def _action(catalog: CatalogSnapshot, name: object) -> Action | None:
    try:
        return find(catalog, str(name))
    except UnknownActionError:
        return None


def _listed(payload: Mapping[str, Any], key: str) -> list[Any]:
    value = payload.get(key)
    return list(value) if isinstance(value, list | tuple) else []
