"""A Python signature as a JSON Schema, and JSON arguments as Python values.

Invariant: making a schema never fails; a type that JSON cannot carry (DataFrame, ndarray, a class of the person's
own, a name that cannot be resolved) becomes ``{"x-reference": true}`` and takes the object itself, by reference.
Objects pass through by identity: they are neither copied nor serialised.
"""

from __future__ import annotations

import inspect
import sys
import typing
import warnings
from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from types import SimpleNamespace
from typing import Any

from reyn_jupyter.catalog.arguments.references import HOW_TO_REFER
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.encoding import clip_line

_LONGEST_NOTE = 500  # bytes of what is said about one parameter


class Parameters:
    """The parameters of one function.

    Args:
        function: any callable with a signature that has neither ``*args`` nor ``**kwargs``.
        signature: its signature.
        notes: what its docstring says about each parameter.

    Example:
        >>> def half(number: float) -> float: ...
        >>> Parameters(half, inspect.signature(half), {}).schema["properties"]
        {'number': {'type': 'number'}}
    """

    def __init__(
        self, function: Callable[..., Any], signature: inspect.Signature, notes: Mapping[str, str]
    ) -> None:
        self._function = function
        self._parameters = tuple(signature.parameters.values())
        self._notes = notes

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, made on first use."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            schema: dict[str, Any] = self._model.model_json_schema(
                by_alias=True, schema_generator=_generator()
            )
        schema.pop("title", None)
        schema = _references_in_place(schema)
        properties = schema.setdefault("properties", {})
        for name, part in properties.items():
            properties[name] = _with_references(part)
        for name, note in self._notes.items():
            if name in properties:
                known = properties[name].get("description", "")
                properties[name]["description"] = clip_line(f"{note} {known}".strip(), _LONGEST_NOTE)
        return schema

    def bind(self, args: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Validate and convert arguments; return the positional and keyword ones. Defaults are left to the function.

        Raises:
            ActionError: what does not fit, argument by argument.
        """
        from pydantic import ValidationError

        given = {name: self._framed(name, value) for name, value in args.items()}
        try:
            model = self._model.model_validate(given)
        except ValidationError as error:
            raise ActionError("; ".join(_faults(error)), "Call again with arguments that fit.") from None
        values = {
            parameter.name: getattr(model, f"p{position}")
            for position, parameter in enumerate(self._parameters)
            if f"p{position}" in model.model_fields_set
        }
        positional = [
            values.pop(parameter.name, parameter.default)
            for parameter in self._parameters
            if parameter.kind is parameter.POSITIONAL_ONLY
        ]
        return positional, values

    @cached_property
    def _annotations(self) -> dict[str, Any]:
        scope = getattr(_underlying(self._function), "__globals__", {})
        return {parameter.name: _annotation(parameter, scope) for parameter in self._parameters}

    @cached_property
    def _model(self) -> Any:
        """A pydantic model with the fields p0, p1, …, each under its parameter's name as alias."""
        fields: dict[str, Any] = {}
        for position, parameter in enumerate(self._parameters):
            fields[f"p{position}"] = _usable_field(self._annotations[parameter.name], parameter)
        return _make_model(fields)

    def _framed(self, name: str, value: Any) -> Any:
        """Return records of a blob as a DataFrame where the parameter wants one, else the value itself."""
        pandas = sys.modules.get("pandas")
        if pandas is None or type(value) is not list:
            return value
        wanted = self._annotations.get(name)
        return pandas.DataFrame(value) if pandas.DataFrame in (wanted, *typing.get_args(wanted)) else value


def _annotation(parameter: inspect.Parameter, scope: dict[str, Any]) -> Any:
    if parameter.annotation is parameter.empty:
        return Any
    holder = SimpleNamespace(__annotations__={"it": parameter.annotation})
    try:
        resolved = typing.get_type_hints(holder, globalns=scope, localns={}, include_extras=True)["it"]
        return typing.Optional[resolved] if parameter.default is None else resolved  # noqa: UP045
    except Exception:  # noqa: BLE001 - an annotation may be anything at all
        return _by_reference(
            clip_line(str(parameter.annotation), 80) if type(parameter.annotation) is str else "object"
        )


def _usable_field(annotation: Any, parameter: inspect.Parameter) -> Any:
    """Return the field of a parameter; a type that pydantic cannot use is replaced by a reference to any object."""
    from pydantic import Field

    required = parameter.default is parameter.empty
    default = (
        Field(alias=parameter.name) if required else Field(default=parameter.default, alias=parameter.name)
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _make_model({"p0": (annotation, default)}).model_json_schema(schema_generator=_generator())
    except Exception:  # noqa: BLE001 - types and their hooks are the person's code
        return (_by_reference(_type_text(annotation)), default)
    return (annotation, default)


def _make_model(fields: dict[str, Any]) -> Any:
    from pydantic import ConfigDict, create_model

    config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())
    return create_model("Arguments", __config__=config, **fields)


def _by_reference(what: str) -> Any:
    from pydantic import WithJsonSchema

    return typing.Annotated[Any, WithJsonSchema(_reference_schema(what))]


def _reference_schema(what: str) -> dict[str, Any]:
    return {"x-reference": True, "description": f"A reference to a {what}: {HOW_TO_REFER}."}


def _references_in_place(schema: dict[str, Any]) -> dict[str, Any]:
    """Put the definitions of references in their places; pydantic defines a type alias apart, in ``$defs``.

    From Python 3.12 on numpy's ``NDArray`` is such an alias.
    """
    defined = schema.get("$defs", {})
    known = {f"#/$defs/{name}": each for name, each in defined.items() if each.get("x-reference") is True}
    if not known:
        return schema

    def placed(part: Any) -> Any:
        if isinstance(part, list):
            return [placed(each) for each in part]
        if not isinstance(part, dict):
            return part
        target = known.get(part["$ref"]) if isinstance(part.get("$ref"), str) else None
        if target is not None:
            return {**target, **{key: value for key, value in part.items() if key != "$ref"}}
        return {key: placed(value) for key, value in part.items()}

    made: dict[str, Any] = placed({key: value for key, value in schema.items() if key != "$defs"})
    left = {name: placed(each) for name, each in defined.items() if f"#/$defs/{name}" not in known}
    return {**made, "$defs": left} if left else made


_EXACT_TEXTS = frozenset({"enum", "const", "format", "pattern"})
_REFERENCES: Mapping[str, tuple[str, ...]] = {
    "string": ("string",),
    "array": ("array",),
    "object": ("object",),
}


def _with_references(part: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter with the word that its data may come by reference, where they may be large."""
    if "x-reference" in part:
        return part
    options = part.get("anyOf")
    if isinstance(options, list):
        return {**part, "anyOf": [_with_references(each) for each in options]}
    if "$ref" in part:
        return {**part, "x-reference": ["object", "python"]}
    kind = part.get("type")
    if kind is None and not part.keys() & _EXACT_TEXTS:
        return {**part, "x-reference": ["any"]}
    kinds = () if part.keys() & _EXACT_TEXTS else _REFERENCES.get(str(kind), ())
    return {**part, "x-reference": list(kinds)} if kinds else part


def _type_text(annotation: Any) -> str:
    origin = typing.get_origin(annotation) or annotation
    return clip_line(origin.__name__, 80) if isinstance(origin, type) else "object"


@cache
def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class References(GenerateJsonSchema):
        """Takes by reference, at any depth, whatever has no JSON form (``list[DataFrame]``, ``float | Series``)."""

        def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
            return _reference_schema(_type_text(schema.get("cls")))

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return References


def _underlying(function: Any) -> Any:
    while True:
        if isinstance(function, partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif not hasattr(function, "__globals__") and inspect.isfunction(type(function).__call__):
            function = type(function).__call__
        else:
            return function


def _faults(error: Any) -> list[str]:
    return [
        f"{'.'.join(str(step) for step in fault['loc']) or 'arguments'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_context=False, include_input=False)[:10]
    ]
