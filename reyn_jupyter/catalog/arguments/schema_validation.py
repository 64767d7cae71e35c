"""Validation of arguments against an action's schema (JSON Schema, draft 2020-12), by jsonschema-rs.

Invariants: whatever the schema and the arguments, validation ends with a bounded list of plain messages; it opens no
network connection (`$ref` reaches inside the schema only), runs no pattern that could run away (the engine's patterns
take linear time; one that it does not know is left to the handler), and takes a reference in place of any value: where
one may stand is the business of `reference_places`. It is only given what `references.walk` has bounded: the engine
recurses over arguments, and has no limit of its own. jsonschema-rs is imported on the first call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.arguments.references import (
    HOW_TO_REFER,
    TooMuchError,
    child,
    claims_reference,
    walk,
)
from reyn_jupyter.catalog.text_normalization import quoted
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.support.text import nearest

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

Invalid = dict[str, str]  # path (a JSON Pointer, "" for the arguments themselves) and message

MOST_MESSAGES = 10
NEEDS_REFERENCE = f"takes a reference, not the data itself: {HOW_TO_REFER}"
_TYPE_NAMES: Mapping[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "{} or more characters",
    "maxLength": "at most {} characters",
}
_CLAIMS_REFERENCE = {"type": "object", "anyOf": [{"required": ["$blob"]}, {"required": ["$var"]}]}
_LEFT_OUT = frozenset(  # says nothing of arguments, or is found when something refers to it
    {"description", "title", "default", "examples", "$comment", "deprecated", "format"}
    | {"$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions"}
)
_ONE = frozenset(
    {"additionalProperties", "items", "contains", "propertyNames", "not", "if", "then", "else"}
    | {"unevaluatedItems", "contentSchema"}
)
_SEVERAL = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
_OF_THE_WHOLE = frozenset({"patternProperties", "allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef"})


_LOST = "x-lost-reference"


class SchemaError(ValueError):
    """A schema is no sound JSON Schema; `path` says where in it, as far as that is known."""

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.path = path


class UnresolvedReferenceError(SchemaError):
    """A schema refers to what it does not hold."""


class SchemaValidator:
    """The validator of one schema, compiled when it is first needed.

    Every method may raise SchemaError.

    >>> validator = SchemaValidator({"type": "object", "properties": {"limit": {"type": "integer"}}})
    >>> validator.faults({"limit": "x"})
    [{'path': '/limit', 'message': "must be an integer, not the string 'x'"}]
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._parameters: dict[str, Draft202012Validator] = {}

    @cached_property
    def _translation(self) -> _Translation:
        return _Translation(self._schema)

    @cached_property
    def _document(self) -> dict[str, Any]:
        return self._translation.document(self._schema)

    @cached_property
    def _engine(self) -> Draft202012Validator:
        return self._compiled(self._document)

    def accepts(self, args: Mapping[str, Any]) -> bool:
        """Return whether arguments are valid beyond doubt; False only means that a closer look is needed."""
        if not all(map(_is_simple, args.values())) or claims_reference(args):
            return False
        if is_closed(self._schema) and not args.keys() <= self._schema.get("properties", {}).keys():
            return False
        with suppress(UnicodeEncodeError):  # half a character, which is not JSON's
            return self._engine.is_valid(args)
        return False

    def fits(self, name: str, value: Any) -> bool:
        """Return whether a value fits one parameter."""
        if name not in self._parameters:
            part = self._schema["properties"][name]
            self._parameters[name] = self._compiled(self._translation.document(part))
        try:
            for _ in walk(value):
                pass
        except TooMuchError:
            return False
        return self._parameters[name].is_valid(_as_json(value))

    def faults(self, args: Mapping[str, Any]) -> list[Invalid]:
        """Return what is wrong with arguments, at most eleven entries; the last says that there is more."""
        found: list[Invalid] = []
        engine = self._engine
        try:
            errors = engine.iter_errors(args)
        except ValueError:  # of a type that it does not take
            errors = engine.iter_errors(_as_json(args))
        for error in errors:
            found += islice(self._messages(error), MOST_MESSAGES + 1 - len(found))
            if len(found) > MOST_MESSAGES:
                return [*found[:MOST_MESSAGES], {"path": "", "message": "and more"}]
        return found

    def check(self) -> None:
        """Compile the schema. Raises UnresolvedReferenceError, too, which the others leave to who reaches that part."""
        assert self._engine is not None
        for ref in self._translation.lost:
            raise UnresolvedReferenceError(f"refers to {quoted(ref)}, which it does not hold")

    def _compiled(self, document: dict[str, Any]) -> Draft202012Validator:
        import jsonschema_rs

        try:
            return jsonschema_rs.Draft202012Validator(
                document,
                validate_formats=False,
                pattern_options=jsonschema_rs.RegexOptions(),  # of linear time, without look-around
                keywords={"x-reference": _TakesReference, _LOST: _Lost},
                offline=True,
            )
        except jsonschema_rs.ValidationError as error:
            place = tuple(step for step in error.instance_path[2:] if step != "else")
            raise SchemaError(error.message, place) from None

    def _messages(self, error: ValidationError) -> Iterator[Invalid]:
        path = ""
        for step in error.instance_path:
            path = child(path, clip_line(step) if isinstance(step, str) else str(step))
        kind, value = error.kind.as_dict(), error.instance
        match error.kind.name:
            case "required":
                yield {"path": child(path, clip_line(kind["property"])), "message": "is required"}
            case "additionalProperties":
                known = _at(self._document, error.schema_path[:-1]).get("properties", {})
                for name in kind["unexpected"]:
                    near = nearest(name, known)
                    tail = f"; did you mean {quoted(near)}?" if near else ""
                    yield {"path": path, "message": f"{quoted(name)} is not known here{tail}"}
            case "anyOf" | "oneOf":
                yield {"path": path, "message": f"{shown(value)} fits none of its forms: {self._forms(kind)}"}
            case _:
                yield {"path": path, "message": self._message(error, value)}

    def _message(self, error: ValidationError, value: Any) -> str:
        stated = _at(self._document, error.schema_path)
        match error.kind.name:
            case "type":
                kinds = [stated] if isinstance(stated, str) else [str(kind) for kind in stated]
                article = "an" if kinds[0][:1] in "aio" else "a"
                return f"must be {article} {' or '.join(kinds)}, not {shown(value)}"
            case "enum":
                return (
                    f"must be one of {clip_line(json.dumps(stated, ensure_ascii=False))}, not {shown(value)}"
                )
            case "pattern":
                return f"{shown(value)} does not match the pattern {clip_line(stated)}"
            case "custom":
                return clip_line(str(error.kind.as_dict()["message"]), 300)
            case name if name in _BOUNDS:
                return f"must be {_BOUNDS[name].format(stated)}, not {shown(value)}"
        return clip_line(error.message, 300)

    def _forms(self, kind: Mapping[str, Any]) -> str:
        causes = [errors[0] for errors in kind.get("context", ()) if errors]
        told = [message["message"] for cause in causes[:4] for message in islice(self._messages(cause), 1)]
        return clip_line("; ".join(dict.fromkeys(told)) or "more than one fits", 300)


