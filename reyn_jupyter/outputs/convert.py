"""Convert what a handler returned into content: one rule for every Python value.

Invariant: nothing of the person's runs here and nothing raises. A value is looked at through the methods of the
built-in types alone; its `repr`, its properties and its overridden methods are never called. What has no JSON form
becomes the name of its type. Cycles, values nested too deep and structures that share parts so often that their
JSON would explode are cut where they would do harm.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from pathlib import Path, PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from types import MappingProxyType, MemberDescriptorType
from typing import Any, cast
from uuid import UUID

from reyn_jupyter.outputs.content import Content, FileContent, JsonValue, Structured, Text
from reyn_jupyter.support.encoding import clip, compact

MAX_DEPTH = 100  # levels; deeper values are replaced by their label, so that no JSON reader runs out of stack
MAX_NODES = 20_000_000  # values below the top, counted as often as they are reached
MAX_TEXT = 1 << 30  # bytes of text, counted as often as it is reached
_LARGEST_INTEGER = 1 << 14_000  # beyond about 4,300 digits Python itself refuses to write decimal text
_TEXTUAL = (
    date, time, timedelta, Decimal, UUID, complex,
    PurePosixPath, PosixPath, PureWindowsPath, WindowsPath, Path,
)  # fmt: skip
_JSON_START = re.compile(r"[ \t\r\n]*[\[{]")
_name_of_type = type.__dict__["__name__"].__get__


@dataclass(frozen=True)
class TableForms:
    """The rules that count and convert a table (DataFrame, Series, Index, ndarray); `frames` registers its own."""

    count_cells: Callable[[Any], int]
    to_structured: Callable[[Any], Structured]
    to_records: Callable[[Any], JsonValue]


_table_forms: list[TableForms] = []  # one, as soon as the package `outputs` is imported


def register_tables(forms: TableForms) -> None:
    """Convert tables by `forms` from now on."""
    _table_forms[:] = [forms]


class ValueTooLargeError(Exception):
    """The value is larger than the caller wants to convert on its own thread."""


def type_name(value: object) -> str:
    return clip(str(_name_of_type(type(value))), 200)


def number_tag(value: float) -> dict[str, str]:
    """A number that JSON does not have: ``{"$number": "NaN"}``, ``"Infinity"`` or ``"-Infinity"``."""
    return {"$number": "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"}


def label_of(value: JsonValue) -> str:
    """The type of a JSON value in a word: null, bool, number, string, string(90), array(3), object(2).

    >>> label_of("x" * 60), label_of([1, 2])
    ('string(60)', 'array(2)')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        size = len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
        return "string" if size <= 50 else f"string({size})"
    if isinstance(value, dict):
        return "number" if len(value) == 1 and "$number" in value else f"object({len(value)})"
    return f"array({len(value)})"


def to_content(value: object, *, budget: int | None = None) -> Content:
    """Turn any value into content; see the module for what becomes what.

    Args:
        value: whatever a handler returned.
        budget: refuse with TooLargeError when about this many values or characters are passed, so that a caller on
            an event loop can go on in a thread; None converts whatever it takes.

    >>> to_content({"n": 2**53 + 1})
    Structured(value={'n': 9007199254740993}, source=None, frame=None)
    """
    kind = type(value)  # never isinstance: that asks the value for its __class__
    try:
        if issubclass(kind, Text | FileContent):
            return cast("Content", value)
        if issubclass(kind, Structured):
            return _structured(cast("Structured", value), budget)
        return _content(value, budget)
    except ValueTooLargeError:
        raise
    except Exception:  # noqa: BLE001 - a hostile value may raise anything at all
        return Text(type_name(value))


def _structured(content: Structured, budget: int | None) -> Structured:
    if content.source is not None or hasattr(content.value, "blocks"):
        return content
    return dataclasses.replace(content, value=_Walk(budget).convert(content.value, 0))


def to_json(value: object) -> JsonValue:
    """The value as plain JSON (dict, list, str, int, float, bool, None), by the same rules as `to_content`."""
    return _Walk(None).convert(value, 0)


