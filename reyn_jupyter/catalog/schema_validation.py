"""Full validation of arguments against an action's schema (JSON Schema, draft 2020-12).

Invariant: whatever the schema and the arguments, validation ends with a bounded list of plain messages; it
opens no network connection (`$ref` reaches inside the schema only), runs no pattern that could run away
(patterns go through re2; one that re2 does not know is left to the handler), and takes a reference in place
of any value. jsonschema is imported on the first call that is not plain.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.fast_schema import MOST_MESSAGES, NEEDS_REFERENCE, Invalid, shown
from reyn_jupyter.catalog.references import child, claims_reference
from reyn_jupyter.catalog.text import quoted
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.support.text import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator


def build_validator(schema: Mapping[str, Any]) -> Validator:
    """A validator for one schema. Raises jsonschema's SchemaError when the schema itself is wrong."""
    _import_jsonschema()
    from jsonschema import Draft202012Validator, FormatChecker
    from referencing import Registry

    # Without formats: a pattern is ECMAScript's (`\p{L}`, `(?<year>…)`), and Python's `re` is no judge of that.
    Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    # An empty registry: a `$ref` to an address is unresolvable instead of fetched.
    validator: Validator = _validator_class()(schema, registry=Registry())
    return validator


@cache
def _import_jsonschema() -> None:
    """Import jsonschema without the grammars that JupyterLab brings along.

    With `rfc3987_syntax` installed, jsonschema builds 38 parsers for internationalised addresses when it is imported:
    2.6 s on the engine's loop, for a check that nobody asked for. A stand-in puts that off until somebody does.
    """
    name = "rfc3987_syntax"
    if "jsonschema" in sys.modules or name in sys.modules or importlib.util.find_spec(name) is None:
        return

    def is_valid_syntax(term: str, value: str) -> bool:
        return bool(importlib.import_module(name).is_valid_syntax(term, value))

    later = types.ModuleType(name)
    later.is_valid_syntax = is_valid_syntax  # type: ignore[attr-defined]
    sys.modules[name] = later
    try:
        importlib.import_module("jsonschema")
    finally:
        sys.modules.pop(name, None)


def messages(validator: Validator, args: Mapping[str, Any]) -> list[Invalid]:
    """What is wrong with arguments, at most ten entries."""
    found: list[Invalid] = []
    for error in islice(validator.iter_errors(args), MOST_MESSAGES + 1):
        if len(found) == MOST_MESSAGES:
            found.append({"path": "", "message": "and more"})
            break
        found.append(_told(error))
    return found


def _told(error: ValidationError) -> Invalid:
    path = ""
    for step in error.absolute_path:
        path = child(path, clip_line(step) if isinstance(step, str) else str(step))
    value: Any = error.validator_value
    match error.validator:
        case "type":
            kinds = [value] if isinstance(value, str) else [str(kind) for kind in value]
            message = f"must be {_listed(kinds)}, not {shown(error.instance)}"
        case "enum":
            message = f"must be one of {clip_line(_json(value))}, not {shown(error.instance)}"
        case "anyOf" | "oneOf":
            message = f"{shown(error.instance)} fits none of its forms: {_forms(error)}"
        case _:
            message = clip_line(error.message, 300)
    return {"path": path, "message": message}


def _forms(error: ValidationError) -> str:
    inner = [_told(cause) for cause in islice(error.context or (), 4)]
    return clip_line("; ".join(dict.fromkeys(told["message"] for told in inner)) or "more than one fits", 300)


def _listed(kinds: list[str]) -> str:
    article = "an" if kinds[0][:1] in "aio" else "a"
    return f"{article} {' or '.join(kinds)}"


def _json(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, default=lambda other: type(other).__name__)


def unknown_arguments(schema: Mapping[str, Any], args: Mapping[str, Any]) -> list[Invalid]:
    """Arguments that the schema does not know, each with the nearest name; none where it is open to others."""
    if schema.get("additionalProperties", False) is not False:
        return []
    if schema.keys() & {"patternProperties", "allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef"}:
        return []
    known = schema.get("properties", {})
    found: list[Invalid] = []
    for name in islice((name for name in args if name not in known), MOST_MESSAGES):
        near = nearest(name, known) if isinstance(name, str) else None
        if near is not None:
            message = f"unknown argument; did you mean {quoted(near)}?"
        elif known:
            message = f"unknown argument; known are {clip_line(', '.join(known))}"
        else:
            message = "unknown argument; this action takes none"
        found.append(
            {"path": child("", clip_line(name) if isinstance(name, str) else name), "message": message}
        )
    return found


@cache
def _validator_class() -> Any:
    """Draft 2020-12 with every keyword content with a reference, and patterns by re2."""
    from jsonschema import Draft202012Validator, validators

    keywords: dict[str, Any] = {
        **Draft202012Validator.VALIDATORS,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "required": _required,
        "x-reference": _x_reference,
    }
    # It matches property names by `re`; what a handler does not know it refuses itself.
    del keywords["unevaluatedProperties"]
    base = {name: _lenient(keyword) for name, keyword in keywords.items()}
    return validators.create(
        meta_schema=Draft202012Validator.META_SCHEMA,
        validators=base,
        type_checker=Draft202012Validator.TYPE_CHECKER,
        format_checker=Draft202012Validator.FORMAT_CHECKER,
        id_of=Draft202012Validator.ID_OF,  # type: ignore[arg-type]
    )


def _lenient(keyword: Any) -> Any:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        return () if claims_reference(instance) else keyword(validator, value, instance, schema)

    return check


@cache
def _regex(pattern: str) -> Any:
    """The compiled pattern, or None for one that cannot be searched in linear time."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error:
        return None


def _found(pattern: str, text: str) -> bool | None:
    regex = _regex(pattern)
    return None if regex is None else regex.search(text.encode("utf-8", "replace").decode()) is not None


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and _found(pattern, instance) is False:
        yield ValidationError(f"{shown(instance)} does not match the pattern {clip_line(pattern)}")


def _pattern_properties(validator: Any, rules: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, rule in rules.items():
            for name, value in instance.items():
                if _found(pattern, name):
                    yield from validator.descend(value, rule, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, rule: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, value in instance.items():
        if name in known or any(_found(pattern, name) is not False for pattern in patterns):
            continue
        if rule is False:
            near = nearest(name, known)
            tail = f"; did you mean {quoted(near)}?" if near else ""
            yield ValidationError(f"{quoted(name)} is not known here{tail}")
        elif isinstance(rule, dict):
            yield from validator.descend(value, rule, path=name)


def _required(_validator: Any, names: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, dict):
        for name in names:
            if name not in instance:
                yield ValidationError("is required", path=[name])


def _x_reference(_validator: Any, needed: Any, _instance: Any, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if needed is True:
        yield ValidationError(NEEDS_REFERENCE)
