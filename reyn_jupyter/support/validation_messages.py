"""The faults that pydantic found in a value, in words for the person who wrote it.

Invariant: a sentence shows what was given, cut to size, and what would fit: the nearest name, the choices, the bound.
It carries no address of a manual.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from reyn_jupyter.support.text import meant_clause, nearest_names, shorten

_LONGEST = 60
_NEEDED = {
    "int_type": "a whole number is needed",
    "int_parsing": "a whole number is needed",
    "int_from_float": "a whole number is needed",
    "float_type": "a number is needed",
    "float_parsing": "a number is needed",
    "finite_number": "a finite number is needed",
    "bool_type": "on or off is needed",
    "bool_parsing": "on or off is needed",
    "string_type": "text is needed",
    "tuple_type": "a list is needed",
    "list_type": "a list is needed",
    "dict_type": "a mapping is needed",
    "mapping_type": "a mapping is needed",
    "model_type": "a mapping is needed",
    "greater_than": "it must be more than {gt}",
    "greater_than_equal": "it must be at least {ge}",
    "less_than": "it must be less than {lt}",
    "less_than_equal": "it must be at most {le}",
    "string_too_short": "text of at least {min_length} characters is needed",
    "string_too_long": "text of at most {max_length} characters is needed",
    "too_short": "at least {min_length} is needed",
    "invalid-json-value": "plain data is needed (text, numbers, lists, mappings)",
}


def quote_value(value: object) -> str:
    """Return a value as it was given, cut to 60 characters."""
    text = repr(value[: _LONGEST + 1] if isinstance(value, str) else value)
    return shorten(text, _LONGEST)


def reason(item: Mapping[str, Any], names: Sequence[str] = (), choices: Sequence[str] = ()) -> str:
    """Return why one value does not fit.

    Args:
        item: one of `ValidationError.errors()`.
        names: the keys that there are, for one that is not known.
        choices: the values that there are; those that pydantic names when empty.

    Example:
        >>> reason({"type": "greater_than_equal", "input": -1, "ctx": {"ge": 0}})
        'it must be at least 0, not -1'
    """
    kind, given, context = item["type"], item.get("input"), item.get("ctx", {})
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        known = meant_clause(item["loc"][-1], names)
        return "unknown key" + (known or (f"; known are {', '.join(names)}" if names else ""))
    if kind == "literal_error":
        allowed = list(choices) or re.findall(r"'([^']*)'", context.get("expected", ""))
        return f"{quote_value(given)} is not one of {', '.join(allowed)}{meant_clause(given, allowed)}"
    if kind in ("value_error", "assertion_error"):
        return str(context.get("error", item["msg"]))
    if kind == "string_too_short" and context.get("min_length") == 1:
        return "it must not be empty"
    if kind in _NEEDED:
        said = f"{_NEEDED[kind].format(**context)}, not {quote_value(given)}"
        return (
            f"{said}; put it into one: [{quote_value(given)}]"
            if kind in ("tuple_type", "list_type") and _single(given)
            else said
        )
    return f"{item['msg'].replace('Input should', 'it should')}, not {quote_value(given)}"


def problems(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Return what is wrong with the fields of a model, ``"place: reason"`` each.

    A missing field is left out where an unknown one looks like a slip of its name: mending that mends both.
    """
    items = error.errors(include_url=False)
    near = {
        (*item["loc"][:-1], name)
        for item in items
        if item["type"] == "extra_forbidden"
        for name in nearest_names(item["loc"][-1], fields_at(model, item["loc"][:-1]), 1)
    }
    found = []
    for item in items:
        place = item["loc"]
        if item["type"] == "missing" and place in near:
            continue
        where = ".".join(map(str, place))
        inner: Sequence[str] = getattr(item.get("ctx", {}).get("error"), "problems", ())
        if inner:  # a value inside was refused as a whole, and said why
            found += [f"{where}.{each}" for each in inner]
            continue
        why = reason(item, fields_at(model, place[:-1]))
        found.append(f"{where}: {why}" if where else why)
    return found


def fields_at(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """Return the fields of the model that stands at a place inside another one; none where there is no single one."""
    here: Any = model
    for step in place:
        here = _inside(here, step)
    models = _models(here)
    return list(models[0].model_fields) if len(models) == 1 else []


def _inside(annotation: Any, step: int | str) -> Any:
    """Return the type at one step of a place: of a field, an entry of a mapping or list, or one of several forms."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(str(step))
        return field.annotation if field is not None else None
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        forms = [each for each in args if _models(each)]
        return next(
            (each for each in forms if getattr(each, "__name__", "") == step), forms[0] if forms else None
        )
    return args[-1] if isinstance(origin, type) and issubclass(origin, Mapping) else args[0] if args else None


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _single(value: object) -> bool:
    return isinstance(value, str | int | float)