def _content(value: object, budget: int | None) -> Content:
    kind = type(value)
    if issubclass(kind, str):
        return _from_text(str.__str__(value), budget)
    if _is_table(kind) and _has_rows(value):
        [tables] = _table_forms
        if budget is not None and tables.count_cells(value) > budget:
            raise ValueTooLargeError
        return tables.to_structured(value)
    converted = _Walk(budget).convert(value, 0)
    if isinstance(converted, str):
        return Text(converted)
    if isinstance(converted, list) or (isinstance(converted, dict) and "$number" not in converted):
        return Structured(converted)
    return Text(compact(converted))


def _from_text(text: str, budget: int | None) -> Content:
    is_json = _JSON_START.match(text) is not None
    if budget is not None and len(text) > (20 if is_json else 200) * budget:
        raise ValueTooLargeError
    if not is_json:
        return Text(text)
    try:
        return Structured(json.loads(text, parse_constant=_refuse), source=text)
    except (ValueError, RecursionError):
        return Text(text)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _is_table(kind: type) -> bool:
    return _is_frame(kind) or _belongs(kind, "numpy", "ndarray")


def _has_rows(value: Any) -> bool:
    """False for an array of no dimension, which is a single value."""
    return bool(value.ndim)


def _is_frame(kind: type) -> bool:
    return any(_belongs(kind, "pandas", name) for name in ("DataFrame", "Series", "Index"))


def _belongs(kind: type, module: str, name: str) -> bool:
    """Return whether the type is one of a library's, asked without importing the library."""
    loaded = getattr(sys.modules.get(module), name, None)
    return isinstance(loaded, type) and issubclass(kind, loaded)


