"""Reads a configuration file into plain JSON values, each with its line.

Invariant: a file costs a bounded amount of time and memory whatever is in it, and it is either understood
whole or refused with the line. Only what JSON can say comes out: no dates, no sets, no tags, no NaN. The
very bytes that were read are kept, so that trust is asked about what is used.
"""

from __future__ import annotations

import math
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reyn_jupyter.config.config_error import ConfigError
from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC, NO_FOLLOW, NO_WAIT

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 1 << 20  # bytes
MOST_NODES = 20_000
DEEPEST = 24
LARGEST_INTEGER = (1 << 63) - 1
Keys = tuple[str | int, ...]


@dataclass(frozen=True)
class SettingsDocument:
    """A file that was understood: its values, and the line of every key."""

    source: str
    content: bytes
    values: dict[str, Any]
    lines: dict[Keys, int] = field(default_factory=dict)


def read_bytes(path: Path, source: str) -> bytes | None:
    """Read the bytes of a regular file of at most 1 MiB; None when there is none. Links are not followed.

    Raises:
        ConfigError: a link, a folder, a device, too large, or not readable.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if path.is_symlink():
            raise ConfigError(
                "is a link, and links are not followed; put the file itself there", source=source
            ) from None
        raise ConfigError(f"cannot be read: {error.strerror}", source=source) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ConfigError("is no regular file", source=source)
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ConfigError(
            f"is larger than {LARGEST >> 20} MiB; a configuration is a page of text", source=source
        )
    return content


def parse(content: bytes, source: str) -> SettingsDocument:
    """Understand a configuration file. An empty one has no values.

    Raises:
        ConfigError: not UTF-8, not YAML, not a mapping, a duplicate key, or more than a configuration can be.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError("is not UTF-8 text; save it as UTF-8", source=source, line=line) from None
    root = _compose(text, source)
    if root is None:
        return SettingsDocument(source, content, {})
    builder = _ValueBuilder(source)
    values = builder.build(root, ())
    if values is None:
        return SettingsDocument(source, content, {})
    if not isinstance(values, dict):
        raise ConfigError(
            f"holds {_kind(values)} where key: value lines are needed, for example  router_model: standard",
            source=source,
            line=root.start_mark.line + 1,
        )
    return SettingsDocument(source, content, values, builder.lines)


def parse_scalar(text: str) -> Any:
    """Read one value as a person types it: YAML, which covers JSON; text that is neither stays text.

    >>> parse_scalar("12"), parse_scalar("[a, b]"), parse_scalar("openai/gpt-4o-mini"), parse_scalar("* no")
    (12, ['a', 'b'], 'openai/gpt-4o-mini', '* no')
    """
    try:
        root = _compose(text, "the value")
        return None if root is None else _ValueBuilder("the value").build(root, ())
    except ConfigError:
        return text


def _compose(text: str, source: str) -> Any:
    import yaml

    if yaml.__with_libyaml__:
        # Ten times as fast; what it refuses is refused by the other one, in the words that people get everywhere.
        with suppress(yaml.YAMLError, UnicodeError):
            return _composed(text, source, yaml.CSafeLoader)
    try:
        return _composed(text, source, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        raise ConfigError(_plainly(error.problem or "cannot be read"), source=source, line=line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError("holds a character that YAML does not allow", source=source, line=line) from None


def _composed(text: str, source: str, loader: Any) -> Any:
    """Return the tree of a text. Raises ConfigError for one that is too large, and what the library raises."""
    import yaml

    # First the flat stream of events, which costs no stack; only a modest file is composed into a tree.
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=loader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST or count > MOST_NODES:
            line = event.start_mark.line + 1 if event.start_mark else None
            raise ConfigError("is nested too deeply or has too many entries", source=source, line=line)
    return yaml.compose(text, Loader=loader)


def _plainly(problem: str) -> str:
    if "'\\t'" in problem:
        return "a tab is used to indent; YAML wants spaces"
    if "another document" in problem:
        return "there is more than one document; keep one, without a second '---'"
    return f"is not valid YAML: {problem}"


class _ValueBuilder:
    """Builds values from nodes; one reached again by an alias counts again, so a bomb runs out of budget."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines: dict[Keys, int] = {}
        self.left = MOST_NODES

    def build(self, node: Any, path: Keys) -> Any:
        import yaml

        self.left -= 1
        if self.left < 0 or len(path) > DEEPEST:
            raise self._error("is nested too deeply or repeats itself through aliases", node, path)
        if isinstance(node, yaml.MappingNode):
            self._need(node, "map", path)
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            self._need(node, "seq", path)
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: Any, path: Keys) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not hasattr(key_node, "value") or not isinstance(key_node.value, str):
                raise self._error("a key must be a plain word", key_node, path)
            # The text as written: an unquoted `off` or `1` is still a key, not a boolean or a number.
            key = key_node.value
            if key in values:
                raise self._error(f"the key {key!r} is there twice; keep one", key_node, path)
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            values[key] = self.build(value_node, (*path, key))
        return values

    def _scalar(self, node: Any, path: Keys) -> Any:
        import yaml

        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if kind in ("str", "timestamp", "value", "merge"):
            return node.value
        if kind not in ("null", "bool", "int", "float"):
            raise self._error(
                f"the tag !{kind.lstrip('!')} is not used here; write a plain value", node, path
            )
        try:
            value = yaml.constructor.SafeConstructor().construct_object(node)
        except (ValueError, yaml.YAMLError):
            raise self._error(
                f"{node.value[:80]!r} cannot be read as a value; put it in quotes", node, path
            ) from None
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error("a finite number is needed", node, path)
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            raise self._error("a number of at most 64 bits is needed", node, path)
        return value

    def _need(self, node: Any, kind: str, path: Keys) -> None:
        if node.tag != f"tag:yaml.org,2002:{kind}":
            raise self._error(f"the tag {node.tag[:80]!r} is not used here; write a plain value", node, path)

    def _error(self, message: str, node: Any, path: Keys) -> ConfigError:
        key = ".".join(str(part) for part in path)
        return ConfigError(message, source=self.source, line=node.start_mark.line + 1, key=key)


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a single value"
