"""The record of an action that can be found: its name, what it does, and what it takes.

Invariant: a record's digest follows from what ranking reads (name, description, parameters) and from nothing else,
so equal digests may share words and vectors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.search.metadata import is_fact
from reyn_jupyter.support.user_errors import UserError
from reyn_jupyter.support.validation_messages import quote_value

_TEXTS = ("id", "name", "description", "category")
_KNOWN = frozenset((*_TEXTS, "parameters", "metadata"))


class RecordError(UserError, ValueError):
    """A record cannot be indexed. The message names it, what is wrong, and what is expected."""


@dataclass(frozen=True)
class Record:
    """One thing to find.

    Args:
        id: unique in an index; what a search returns.
        name: what people and models call it; several records may share one.
        description: what it does, in any language; may be empty.
        parameters: a JSON Schema of its arguments; `{}` is valid.
        category: what a search may be narrowed to.
        metadata: facts to narrow a search by, not ranked: key → text, number, truth value, or several of them.

    >>> Record("1", "read_file", "Read a text file.").name
    'read_file'
    """

    id: str
    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    category: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    _digest: str = field(default="", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for part in _TEXTS:
            if not isinstance(getattr(self, part), str):
                raise RecordError(
                    f"{self._label()}: {part} must be text, not {type(getattr(self, part)).__name__}."
                )
        if not self.id or not self.name.strip():
            missing = "id" if not self.id else "name"
            raise RecordError(
                f"{self._label()}: the {missing} is empty; every record needs an id and a name."
            )
        if not isinstance(self.parameters, Mapping):
            raise RecordError(
                f"{self._label()}: parameters must be a JSON Schema object such as {{}}, "
                f"not {type(self.parameters).__name__}."
            )

        if not isinstance(self.metadata, Mapping) or any(not isinstance(key, str) for key in self.metadata):
            raise RecordError(f"{self._label()}: metadata must be a mapping from text, such as {{}}.")
        for key, value in self.metadata.items():
            if not is_fact(value):
                raise RecordError(
                    f"{self._label()}: metadata {key!r} must be text, a number, True or False, or a list of them, not "
                    f"{quote_value(value)}."
                )

    def _label(self) -> str:
        return f"Record {str(self.id)[:80]!r}"

    @classmethod
    def of(cls, given: Record | Mapping[str, Any]) -> Record:
        """Return a record from a mapping with `id`, `name` and perhaps the other parts.

        Other keys are left aside; a None for a part that has a default means the default.

        Raises:
            RecordError: a missing id or name, or a part of another type.

        >>> Record.of({"id": "a", "name": "web.search", "parameters": None}).parameters
        {}
        """
        if isinstance(given, Record):
            return given
        if not isinstance(given, Mapping):
            raise RecordError(f"A record is a mapping with id and name, not {type(given).__name__}.")
        for part in ("id", "name"):
            if part not in given:
                raise RecordError(
                    f"Record {str(given.get('id', given.get('name', '')))[:80]!r}: {part} is missing; "
                    "every record needs an id and a name."
                )
        required = {"id", "name"}
        return cls(**{k: v for k, v in given.items() if k in _KNOWN and (v is not None or k in required)})

    @property
    def digest(self) -> str:
        """Return SHA-256, in hex, over name, description and parameters: whether words and vectors still fit."""
        if not self._digest:  # no cached property, which would cost every record a dictionary
            object.__setattr__(self, "_digest", self._digested())
        return self._digest

    def _digested(self) -> str:
        read = [self.name, self.description, self.parameters]
        try:
            text = _JSON.encode(read)
        except (TypeError, ValueError, RecursionError) as error:
            raise RecordError(f"{self._label()}: its parameters are no JSON ({error}).") from error
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


_JSON = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=_plain)


def records_of(given: object) -> tuple[Record, ...]:
    """Return records from an iterable of records or mappings, their ids unique.

    Raises:
        RecordError: something that is no record, or an id that stands twice.
    """
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
        raise RecordError(f"Records come as a list of records or mappings, not as {type(given).__name__}.")
    found = tuple(Record.of(each) for each in given)
    seen: set[str] = set()
    for record in found:
        if record.id in seen:
            raise RecordError(f"Record {record.id[:80]!r}: the id stands twice; ids are unique in an index.")
        seen.add(record.id)
    return found
