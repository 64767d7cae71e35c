"""The person's "always" answers, by workspace.

Invariant: only patterns that can be read are ever returned, and they come from the user's state folder alone.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.action_face import FaceRecord
from reyn_jupyter.config import ActionPattern
from reyn_jupyter.guard.approval import Approval
from reyn_jupyter.support.effect_targets import EffectKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reyn_jupyter.catalog.action_face import ActionFace
    from reyn_jupyter.guard.state_folder import StateFolder

FILE = "approvals.json"


class Approvals:
    """The approvals of one workspace; iterating gives those in force, another kernel's included.

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

    def __iter__(self) -> Iterator[Approval]:
        return iter(self.entries())

    def list(self) -> tuple[str, ...]:
        """Return the patterns, in the order given."""
        return tuple(approval.pattern.text for approval in self.entries())

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
        """Remember a pattern that the person wrote, whatever its actions say of themselves.

        Raises:
            PatternError: the pattern cannot be read, or could allow nothing.
            StateError: it cannot be kept.
        """
        self._keep((pattern,), None, asked=False)

    def remember(self, patterns: Sequence[str], face: ActionFace | None) -> None:
        """Remember the answer "always" to a question that showed these patterns, all or none.

        Args:
            patterns: what is allowed from now on. An action without targets stands for its calls that name no effect.
            face: what the action says of itself, where the approval is bound to it.

        Raises:
            PatternError: a pattern cannot be read, or could allow nothing.
            StateError: they cannot be kept.
        """
        self._keep(patterns, face, asked=True)

    def _keep(self, patterns: Sequence[str], face: ActionFace | None, *, asked: bool) -> None:
        parsed = [ActionPattern.parse(pattern, loosens=True) for pattern in patterns]
        now, record = time.time(), face.record if face is not None else None
        new = [Approval(each, now, record, asked and each.target is None) for each in parsed]
        texts = {pattern.text for pattern in parsed}
        self._folder.change(FILE, lambda value: _value([*_others(value, texts), *new]))

    def remove(self, pattern: str) -> bool:
        """Forget an "always"; return whether there was one. Raises StateError."""
        text = pattern.strip()
        there = text in self.list()
        if there:
            self._folder.change(FILE, lambda value: _value(_others(value, {text})))
        return there

    def forget_server(self, server: str) -> None:
        """Forget every "always" for an MCP server of this name, since another one may have it from now on.

        Raises:
            StateError: that cannot be kept.
        """
        gone = {each.pattern.text for each in self.entries() if _is_of_server(each.pattern, server)}
        if gone:
            self._folder.change(FILE, lambda value: _value(_others(value, gone)))

    def clear(self) -> None:
        """Forget every "always" of this workspace. Raises StateError."""
        self._folder.change(FILE, lambda value: _value([]))


def _is_of_server(pattern: ActionPattern, server: str) -> bool:
    # A pattern with a wildcard for the server was written by the person, and is meant for any.
    return pattern.kind is EffectKind.MCP and (pattern.target or "").partition("/")[0] == server


def _value(approvals: Sequence[Approval]) -> dict[str, Any]:
    return {"version": 1, "approvals": [_plain(each) for each in approvals]}


def _plain(approval: Approval) -> dict[str, Any]:
    plain: dict[str, Any] = {"pattern": approval.pattern.text, "at": approval.at}
    if approval.by_itself:
        plain["by_itself"] = True
    return plain if approval.face is None else {**plain, "face": approval.face.plain}


def _others(value: Any, patterns: set[str]) -> list[Approval]:
    try:
        return [each for each in _approvals(value) if each.pattern.text not in patterns]
    except ValueError:
        return []


def _approvals(value: Any) -> tuple[Approval, ...]:
    if value is None:
        return ()
    try:
        return tuple(_approval(entry) for entry in value["approvals"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{FILE} is damaged ({error})") from None


def _approval(entry: Any) -> Approval:
    """Return the approval of an entry. One whose face cannot be read is damaged: without it, it would allow more."""
    at, face = float(entry["at"]), entry.get("face")
    if not math.isfinite(at):
        raise ValueError("a time is none")
    pattern = ActionPattern.parse(str(entry["pattern"]))
    by_itself = bool(entry.get("by_itself"))
    return Approval(pattern, at, None if face is None else FaceRecord.read(face), by_itself)
