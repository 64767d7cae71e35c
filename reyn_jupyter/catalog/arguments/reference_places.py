"""The places in arguments where an action's schema takes a reference, and what it may name there.

A schema says so with the keyword ``x-reference``:

- ``true``: a reference and nothing else, to a value of any kind (a DataFrame, an array, an object of a class);
- a list of kinds: data as the rest of the schema says, or a reference to a value of one of these kinds. The kinds are
  the JSON types (``string``, ``number``, ``boolean``, ``null``, ``array``, ``object``), ``python`` for every other
  object, and ``any``.

Invariants: where no schema says so, nothing is a reference; the kind of a value is told by its exact type, so no code
of the value's class runs.

>>> schema = {"properties": {"content": {"type": "string", "x-reference": ["string", "array"]}}}
>>> sorted(place_at(schema, "/content").kinds), place_at(schema, "/path").kinds
(['array', 'string'], frozenset())
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.catalog.arguments.references import claims_reference, is_reference, walk

KEYWORD = "x-reference"
ANY = frozenset({"any"})
_JSON_KINDS: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_MOST_PARTS = 500  # of a schema that apply at one place; a schema that refers to itself has no end of them


@dataclass(frozen=True)
class ReferencePlace:
    """What the schema says of one place.

    Attributes:
        kinds: the kinds of values that a reference may name there; empty where it may not stand.
        types: the JSON types that the schema has for data there, ``integer`` counted as number.
        data: whether data may stand there, too.
    """

    kinds: frozenset[str]
    types: frozenset[str]
    data: bool

    def admits(self, value: object) -> bool:
        """Return whether a reference there may name this value."""
        return "any" in self.kinds or kind_of(value) in self.kinds

    def checks(self, value: object) -> bool:
        """Return whether the schema itself says how a value of this kind has to be."""
        return self.data and kind_of(value) in self.types


def kind_of(value: object) -> str:
    """Return the kind of a value, by its exact type.

    >>> kind_of([1]), kind_of(1.5), kind_of(Exception)
    ('array', 'number', 'python')
    """
    return _JSON_KINDS.get(type(value), "python")


def admit_references(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of somebody else with ``x-reference`` at each argument, as it cannot say so itself.

    Args:
        schema: with its arguments in ``properties``.

    >>> admit_references({"properties": {"rows": {"type": "array"}}})
    {'properties': {'rows': {'type': 'array', 'x-reference': ['any']}}}
    """
    properties = {
        name: {**(rule if isinstance(rule, Mapping) else {}), KEYWORD: ["any"]} if rule is not False else rule
        for name, rule in schema.get("properties", {}).items()
    }
    return {**schema, "properties": properties}


def place_at(schema: Mapping[str, Any], path: str) -> ReferencePlace:
    """Return what a schema says of references at a place in the arguments.

    Args:
        schema: the action's input schema.
        path: the place, as a JSON Pointer.
    """
    parts = list(_applying(schema, schema))
    for token in path.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        inner = [each for part in parts for each in _inner(part, name)]
        parts = [each for part in inner[:_MOST_PARTS] for each in _applying(part, schema)]
    kinds: set[str] = set()
    types: set[str] = set()
    data = False
    for part in parts:
        said = part.get(KEYWORD)
        if said is True:
            kinds |= ANY
            continue
        if isinstance(said, list | tuple):
            kinds.update(kind for kind in said if isinstance(kind, str))
        named = part.get("type")
        types.update("number" if each == "integer" else str(each) for each in _listed(named))
        data = True
    return ReferencePlace(frozenset(kinds), frozenset(types), data)


def misplaced_references(schema: Mapping[str, Any], args: object) -> Iterator[str]:
    """Yield the place of each reference that the schema does not ask for, as a JSON Pointer.

    Raises:
        TooMuchError: see `references.walk`.
    """
    for path, value in walk(args):
        if claims_reference(value) and is_reference(value) and not place_at(schema, path).kinds:
            yield path


def _listed(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def _applying(part: object, root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a part of a schema and the parts that apply beside it to the same value."""
    pending, seen = [part], 0
    while pending and seen < _MOST_PARTS:
        current = pending.pop()
        if not isinstance(current, Mapping):
            continue
        seen += 1
        yield current
        for key in _ALTERNATIVES:
            pending += _listed(current.get(key))
        pending += (current[key] for key in ("then", "else") if key in current)
        target = current.get("$ref")
        if isinstance(target, str) and target.startswith("#/"):
            pending.append(_target(root, target))


def _target(root: Mapping[str, Any], ref: str) -> object:
    found: Any = root
    for step in ref.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _inner(part: Mapping[str, Any], name: str) -> Iterator[object]:
    """Yield the parts for what a value holds under a name or an index."""
    properties = part.get("properties")
    if isinstance(properties, Mapping) and name in properties:
        yield properties[name]
    else:
        yield part.get("additionalProperties")
    if name.isdecimal():
        first = _listed(part.get("prefixItems"))
        yield first[int(name)] if len(name) < 8 and int(name) < len(first) else part.get("items")
