"""Bounds on the work of a validator whose schema refers to its own parts.

A schema of a few hundred bytes can make a validator evaluate more parts than there is time for: ``allOf`` of two
references to the same part, thirty times over, is a billion evaluations; alternatives that all lead back to the same
part double the work with every level of the value. Invariant: `PathCosts` is an upper bound, so what it lets through
ends soon. It counts over the document that the engine gets (see `schema_validation`), where each reference names a
part of ``$defs``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reyn_jupyter.catalog.arguments.references import DEEPEST

LARGEST_COST = 1 << 40  # beyond it costs are not told apart
_HERE = ("not", "if", "then", "else")
_LISTS_HERE = ("allOf", "anyOf", "oneOf")
_INNER = ("unevaluatedProperties", "propertyNames", "contains", "unevaluatedItems")


class PathCosts:
    """How many parts of a schema are evaluated at one place of a value and on the way to it, at most.

    Args:
        document: a schema whose references all lead into its ``$defs``.

    Attributes:
        endless: whether some part refers to itself without entering the value, so that it says nothing.

    >>> PathCosts({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "object"}}}).at(0)
    5
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.endless = False
        self._here: list[list[int]] = []  # part → parts that apply to the same value
        self._below: list[tuple[list[int], list[int]]] = []  # … to one value inside it each; to all of them
        self._numbers: dict[int, int] = {}
        self._definitions = document.get("$defs", {})
        self._collect(document)
        self._order = self._sort()
        self._levels: list[list[int]] = []

    def at(self, depth: int) -> int:
        """Return the bound for values nested this deep; 0 for one that holds nothing."""
        while len(self._levels) <= min(depth, DEEPEST):
            self._levels.append(self._level(self._levels[-1] if self._levels else None))
        return self._levels[min(depth, DEEPEST)][0]

    def _level(self, before: list[int] | None) -> list[int]:
        costs = [0] * len(self._here)
        for part in self._order:
            cost = 1 + sum(costs[other] for other in self._here[part])
            if before is not None:
                exclusive, shared = self._below[part]
                cost += max((before[other] for other in exclusive), default=0)
                cost += sum(before[other] for other in shared)
            costs[part] = min(cost, LARGEST_COST)
        return costs

    def _collect(self, document: Mapping[str, Any]) -> None:
        """Number the parts that can be reached, the document first."""
        pending: list[Any] = [document]
        self._number(document)
        while pending:
            part = pending.pop()
            here = self._numbered(_applying(part, self._definitions), pending)
            exclusive = self._numbered(_exclusive(part), pending)
            shared = self._numbered(_shared(part), pending)
            number = self._numbers[id(part)]
            self._here[number], self._below[number] = here, (exclusive, shared)

    def _numbered(self, parts: Iterator[Any], pending: list[Any]) -> list[int]:
        found = []
        for part in parts:
            if isinstance(part, Mapping):
                if id(part) not in self._numbers:
                    self._number(part)
                    pending.append(part)
                found.append(self._numbers[id(part)])
        return found

    def _number(self, part: Any) -> None:
        self._numbers[id(part)] = len(self._numbers)
        self._here.append([])
        self._below.append(([], []))

    def _sort(self) -> list[int]:
        """Return the parts so that each comes after those that apply beside it; a circle of these is cut."""
        order: list[int] = []
        state = [0] * len(self._here)  # 1: entered, 2: left
        for first in range(len(self._here)):
            stack = [(first, False)]
            while stack:
                part, is_done = stack.pop()
                if is_done:
                    state[part] = 2
                    order.append(part)
                elif state[part] == 0:
                    state[part] = 1
                    stack.append((part, True))
                    self.endless |= any(state[other] == 1 for other in self._here[part])
                    stack += [(other, False) for other in self._here[part] if state[other] == 0]
        return order


def _applying(part: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parts that apply to the same value as a part."""
    for key in _HERE:
        yield part.get(key)
    for key in _LISTS_HERE:
        listed = part.get(key)
        yield from listed if isinstance(listed, list | tuple) else ()
    dependent = part.get("dependentSchemas")
    yield from dependent.values() if isinstance(dependent, Mapping) else ()
    for key in ("$ref", "$dynamicRef"):
        ref = part.get(key)
        if isinstance(ref, str):
            yield definitions.get(ref.removeprefix("#/$defs/"))


def _exclusive(part: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parts for what a value holds of which one applies to each place."""
    named = part.get("properties")
    yield from named.values() if isinstance(named, Mapping) else ()
    listed = part.get("prefixItems")
    yield from listed if isinstance(listed, list | tuple) else ()
    yield part.get("items")
    yield part.get("additionalProperties")


def _shared(part: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parts for what a value holds that may all apply to one place."""
    patterns = part.get("patternProperties")
    yield from patterns.values() if isinstance(patterns, Mapping) else ()
    for key in _INNER:
        yield part.get(key)
