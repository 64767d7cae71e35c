"""What code did to the names of a namespace, and the way back.

Invariants: names are compared by the identity of their objects, and objects are described by type and size alone, so
that none of the person's code runs; what cannot be taken back is said. An object that was changed in place is the same
object: only a change of its size or its columns is noticed, and none is taken back.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.backends.object_summary import shape, title
from reyn_jupyter.support.text import enumerate_words

IN_PLACE = "Objects that the code changed in place stay as they are: nothing keeps what they held before."


@dataclass(frozen=True)
class NameChanges:
    """The changes of one piece of code, a name and what it stands for.

    Attributes:
        made, removed: name → type and size.
        rebound, mutated: name → type and size before and after.
        unshown: how many further names changed that are not told of.
        undo: the way back, for all of them.
    """

    made: Mapping[str, str] = field(default_factory=dict)
    rebound: Mapping[str, str] = field(default_factory=dict)
    mutated: Mapping[str, str] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    unshown: int = 0
    undo: NamesUndo | None = None

    @property
    def described(self) -> dict[str, Any]:
        """Return them as a result tells them, without what is empty."""
        told = {
            "made": dict(self.made),
            "changed": dict(self.rebound),
            "changed_in_place": dict(self.mutated),
            "removed": dict(self.removed),
        }
        found: dict[str, Any] = {key: names for key, names in told.items() if names}
        return found | ({"names_not_shown": self.unshown} if self.unshown else {})

    @property
    def sentence(self) -> str:
        """Return them on one line, "" where there are none."""
        parts = [
            f"{verb} {enumerate_words([f'{name} ({what})' for name, what in names.items()])}"
            for verb, names in (
                ("made", self.made),
                ("changed", self.rebound),
                ("changed in place", self.mutated),
                ("removed", self.removed),
            )
            if names
        ]
        return "; ".join(parts)


class NamesBefore:
    """The names of a namespace at one moment.

    Args:
        namespace: the live one.
        shows: whether a name may be told of, with its object.

    Example:
        >>> names = {"a": 1}
        >>> before = NamesBefore(names, lambda name, value: True)
        >>> names |= {"a": [1, 2], "b": "word"}
        >>> before.changes().sentence
        'made b (str, 4 characters); changed a (int → list, 2 elements)'
    """

    def __init__(self, namespace: dict[str, Any], shows: Callable[[str, object], bool]) -> None:
        self._live = namespace
        self._shows = shows
        self._names = dict(namespace)
        self._titles = {name: title(value) for name, value in self._names.items() if self._told(name, value)}
        self._shapes = {name: shape(self._names[name]) for name in self._titles}

    def changes(self) -> NameChanges:
        """Return what has changed since."""
        now, before = dict(self._live), self._names
        made = {name: value for name, value in now.items() if name not in before}
        rebound = {name: value for name, value in now.items() if name in before and value is not before[name]}
        removed = {name: value for name, value in before.items() if name not in now}
        mutated = [
            name
            for name, size in self._shapes.items()
            if name in now and now[name] is before[name] and shape(now[name]) != size
        ]
        told = {name for name, value in {**removed, **made, **rebound}.items() if self._told(name, value)}
        told -= {name for name in rebound if not self._told(name, before[name])}
        changed = {*made, *rebound, *removed}
        undo = (
            NamesUndo(self._live, before, made, rebound, removed, tuple(mutated))
            if changed or mutated
            else None
        )
        return NameChanges(
            {name: title(value) for name, value in made.items() if name in told},
            {
                name: _arrow(self._titles[name], title(value))
                for name, value in rebound.items()
                if name in told
            },
            {name: _arrow(self._titles[name], title(now[name])) for name in mutated},
            {name: self._titles[name] for name in removed if name in told},
            len(changed - told),
            undo,
        )

    def _told(self, name: object, value: object) -> bool:
        return type(name) is str and name.isidentifier() and self._shows(name, value)


def _arrow(before: str, after: str) -> str:
    return f"another {after}" if before == after else f"{before} → {after}"


class NamesUndo:
    """The way back from changes of names. What was there before is held; what was made only where it must be."""

    def __init__(
        self,
        namespace: dict[str, Any],
        before: Mapping[str, Any],
        made: Mapping[str, Any],
        rebound: Mapping[str, Any],
        removed: Mapping[str, Any],
        mutated: Sequence[str],
    ) -> None:
        self._live = namespace
        self._made = {name: _reference(value) for name, value in made.items()}
        self._rebound = {name: (before[name], _reference(value)) for name, value in rebound.items()}
        self._removed = dict(removed)
        self._mutated = tuple(mutated)

    def revert(self) -> tuple[str, ...]:
        """Take new names away and give others what they stood for; those that moved since stay, and it is said."""
        live = self._live
        removed, restored, stayed = [], [], []
        for name, made in self._made.items():
            if name not in live:
                continue
            if live[name] is made():
                del live[name]
                removed.append(name)
            else:
                stayed.append(name)
        for name, (value, made) in self._rebound.items():
            if name in live and live[name] is made():
                live[name] = value
                restored.append(name)
            else:
                stayed.append(name)
        for name, value in self._removed.items():
            if name not in live:
                live[name] = value
                restored.append(name)
            else:
                stayed.append(name)
        said = [
            *((f"removed: {enumerate_words(removed)}",) if removed else ()),
            *((f"restored: {enumerate_words(restored)}",) if restored else ()),
            *((f"changed since, so they stay: {enumerate_words(stayed)}",) if stayed else ()),
        ]
        if self._mutated:
            said.append(f"changed in place and not restored: {enumerate_words(self._mutated)}")
        return (*said, IN_PLACE)


def _reference(value: object) -> Callable[[], object]:
    """Return a function that gives the object, without keeping it alive where Python allows that."""
    try:
        kept = weakref.ref(value)
    except TypeError:
        return lambda: value
    gone = object()  # None may be what the name stands for now

    def held() -> object:
        found = kept()
        return gone if found is None else found

    return held
