"""Checks the leaves of one source, and says of each that does not fit what would.

Invariant: a leaf that is returned is valid by itself, as a plain value; one that is not is named once, with
its line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from reyn_jupyter.config import key_table
from reyn_jupyter.config.errors import ConfigError
from reyn_jupyter.config.settings import Settings

Lines = Mapping[tuple[str | int, ...], int]
_ADVICE = {
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
    "dict_type": "a mapping is needed",
    "model_type": "a mapping is needed",
    "missing": "is missing",
}


def valid_leaves(
    leaves: Iterable[tuple[str, Any]], source: str, lines: Lines | None = None
) -> tuple[dict[str, Any], list[ConfigError]]:
    """The leaves that fit, by dotted key, and what is wrong with the others."""
    problems: list[ConfigError] = []
    flat: dict[str, Any] = {}
    for key, value in leaves:
        if key in flat:
            line = _line((key,), lines)
            problems.append(ConfigError("is given twice; keep one", source=source, line=line, key=key))
        elif key_table.is_leaf(key):
            flat[key] = value
        else:
            problems.append(key_table.unknown(key, source, _line(tuple(key.split(".")), lines)))
    while True:
        try:
            settings = Settings.model_validate(key_table.nested(flat))
            break
        except ValidationError as error:
            wrong: dict[str, ConfigError] = {}
            for item in error.errors(include_url=False):
                leaf = next(key for key in flat if _begins(item["loc"], key))
                wrong.setdefault(leaf, _problem(item, leaf, source, lines))
            problems += wrong.values()
            flat = {key: value for key, value in flat.items() if key not in wrong}
    return {key: _plain(key_table.look_up(settings, key)) for key in flat}, problems


def validated(leaves: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The leaves as valid plain values. Raises ConfigError for the first that does not fit."""
    checked, problems = valid_leaves(leaves.items(), source)
    if problems:
        raise problems[0]
    return checked


def _begins(location: tuple[int | str, ...], key: str) -> bool:
    path = tuple(key_table.split(key))
    return location[: len(path)] == path


def _problem(item: Any, leaf: str, source: str, lines: Lines | None) -> ConfigError:
    location: tuple[int | str, ...] = item["loc"]
    given = item.get("input")
    shown = repr(given) if len(repr(given)) <= 60 else f"{repr(given)[:59]}…"
    kind, context = item["type"], item.get("ctx", {})
    if kind == "extra_forbidden":
        inner = str(location[-1])
        names = _inner_names(leaf)
        close = difflib.get_close_matches(inner, names, 1, 0.5)
        message = (
            f"unknown key; {f'did you mean {close[0]!r}?' if close else 'known are ' + ', '.join(names)}"
        )
    elif kind == "literal_error":
        choices = [info.type for info in key_table.all_keys() if info.key == leaf] or [
            context.get("expected", "")
        ]
        names = choices[0].split(" | ")
        close = difflib.get_close_matches(str(given), names, 1, 0.5)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        message = f"{shown} is not one of {', '.join(names)}{hint}"
    elif kind == "value_error":
        message = str(context.get("error", item["msg"]))
    elif kind in _ADVICE:
        message = f"{_ADVICE[kind]}, not {shown}" if kind != "missing" else _ADVICE[kind]
    else:
        message = f"{item['msg'].replace('Input should', 'it should')}, not {shown}"
    key = ".".join(str(part) for part in location) if kind in ("extra_forbidden", "missing") else leaf
    return ConfigError(message, source=source, line=_line(location, lines), key=key)


def _inner_names(leaf: str) -> list[str]:
    from reyn_jupyter.config.settings import EmbeddingClass, ModelEntry

    return list((ModelEntry if leaf.startswith("models.") else EmbeddingClass).model_fields)


def _line(path: tuple[int | str, ...], lines: Lines | None) -> int | None:
    """The line of the deepest part of the path that has one."""
    if not lines:
        return None
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)


def _plain(value: Any) -> Any:
    return value.model_dump(exclude_defaults=True) if isinstance(value, BaseModel) else value
