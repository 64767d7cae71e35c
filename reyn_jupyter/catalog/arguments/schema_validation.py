"""Validation of arguments against an action's schema (JSON Schema, draft 2020-12), by jsonschema-rs.

A schema of another draft is translated first, see `schema_dialects`; the snapshot of the catalog does that.

Invariants: whatever the schema and the arguments, validation ends with a bounded list of plain messages; it opens no
network connection (`$ref` reaches inside the schema only), runs no pattern that could run away (the engine's patterns
take linear time; one that it does not know is left to the handler), evaluates no more parts than `schema_cost` bounds,
and takes a reference in place of any value: where one may stand is the business of `reference_places`. It is only given
what `references.walk` has bounded: the engine recurses over arguments, and has no limit of its own. jsonschema-rs is
imported on the first call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.arguments.references import (
    TooMuchError,
    child,
    claims_reference,
    walk,
)
from reyn_jupyter.catalog.arguments.schema_cost import PathCosts
from reyn_jupyter.catalog.arguments.schema_dialects import SchemaError
from reyn_jupyter.catalog.arguments.schema_document import KEYWORDS, SchemaDocument, part_at, pattern_options
from reyn_jupyter.catalog.text_normalization import quoted
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.support.text import nearest

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

Invalid = dict[str, str]  # path (a JSON Pointer, "" for the arguments themselves) and message

MOST_MESSAGES = 10
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
_OF_THE_WHOLE = frozenset(
    {"patternProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef"}
)
# Bounds: about a second at most for the engine to decide, about a tenth to say what is wrong, which costs it far more.
MOST_EVALUATIONS = 10_000_000  # of parts of the schema, for one value of arguments and all values inside it
_MOST_EXPLAINED = 5_000  # evaluations at one place and on the way to it, for messages about single places
_MOST_COMPARED = 100  # names that are compared with a missing one
_REQUIRED = "is required"
_TOO_INVOLVED = "is too involved: its parts refer to each other more often than can be checked"
_TOO_DEEP = "the arguments are nested too deeply to be checked with this schema; give less at a time"
_NOWHERE = "does not fit the schema, which has too many forms to say where"


def is_missing(fault: Invalid) -> bool:
    """Return whether what is wrong is that an argument was not given."""
    return fault["message"].startswith(_REQUIRED)


class InvolvedSchemaError(SchemaError):
    """A schema whose parts refer to each other so often that no arguments can be checked with it."""


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
        self._costs: PathCosts | None = None  # of a schema that refers to its own parts

    @cached_property
    def _translation(self) -> SchemaDocument:
        return SchemaDocument(self._schema)

    @cached_property
    def _document(self) -> dict[str, Any]:
        return self._translation.document(self._schema)

    @cached_property
    def _engine(self) -> Draft202012Validator:
        document = self._document
        if self._translation.refers:
            costs = PathCosts(document)
            if costs.endless:
                raise InvolvedSchemaError("has a part that refers to itself and says nothing else")
            if costs.at(1) > MOST_EVALUATIONS:
                raise InvolvedSchemaError(_TOO_INVOLVED)
            self._costs = costs
        return self._compiled(document)

    def accepts(self, args: Mapping[str, Any]) -> bool:
        """Return whether arguments are valid beyond doubt; False only means that a closer look is needed."""
        if not all(map(_is_simple, args.values())) or claims_reference(args):
            return False
        if is_closed(self._schema) and not args.keys() <= self._schema.get("properties", {}).keys():
            return False
        engine = self._engine
        if self._costs is not None and self._cost(args) > MOST_EVALUATIONS:
            return False
        try:
            return engine.is_valid(args)
        except UnicodeEncodeError:  # half a character, which is not JSON's
            return False

    def fits(self, name: str, value: Any) -> bool:
        """Return whether a value fits one parameter."""
        assert self._engine is not None  # which refuses what cannot be checked
        if name not in self._parameters:
            part = self._schema["properties"][name]
            self._parameters[name] = self._compiled(self._translation.document(part))
        try:
            cost = self._cost({name: value})
        except TooMuchError:
            return False
        return cost <= MOST_EVALUATIONS and self._parameters[name].is_valid(_as_json(value))

    def _cost(self, args: Mapping[str, Any]) -> int:
        """Return how many evaluations arguments take, at most. Raises TooMuchError where `walk` does."""
        count = 0
        deepest = 0
        for path, _ in walk(args):
            count += 1
            deepest = max(deepest, path.count("/"))
        return count if self._costs is None else count * self._costs.at(deepest)

    def faults(self, args: Mapping[str, Any]) -> list[Invalid]:
        """Return what is wrong with arguments, at most eleven entries; the last says that there is more."""
        engine = self._engine
        if self._costs is not None and (without_places := self._without_places(args)) is not None:
            return without_places
        found: list[Invalid] = []
        try:
            errors = engine.iter_errors(args)
        except ValueError:  # of a type that it does not take
            errors = engine.iter_errors(_as_json(args))
        for error in errors:
            found += islice(self._messages(error), MOST_MESSAGES + 1 - len(found))
            if len(found) > MOST_MESSAGES:
                return [*found[:MOST_MESSAGES], {"path": "", "message": "and more"}]
        return found

    def _without_places(self, args: Mapping[str, Any]) -> list[Invalid] | None:
        """Return what is wrong as far as the schema's references to itself leave time; None where they leave it all."""
        assert self._costs is not None
        deepest = max((path.count("/") for path, _ in walk(args)), default=0)
        if self._costs.at(deepest) <= _MOST_EXPLAINED:
            return None
        if self._cost(args) > MOST_EVALUATIONS:
            return [{"path": "", "message": _TOO_DEEP}]
        if self._engine.is_valid(_as_json(args)):
            return []
        known = self._schema.get("properties", {})
        wrong = [name for name, value in args.items() if name in known and not self.fits(name, value)]
        places = [child("", clip_line(name)) for name in wrong[:MOST_MESSAGES]] or [""]
        return [{"path": place, "message": _NOWHERE} for place in places]

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
                pattern_options=pattern_options(),
                keywords=KEYWORDS,
                offline=True,
            )
        except jsonschema_rs.ValidationError as error:
            place = tuple(step for step in error.instance_path[2:] if step != "else")
            raise SchemaError(error.message, place) from None
        except ValueError as error:  # deeper than it compiles, for instance
            raise SchemaError(f"the validator refuses it: {error}") from None

    def _messages(self, error: ValidationError) -> Iterator[Invalid]:
        path = ""
        for step in error.instance_path:
            path = child(path, clip_line(step) if isinstance(step, str) else str(step))
        kind, value = error.kind.as_dict(), error.instance
        match error.kind.name:
            case "required":
                yield {"path": child(path, clip_line(kind["property"])), "message": self._missing(error)}
            case "additionalProperties" | "unevaluatedProperties":
                known = part_at(self._document, error.schema_path[:-1]).get("properties", {})
                for name in kind["unexpected"]:
                    near = nearest(name, known)
                    tail = f"; did you mean {quoted(near)}?" if near else ""
                    yield {"path": path, "message": f"{quoted(name)} is not known here{tail}"}
            case "anyOf" | "oneOf":
                yield {"path": path, "message": f"{shown(value)} fits none of its forms: {self._forms(kind)}"}
            case _:
                yield {"path": path, "message": self._message(error, value)}

    def _missing(self, error: ValidationError) -> str:
        """Return the message on a property that is not there, with the one that may be meant for it."""
        name, given = error.kind.as_dict()["property"], error.instance
        known = part_at(self._document, error.schema_path[:-1]).get("properties", {})
        others = [other for other in given if other not in known] if isinstance(given, Mapping) else []
        near = nearest(name, others[:_MOST_COMPARED])
        return f"{_REQUIRED}; is {quoted(near)} meant for it?" if near else _REQUIRED

    def _message(self, error: ValidationError, value: Any) -> str:
        stated = part_at(self._document, error.schema_path)
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
