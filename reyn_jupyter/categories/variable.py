"""The notebook's own variables, described and never handed over whole.

Invariant: what a model sees of a variable is bounded by the policy ``variables: off | schema | head``; private
names, code and what looks like a secret are no variables here; describing one runs none of the person's code.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from reyn_jupyter.backends.object_summary import describe, shape, title
from reyn_jupyter.catalog.action import Arguments, Category, Entry, Purity, Resources, Tool
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.call.reference_resolver import find_variable
from reyn_jupyter.runtime.namespace.variables import hidden, visible_now, visible_variables
from reyn_jupyter.runtime.services import Services, Source, ToolContext

ROWS = 5
MOST_ROWS = 20
_SCHEMA = {
    "type": "object",
    "properties": {
        "rows": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_ROWS,
            "default": ROWS,
            "description": "First rows or elements to show, where content may be shown.",
        }
    },
    "additionalProperties": False,
}


def categories(services: Services) -> tuple[Category, ...]:
    """`variable`, whose resources are the notebook's variables."""

    async def entries() -> Sequence[Entry]:
        return await services.main_thread(lambda: _entries(services))

    return (
        Category(
            "variable",
            "See the notebook's own variables: type, shape, columns and, where allowed, the first rows.",
            resources=Resources(
                Tool("describe_variable", _describe, Purity.READ),
                _target,
                "describe it: type, shape, schema, first rows",
                entries,
            ),
            revision=lambda: _revision(services),
            hidden=lambda: _hidden(services),
        ),
    )


def _hidden(services: Services) -> str | None:
    if services.settings().variables != "off":
        return None
    return "The setting variables is off; %reyn config variables schema offers them."


def _target(entry: str, args: Arguments) -> Arguments:
    return {"variable": entry, **args}


def _entries(services: Services) -> list[Entry]:
    found = visible_variables(services)
    return [Entry(name, title(value), _SCHEMA) for name, value in found.items()]


def _revision(services: Services) -> Hashable:
    """Moves when a name, type, identity or shape does. It is read on the engine's thread, with the notebook's
    thread waiting (or busy, in a background run); nothing but types, lengths and labels is looked at."""
    return tuple((name, id(type(value)), id(value), shape(value)) for name, value in visible_now(services))


async def _describe(args: Arguments, context: ToolContext) -> dict[str, Any]:
    name = args["variable"]

    def look() -> dict[str, Any]:
        value = find_variable(name, context)
        reason = hidden(name, value)
        if reason is not None:
            raise ActionError(f"The variable {name!r} is not shown: {reason}.")
        return describe(value, int(args.get("rows", ROWS)), head=context.variables == "head")

    described = await context.services.main_thread(look)
    context.used(Source("variable", name))
    return {"name": name, **described}
