"""An example of an object that fits a schema.

Invariant: what comes back was checked against the schema; where nothing simple fits, there is no example.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from reyn_jupyter.workflows.utilities.schema_values import value_faults

_DEEPEST = 20  # levels of objects, lists and references
_LONGEST = 10_000  # characters of a text
_MOST_VALUES = 10_000


def sample_object(
    schema: Mapping[str, Any], *, texts: Mapping[str, str] | None = None
) -> dict[str, Any] | None:
    """Return an object that fits a schema, with what is required and nothing else; None where none was found.

    Args:
        schema: of an object.
        texts: what stands for a text of a format.

    Example:
        >>> sample_object({"properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]})
        {'n': 3}
    """
    try:
        made = _Sample(schema, texts or {}).of({"type": "object", **schema}, 0)
        return made if isinstance(made, dict) and not value_faults(schema, made) else None
    except (ValueError, TypeError, OverflowError):  # what no simple example can be made of
        return None


class _Sample:
    """Examples for the parts of one schema."""

    def __init__(self, root: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        self._root, self._texts = root, texts
        self._left = _MOST_VALUES

    def of(self, schema: Any, level: int) -> Any:
        """Return an example for a part. Raises ValueError where there would be too many values in it."""
        self._left -= 1
        if self._left < 0 or level > _DEEPEST:
            raise ValueError("too large for an example")
        if not isinstance(schema, Mapping):
            return "example"
        for key in ("const", "default"):
            if key in schema:
                return schema[key]
        for key in ("enum", "examples"):
            if schema.get(key):
                return schema[key][0]
        target = _target(schema.get("$ref"), self._root)
        if isinstance(target, Mapping):
            rest = {key: schema[key] for key in schema if key != "$ref"}
            return self.of(_joined([target, rest]), level + 1)
        for key in ("allOf", "anyOf", "oneOf"):
            parts = [each for each in schema.get(key, ()) if isinstance(each, Mapping)]
            if parts:
                rest = {each: schema[each] for each in schema if each != key}
                return self.of(_joined([rest, *(parts if key == "allOf" else parts[:1])]), level + 1)
        return self._of_kind(schema, level)

    def _of_kind(self, schema: Mapping[str, Any], level: int) -> Any:
        kind = schema.get("type")
        match kind[0] if isinstance(kind, list) and kind else kind:
            case "object":
                named = schema.get("properties", {})
                return {name: self.of(named.get(name), level + 1) for name in schema.get("required", ())}
            case "array":
                before, rest = schema.get("prefixItems", ()), schema.get("items")
                length = min(int(schema.get("minItems", 0)), _MOST_VALUES + 1)
                return [self.of(before[at] if at < len(before) else rest, level + 1) for at in range(length)]
            case "integer":
                return _number(schema, whole=True)
            case "number":
                return _number(schema, whole=False)
            case "boolean":
                return True
            case "null":
                return None
            case _:
                text = self._texts.get(str(schema.get("format")), "example")
                least = min(int(schema.get("minLength", 0)), _LONGEST)
                return text.ljust(least, "e")[: int(schema.get("maxLength", _LONGEST))]


def _number(schema: Mapping[str, Any], *, whole: bool) -> float:
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    if least is None:
        found: float = min(0, most - 1) if most is not None else 0
    else:
        found = least if "minimum" in schema else least + 1 if whole or most is None else (least + most) / 2
    step = schema.get("multipleOf")
    if step:
        found = math.ceil(found / step) * step
    return math.ceil(found) if whole else found


def _joined(parts: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one schema of several, their properties and what they require together."""
    made: dict[str, Any] = {}
    for part in parts:
        properties = {**made.get("properties", {}), **part.get("properties", {})}
        required = [*made.get("required", ()), *part.get("required", ())]
        made = {**made, **part}
        made |= {"properties": properties} if properties else {}
        made |= {"required": required} if required else {}
    return made


def _target(ref: Any, root: Mapping[str, Any]) -> Any:
    found: Any = root
    if not isinstance(ref, str) or not ref.startswith("#"):
        return None
    for step in ref[2:].split("/") if len(ref) > 1 else ():
        if not isinstance(found, Mapping):
            return None
        found = found.get(step.replace("~1", "/").replace("~0", "~"))
    return found
