"""A schema written anew for the engine, as one document that refers to nothing outside itself.

Invariants: each part of the schema takes a reference to a variable or blob in place of its value; every
`$ref` leads into the document's own ``$defs``, so nothing is fetched; what the schema refers to and does not hold fails
for whoever fills it; patterns take linear time and bounded memory, and one that the engine does not know is left to the
handler.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.arguments.reference_places import KEYWORD
from reyn_jupyter.catalog.arguments.references import HOW_TO_REFER
from reyn_jupyter.catalog.text_normalization import quoted

if TYPE_CHECKING:
    from jsonschema_rs import KeywordValidator, RegexOptions

NEEDS_REFERENCE = f"takes a reference, not the data itself: {HOW_TO_REFER}"
_CLAIMS_REFERENCE = {"type": "object", "anyOf": [{"required": ["$blob"]}, {"required": ["$var"]}]}
_LEFT_OUT = frozenset(  # says nothing of arguments, or is found when something refers to it
    {"description", "title", "default", "examples", "$comment", "deprecated", "format"}
    | {"$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions"}
)
_ONE = frozenset(
    {"additionalProperties", "items", "contains", "propertyNames", "not", "if", "then", "else"}
    | {"unevaluatedItems", "unevaluatedProperties", "contentSchema"}
)
_SEVERAL = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LOST = "x-lost-reference"
_WHOLE = re.compile(r"\+?[0-9]{1,20}")  # keys that the validator takes for an index
_MOST_PATTERNS = 1_000  # of one schema
_PATTERN_BYTES = 1_000_000  # of one pattern, compiled
_KNOWN_PATTERNS = 10_000  # of which it is remembered whether the engine can search for them


class SchemaDocument:
    """A schema as the engine takes it: each part content with a reference, patterns that it knows, refs in one place.

    Args:
        root: the schema that `$ref` points into.

    Attributes:
        refers: whether any part that was written so far refers to another.
        lost: what the schema refers to and does not hold.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._targets: dict[str, tuple[str, Any]] = {}  # `$ref` → a name, and what it refers to, translated
        self._patterns: set[str] = set()
        self.refers = False
        self.lost: list[str] = []

    def document(self, part: Any) -> dict[str, Any]:
        """Return the root, or another part of it, as a schema of its own."""
        made = self._part(part, _identified(self._root, ""))
        return {"allOf": [made], "$defs": {"reference": _CLAIMS_REFERENCE, **dict(self._targets.values())}}

    def _part(self, part: Any, base: str) -> Any:
        """Return a part for the engine. `base`: the URI of the resource that it is in."""
        if not isinstance(part, Mapping):
            return part
        base = _identified(part, base)
        made = {key: self._keyword(key, value, base) for key, value in part.items() if key not in _LEFT_OUT}
        pattern = part.get("pattern")
        if isinstance(pattern, str) and not self._knows(pattern):
            del made["pattern"]
        patterns = made.get("patternProperties")
        if isinstance(patterns, dict) and not all(map(self._knows, patterns)):
            # A name that such a pattern may match is known as far as anybody can tell.
            made["patternProperties"] = {key: rule for key, rule in patterns.items() if self._knows(key)}
            for closing in ("additionalProperties", "unevaluatedProperties"):
                made.pop(closing, None)
        return {"if": {"$ref": "#/$defs/reference"}, "else": made} if made else {}

    def _knows(self, pattern: str) -> bool:
        """Return whether the engine searches for a pattern; those beyond a number that fits in memory it does not."""
        if pattern not in self._patterns and len(self._patterns) < _MOST_PATTERNS and _is_known(pattern):
            self._patterns.add(pattern)
        return pattern in self._patterns

    def _keyword(self, key: str, value: Any, base: str) -> Any:
        if key in ("$ref", "$dynamicRef") and isinstance(value, str):
            return self._ref(value, base)
        if key in _ONE and isinstance(value, Mapping):
            return self._part(value, base)
        if key in _SEVERAL and isinstance(value, list | tuple):
            return [self._part(each, base) for each in value]
        if key in _NAMED and isinstance(value, Mapping):
            return {name: self._part(each, base) for name, each in value.items()}
        return list(value) if isinstance(value, tuple) else value

    def _ref(self, ref: str, base: str) -> str:
        """Return where the target of a reference within the schema stands in the document."""
        self.refers = True
        uri, _, fragment = _joined(base, ref).partition("#")
        key = f"{uri}#{fragment}"
        if key not in self._targets:
            name = f"target-{len(self._targets)}"
            self._targets[key] = name, True  # it may refer to itself
            try:
                target = self._part(*self._found(uri, f"#{fragment}"))
            except (LookupError, TypeError, ValueError):
                self.lost.append(ref)
                target = {_LOST: ref}
            self._targets[key] = name, target
        return f"#/$defs/{self._targets[key][0]}"

    def _found(self, uri: str, fragment: str) -> tuple[Any, str]:
        """Return what a reference names, and the URI of the resource that it is in.

        Raises:
            LookupError, TypeError, ValueError: the schema does not hold it; other documents are not fetched.
        """
        resource = self._resources[uri]
        try:
            return _target(resource, fragment), uri
        except (LookupError, TypeError, ValueError):
            # Generators put an `$id` into every part, and refer to the whole as if there was none.
            return _target(self._root, fragment), _identified(self._root, "")

    @cached_property
    def _resources(self) -> dict[str, Any]:
        """The root and the parts that have an `$id`, by URI."""
        found: dict[str, Any] = {"": self._root}
        pending: list[tuple[Any, str]] = [(self._root, "")]
        while pending:
            part, base = pending.pop()
            if isinstance(part, Mapping):
                base = _identified(part, base)
                if isinstance(part.get("$id"), str):
                    found.setdefault(base, part)
                pending += [(inner, base) for inner in part.values()]
            elif isinstance(part, list | tuple):
                pending += [(inner, base) for inner in part]
        return found


