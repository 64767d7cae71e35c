"""Checks the leaves of one source; the message for one that does not fit says what would.

Invariant: a leaf that is returned is valid by itself, as a plain value; one that is not is named once, with
its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from reyn_jupyter.config import key_table
from reyn_jupyter.config.config_error import ConfigError
from reyn_jupyter.config.settings import Settings
from reyn_jupyter.support.validation_messages import reason

Lines = Mapping[tuple[str | int, ...], int]


def valid_leaves(
    leaves: Iterable[tuple[str, Any]], source: str, lines: Lines | None = None
) -> tuple[dict[str, Any], list[ConfigError]]:
    """Return the leaves that fit, by dotted key, and the problems of the others."""
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
    """Return the leaves as valid plain values. Raises ConfigError for the first that does not fit."""
    checked, problems = valid_leaves(leaves.items(), source)
    if problems:
        raise problems[0]
    return checked


def _begins(location: tuple[int | str, ...], key: str) -> bool:
    path = tuple(key_table.split(key))
    return location[: len(path)] == path


def _problem(item: Any, leaf: str, source: str, lines: Lines | None) -> ConfigError:
    location: tuple[int | str, ...] = item["loc"]
    kind: str = item["type"]
    choices = [info.type for info in key_table.all_keys() if info.key == leaf]
    allowed = choices[0].split(" | ") if choices and kind == "literal_error" else ()
    message = reason(item, _inner_names(leaf, location) if kind == "extra_forbidden" else (), allowed)
    key = ".".join(str(part) for part in location) if kind in ("extra_forbidden", "missing") else leaf
    return ConfigError(message, source=source, line=_line(location, lines), key=key)


def _inner_names(leaf: str, location: tuple[int | str, ...]) -> list[str]:
    from reyn_jupyter.config.settings import EmbeddingClass, ModelEntry, Peer, PeerLimits

    if leaf.startswith(f"{key_table.PEERS}."):
        inside = location[2:-1]
        held = ModelEntry if "model" in inside else PeerLimits if "limits" in inside else Peer
        return list(held.model_fields)
    return list((ModelEntry if leaf.startswith("models.") else EmbeddingClass).model_fields)


def _line(path: tuple[int | str, ...], lines: Lines | None) -> int | None:
    """Return the line of the deepest part of the path that has one."""
    if not lines:
        return None
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)


def _plain(value: Any) -> Any:
    return value.model_dump(exclude_defaults=True) if isinstance(value, BaseModel) else value
