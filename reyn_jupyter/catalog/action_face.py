"""The face of an action as a person approved it: its description and its arguments.

Invariant: a record of a face is small whatever the face is, and two faces have the same digest only if every word of
their descriptions and schemas is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reyn_jupyter.support.text import shorten

_SHOWN_DESCRIPTION = 300  # characters that a record keeps, so that a question can quote them
_MOST_ARGUMENTS = 100  # that a record tells apart
_LONGEST_ARGUMENT = 100  # characters of a name


@dataclass(frozen=True)
class FaceRecord:
    """What is kept of a face: enough to know it again, and to say what is different.

    Attributes:
        digest: SHA-256 of description and schema.
        description: the beginning of the description, on one line.
        description_digest: of all of it.
        arguments: argument → digest of its schema; of more than a hundred the first.
    """

    digest: str
    description: str
    description_digest: str
    arguments: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, value: Any) -> FaceRecord:
        """Return the record that `plain` gave.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: it is none.
        """
        arguments = value["arguments"]
        texts = [value["digest"], value["description"], value["description_digest"], *arguments.values()]
        if len(arguments) > _MOST_ARGUMENTS or not all(isinstance(each, str) for each in texts):
            raise ValueError("what an action said of itself is damaged")
        return cls(value["digest"], value["description"], value["description_digest"], arguments)

    @property
    def plain(self) -> dict[str, Any]:
        """The record as JSON has it."""
        return {
            "digest": self.digest,
            "description": self.description,
            "description_digest": self.description_digest,
            "arguments": dict(self.arguments),
        }


@dataclass(frozen=True)
class FaceChange:
    """A difference between the face that was approved and today's.

    Attributes:
        sentence: what has changed, in words of ours.
        before, now: what it was and is, in words of the action's maker; the first may be cut.
    """

    sentence: str
    before: str
    now: str


@dataclass(frozen=True)
class ActionFace:
    """A description and an input schema as they are now, and the version of what stands behind them, if it has one."""

    description: str
    schema: Mapping[str, Any]
    version: str = ""

    @cached_property
    def record(self) -> FaceRecord:
        """What an approval keeps of it."""
        properties = self.schema.get("properties")
        named = list(properties.items()) if isinstance(properties, Mapping) else []
        return FaceRecord(
            _digest([self.description, self.schema, *([self.version] if self.version else [])]),
            shorten(" ".join(self.description.split()), _SHOWN_DESCRIPTION),
            _digest(self.description),
            {str(name)[:_LONGEST_ARGUMENT]: _digest(schema) for name, schema in named[:_MOST_ARGUMENTS]},
        )

    def changes_since(self, before: FaceRecord) -> tuple[FaceChange, ...]:
        """Return what is different from the face that was approved; nothing where it is the same one."""
        now = self.record
        if now.digest == before.digest:
            return ()
        found = []
        if now.description_digest != before.description_digest:
            found.append(FaceChange("Its description has changed.", before.description, self.description))
        if now.arguments != before.arguments:
            kept = now.arguments.keys() & before.arguments.keys()
            changed = {name for name in kept if now.arguments[name] != before.arguments[name]}
            new = [f"{name} (changed)" if name in changed else name for name in sorted(now.arguments)]
            found.append(
                FaceChange("Its arguments have changed.", ", ".join(sorted(before.arguments)), ", ".join(new))
            )
        if not found and self.version:
            found.append(FaceChange("What stands behind it is another one now: its code, say.", "", ""))
        return tuple(found) or (FaceChange("Something in its schema has changed.", "", ""),)


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