def _identified(part: Mapping[str, Any], base: str) -> str:
    """Return the URI of the resource that a part is in, without fragment: its own where it has an `$id`."""
    own = part.get("$id")
    return _joined(base, own).partition("#")[0] if isinstance(own, str) else base


def _joined(base: str, ref: str) -> str:
    """Return a URI reference against a base (RFC 3986)."""
    from urllib.parse import urljoin

    try:
        return base + ref if ref.startswith("#") else urljoin(base, ref)
    except ValueError:
        return ref


def _target(resource: Any, fragment: str) -> Any:
    """Return the part that a fragment (JSON Pointer or anchor) names. Raises LookupError, TypeError or ValueError."""
    from urllib.parse import unquote

    if fragment != "#" and not fragment.startswith("#/"):
        found = next(_anchored(resource, fragment[1:]), None)
        if found is None:
            raise LookupError(fragment)
        return found
    steps = unquote(fragment).split("/")[1:]
    return part_at(resource, [step.replace("~1", "/").replace("~0", "~") for step in steps])


def _anchored(part: Any, name: str) -> Iterator[Mapping[str, Any]]:
    if isinstance(part, Mapping):
        if name in (part.get("$anchor"), part.get("$dynamicAnchor")):
            yield part
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _anchored(inner, name)


def part_at(schema: Any, path: Any) -> Any:
    """Return the part of a schema at a path of keys and indexes."""
    for step in path:
        schema = schema[int(step) if isinstance(schema, list | tuple) else key_at(schema, step)]
    return schema


def key_at(keys: Collection[str], step: str | int) -> str:
    """Return the key that a step of the validator's paths stands for: of the key `00` it tells 0.

    Raises:
        KeyError: there is none.

    Example:
        >>> key_at(["a", "00"], 0)
        '00'
    """
    if str(step) in keys:
        return str(step)
    for key in keys:
        if _WHOLE.fullmatch(key) and int(key) == step:
            return key
    raise KeyError(step)


class _TakesReference:
    """The keyword `x-reference`, of parameters that take a reference and nothing else."""

    def __init__(self, _parent: object, needed: object, _path: object) -> None:
        self._needed = needed is True

    def validate(self, _instance: object) -> None:
        if self._needed:
            raise ValueError(NEEDS_REFERENCE)


class _Lost:
    """Our own keyword in the place of a part that the schema does not hold."""

    def __init__(self, _parent: object, ref: object, _path: object) -> None:
        self._ref = ref

    def validate(self, _instance: object) -> None:
        raise ValueError(
            f"could not be checked: the schema refers to {quoted(self._ref)}, which it does not hold"
        )


def pattern_options() -> RegexOptions:
    """Return the engine for patterns: of linear time, without look-around, and of bounded size."""
    import jsonschema_rs

    return jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)


@lru_cache(maxsize=_KNOWN_PATTERNS)
def _is_known(pattern: str) -> bool:
    """Return whether the engine can search for a pattern in linear time."""
    import jsonschema_rs

    try:
        jsonschema_rs.Draft202012Validator(
            {"pattern": pattern}, pattern_options=pattern_options(), offline=True
        )
    except ValueError:
        return False
    return True


KEYWORDS: dict[str, type[KeywordValidator]] = {KEYWORD: _TakesReference, _LOST: _Lost}
