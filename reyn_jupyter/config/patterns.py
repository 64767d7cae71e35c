"""Permission patterns: an action, and which of its targets.

Invariant: a pattern that parsed has one meaning, and matching is linear in the target whatever the pattern is (it may
come from a cloned repository). ``*`` in the action stands for any run of characters. Targets are those of one kind of
effect where the pattern names it (``*(network:*.example.org)``), and match no other; what they stand for, kind by kind,
is `support.effect_targets`. Without parentheses every target is meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from reyn_jupyter.support.effect_targets import (
    KINDS,
    EffectKind,
    TargetError,
    leads_out,
    may_be_below,
    rule_without_kind,
    target_rule,
)
from reyn_jupyter.support.files.globs import glob_matches, is_literal
from reyn_jupyter.support.text import nearest

LONGEST = 500  # characters
_SHAPE = re.compile(r"(?P<action>\*+|[A-Za-z0-9_.*?-]*__[^()\s]+)(?:\((?P<target>.*)\))?", re.DOTALL)
_KIND = re.compile(r"(?P<kind>[A-Za-z]+):(?P<target>.*)", re.DOTALL)


class PatternError(ValueError):
    """Text that is no permission pattern; the message says what would be."""


@dataclass(frozen=True)
class ActionPattern:
    """A permission pattern: ``file__write(data/**)``, ``*(network:*.example.org)``, ``file__*``, ``*``.

    Attributes:
        text: as written.
        action: the action, with wildcards.
        kind: the kind of effect whose targets are meant; None where none is named.
        target: the targets, as written; None for every one.

    >>> pattern = ActionPattern.parse("file__*(write:data/**)")
    >>> pattern.restricts("file__write", EffectKind.WRITE, "data/2024/out.csv")
    True
    >>> pattern.restricts("file__delete", EffectKind.DELETE, "data/2024/out.csv")
    False
    """

    text: str
    action: str
    kind: EffectKind | None
    target: str | None

    @classmethod
    def parse(cls, text: str, *, loosens: bool = False) -> ActionPattern:
        """Read a pattern.

        Args:
            text: the pattern.
            loosens: it is to allow something.

        Raises:
            PatternError: no action, unbalanced parentheses, an empty target, a control character, over 500
                characters, an unknown kind, or targets that no call could have.
        """
        pattern = _parse(text)
        path = pattern.kind is not None and pattern.kind.is_path
        if loosens and path and pattern.target is not None and leads_out(pattern.target):
            raise PatternError(
                f"{pattern.text!a} allows nothing, since no action reaches a path outside the workspace; write "
                "the path as it is from the workspace on, for example write:data/**"
            )
        return pattern

    @classmethod
    def exact(cls, action: str, kind: EffectKind | None, target: str | None) -> ActionPattern | None:
        """Return the pattern that means this action on this target alone; None when no pattern can say it."""
        try:
            pattern = cls.parse(action if kind is None else f"{action}({kind}:{target})")
        except PatternError:
            return None
        literal = is_literal(f"{action}{target or ''}")
        return pattern if literal and pattern.allows(action, kind, target) else None

    def covers_action(self, action: str) -> bool:
        return _covers_action(self.action, action)

    def allows(self, action: str, kind: EffectKind | None, target: str | None) -> bool:
        """Return whether the pattern stands for a call, where it is to allow it.

        Without a kind, a pattern for several actions stands for paths alone: who writes ``*(data/**)`` thinks of files,
        and not of a program that is named like one.

        Args:
            action: its qualified name.
            kind, target: of an effect, in the target's one spelling; None for a call that names no effect.
        """
        unsaid = self.target is not None and self.kind is None
        if unsaid and kind is not None and not kind.is_path and not is_literal(self.action):
            return False
        return self._covers(action, kind, target, tightens=False)

    def restricts(self, action: str, kind: EffectKind | None, target: str | None) -> bool:
        """Return whether the pattern stands for a call, where it is to ask about it or to deny it; see `allows`.

        Without a kind, its targets are read as each kind has them. Letter case and Unicode form make no difference.
        """
        return self._covers(action, kind, target, tightens=True)

    def may_restrict_below(self, action: str, kind: EffectKind, folder: str) -> bool:
        """Return whether the pattern may stand for a path below a folder, where it asks or denies; see `restricts`."""
        if not self.covers_action(action) or self.kind not in (None, kind):
            return False
        return self.target is None or may_be_below(self.target, folder)

    def _covers(self, action: str, kind: EffectKind | None, target: str | None, *, tightens: bool) -> bool:
        if not self.covers_action(action):
            return False
        if self.target is None:
            return True
        if kind is None or target is None or self.kind not in (None, kind):
            return False
        rule = target_rule if self.kind is not None else rule_without_kind
        return rule(kind, self.target)(target, tightens)


@lru_cache(maxsize=4096)
def _covers_action(glob: str, action: str) -> bool:
    """Return whether a glob stands for an action; remembered, since the same few are judged again and again."""
    return glob_matches(glob, action, crossing=True)


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
    kind, target = _kind_and_target(target, shown)
    return ActionPattern(stripped, match["action"], kind, target)


def _kind_and_target(target: str | None, shown: str) -> tuple[EffectKind | None, str | None]:
    """Return the kind that targets name, and the rest of them. Raises PatternError where they could match nothing."""
    match = _KIND.fullmatch(target.strip()) if target is not None else None
    if target is None or match is None:
        return None, None if target is None else target.strip()
    word, rest = match["kind"], match["target"].strip()
    if word not in set(EffectKind):
        meant = nearest(word, EffectKind, cutoff=0.75)
        if meant is not None:
            raise PatternError(
                f"{shown} names no kind of effect; did you mean {meant}:{rest[:80]}? (A path that begins so is "
                f"written ./{word}:…)"
            )
        return None, target.strip()
    kind = EffectKind(word)
    example = f"; for example {kind}:{KINDS[kind].example}"
    if not rest:
        raise PatternError(f"{shown} names a kind of effect without its targets{example}")
    try:
        target_rule(kind, rest)
    except TargetError as error:
        raise PatternError(f"{shown} could match nothing: {str(error).rstrip('.')}{example}") from None
    return kind, rest
