"""Write out the arguments of an accepted call, as an oracle sends them.

Invariant: only what the gold leaves open is made up, from the expected files and the action's schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reyn_jupyter.catalog.arguments.preparation import prepare
from reyn_jupyter.evaluation.plan.scenario import MAY_BE_LEFT_OUT, AcceptedCall, Expected, Scenario

_DEEPEST = 8  # levels of a schema that are filled; required parts of a schema can be endless


def gold_arguments(accepted: AcceptedCall, scenario: Scenario, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of one accepted call.

    Args:
        accepted: the call.
        scenario: whose expected files say what an open text of a file has to be.
        schema: the action's input schema, as the model saw it; {} where it did not.

    Example:
        >>> read = AcceptedCall(action="file__read", args={"path": ("a.md", "./a.md"), "limit": ("",)})
        >>> gold_arguments(read, Scenario(id="s", family="f", prompts={"natural": "Read a.md"}), {})
        {'path': 'a.md'}
    """
    properties = schema.get("properties") or {}
    required = schema.get("required") or ()
    given: dict[str, Any] = {}
    for name, values in accepted.args.items():
        choices = [written_out(value) for value in values if value != MAY_BE_LEFT_OUT]
        if choices:
            given[name] = next((one for one in choices if _fits(properties, name, one)), choices[0])
        elif name in required:
            given[name] = MAY_BE_LEFT_OUT
    open_texts = _texts_of_files(given, scenario)
    for name in required:
        if name not in given:
            given[name] = open_texts.get(name, example(properties.get(name) or {}))
    return given


def written_out(accepted: Any) -> Any:
    """Return one value that is accepted: in a dict the first choice of each key, without keys that may only be left
    out.

    >>> written_out({"city": ["Rome", "Roma"], "unit": ["", "km"], "note": [""]})
    {'city': 'Rome', 'unit': 'km'}
    """
    if isinstance(accepted, Mapping):
        made = {}
        for key, choices in accepted.items():
            listed = choices if isinstance(choices, list | tuple) else (choices,)
            wanted = [choice for choice in listed if choice != MAY_BE_LEFT_OUT]
            if wanted:
                made[key] = written_out(wanted[0])
        return made
    if isinstance(accepted, Sequence) and not isinstance(accepted, str):
        return [written_out(item) for item in accepted]
    return accepted


def example(schema: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a plain value that a schema allows, as far as type, enum, default and required parts say.

    >>> example({"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]})
    {'n': 3}
    """
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if schema.get(key):
            return schema[key][0]
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = kind[0] if kind else "string"
    if kind == "object" and depth < _DEEPEST:
        properties = schema.get("properties") or {}
        return {name: example(properties.get(name) or {}, depth + 1) for name in schema.get("required") or ()}
    if kind == "array" and depth < _DEEPEST:
        return [example(schema.get("items") or {}, depth + 1)] * int(schema.get("minItems") or 0)
    plain: dict[str, Any] = {
        "integer": schema.get("minimum", 1),
        "number": schema.get("minimum", 1),
        "boolean": False,
        "null": None,
        "object": {},
        "array": [],
    }
    return plain.get(kind, "x" * max(1, int(schema.get("minLength") or 0)))


def _fits(properties: Mapping[str, Any], name: str, value: Any) -> bool:
    known = properties.get(name)
    return (
        known is None
        or not prepare({"type": "object", "properties": {name: known}}, {name: value}, forgive=False).invalid
    )


def _texts_of_files(given: Mapping[str, Any], scenario: Scenario) -> dict[str, str]:
    """Return what the expected state of a file leaves to be written: its content, or the edit that leads there."""
    path = given.get("path")
    expected = next((one for one in scenario.expected if one.path == path and one.exists), None)
    if expected is None:
        return {}
    before = scenario.workspace.get(expected.path, "")
    return {"content": _content(expected, before), **_edit(expected, before)}


def _content(expected: Expected, before: str) -> str:
    if expected.text is not None:
        return expected.text
    if expected.line is not None:
        return expected.line
    return before if expected.unchanged else "\n".join(expected.contains)


def _edit(expected: Expected, before: str) -> dict[str, str]:
    if expected.text is not None:
        return {"old_string": before, "new_string": expected.text}
    old = next((part for part in expected.lacks if part in before), None)
    if old is None:
        return {}
    new = next((part for part in expected.contains if part not in before), "")
    return {"old_string": old, "new_string": new}