class _Walk:
    """One conversion: what is left to spend, and the containers that are open (to see cycles)."""

    def __init__(self, budget: int | None) -> None:
        self.strict = budget is not None
        self.nodes = MAX_NODES if budget is None else budget
        self.text = MAX_TEXT if budget is None else 20 * budget
        self.open: set[int] = set()

    def convert(self, value: Any, depth: int) -> JsonValue:
        kind = type(value)
        if kind is str:
            return self._string(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -_LARGEST_INTEGER < value < _LARGEST_INTEGER else {"$number": hex(value)}
        if kind is float:
            return value if isfinite(value) else number_tag(value)
        if kind is list or kind is tuple:
            return self._array(value, len(value), value, depth)
        if kind is dict:
            return self._object(value, value.items(), len(value), depth)
        try:
            return self._other(value, kind, depth)
        except ValueTooLargeError:
            raise
        except Exception:  # noqa: BLE001 - a hostile value may raise anything at all
            return type_name(value)

    def _string(self, value: str) -> JsonValue:
        if len(value) > 1000:
            self.text -= len(value)
            if self.text < 0:
                return self._spent(f"string({len(value)})")
        return value

    def _spent(self, label: str) -> str:
        if self.strict:
            raise ValueTooLargeError
        return label

    def _enter(self, owner: object, size: int, label: str, depth: int) -> str | None:
        """Return what stands in for a container that may not be entered; None when it may."""
        if id(owner) in self.open:
            return f"{label}, a cycle"
        if depth >= MAX_DEPTH:
            return label
        self.nodes -= size
        if self.nodes < 0 and (depth or self.strict):
            return self._spent(label)
        self.open.add(id(owner))
        return None

    def _array(self, owner: object, size: int, items: Iterable[Any], depth: int) -> JsonValue:
        instead = self._enter(owner, size, f"array({size})", depth)
        if instead is not None:
            return instead
        try:
            return [self.convert(item, depth + 1) for item in items]
        finally:
            self.open.discard(id(owner))

    def _object(self, owner: object, pairs: Iterable[tuple[Any, Any]], size: int, depth: int) -> JsonValue:
        instead = self._enter(owner, size, f"object({size})", depth)
        if instead is not None:
            return instead
        try:
            converted: dict[str, Any] = {}
            name_of = Namer()
            for key, item in pairs:
                name = key if type(key) is str else self._key(key)
                converted[name_of(name)] = self.convert(item, depth + 1)
            return converted
        finally:
            self.open.discard(id(owner))

    def _key(self, key: Any) -> str:
        converted = _Walk(1000).convert(key, 0)
        return converted if isinstance(converted, str) else compact(converted)

    def _other(self, value: Any, kind: type, depth: int) -> JsonValue:
        if issubclass(kind, str):
            return self._string(str.__str__(value))
        if issubclass(kind, int):
            return self.convert(int.__int__(value), depth)
        if issubclass(kind, float):
            return self.convert(float.__float__(value), depth)
        if issubclass(kind, dict):
            pairs = OrderedDict.items(value) if issubclass(kind, OrderedDict) else dict.items(value)
            return self._object(value, pairs, dict.__len__(value), depth)
        if issubclass(kind, list):
            return self._array(value, list.__len__(value), list.__iter__(value), depth)
        if issubclass(kind, tuple):
            return self._array(value, tuple.__len__(value), tuple.__iter__(value), depth)
        if kind is set or kind is frozenset:
            return self._array(value, len(value), sorted(value, key=_sort_key), depth)
        if kind is MappingProxyType:
            return self.convert(dict(value), depth)
        if kind in (bytes, bytearray, memoryview):
            raw = bytes(value)
            return {"bytes": len(raw), "base64": base64.b64encode(raw).decode()}
        return self._library(value, kind, depth)

    def _library(self, value: Any, kind: type, depth: int) -> JsonValue:
        if kind in _TEXTUAL:
            return str(value)
        if kind is datetime or _belongs(kind, "pandas", "Timestamp"):
            return None if value != value else value.isoformat()
        if _is_table(kind):
            if not _has_rows(value):
                return self.convert(value.item(), depth + 1)
            [tables] = _table_forms
            self.nodes -= tables.count_cells(value)
            return tables.to_records(value) if self.nodes >= 0 else self._spent(f"array({len(value)})")
        if _belongs(kind, "numpy", "generic") or (kind.__module__ or "").partition(".")[0] == "pandas":
            return self._scalar(value, kind, depth)
        if any("__dataclass_fields__" in base.__dict__ for base in kind.__mro__):
            names = [field.name for field in dataclasses.fields(kind)]
            return self._fields(value, _stored(value, kind, names), depth)
        if _belongs(kind, "pydantic", "BaseModel"):
            return self._model(value, kind, depth)
        return type_name(value)

    def _fields(self, value: object, pairs: Iterator[tuple[str, Any]], depth: int) -> JsonValue:
        listed = list(pairs)
        return self._object(value, listed, len(listed), depth)

    def _model(self, value: Any, kind: Any, depth: int) -> JsonValue:
        fields = kind.__dict__.get("__pydantic_fields__", {})
        names = [name for name, field in fields.items() if not field.exclude]
        held = object.__getattribute__(value, "__dict__")
        if names == ["root"]:
            return self.convert(held.get("root"), depth)
        extra = object.__getattribute__(value, "__pydantic_extra__") or {}
        return self._fields(
            value, iter([(n, held[n]) for n in names if n in held] + list(extra.items())), depth
        )

    def _scalar(self, value: Any, kind: type, depth: int) -> JsonValue:
        """A NumPy or pandas scalar."""
        numpy = sys.modules["numpy"]
        if kind.__name__ in ("NaTType", "NAType"):
            return None
        if issubclass(kind, numpy.bool_):
            return bool(value)
        if issubclass(kind, numpy.integer):
            return self.convert(int(value), depth)
        if issubclass(kind, numpy.floating):
            return self.convert(float(value), depth)
        if issubclass(kind, numpy.datetime64 | numpy.timedelta64 | numpy.complexfloating):
            return str(value)
        if kind.__name__ in ("Timedelta", "Period", "Interval"):
            return str(value)
        if hasattr(kind, "__array__") and hasattr(kind, "dtype"):
            [tables] = _table_forms
            return tables.to_records(value)
        return type_name(value)


def _sort_key(item: object) -> tuple[str, str]:
    """An order for the members of a set that calls nothing of theirs."""
    return (type_name(item), compact(_Walk(1000).convert(item, 0)))


def _stored(value: object, kind: type, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Return what a dataclass keeps for its fields, read past any property that has a field's name."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        held = {}
    for name in names:
        if name in held:
            yield name, held[name]
            continue
        slot = next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)
        if isinstance(slot, MemberDescriptorType):
            try:
                yield name, slot.__get__(value)
            except AttributeError:
                continue


class Namer:
    """Gives every name once: the name, or the first of ``name_2``, ``name_3`` … that is not taken."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def __call__(self, name: str) -> str:
        number = self._taken.get(name, 0)
        candidate = name
        while candidate in self._taken:
            number += 1
            candidate = f"{name}_{number + 1}"
        self._taken[name] = number
        self._taken.setdefault(candidate, 0)
        return candidate
