"""The keys of the configuration, by their dotted names, derived from the models.

Invariant: a leaf is the unit in which layers override each other. A model, an embedding class and a peer are
leaves: they are replaced whole, so no layer can put an address or a header under another layer's model.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from reyn_jupyter.config.config_error import ConfigError
from reyn_jupyter.config.settings import EmbeddingClass, ModelEntry, Peer, Settings
from reyn_jupyter.support import text

_LEAVES = (ModelEntry, EmbeddingClass)
CLASSES = "embedding.classes"
PEERS = "peers"
_NAMED = (CLASSES, PEERS)  # sections whose leaves people name
_PEER = f"{PEERS}.<name>"
_ALIKE = 0.75  # dotted names share long parts


@dataclass(frozen=True)
class KeyInfo:
    """One key: its dotted name, what values it takes, the default as text, and what it is for."""

    key: str
    type: str
    default: Any
    description: str


@cache
def all_keys() -> tuple[KeyInfo, ...]:
    """Return every key that can be set, in the order of the settings, for the manual and completion.

    >>> [info.type for info in all_keys() if info.key == "router.surface"]
    ['universal | flat | auto']
    """
    return tuple(_walk(Settings, "", Settings()))


def leaves(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the dotted leaves of nested values; a value that fits no section is a leaf, to be refused."""
    yield from _leaves(values, Settings, "")


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nested values of dotted leaves, the inverse of `leaves`."""
    root: dict[str, Any] = {}
    for key, value in flat.items():
        *sections, last = split(key)
        place = root
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = value
    return root


def split(key: str) -> list[str]:
    """Return the parts of a dotted key; names of embedding classes, headers and parameters may hold dots."""
    if key.startswith(f"{CLASSES}."):
        name = key.removeprefix(f"{CLASSES}.")
        bare = name.removesuffix(".model")
        return [*CLASSES.split("."), bare, "model"] if bare != name else [*CLASSES.split("."), name]
    return key.split(".", 3) if key.startswith("models.") else key.split(".")


def check_key(key: str) -> str:
    """Return the key when it can be set. Raises ConfigError, with the nearest key, when it cannot."""
    parts = split(key)
    if is_leaf(key) and parts[-1]:
        return key
    if parts[0] == PEERS and len(parts) > 2 and f"{_PEER}.{'.'.join(parts[2:])}" in _peer_keys():
        return key
    inner = ModelEntry.model_fields
    mapping = len(parts) == 4 and parts[2] in ("headers", "parameters") and parts[3]
    if (
        ".".join(parts[:2]) in _leaf_names()
        and len(parts) > 2
        and parts[2] in inner
        and (len(parts) == 3 or mapping)
    ):
        return key
    raise unknown(key)


def is_leaf(key: str) -> bool:
    """Return whether layers override each other at this key."""
    if key.startswith(f"{PEERS}."):
        return len(split(key)) == 2
    return key in _leaf_names() or (key.startswith(f"{CLASSES}.") and key != f"{CLASSES}.")


def look_up(settings: Settings, key: str) -> Any:
    """Return the value at a known dotted key; None where there is none."""
    found: Any = settings
    for part in split(key):
        found = found.get(part) if isinstance(found, Mapping) else getattr(found, part, None)
    return found


def unknown(key: str, source: str = "", line: int | None = None) -> ConfigError:
    """Return the error for an unknown key, with a hint at the keys that there are."""
    if key in sections():
        inside = ", ".join(info.key for info in all_keys() if info.key.startswith(f"{key}."))
        return ConfigError(f"needs keys of its own: {inside}", source=source, line=line, key=key)
    close, section = nearest(key), key.rpartition(".")[0]
    if key.startswith(f"{PEERS}."):
        names = [name.removeprefix(f"{_PEER}.") for name in sorted(_peer_keys())]
        hint = f"{PEERS} holds a mapping for each peer, by a name without dots: {', '.join(names)}"
    elif close:
        hint = f"did you mean {close!r}?"
    elif section in sections():
        below = f"{section}."
        names = [each.key.removeprefix(below) for each in all_keys() if each.key.startswith(below)]
        hint = f"{section} holds {', '.join(dict.fromkeys(each.partition('.')[0] for each in names))}"
    else:
        hint = f"the sections and keys are {', '.join(Settings.model_fields)}"
    return ConfigError(f"unknown key; {hint}", source=source, line=line, key=key)


@cache
def _leaf_names() -> frozenset[str]:
    named = tuple(f"{section}." for section in _NAMED)
    return frozenset(info.key for info in all_keys() if not info.key.startswith(named))


@cache
def _peer_keys() -> frozenset[str]:
    """Return the keys of a peer and of its sections, under the placeholder for its name."""
    keys = [info.key for info in all_keys() if info.key.startswith(f"{_PEER}.")]
    return frozenset((*keys, *(key.rpartition(".")[0] for key in keys if key.count(".") > 2)))


def nearest(key: str) -> str | None:
    """Return the key that was probably meant, or None."""
    names = [info.key for info in all_keys()] + list(sections())
    of_words = [name for name in names if key in name.split("_")]  # model: router_model
    if len(of_words) == 1:
        return of_words[0]
    if close := text.nearest(key, names, cutoff=_ALIKE):
        return close
    last = key.rpartition(".")[2]
    tails = {name.rpartition(".")[2]: name for name in reversed(names)}
    close = text.nearest(last, tails, cutoff=_ALIKE)
    return tails[close] if close else None


@cache
def sections() -> tuple[str, ...]:
    """Return the dotted names of the sections."""
    names: dict[str, None] = {}
    for info in all_keys():
        parts = info.key.split(".")
        names.update((".".join(parts[:end]), None) for end in range(1, len(parts)))
    return tuple(names)


def _walk(model: type[BaseModel], prefix: str, defaults: BaseModel) -> Iterator[KeyInfo]:
    for name, field in model.model_fields.items():
        key, default = f"{prefix}{name}", getattr(defaults, name)
        if key == CLASSES:
            yield KeyInfo(f"{CLASSES}.<name>.model", "text", None, field.description or "")
        elif key == PEERS:
            yield from _walk(Peer, f"{_PEER}.", Peer())
        elif isinstance(default, BaseModel) and not isinstance(default, _LEAVES):
            yield from _walk(type(default), f"{key}.", default)
        else:
            shown = list(default) if isinstance(default, tuple) else default
            yield KeyInfo(key, _type(field.annotation), shown, field.description or "")


def _type(annotation: Any) -> str:
    if annotation is ModelEntry:
        return "model string or mapping"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return " | ".join(str(argument) for argument in arguments)
    if origin in (Union, types.UnionType):
        return " | ".join(_type(argument) for argument in arguments if argument is not type(None))
    if origin is tuple:
        return "list of patterns"
    return {bool: "on | off", int: "whole number", float: "number", str: "text"}.get(annotation, "mapping")


def _leaves(values: Mapping[str, Any], model: type[BaseModel], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        key = f"{prefix}{name}"
        field = model.model_fields.get(name)
        annotation = field.annotation if field else None
        if isinstance(value, Mapping) and key in _NAMED:
            yield from ((f"{key}.{label}", item) for label, item in value.items())
        elif (
            isinstance(value, Mapping) and isinstance(annotation, type) and issubclass(annotation, BaseModel)
        ):
            yield from _leaves(value, annotation, f"{key}.")
        elif value is None and (
            key in _NAMED or (isinstance(annotation, type) and issubclass(annotation, BaseModel))
        ):
            continue  # `router:` with nothing under it
        else:
            yield key, value
