"""Settings into a `reyn.yaml` that a person wrote: comments and whatever else stands in it stay.

Invariants: the file is there whole, before or after; one that the session could not read is refused and left alone; a
file that the person trusted stays trusted, and one that was not gains nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from reyn_jupyter.support.files.replacement import replacement
from reyn_jupyter.support.user_errors import UserError


class RecommendationError(UserError, ValueError):
    """Nothing can be recommended, or what is recommended may not be written; says why and what to do."""


def as_yaml(settings: Mapping[str, Any]) -> str:
    """Dotted keys as the lines of a configuration file. Raises RecommendationError without the library for YAML.

    Example:
        >>> print(as_yaml({"router.mandate": "explicit", "router.discovery": "gate"}), end="")
        router:
          mandate: explicit
          discovery: gate
    """
    return _dump(_nest(settings))


def write_settings(path: Path, settings: Mapping[str, Any]) -> Path:
    """Set keys in a configuration file, or make one.

    Args:
        path: of the file; its folder must be there.
        settings: dotted key → value.

    Returns:
        The path.

    Raises:
        ConfigError: the file that is there cannot be read.
        RecommendationError: a section of it is no mapping, or it cannot be written.
    """
    from reyn_jupyter.config.yaml_document import read_bytes

    before = read_bytes(path, path.name) or b""
    after = _edit(before, _nest(settings), path.name)
    try:
        with replacement(path) as part:
            part.write_bytes(after)
            if path.exists():
                part.chmod(path.stat().st_mode & 0o777)
    except OSError as error:
        raise RecommendationError(
            f"{path} cannot be written ({error.strerror}); name another file: .write(path)"
        ) from error
    _retrust(path, before, after)
    return path


def _nest(settings: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        found.setdefault(section, {})[name] = value
    return found


def _dump(data: Any) -> str:
    out = StringIO()
    _yaml().dump(data, out)
    return out.getvalue()


def _edit(before: bytes, changes: Mapping[str, Mapping[str, Any]], name: str) -> bytes:
    """Return the file with these keys set; what else stands in it, comments too, stays."""
    from reyn_jupyter.config.yaml_document import parse

    parse(before, name)  # what the session could not read is refused here too, with the line
    text = before.decode("utf-8-sig")
    crlf = "\r\n" in text
    lines = text.replace("\r\n", "\n")
    data = _yaml().load(lines) if lines.strip() else None
    if data is None:  # nothing, or comments alone
        written = f"{lines.rstrip()}\n{_dump(changes)}".lstrip("\n")
    else:
        for section, values in changes.items():
            _set(data, section, values, name)
        written = _dump(data)
    return (written.replace("\n", "\r\n") if crlf else written).encode("utf-8")


def _set(data: Any, section: str, values: Mapping[str, Any], name: str) -> None:
    held = data.get(section)
    if held is None:
        data[section] = dict(values)
        return
    if not isinstance(held, dict):
        raise RecommendationError(f"{section} in {name} is no mapping; mend it first")
    if any(
        each is held for key, each in data.items() if key != section
    ):  # an alias: the others keep what they say
        held = data[section] = dict(held)
    for key, value in values.items():
        held[key] = value


def _yaml() -> Any:
    try:
        from ruamel.yaml import YAML
    except ImportError:
        raise RecommendationError("Writing YAML needs the extra: pip install 'reyn-jupyter[eval]'") from None
    yaml = YAML()
    yaml.width = 4096
    yaml.preserve_quotes = True
    return yaml


def _retrust(path: Path, before: bytes, after: bytes) -> None:
    """Keep the trust of a file that was trusted before the person's own change of it."""
    from reyn_jupyter.config import PROJECT_FILE
    from reyn_jupyter.guard.state_folder import StateFolder
    from reyn_jupyter.guard.trust import Trust

    if path.name == PROJECT_FILE:
        Trust(StateFolder(path.resolve().parent)).retrust(before, after)
