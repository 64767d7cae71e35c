"""What a tool takes: its parameters as they are declared, and the check of values against them.

Invariants: the parameters become one JSON Schema, and what that refuses is refused here, too, each fault in words; a
declaration that contradicts itself (a default out of its bounds, say) is refused when it is made. Source: dynamic tool
generation, API reference (ToolParameterDefinition).
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from reyn_jupyter.catalog.arguments.schema_document import key_at
from reyn_jupyter.catalog.arguments.schema_validation import shown
from reyn_jupyter.catalog.text_normalization import quoted
from reyn_jupyter.dynamic.tool_error import DynamicToolError
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.support.text import meant_clause, nearest
from reyn_jupyter.support.validation_messages import problems

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator
    from jsonschema_rs import ValidationError as SchemaFault

ParameterType = Literal["string", "number", "boolean", "object", "array"]

LONGEST_NAME = 64  # characters
LONGEST_DESCRIPTION = 10_000  # characters
MOST_PARAMETERS = 100
_MOST_FAULTS = 10  # that are told
_MOST_BITS = 1_023  # of a whole number: what a float can come near
_DEEPEST = 100  # levels of a value that a tool is given
_KEYS = ("type", "description", "default", "enum", "minimum", "maximum", "required")
_MEANT_KEYS = {"allowed_values": "enum", "allowedValues": "enum", "min": "minimum", "max": "maximum"}
_MEANT_TYPES = {
    "integer": "number",
    "int": "number",
    "float": "number",
    "str": "string",
    "text": "string",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
}
_DEFINITION_HINT = (
    "Give parameters as an object that maps each name to its definition: "
    '{"precision": {"type": "number", "description": "digits", "default": 2, "minimum": 0, "maximum": 10}}. '
    f"A definition has {', '.join(_KEYS)}; the types are {', '.join(get_args(ParameterType))}."
)
_Bound = Annotated[int, Field(strict=True)] | Annotated[float, Field(strict=True, allow_inf_nan=False)]


class ToolParameter(BaseModel):
    """One parameter of a tool.

    Attributes:
        name, type, description: of the parameter.
        required: whether it must be given; one with a default never must.
        default: what the tool gets where it is not given; not set where there is none. A default of null is one,
            and makes null a value that may be given.
        allowed_values: the values that there are; None for any.
        minimum, maximum: of a number, both included.

    >>> ToolParameter(name="precision", type="number", default=2, minimum=0, maximum=10).schema_part
    {'type': 'number', 'default': 2, 'minimum': 0, 'maximum': 10}
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=LONGEST_NAME)
    type: ParameterType
    description: str = Field(default="", max_length=LONGEST_DESCRIPTION)
    required: bool = False
    default: JsonValue = None
    allowed_values: tuple[JsonValue, ...] | None = None
    minimum: _Bound | None = None
    maximum: _Bound | None = None

    @property
    def has_default(self) -> bool:
        """Return whether there is a default, null among them."""
        return "default" in self.model_fields_set

    @property
    def must_be_given(self) -> bool:
        """Return whether a call without it is refused."""
        return self.required and not self.has_default

    @property
    def schema_part(self) -> dict[str, Any]:
        """Return its JSON Schema."""
        null = self.has_default and self.default is None
        part: dict[str, Any] = {"type": [self.type, "null"] if null else self.type}
        if self.description:
            part["description"] = self.description
        if self.has_default:
            part["default"] = copy.deepcopy(self.default)
        if self.allowed_values is not None:
            part["enum"] = [*copy.deepcopy(self.allowed_values), *([None] if null else [])]
        for bound in ("minimum", "maximum"):
            if getattr(self, bound) is not None:
                part[bound] = getattr(self, bound)
        if self.type == "array":
            part["items"] = {}  # some providers refuse a list of which nothing is said
        return part

    @property
    def summary(self) -> str:
        """Return it in a few words: ``precision (number, 0 to 10, default 2)``."""
        words: list[str] = [self.type]
        if self.must_be_given:
            words.append("required")
        if self.allowed_values is not None:
            words.append(f"one of {_clipped_json(self.allowed_values)}")
        if self.minimum is not None and self.maximum is not None:
            words.append(f"{self.minimum} to {self.maximum}")
        elif self.minimum is not None:
            words.append(f"at least {self.minimum}")
        elif self.maximum is not None:
            words.append(f"at most {self.maximum}")
        if self.has_default:
            words.append(f"default {_clipped_json(self.default)}")
        return f"{self.name} ({', '.join(words)})"

    @model_serializer(mode="wrap")
    def _without_what_is_left_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = handler(self)
        return {
            name: value
            for name, value in values.items()
            if value is not None or (name == "default" and self.has_default)
        }


