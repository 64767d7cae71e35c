"""Contracts of steps and utilities: schemas of what goes in and comes out, and whether one serves the other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reyn_jupyter.catalog.arguments.schema_document import pattern_options
from reyn_jupyter.catalog.schema_check import check_schema
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.workflows.utilities.schema_inclusion import InclusionWords, inclusion_faults

DRAFT = "https://json-schema.org/draft/2020-12/schema"
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Contract:
    """What a step sends and needs, or what a utility takes and gives; JSON Schemas of 2020-12."""

    input_schema: Schema = field(default_factory=dict)
    output_schema: Schema = field(default_factory=dict)


@dataclass(frozen=True)
class Violation:
    """One reason why a utility does not serve a step.

    Attributes:
        direction: "input" (the step may send what the utility does not accept) or "output" (the step needs what the
            utility does not guarantee).
        path: JSON Pointer into the schema of that direction; "" for the whole.
        message: what does not fit, in a sentence.
    """

    direction: Literal["input", "output"]
    path: str
    message: str


def schema_fault(schema: object) -> str | None:
    """Return why a value is no JSON Schema that a utility can declare; None where it is one.

    It is of 2020-12 and of objects, bounded in size and depth, refers to nothing outside itself, and its parts do not
    refer to each other without end.

    >>> schema_fault({"type": "array"}), schema_fault({"type": "object"})
    ("is not of type 'object'", None)
    """
    fault = check_schema(schema)  # which bounds it, so that the others end soon
    if fault is not None:
        return fault
    if draft := _other_draft(schema):
        return f"is of the draft {draft!r}; write it in {DRAFT}"
    return _meta_fault(schema)


def _meta_fault(schema: Any) -> str | None:
    """Return why a schema does not fit the schema of schemas; `check_schema` forgives what older drafts had."""
    import jsonschema_rs

    try:
        jsonschema_rs.meta.validate(schema)
        # The engine by which values are checked; it refuses a pattern that it does not know.
        jsonschema_rs.Draft202012Validator(
            schema, validate_formats=False, pattern_options=pattern_options(), offline=True
        )
    except jsonschema_rs.ValidationError as error:
        place = "/".join(map(str, error.instance_path))
        where = f", at {clip_line(place)}" if place else ""
        return f"is no JSON Schema of 2020-12 ({clip_line(error.message, 200)}{where})"
    except ValueError as error:
        return f"is no JSON Schema of 2020-12 ({clip_line(str(error), 200)})"
    return None


def _other_draft(schema: object) -> str | None:
    """Return the draft that a schema, or a part of it, says that it is of; None for 2020-12 and where none is named."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            named = part.get("$schema")
            if isinstance(named, str) and named.rstrip("#") != DRAFT:
                return named[:100]
            pending += part.values()
        elif isinstance(part, list | tuple):
            pending += part
    return None


def contract_violations(step: Contract, tool: Contract) -> tuple[Violation, ...]:
    """Return why a utility does not serve a step; nothing where it is proved that it does.

    Input: every object that fits the step's input schema fits the utility's. Output: every object that fits the
    utility's output schema fits the step's. Both as JSON Schema 2020-12 has it, so that a schema that says nothing of
    other properties admits them. What cannot be proved is a violation, which says so.

    Example:
        >>> needs = Contract({}, {"properties": {"file_path": {"type": "string"}}, "required": ["file_path"]})
        >>> gives = {"properties": {"file_path": {"type": "string"}, "sha": {"type": "string"}}}
        >>> contract_violations(needs, Contract({}, {**gives, "required": ["file_path", "sha"]}))
        ()
        >>> contract_violations(needs, Contract({}, gives))[0].path
        '/required'
    """
    return (
        *_violations("input", step.input_schema, tool.input_schema),
        *_violations("output", tool.output_schema, step.output_schema),
    )


def step_violations(step: Contract, tool: Contract) -> tuple[Violation, ...]:
    """Return why a utility does not serve a step of a plan, of whose contract less has to be written down.

    As `contract_violations`, but a step sends the properties that its input schema names and no others, so that one
    which says nothing of other properties admits none. An input schema without anything in it says nothing of what is
    sent: only the output is looked at then, and the inputs are checked before the utility runs.
    """
    key = _key(step, tool)
    found = None if key is None else _judged.get(key)
    if found is None:
        found = _step_violations(step, tool)
        if key is not None:
            if len(_judged) >= _MOST_JUDGED:
                _judged.clear()
            _judged[key] = found
    return found


_MOST_JUDGED = 4_096  # pairs of contracts; a plan asks for the same ones again and again
_judged: dict[bytes, tuple[Violation, ...]] = {}


def _key(step: Contract, tool: Contract) -> bytes | None:
    """Return what stands for a pair of contracts; None for what is no JSON."""
    schemas = [step.input_schema, step.output_schema, tool.input_schema, tool.output_schema]
    try:
        return hashlib.sha256(json.dumps(schemas).encode()).digest()
    except (TypeError, ValueError, RecursionError):
        return None


def _step_violations(step: Contract, tool: Contract) -> tuple[Violation, ...]:
    sent = step.input_schema
    if not sent:
        return _violations("output", tool.output_schema, step.output_schema)
    if "properties" in sent and schema_fault(sent) is None and not sent.keys() & _OF_OTHERS:
        named = {**dict.fromkeys(sent.get("required", ()), True), **sent["properties"]}
        sent = {**sent, "properties": named, "additionalProperties": False}
    return contract_violations(Contract(sent, step.output_schema), tool)


_OF_OTHERS = frozenset(  # with any of these, it has more to say of properties than those that it names
    {"additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames", "minProperties"}
    | {"$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "not"}
)
_WORDS = {
    "input": InclusionWords("the step may send", "the utility takes", "the step does not always send it"),
    "output": InclusionWords("the utility may give", "the step needs", "the utility does not guarantee it"),
}


def _violations(
    direction: Literal["input", "output"], given: Schema, wanted: Schema
) -> tuple[Violation, ...]:
    """Return where an object that fits one schema may miss another one."""
    for schema, whose in ((given, 0), (wanted, 1)):
        if fault := schema_fault(schema):
            owner = "step" if (direction == "input") == (whose == 0) else "utility"
            return (Violation(direction, "", f"the {direction} schema of the {owner} {fault}"),)
    faults = inclusion_faults(given, wanted, _WORDS[direction])
    return tuple(Violation(direction, path, message) for path, message in sorted(faults.items()))
