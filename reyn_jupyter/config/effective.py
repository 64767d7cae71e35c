"""The settings in force, with the layers that they were made of.

Invariant: an `Effective` holds valid settings, and changing a key gives a new one. Permission rules add up
over the layers, so no layer can take back another's deny; every other key is the topmost layer's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from reyn_jupyter.config import key_table
from reyn_jupyter.config.config_error import ConfigError
from reyn_jupyter.config.key_checks import validated
from reyn_jupyter.config.settings import Peer, Settings
from reyn_jupyter.config.yaml_document import parse_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from reyn_jupyter.config.trust_limits import HeldBack

Origin = Literal["default", "user file", "reyn.yaml", "argument", "session"]
_ADDING_UP = (
    *("permissions.allow", "permissions.ask", "permissions.deny"),
    "permissions.untrusted_files",
)


@dataclass(frozen=True)
class Layer:
    """The valid leaves of one source."""

    origin: Origin
    leaves: Mapping[str, Any]


@dataclass(frozen=True)
class Effective:
    """The settings in force, and how they came about.

    Attributes:
        settings: the valid, merged settings.
        origins: where each dotted key's value comes from.
        held_back: what an untrusted reyn.yaml asks for and does not get.
        problems: files that could not be read or understood, in words.
        project: the bytes of reyn.yaml as they were read, None when there is none or it cannot be read.
    """

    settings: Settings
    origins: Mapping[str, Origin]
    held_back: tuple[HeldBack, ...] = ()
    problems: tuple[str, ...] = ()
    project: bytes | None = None
    layers: tuple[Layer, ...] = field(default=(), repr=False)

    @property
    def session(self) -> Mapping[str, Any]:
        """The values changed for this session, by dotted key; hand them to `load` to keep them over a reload."""
        return next((layer.leaves for layer in self.layers if layer.origin == "session"), {})

    def value(self, key: str) -> Any:
        """Return the value of a dotted key. Raises ConfigError for an unknown one."""
        return key_table.look_up(self.settings, key_table.check_key(key))

    def with_value(self, key: str, value: Any) -> Effective:
        """Return these settings with one key changed for the session.

        Args:
            key: a dotted key, e.g. ``router.limits.max_steps``.
            value: a value, or text as a person types it (YAML, so JSON too).

        Raises:
            ConfigError: an unknown key, or a value that does not fit.
        """
        leaf, change = self._leaf_change(key_table.check_key(key))
        values = [value]
        if isinstance(value, str):
            read = parse_scalar(value)
            # What reads as a number or a list may still be meant as text, as a model named 4o is.
            values = [read] if read == value and isinstance(read, str) else [read, value]
        error: ConfigError | None = None
        for candidate in values:
            try:
                checked = validated({leaf: change(candidate)}, "")
            except ConfigError as refused:
                error = error or refused
                continue
            layers = [layer for layer in self.layers if layer.origin != "session"]
            session = Layer("session", {**self.session, **checked})
            return merged((*layers, session), self.held_back, self.problems, self.project)
        assert error is not None
        raise error

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a key: {key, value, origin, default, description}; header values read "set"."""
        rows: list[dict[str, Any]] = []
        for info in key_table.all_keys():
            keys = [info.key]
            if info.key.startswith(f"{key_table.CLASSES}."):
                keys = [f"{key_table.CLASSES}.{name}" for name in self.settings.embedding.classes]
            elif info.key.startswith(f"{key_table.PEERS}."):
                continue
            rows += (
                {
                    "key": key,
                    "value": _shown(self.value(key)),
                    "origin": self.origins.get(key, "default"),
                    "default": info.default,
                    "description": info.description,
                }
                for key in keys
            )
        rows += (
            {
                "key": (key := f"{key_table.PEERS}.{name}"),
                "value": _shown(peer),
                "origin": self.origins.get(key, "default"),
                "default": None,
                "description": peer.description,
            }
            for name, peer in self.settings.peers.items()
        )
        return rows

    def values(self) -> list[tuple[str, Any]]:
        """Return every key with its value, as in `rows`."""
        return [(row["key"], row["value"]) for row in self.rows()]

    def _leaf_change(self, key: str) -> tuple[str, Callable[[Any], Any]]:
        """Return the leaf that a key lies in, and a function from the key's new value to the leaf's."""
        parts = key_table.split(key)
        leaf, inner = key, ""
        if parts[0] in ("models", key_table.PEERS) and len(parts) > 2:
            leaf, inner = ".".join(parts[:2]), ".".join(parts[2:])
        elif key.startswith(f"{key_table.CLASSES}.") and parts[-1].endswith(".model"):
            leaf, inner = key.removesuffix(".model"), "model"
        if not inner:
            return leaf, lambda value: value
        current = self.value(leaf)
        before = current.model_dump(exclude_defaults=True) if current is not None else {}

        def change(value: Any) -> Any:
            section, _, name = inner.partition(".")
            return {**before, section: {**before.get(section, {}), name: value} if name else value}

        return leaf, change


def merged(
    layers: Sequence[Layer],
    held: tuple[HeldBack, ...] = (),
    problems: tuple[str, ...] = (),
    project: bytes | None = None,
) -> Effective:
    flat: dict[str, Any] = dict(key_table.leaves(Settings().model_dump()))
    origins: dict[str, Origin] = dict.fromkeys(flat, "default")
    for layer in layers:
        for key, value in layer.leaves.items():
            if key in _ADDING_UP:
                value = tuple(dict.fromkeys((*flat[key], *value)))
            flat[key] = value
            origins[key] = layer.origin
    return Effective(
        Settings.model_validate(key_table.nested(flat)), origins, held, problems, project, tuple(layers)
    )


def _shown(value: Any) -> Any:
    """Return a value as plain data, without what a header may carry."""
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, BaseModel):
        return value
    entry = value.model_dump(exclude_defaults=True)
    if isinstance(value, Peer):
        return entry if value.model is None else {**entry, "model": _shown(value.model)}
    if "headers" in entry:
        entry["headers"] = dict.fromkeys(entry["headers"], "set")
    return entry["model"] if set(entry) == {"model"} else entry
