"""Permission patterns: an action, and which of its targets.

Invariant: a pattern that parsed has one meaning, and matching is linear in the target whatever the pattern
is (it may come from a cloned repository). ``*`` in the action stands for any run of characters; in the
target ``*`` and ``?`` stop at ``/`` and ``**`` does not. Without parentheses every target is meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 500  # characters
_SHAPE = re.compile(r"(?P<action>\*+|[A-Za-z0-9_.*?-]*__[^()\s]+)(?:\((?P<target>.*)\))?", re.DOTALL)


class PatternError(ValueError):
    """Text that is no permission pattern; the message says what would be."""


@dataclass(frozen=True)
class ActionPattern:
    """A permission pattern: ``file__write(data/**)``, ``mcp__call_tool(git/*)``, ``file__*``, ``*``.

    >>> pattern = ActionPattern.parse("file__write(data/**)")
    >>> pattern.covers("file__write", "data/2024/out.csv"), pattern.covers("file__write", "secret.txt")
    (True, False)
    """

    text: str
    action: str
    target: str | None

    @classmethod
    def parse(cls, text: str) -> ActionPattern:
        """Read a pattern.

        Raises:
            PatternError: no action, unbalanced parentheses, an empty target, a control character, over 500
            characters.
        """
        return _parse(text)

    @classmethod
    def exact(cls, action: str, target: str | None) -> ActionPattern | None:
        """Return the pattern that means this action on this target alone; None when no pattern can say it."""
        literal = not any(mark in f"{action}{target or ''}" for mark in "*?")
        try:
            pattern = cls.parse(action if target is None else f"{action}({target})")
        except PatternError:
            return None
        return pattern if literal and pattern.covers(action, target) else None

    def folded(self, fold: Callable[[str], str]) -> ActionPattern:
        """Return the pattern for targets that went through `fold` (letter case, Unicode form)."""
        return self if self.target is None else replace(self, target=fold(self.target))

    def covers_action(self, action: str) -> bool:
        return _glob(self.action, True).fullmatch(_readable(action)) is not None

    def covers(self, action: str, target: str | None) -> bool:
        """Return whether the pattern covers `action` on `target`; None as target needs a pattern without one."""
        if not self.covers_action(action):
            return False
        if self.target is None:
            return True
        return target is not None and _glob(self.target, False).fullmatch(_readable(target)) is not None


@lru_cache(maxsize=1024)
def _parse(text: str) -> ActionPattern:
    stripped = text.strip()
    shown = ascii(stripped[:80])
    if len(stripped) > LONGEST:
        raise PatternError(f"the pattern {shown}… is longer than {LONGEST} characters")
    if not stripped.isprintable():
        raise PatternError(f"the pattern {shown} holds a character that cannot be seen")
    match = _SHAPE.fullmatch(stripped)
    if match is None:
        raise PatternError(
            f"{shown} is no permission pattern; write an action and, in parentheses, its targets, "
            "for example file__write(data/**) or file__*"
        )
    target = match["target"]
    if target is not None and not target.strip():
        raise PatternError(f"{shown} has empty parentheses; leave them out to mean every target")
    return ActionPattern(
        stripped, match["action"], None if target is None else target.strip().removeprefix("./")
    )


def _readable(text: str) -> str:
    """Return text that RE2 can read, which is UTF-8: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


@lru_cache(maxsize=1024)
def _glob(glob: str, crossing: bool) -> Any:
    import re2

    pieces: list[str] = []
    for piece in re.findall(r"\*\*+/|\*+|\?|[^*?]+", glob):
        if piece.endswith("*/"):
            pieces.append(".*" if crossing else "(?:[^/]+/)*")
            pieces.append("/" if crossing else "")
        elif piece[0] == "*":
            pieces.append(".*" if crossing or len(piece) > 1 else "[^/]*")
        elif piece == "?":
            pieces.append("." if crossing else "[^/]")
        else:
            pieces.append(re2.escape(piece))
    return re2.compile("(?s)" + "".join(pieces))
