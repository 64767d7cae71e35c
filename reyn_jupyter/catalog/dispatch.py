"""Dispatch of a call: two pure tables, the registry of tools, and the answer to a name that leads nowhere.

Invariants: no I/O, no state, no live call. Operations are found by qualified name, resources by category;
each rule is a target tool's name and a transform of the arguments. Both tables are derived from the
categories, never written by hand. An unknown name is never a bare exception for the model: its answer
`{error, reason, suggestions, hint}` shows a way on. Source: Universal Action Catalog (FP-0034), routing layer
and error response.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.catalog.action import Arguments, CalledRule, Category, Tool, calls_nothing
from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.catalog.text_normalization import quoted
from reyn_jupyter.support.encoding import clip_line

if TYPE_CHECKING:
    from collections.abc import Sequence


NameProblem = Literal["malformed", "unknown", "hidden", "stale", "not_installed"]
_TAKE_ONE = "Use one of the suggestions exactly as written, or "
NO_SEPARATOR = "An action name is a category, two underscores and an entry; this text is not of that form."


class UnknownActionError(LookupError):
    """A name that leads to no action now.

    Attributes:
        problem: malformed, unknown, hidden, stale or not_installed.
        payload: what a model reads: error, reason, suggestions, hint.
        hidden: why the action's category is not on offer, for people alone; None where nothing is hidden.
    """

    def __init__(self, problem: NameProblem, payload: dict[str, Any], hidden: str | None = None) -> None:
        super().__init__(payload["error"])
        self.problem: NameProblem = problem
        self.payload = payload
        self.hidden = hidden

    @property
    def payload_for_person(self) -> dict[str, Any]:
        """The payload, with the reason for which a category is hidden."""
        if self.hidden is None:
            return self.payload
        return {**self.payload, "reason": f"{self.payload['reason']} {self.hidden}"}

    def suggesting(self, names: Sequence[str]) -> UnknownActionError:
        """Return the same error with other suggestions."""
        if not names:
            return self
        shown = [clip_line(name, 600) for name in names]
        hint = str(self.payload["hint"])
        if not self.payload["suggestions"]:
            hint = _TAKE_ONE + hint.removeprefix("Use ")
        return UnknownActionError(
            self.problem, {**self.payload, "suggestions": shown, "hint": hint}, self.hidden
        )


def unknown_action(
    name: object,
    problem: NameProblem,
    reason: str,
    suggestions: Sequence[str] = (),
    category: str | None = None,
) -> UnknownActionError:
    """Build the error. `category` is the one to look into, where it is known."""
    where = f"category={json.dumps([category], ensure_ascii=False)}" if category else "category=[...]"
    listing = f"list_actions({where})"
    if suggestions:
        hint = f"{_TAKE_ONE}{listing} to discover the correct name."
    else:
        hint = f"Use {listing} to discover the correct name."
    shown = [clip_line(suggestion, 600) for suggestion in suggestions]
    return UnknownActionError(
        problem,
        {"error": f"Unknown action {quoted(name)}", "reason": reason, "suggestions": shown, "hint": hint},
    )


class CatalogError(Exception):
    """A category that cannot be used as it stands; the rest of the catalog can, without it.

    Attributes:
        category: the category at fault.
        reason: what is wrong, in one sentence.
    """

    def __init__(self, category: str, reason: str) -> None:
        super().__init__(f"the category {quoted(category)} cannot be used: {reason}")
        self.category = category
        self.reason = reason


@dataclass(frozen=True)
class DispatchRule:
    """One row of a table. `transform` is (entry, arguments) → the target's arguments; `calls` as in `Operation`."""

    target_tool_name: str
    transform: Callable[[str, Arguments], Arguments]
    calls: CalledRule = calls_nothing

    def target_args(self, name: ActionName, args: Mapping[str, object]) -> Arguments:
        """Return what the target gets. Raises CatalogError when the transform fails, which no valid arguments cause."""
        try:
            target_args = self.transform(name.entry, dict(args))
        except Exception as error:
            raise CatalogError(
                name.category,
                f"its argument transform failed with {type(error).__name__}; validate the arguments before resolving",
            ) from error
        if not isinstance(target_args, dict):
            raise CatalogError(
                name.category, f"its argument transform gave a {type(target_args).__name__}, no dict"
            )
        return target_args


class ToolRegistry(Mapping[str, Tool]):
    """The targets of the dispatch tables by name."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = dict(tools)

    @classmethod
    def of(cls, categories: Iterable[Category]) -> ToolRegistry:
        """Collect the tools. Two categories may share one; two tools of one name raise CatalogError."""
        tools: dict[str, Tool] = {}
        for category in categories:
            for tool in tools_of(category):
                known = tools.setdefault(tool.name, tool)
                if known is not tool and known != tool:
                    raise CatalogError(
                        category.name, f"its target {quoted(tool.name)} is another category's target already"
                    )
        return cls(tools)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


def tools_of(category: Category) -> Iterator[Tool]:
    """Return the targets that a category declares."""
    yield from (operation.tool for operation in category.operations)
    if category.resources is not None:
        yield category.resources.tool


@dataclass(frozen=True)
class DispatchTables:
    """The two tables.

    Attributes:
        operations: qualified name → rule.
        resources: category → rule.
    """

    operations: Mapping[str, DispatchRule]
    resources: Mapping[str, DispatchRule]

    @classmethod
    def of(cls, categories: Iterable[Category]) -> DispatchTables:
        operations: dict[str, DispatchRule] = {}
        resources: dict[str, DispatchRule] = {}
        for category in categories:
            for operation in category.operations:
                name = ActionName(category.name, operation.entry)
                if name.text in operations:
                    raise CatalogError(
                        category.name, f"its action {quoted(operation.entry)} is declared twice"
                    )
                operations[name.text] = DispatchRule(
                    operation.tool.name, _without_entry(operation.transform), operation.calls
                )
            if category.resources is not None:
                resources[category.name] = DispatchRule(
                    category.resources.tool.name, category.resources.transform
                )
        return cls(MappingProxyType(operations), MappingProxyType(resources))

    def rule(self, name: ActionName) -> DispatchRule | None:
        """Return the rule for a name, whether or not a resource of this name lives."""
        return self.operations.get(name.text) or self.resources.get(name.category)


def _without_entry(transform: Callable[[Arguments], Arguments]) -> Callable[[str, Arguments], Arguments]:
    def of_operation(_entry: str, arguments: Arguments) -> Arguments:
        return transform(arguments)

    return of_operation
