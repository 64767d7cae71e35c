"""What an expression of a tool's code may stand for: resolved names, constants, and collections of these.

Invariant: a value is small, whatever the code: of more than `MOST_ATOMS` possibilities the first are kept, of more than
`MOST_ITEMS` items the first, and longer names are not followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

MOST_ATOMS = 8  # that a name may stand for
MOST_ITEMS = 256
MOST_SIZE = 1_000  # atoms of a collection with all that is in it
LONGEST_PATH = 160  # characters of a resolved name


class Ref(NamedTuple):
    """A resolved name: `os.system`; what a call of it gives ends with `()`."""

    path: str


class Const(NamedTuple):
    """A constant. The mark tells it from a name of the same letters."""

    value: Any
    mark: str = "constant"


class Items(NamedTuple):
    """A list, a tuple, a mapping, or whatever else gives values one by one.

    Attributes:
        values: what each may stand for.
        keys: of a mapping; None where there are none.
        size: how many atoms there are in it, at all depths.
    """

    values: tuple[tuple[Any, ...], ...]
    keys: tuple[Any, ...] | None
    size: int


Value = tuple[Any, ...]  # of Ref, Const, Items, and what a language adds
NOTHING: Value = ()


def collection(values: Sequence[Value], keys: Sequence[Any] | None = None) -> Items:
    """Return a collection that is bounded in size: what would make it larger is left out of it."""
    size = 0
    kept: list[Value] = []
    for value in values[:MOST_ITEMS]:
        more = sum(atom.size if type(atom) is Items else 1 for atom in value)
        if size + more > MOST_SIZE:
            kept.append(NOTHING)
            continue
        size += more
        kept.append(value)
    return Items(tuple(kept), None if keys is None else tuple(keys[:MOST_ITEMS]), size + 1)


def union(one: Value, other: Value) -> Value:
    """Return what either may stand for."""
    if not other or one == other:
        return one
    if not one:
        return other[:MOST_ATOMS]
    if len(one) >= MOST_ATOMS:
        return one
    return one + tuple(atom for atom in other if atom not in one)[: MOST_ATOMS - len(one)]


def as_value(value: Any) -> Value:
    """Return a constant, or a tuple of constants, as a value; nothing for None."""
    if value is None:
        return NOTHING
    if isinstance(value, tuple):
        return (collection(tuple(as_value(each) for each in value)),)
    return (Const(value),)


def plain(value: Value) -> Any:
    """Return a value as a constant, a tuple of constants, or None."""
    if len(value) != 1:
        return None
    atom = value[0]
    if type(atom) is Const:
        return atom.value
    if type(atom) is Items and atom.keys is None:
        return tuple(
            each[0].value if len(each) == 1 and type(each[0]) is Const else None for each in atom.values
        )
    return None


def number_of(value: Value) -> int | None:
    """Return the first whole number that it may be, or None."""
    return next((atom.value for atom in value if type(atom) is Const and type(atom.value) is int), None)


def length_of(atom: Any) -> int | None:
    """Return how long a text or collection is, or None."""
    if type(atom) is Items:
        return len(atom.values)
    return len(atom.value) if type(atom) is Const and isinstance(atom.value, (str, bytes)) else None


def item_of(items: Items, keys: list[Any], is_slice: bool) -> Value:
    """Return what a part of a collection may stand for: any of it, where the key is not known."""
    if is_slice:
        return (items,)
    made: Value = NOTHING
    for key in keys:
        if items.keys is not None:
            for at, each in enumerate(items.keys):
                if each is None or each == key:
                    made = union(made, items.values[at])
        elif isinstance(key, int) and -len(items.values) <= key < len(items.values):
            made = union(made, items.values[key])
        else:
            for value in items.values:
                made = union(made, value)
    if not keys:
        for value in items.values:
            made = union(made, value)
    return made


def method_of_items(items: Items, name: str, arguments: Sequence[Any]) -> Value:
    """Return what a method of a list or mapping gives."""
    if name in ("get", "pop", "setdefault", "__getitem__"):
        return item_of(items, [each for each in arguments[:1] if each is not None], False)
    if name == "values":
        return (collection(items.values),)
    if name == "items" and items.keys is not None:
        return (
            collection(
                tuple(
                    (collection((as_value(key), value)),)
                    for key, value in zip(items.keys, items.values, strict=True)
                )
            ),
        )
    return (items,) if name == "copy" else NOTHING
