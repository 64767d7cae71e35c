"""Values held to a schema of a utility: what is wrong with them, their defaults, and where paths stand in them.

Invariant: whatever the schema and the value, the work is bounded and nothing is fetched. Unlike the arguments of an
action, no value is excused by a reference: what is checked here is what a program is given, or what it gave.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.arguments.references import child
from reyn_jupyter.catalog.arguments.schema_document import pattern_options
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.workflows.utilities.contract import Schema

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

Place = tuple[str | int, ...]  # keys and positions that lead to a value

DEEPEST = 64  # levels of objects and arrays in a value
_HOLDERS = (dict, list, tuple)
_MOST_FAULTS = 20
_MOST_PARTS = 1_000_000  # of a schema and a value that are looked at together


def value_faults(schema: Schema, value: Any) -> list[dict[str, str]]:
    """Return what is wrong with a value, at most 20 entries with a JSON Pointer and a message.

    Raises:
        ValueError: the schema is none.

    Example:
        >>> value_faults({"type": "object", "required": ["a"]}, {})
        [{'path': '', 'message': '"a" is a required property'}]
    """
    if isinstance(value, _HOLDERS) and _is_too_deep(value):
        return [{"path": "", "message": f"is nested deeper than {DEEPEST} levels"}]
    validator = _validator(json.dumps(schema, allow_nan=False))
    found = []
    try:
        for error in validator.iter_errors(value):
            found.append({"path": pointer(error.instance_path), "message": clip_line(error.message, 300)})
            if len(found) == _MOST_FAULTS:
                break
    except ValueError as error:  # half a character, a number that JSON does not have
        found.append({"path": "", "message": f"is no JSON: {clip_line(str(error), 200)}"})
    return found


def with_defaults(schema: Schema, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with the defaults of the properties that it lacks, also in the objects that it holds.

    Example:
        >>> with_defaults({"properties": {"mode": {"default": "all"}}}, {})
        {'mode': 'all'}
    """
    filled = dict(value)
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        if not isinstance(part, Mapping):
            continue
        if name not in filled and "default" in part:
            filled[name] = copy.deepcopy(part["default"])
        elif isinstance(inner := filled.get(name), Mapping):
            filled[name] = with_defaults(part, inner)
    return filled


def texts_of_format(schema: Schema, value: Any, formats: Sequence[str]) -> dict[Place, str]:
    """Return the places of texts that a schema gives one of some formats, each with its format.

    Looked at are properties, items, local references, and every alternative: a text that may be a path is one.

    Example:
        >>> schema = {"properties": {"files": {"items": {"format": "readable-path"}}}}
        >>> texts_of_format(schema, {"files": ["a", "b"]}, ["readable-path"])
        {('files', 0): 'readable-path', ('files', 1): 'readable-path'}
    """
    found: dict[Place, str] = {}
    seen: set[tuple[int, Place]] = set()
    marks = _Marks(formats)
    pending: list[tuple[Any, Any, Place]] = [(schema, value, ())]
    while pending:
        part, inner, place = pending.pop()
        if not isinstance(part, Mapping) or (id(part), place) in seen or not marks.may_stand_in(part):
            continue
        seen.add((id(part), place))
        if len(seen) > _MOST_PARTS:
            raise ValueError("there are too many places for paths")
        if isinstance(inner, str) and part.get("format") in formats:
            found[place] = part["format"]
        pending += [(each, inner, place) for each in _alternatives(part, schema)]
        pending += [(rule, deeper, (*place, key)) for key, deeper, rule in _inner(part, inner)]
    return dict(sorted(found.items(), key=lambda each: tuple(map(str, each[0]))))


class _Marks:
    """Knows in which parts of a schema one of some formats may stand, so that the rows of a table are not walked."""

    def __init__(self, formats: Sequence[str]) -> None:
        self._words = tuple(json.dumps(each) for each in (*formats, "$ref"))
        self._known: dict[int, bool] = {}

    def may_stand_in(self, part: Mapping[str, Any]) -> bool:
        """Return whether a format, or a reference to what may have one, stands in a part."""
        if id(part) not in self._known:
            text = json.dumps(part)
            self._known[id(part)] = any(word in text for word in self._words)
        return self._known[id(part)]


def replaced(value: Any, texts: Mapping[Place, str]) -> Any:
    """Return a value with other texts at some places; only what leads to them is copied.

    >>> replaced({"files": ["a", "b"]}, {("files", 1): "c"})
    {'files': ['a', 'c']}
    """
    copies: dict[Place, Any] = {}
    for place, text in texts.items():
        for depth in range(len(place)):
            here = place[:depth]
            if here not in copies:
                copies[here] = copy.copy(at(value, here))
                if here:
                    copies[here[:-1]][here[-1]] = copies[here]
        copies[place[:-1]][place[-1]] = text
    return copies.get((), value)


def at(value: Any, place: Place) -> Any:
    """Return what stands at a place."""
    for step in place:
        value = value[step]
    return value


def pointer(place: Sequence[str | int]) -> str:
    """Return the JSON Pointer of a place, each name bounded.

    >>> pointer(("files", 0))
    '/files/0'
    """
    path = ""
    for step in place:
        path = child(path, clip_line(step) if isinstance(step, str) else str(step))
    return path


def _alternatives(part: Mapping[str, Any], root: Schema) -> Iterator[Any]:
    for key in ("allOf", "anyOf", "oneOf"):
        each = part.get(key)
        yield from each if isinstance(each, list | tuple) else ()
    for key in ("then", "else"):
        yield part.get(key)
    ref = part.get("$ref")
    if isinstance(ref, str) and ref.startswith("#"):
        target: Any = root
        for name in ref.removeprefix("#").removeprefix("/").split("/") if ref not in ("#", "#/") else ():
            key = name.replace("~1", "/").replace("~0", "~")
            target = target.get(key) if isinstance(target, Mapping) else None
        yield target


def _inner(part: Mapping[str, Any], value: Any) -> Iterator[tuple[str | int, Any, Any]]:
    if isinstance(value, Mapping):
        properties = part.get("properties")
        known = properties if isinstance(properties, Mapping) else {}
        for key, deeper in value.items():
            yield key, deeper, known.get(key, part.get("additionalProperties"))
    elif isinstance(value, list | tuple):
        first = part.get("prefixItems")
        ahead = first if isinstance(first, list | tuple) else ()
        rule = part.get("items")
        if ahead or isinstance(rule, Mapping):
            for index, deeper in enumerate(value):
                yield index, deeper, ahead[index] if index < len(ahead) else rule


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for each in level:
            deeper = each.values() if isinstance(each, dict) else each
            inner += [held for held in deeper if isinstance(held, _HOLDERS)]
        if not inner:
            return False
        level = inner
    return True


@lru_cache(maxsize=500)
def _validator(schema: str) -> Draft202012Validator:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(
        json.loads(schema), validate_formats=False, pattern_options=pattern_options(), offline=True
    )
