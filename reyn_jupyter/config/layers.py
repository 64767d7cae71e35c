"""Reads the layers: the user's file, reyn.yaml, the person's own argument, the changes of the session.

Invariant: what cannot be read never widens anything. A broken file is reported, and of what is left of it
only that counts which narrows. The bytes whose trust is asked about are the bytes that are used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reyn_jupyter.config import key_table
from reyn_jupyter.config.config_error import ConfigError
from reyn_jupyter.config.effective import Effective, Layer, Origin, merged
from reyn_jupyter.config.key_checks import valid_leaves, validated
from reyn_jupyter.config.trust_limits import HeldBack, held_back
from reyn_jupyter.config.yaml_document import parse, read_bytes

if TYPE_CHECKING:
    from reyn_jupyter.config.settings import Settings

Trusted = bool | Callable[[bytes], bool]
PROJECT_FILE = "reyn.yaml"


def load(
    root: str | Path,
    *,
    override: Mapping[str, Any] | str | Path | None = None,
    trusted: Trusted = False,
    session: Mapping[str, Any] | None = None,
    user_file: Path | None = None,
) -> Effective:
    """Read and merge every layer.

    Args:
        root: the workspace; its ``reyn.yaml`` is the project's layer.
        override: the person's own layer: nested values, or the path of a file.
        trusted: whether reyn.yaml is trusted: an answer, or a function of its bytes (so that what is judged
        is
            what is used). An untrusted file may only narrow; the rest is in `held_back`.
        session: leaves by dotted key, laid on top (`Effective.session` of an earlier load).
        user_file: in place of the user's file.

    Raises:
        ConfigError: `override` cannot be read or does not fit. Files found in their places never raise: see
            `Effective.problems`.
    """
    problems: list[str] = []
    held: list[HeldBack] = []
    layers = [_file_layer(user_file or user_path(), "user file", [], True, problems, held)[0]]
    project, content = _file_layer(Path(root) / PROJECT_FILE, "reyn.yaml", layers, trusted, problems, held)
    layers.append(project)
    if override is not None:
        layers.append(Layer("argument", _argument(override)))
    if session:
        layers.append(Layer("session", validated(session, "")))
    return merged(layers, tuple(held), tuple(problems), content)


def from_mapping(*given: Mapping[str, Any]) -> Effective:
    """Make settings of nested values alone, later ones over earlier ones; no file is read.

    Raises:
        ConfigError: a key that there is not, or a value that does not fit.
    """
    return merged([Layer("argument", _argument(values)) for values in given])


def user_path() -> Path:
    """Return the path of the user's own file; the environment variable REYN_CONFIG_DIR names another folder."""
    import platformdirs

    return (
        Path(os.environ.get("REYN_CONFIG_DIR") or platformdirs.user_config_dir("reyn-jupyter"))
        / "config.yaml"
    )


def _argument(override: Mapping[str, Any] | str | Path) -> Mapping[str, Any]:
    if isinstance(override, Mapping):
        return _first_refused(valid_leaves(key_table.leaves(override), "config"))
    path = Path(override)
    content = read_bytes(path, str(path))
    if content is None:
        raise ConfigError("does not exist", source=str(path))
    return _first_refused(_understood(content, str(path)))


def _understood(content: bytes, source: str) -> tuple[dict[str, Any], list[ConfigError]]:
    document = parse(content, source)
    return valid_leaves(key_table.leaves(document.values), source, document.lines)


def _first_refused(checked: tuple[dict[str, Any], list[ConfigError]]) -> dict[str, Any]:
    leaves, problems = checked
    if problems:
        raise problems[0]
    return leaves


def _file_layer(
    path: Path,
    origin: Origin,
    below: Sequence[Layer],
    trusted: Trusted,
    problems: list[str],
    held: list[HeldBack],
) -> tuple[Layer, bytes | None]:
    source = PROJECT_FILE if origin == "reyn.yaml" else str(path)
    content = None
    try:
        content = read_bytes(path, source)
        if content is None:
            return Layer(origin, {}), None
        leaves, broken = _understood(content, source)
    except ConfigError as error:
        problems.append(str(error))
        return Layer(origin, {}), content
    problems += map(str, broken)
    believed = trusted(content) if callable(trusted) else trusted
    if broken or not believed:
        leaves, refused = _narrowed(
            leaves, merged(below).settings, "the file has errors" if broken and believed else ""
        )
        held += refused
    return Layer(origin, leaves), content


def _narrowed(
    leaves: Mapping[str, Any], below: Settings, reason: str
) -> tuple[dict[str, Any], list[HeldBack]]:
    kept: dict[str, Any] = {}
    refused: list[HeldBack] = []
    for key, value in leaves.items():
        why = held_back(key, value, key_table.look_up(below, key))
        if why is None:
            kept[key] = value
        else:
            refused.append(HeldBack(key, value, reason or why))
    return kept, refused
