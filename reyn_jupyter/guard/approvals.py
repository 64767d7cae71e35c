"""The person's "always" answers, by workspace.

Invariant: only patterns that can be read are ever returned, and they come from the user's state folder alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reyn_jupyter.config import ActionPattern, PatternError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reyn_jupyter.guard.state_folder import StateFolder

FILE = "approvals.json"


@dataclass(frozen=True)
class Approval:
    """One answer: the pattern, and when it was given (seconds since the epoch)."""

    pattern: str
    at: float


class Approvals:
    """The approvals of one workspace; iterating gives the patterns in force, another kernel's included.

    Example:
        >>> import pathlib, tempfile
        >>> from reyn_jupyter.guard.state_folder import StateFolder
        >>> approvals = Approvals(StateFolder(".", pathlib.Path(tempfile.mkdtemp())))
        >>> approvals.add("file__write(data/out.csv)")
        >>> approvals.list()
        ('file__write(data/out.csv)',)
    """

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder
        self._seen: tuple[object, tuple[Approval, ...]] = (None, ())
        self.problems: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def list(self) -> tuple[str, ...]:
        """Return the patterns, in the order given."""
        return tuple(approval.pattern for approval in self.entries())

    def entries(self) -> tuple[Approval, ...]:
        """Return every approval, in the order given. A damaged file is set aside, and `problems` says so."""
        # The gate asks at every call, so an unchanged file is not read again.
        stamp = self._folder.stamp(FILE)
        if stamp is None or stamp != self._seen[0]:
            self._seen = (stamp, self._read())
        return self._seen[1]

    def _read(self) -> tuple[Approval, ...]:
        try:
            return _approvals(self._folder.read(FILE))
        except ValueError as error:
            aside = self._folder.set_aside(FILE)
            kept = f"; it is kept as {aside}" if aside else ""
            self.problems = (*self.problems, f"earlier approvals are not used: {error}{kept}")
            return ()

    def add(self, pattern: str) -> None:
        """Remember an "always".

        Raises:
            PatternError: the pattern cannot be read.
            StateError: it cannot be kept.
        """
        text = ActionPattern.parse(pattern).text
        new = {"pattern": text, "at": time.time()}
        self._folder.change(FILE, lambda value: _value([*_others(value, text), new]))

    def remove(self, pattern: str) -> bool:
        """Forget an "always"; return whether there was one. Raises StateError."""
        text = pattern.strip()
        there = text in self.list()
        if there:
            self._folder.change(FILE, lambda value: _value(_others(value, text)))
        return there

    def clear(self) -> None:
        """Forget every "always" of this workspace. Raises StateError."""
        self._folder.change(FILE, lambda value: _value([]))


def _value(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"version": 1, "approvals": entries}


def _others(value: Any, pattern: str) -> list[dict[str, Any]]:
    try:
        approvals = _approvals(value)
    except ValueError:
        return []
    return [{"pattern": one.pattern, "at": one.at} for one in approvals if one.pattern != pattern]


def _approvals(value: Any) -> tuple[Approval, ...]:
    if value is None:
        return ()
    try:
        return tuple(
            Approval(ActionPattern.parse(str(entry["pattern"])).text, float(entry["at"]))
            for entry in value["approvals"]
        )
    except (KeyError, TypeError, PatternError) as error:
        raise ValueError(f"{FILE} is damaged ({error})") from None