def read_parameters(given: object) -> tuple[ToolParameter, ...]:
    """Return the parameters that a mapping from names to definitions declares.

    Args:
        given: each definition has ``type``, and may have ``description``, ``default``, ``enum``, ``minimum``,
            ``maximum`` and ``required``.

    Raises:
        DynamicToolError: E106, with all that does not fit.

    >>> [each.summary for each in read_parameters({"text": {"type": "string", "required": True}})]
    ['text (string, required)']
    """
    if not isinstance(given, Mapping):
        raise DynamicToolError(f"parameters must be an object, not {shown(given)}", _DEFINITION_HINT, "E106")
    if isinstance(given.get("properties"), Mapping) and given.get("type") == "object":
        raise DynamicToolError(
            "parameters is a JSON Schema; it must be the definitions themselves", _DEFINITION_HINT, "E106"
        )
    faults: list[str] = []
    if len(given) > MOST_PARAMETERS:
        faults.append(f"{len(given)} parameters are too many; at most {MOST_PARAMETERS} can be declared")
    found: list[ToolParameter] = []
    for name, definition in list(given.items())[:MOST_PARAMETERS]:
        own = list(_definition_faults(name, definition))
        if not own:
            parameter, own = _read_parameter(name, definition)
            if parameter is not None:
                found.append(parameter)
        faults += [f"{quoted(name)}: {fault}" for fault in own]
    if faults:
        raise DynamicToolError(f"the parameters do not fit: {join_faults(faults)}", _DEFINITION_HINT, "E106")
    return tuple(found)


def schema_of(parameters: Sequence[ToolParameter]) -> dict[str, Any]:
    """Return the JSON Schema of parameters, which takes nothing beside them."""
    return {
        "type": "object",
        "properties": {each.name: each.schema_part for each in parameters},
        "required": [each.name for each in parameters if each.must_be_given],
        "additionalProperties": False,
    }


def value_faults(
    parameters: Sequence[ToolParameter] | None, values: dict[str, Any], *, named: bool = True
) -> Iterator[tuple[str, str]]:
    """Yield the code and words of each fault that the schema of parameters finds in plain values."""
    if parameters is None:
        return
    schema = schema_of(parameters)
    for error in _validator(json.dumps(schema)).iter_errors(values):
        yield from _told(error, schema, named)


def join_faults(faults: Iterable[str]) -> str:
    """Return faults as one text, the first ten of them.

    >>> join_faults(["a is required", "'b' is no parameter"])
    "a is required; 'b' is no parameter"
    """
    told = list(islice(faults, _MOST_FAULTS + 1))
    return "; ".join([*told[:_MOST_FAULTS], *(["and more"] if len(told) > _MOST_FAULTS else [])])