def is_closed(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema takes no arguments beside its properties, which is so unless it says otherwise."""
    return schema.get("additionalProperties", False) is False and not schema.keys() & _OF_THE_WHOLE


def unknown_arguments(schema: Mapping[str, Any], args: Mapping[str, Any]) -> list[Invalid]:
    """Return the arguments that a closed schema does not know, each with the nearest name."""
    if not is_closed(schema):
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


def shown(value: object) -> str:
    """Return a wrong value for a message: its type, and its content where that is short and plain."""
    name = _TYPE_NAMES.get(type(value), type(value).__name__)
    if isinstance(value, str):
        return f"the string {quoted(value[:60])}"
    if isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 10**20):
        return f"the {name} {json.dumps(value)}"
    return name


class _Translation:
    """A schema as the engine takes it: each part content with a reference, patterns that it knows, refs in one place.

    Args:
        root: the schema that `$ref` points into.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._targets: dict[str, tuple[str, Any]] = {}  # `$ref` → a name, and what it refers to, translated
        self.lost: list[str] = []  # what the schema refers to and does not hold

    def document(self, part: Any) -> dict[str, Any]:
        """Return the root, or another part of it, as a schema of its own."""
        made = self._part(part)
        return {"allOf": [made], "$defs": {"reference": _CLAIMS_REFERENCE, **dict(self._targets.values())}}

    def _part(self, part: Any) -> Any:
        if not isinstance(part, Mapping):
            return part
        made = {key: self._keyword(key, value) for key, value in part.items() if key not in _LEFT_OUT}
        pattern = part.get("pattern")
        if isinstance(pattern, str) and not _is_known(pattern):
            del made["pattern"]
        patterns = made.get("patternProperties")
        if isinstance(patterns, dict) and not all(map(_is_known, patterns)):
            # A name that such a pattern may match is known as far as anybody can tell.
            made["patternProperties"] = {key: rule for key, rule in patterns.items() if _is_known(key)}
            for closing in ("additionalProperties", "unevaluatedProperties"):
                made.pop(closing, None)
        return {"if": {"$ref": "#/$defs/reference"}, "else": made} if made else {}

    def _keyword(self, key: str, value: Any) -> Any:
        if key in ("$ref", "$dynamicRef") and isinstance(value, str):
            return self._ref(value)
        if key in _ONE and isinstance(value, Mapping):
            return self._part(value)
        if key in _SEVERAL and isinstance(value, list | tuple):
            return [self._part(each) for each in value]
        if key in _NAMED and isinstance(value, Mapping):
            return {name: self._part(each) for name, each in value.items()}
        return list(value) if isinstance(value, tuple) else value

    def _ref(self, ref: str) -> str:
        """Return where the target of a reference within the schema stands in the document."""
        own = self._root.get("$id")
        fragment = ref.removeprefix(own) if isinstance(own, str) else ref
        if fragment not in self._targets:
            name = f"target-{len(self._targets)}"
            self._targets[fragment] = name, True  # it may refer to itself
            try:
                target = self._part(_target(self._root, fragment))
            except (LookupError, TypeError, ValueError):
                self.lost.append(ref)
                target = {_LOST: ref}
            self._targets[fragment] = name, target
        return f"#/$defs/{self._targets[fragment][0]}"


def _target(root: Any, fragment: str) -> Any:
    """Return the part that a fragment (JSON Pointer or anchor) names. Raises LookupError, TypeError or ValueError."""
    from urllib.parse import unquote

    if not fragment.startswith("#"):
        raise LookupError(fragment)  # another document, which is not fetched
    if fragment != "#" and not fragment.startswith("#/"):
        found = next(_anchored(root, fragment[1:]), None)
        if found is None:
            raise LookupError(fragment)
        return found
    steps = unquote(fragment).split("/")[1:]
    return _at(root, [step.replace("~1", "/").replace("~0", "~") for step in steps])


def _anchored(part: Any, name: str) -> Iterator[Mapping[str, Any]]:
    if isinstance(part, Mapping):
        if name in (part.get("$anchor"), part.get("$dynamicAnchor")):
            yield part
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _anchored(inner, name)


def _at(schema: Any, path: Any) -> Any:
    """Return the part of a schema at a path of keys and indexes."""
    for step in path:
        schema = schema[int(step)] if isinstance(schema, list | tuple) else schema[step]
    return schema


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


@cache
def _is_known(pattern: str) -> bool:
    """Return whether the engine can search for a pattern in linear time."""
    import jsonschema_rs

    try:
        jsonschema_rs.Draft202012Validator(
            {"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions(), offline=True
        )
    except ValueError:
        return False
    return True


_SCALARS = frozenset({str, int, bool, type(None)})
_MOST_ITEMS = 256  # of a list that is taken without a closer look


def _is_simple(value: Any) -> bool:
    """Return whether a value is plain JSON, without a reference and without a float that equals an integer."""
    kind = type(value)
    if kind is list:
        return len(value) <= _MOST_ITEMS and all(type(item) in _SCALARS for item in value)
    return kind in _SCALARS or (kind is float and not value.is_integer() and value - value == 0)


def _as_json(value: Any) -> Any:
    """Return a value in the types that the engine takes, and without half characters."""
    if isinstance(value, Mapping):
        return {_as_json(str(key)): _as_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_json(each) for each in value]
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            plain = value if type(value) is kind else kind(value)
            return plain.encode("utf-8", "replace").decode() if isinstance(plain, str) else plain
    return value