def json_faults(value: object, path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield what is no JSON in a value; `path` is where it stands."""
    where = f"{path.lstrip('.')}: " if path else ""
    if depth > _DEEPEST:
        yield f"{where}nested deeper than {_DEEPEST} levels"
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(key, str):
                yield from json_faults(key, path, depth + 1)
                yield from json_faults(inner, f"{path}.{clip_line(key)}", depth + 1)
            else:
                yield f"{where}the key {quoted(key)} is no text"
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from json_faults(inner, f"{path}[{place}]", depth + 1)
    elif fault := _scalar_fault(value):
        yield f"{where}{fault}"


def _scalar_fault(value: object) -> str | None:
    """Return why a value that holds no others is none of JSON, or None."""
    if isinstance(value, str):
        half = not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value)
        return "a text with half a character in it" if half else None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value} is no number of JSON"
    if isinstance(value, int):
        return "a number of more than 308 digits" if value.bit_length() > _MOST_BITS else None
    return None if value is None else f"a {type(value).__name__} is no JSON"


def plain_json(value: Any) -> Any:
    """Return a JSON value in Python's own types, sharing nothing with what was given."""
    if isinstance(value, Mapping):
        return {str(key): plain_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(inner) for inner in value]
    for kind in (bool, str, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value


def _definition_faults(name: object, definition: object) -> Iterator[str]:
    """Yield what is wrong with the form of a definition."""
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        yield f"a parameter's name has 1 to {LONGEST_NAME} printable characters"
    elif name.startswith("$"):
        yield "a parameter's name does not start with $, which marks a reference"
    if not isinstance(definition, Mapping):
        yield f"its definition must be an object, not {shown(definition)}"
        return
    yield from json_faults(definition)
    for key in definition:
        if key not in _KEYS:
            meant = _MEANT_KEYS.get(str(key)) or nearest(key, _KEYS)
            yield f"unknown key {quoted(key)}" + (f"; did you mean {meant!r}?" if meant else "")
    kind = definition.get("type")
    if "type" not in definition:
        yield "type is missing"
    elif kind not in get_args(ParameterType):
        near = _MEANT_TYPES.get(str(kind).casefold())
        offer = f"; write {near!r}" if near else meant_clause(kind, get_args(ParameterType))
        yield f"{quoted(kind)} is no type{offer}"
    yield from _key_faults(definition)


def _key_faults(definition: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the values of single keys."""
    for bound in ("minimum", "maximum"):
        if bound not in definition:
            continue
        value = definition[bound]
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield f"{bound} must be a number, not {shown(value)}"
        elif definition.get("type") != "number":
            yield f"{bound} is for numbers"
    if "enum" in definition and not (isinstance(definition["enum"], list | tuple) and definition["enum"]):
        yield "enum must be an array of the allowed values, with one at least"
    if not isinstance(definition.get("required", False), bool):
        yield f"required must be true or false, not {shown(definition['required'])}"
    if not isinstance(definition.get("description", ""), str):
        yield f"description must be a string, not {shown(definition['description'])}"


def _read_parameter(name: str, definition: Mapping[str, Any]) -> tuple[ToolParameter | None, list[str]]:
    """Return a parameter whose definition has the right form, or what contradicts itself in it."""
    given = {"allowed_values" if key == "enum" else key: plain_json(each) for key, each in definition.items()}
    try:
        parameter = ToolParameter(name=name, **given)
    except ValidationError as error:
        return None, problems(error, ToolParameter)
    faults = []
    low, high = parameter.minimum, parameter.maximum
    if low is not None and high is not None and low > high:
        faults.append(f"minimum {low} is more than maximum {high}")
    bare = parameter.model_copy(update={"allowed_values": None})
    for value in parameter.allowed_values or ():
        faults += [
            f"the allowed value {fault}" for _, fault in value_faults((bare,), {name: value}, named=False)
        ]
    if parameter.has_default:
        faults += [
            f"the default {fault}"
            for _, fault in value_faults((parameter,), {name: parameter.default}, named=False)
        ]
    return parameter, faults


@lru_cache(maxsize=200)
def _validator(schema: str) -> Draft202012Validator:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(json.loads(schema), validate_formats=False, offline=True)


def _told(error: SchemaFault, schema: Mapping[str, Any], named: bool) -> Iterator[tuple[str, str]]:
    known: Mapping[str, Any] = schema["properties"]
    kind = error.kind.as_dict()
    if error.kind.name == "required":
        yield "E105", f"{kind['property']} is required"
        return
    if error.kind.name == "additionalProperties":
        for unknown in kind["unexpected"][: _MOST_FAULTS + 1]:
            yield "E106", f"{quoted(unknown)} is no parameter{meant_clause(unknown, known)}"
        return
    name = key_at(known, error.instance_path[0])
    part = known[name]
    must = {
        "type": lambda: f"a {' or '.join([part['type']] if isinstance(part['type'], str) else part['type'])}",
        "enum": lambda: f"one of {_clipped_json(part['enum'])}",
        "minimum": lambda: f"at least {part['minimum']}",
        "maximum": lambda: f"at most {part['maximum']}",
    }[error.kind.name]()
    words = must.replace("a array", "an array").replace("a object", "an object")
    yield "E106", f"{f'{name} ' if named else ''}must be {words}, not {shown(error.instance)}"


def _clipped_json(value: object) -> str:
    return clip_line(json.dumps(value, ensure_ascii=False))
