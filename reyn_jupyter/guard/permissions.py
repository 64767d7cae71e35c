"""The gate's rules: may this call run?

Invariant: deny wins everywhere, over ``--approve all`` and over the person too; and a call is allowed only
when every one of its effects is. Who decides, strongest first: a deny rule · the person's own call ·
``--approve all`` · an earlier "always" · an ask rule · an allow rule · what needs no consent (pure actions,
reads inside the workspace, functions that the person registered). Everything else asks.
"""

from __future__ import annotations

import posixpath
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

from reyn_jupyter.config import ActionPattern, PatternError, Settings
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import clip_middle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reyn_jupyter.catalog.action import Effect, EffectKind, Purity
    from reyn_jupyter.config import Permissions
    from reyn_jupyter.guard.workspace import FileDecision

__all__ = [
    "ActionPattern",
    "PatternError",
    "PermissionVerdict",
    "Policy",
    "PolicyInForce",
    "normalize_target",
    "suggest_pattern",
]

Approve = Literal["ask", "read", "all"]
Actor = Literal["model", "person", "peer", "workflow"]
PATH_EFFECTS: frozenset[EffectKind] = frozenset({"read", "write", "edit", "create", "delete"})
_WORST = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True)
class PermissionVerdict:
    """The gate's word on a call.

    Attributes:
        decision: "allow", "ask" or "deny".
        by: who decided: "policy" (a rule), "person", "approve" (``--approve``), "purity" (needs no
        consent), or
            "default" for what nobody has decided yet.
        reason: a few words for people and models.
        pattern: the rule that decided, as written, where a rule did.
    """

    decision: Literal["allow", "ask", "deny"]
    by: str
    reason: str
    pattern: str | None = None


@dataclass(frozen=True)
class Policy:
    """The rules in force, parsed.

    Example:
        >>> from reyn_jupyter.catalog.action import Effect, Purity
        >>> policy = Policy.from_settings(Settings(), approvals=["file__write(data/**)"])
        >>> policy.decide("file__write", Purity.WRITE, [Effect("write", "data/a.csv")], "model").decision
        'allow'
        >>> policy.decide("file__write", Purity.WRITE, [Effect("write", "data/../a.csv")], "model").decision
        'ask'
    """

    allow: tuple[ActionPattern, ...] = ()
    ask: tuple[ActionPattern, ...] = ()
    deny: tuple[ActionPattern, ...] = ()
    approved: tuple[ActionPattern, ...] = ()

    @classmethod
    def from_settings(cls, settings: Settings, approvals: Iterable[str] = ()) -> Policy:
        """Make the policy of the settings' rules and the person's "always" answers.

        Raises:
            PatternError: a pattern that cannot be read.
        """
        rules = settings.permissions
        return cls(_parsed(rules.allow), _parsed(rules.ask), _parsed(rules.deny), _parsed(approvals))

    def decide(
        self,
        action: str,
        purity: Purity,
        effects: Sequence[Effect],
        actor: Actor = "model",
        approve: Approve = "ask",
    ) -> PermissionVerdict:
        """Return the verdict on a call: the strictest over all of its effects.

        Args:
            action: the resolved action's qualified name.
            purity: the action's.
            effects: what the call would do; paths relative to the workspace root.
            actor: who calls.
            approve: what ``--approve`` says for this run: "ask", "read" (deny whatever would ask) or "all".
        """
        targets: list[Effect | None] = list(effects)
        if not effects or (not purity.repeatable and all(effect.kind == "read" for effect in effects)):
            targets.append(None)
        verdicts = [self._decide_one(action, purity, effect, actor, approve) for effect in targets]
        return max(verdicts, key=lambda verdict: _WORST[verdict.decision])

    def of_files(
        self, action: str, effects: Sequence[Effect], actor: Actor = "model", approve: Approve = "ask"
    ) -> Callable[[str], FileDecision] | None:
        """Return the verdict on each file that an allowed call opens, by its path; None where no rule has a say.

        A call is judged by what it names, which may be a folder; the rules hold for the files in it too. What the
        call itself was asked about is settled: its own targets, and all that the same rule covers.

        Args:
            action, actor, approve: as for `decide`.
            effects: those that the call was allowed with.
        """
        if not self.deny and not self.ask:
            return None
        targets = {normalize_target(effect) for effect in effects if effect.kind in PATH_EFFECTS}

        @cache
        def rules() -> tuple[list[ActionPattern], list[ActionPattern]]:
            """Return the rules of this action that deny, and those that ask about more than the call."""
            denied = [rule for rule in self.deny if rule.covers_action(action)]
            if actor == "person" or approve == "all":
                return denied, []
            asked = [rule for rule in self.ask if rule.target is not None and rule.covers_action(action)]
            return denied, [
                rule
                for rule in asked
                if not any(_first([rule], action, target, folded=True) for target in targets)
            ]

        @lru_cache(1024)
        def verdict(path: str) -> FileDecision:
            if path in targets:  # what denies it has denied the call
                return "allow"
            denied, asked = rules()
            if _first(denied, action, path, folded=True):
                return "deny"
            if not _first(asked, action, path, folded=True) or _first(self.approved, action, path):
                return "allow"
            return "deny" if approve == "read" else "ask"

        return verdict

    def _decide_one(
        self, action: str, purity: Purity, effect: Effect | None, actor: Actor, approve: Approve
    ) -> PermissionVerdict:
        target = None if effect is None else normalize_target(effect)
        denied = _first(self.deny, action, target, folded=True)
        if denied:
            return PermissionVerdict(
                "deny", "policy", f"the rule {denied} denies {_named(action, target)}", denied
            )
        if actor == "person":
            return PermissionVerdict("allow", "person", "the person called it")
        if approve == "all":
            return PermissionVerdict("allow", "approve", "this run approves whatever is not denied")
        if approved := _first(self.approved, action, target):
            return PermissionVerdict("allow", "person", "the person said always", approved)
        asked = _first(self.ask, action, target, folded=True)
        if asked is None:
            if allowed := _first(self.allow, action, target):
                return PermissionVerdict("allow", "policy", f"the rule {allowed} allows it", allowed)
            if action.startswith("function__"):
                return PermissionVerdict("allow", "person", "the person registered this function")
            if effect.kind == "read" if effect else purity.repeatable:
                return PermissionVerdict("allow", "purity", "it only reads inside the workspace")
        by, what = "policy" if asked else "default", _named(action, target)
        if approve == "read":
            return PermissionVerdict(
                "deny", "approve", f"{what} needs consent, and this run only reads", asked
            )
        return PermissionVerdict("ask", by, f"{what} needs consent", asked)


class PolicyInForce:
    """The policy of the settings and the approvals now; parsed again only when one of them moved.

    Args:
        approvals: gives the patterns in force whenever it is iterated, as `Approvals` does.
    """

    def __init__(self, approvals: Iterable[str]) -> None:
        self._approvals = approvals
        self._parsed: tuple[Permissions, tuple[str, ...], Policy] | None = None

    def under(self, settings: Settings) -> Policy:
        """Return the policy of these settings. Raises PatternError for a pattern that cannot be read."""
        rules, approved = settings.permissions, tuple(self._approvals)
        if self._parsed is None or self._parsed[0] is not rules or self._parsed[1] != approved:
            self._parsed = (rules, approved, Policy.from_settings(settings, approved))
        return self._parsed[2]


def _named(action: str, target: str | None) -> str:
    """Return an action with its target, as a sentence names it."""
    return action if target is None else f"{action} on {clip_middle(printable(target), 120)}"


def suggest_pattern(action: str, effects: Sequence[Effect]) -> str | None:
    """Return the pattern that "always" would stand for: this action on exactly this target.

    Returns:
        None when no single pattern says it (several targets, or a target that reads as a wildcard); then
        "always" cannot be offered.

    >>> from reyn_jupyter.catalog.action import Effect
    >>> suggest_pattern("file__write", [Effect("write", "./data/out.csv")])
    'file__write(data/out.csv)'
    """
    targets = {normalize_target(effect) for effect in effects}
    if len(targets) > 1:
        return None
    pattern = ActionPattern.exact(action, next(iter(targets), None))
    return pattern.text if pattern else None


def stays_in_workspace(effect: Effect) -> bool:
    """Return whether an effect is on a path inside the workspace.

    >>> from reyn_jupyter.catalog.action import Effect
    >>> stays_in_workspace(Effect("write", "a/../b.csv")), stays_in_workspace(Effect("write", "../b.csv"))
    (True, False)
    """
    return effect.kind in PATH_EFFECTS and not _strays(normalize_target(effect))


def _parsed(patterns: Iterable[str]) -> tuple[ActionPattern, ...]:
    return tuple(ActionPattern.parse(pattern) for pattern in patterns)


def _first(
    patterns: Sequence[ActionPattern], action: str, target: str | None, *, folded: bool = False
) -> str | None:
    """Return the first pattern that covers the call; with `folded` also by the folded target (letter case, Unicode)."""
    for pattern in patterns:
        # A path that climbs out or starts at the root of the disk is nobody's target: only a rule for every
        # target can mean it.
        if pattern.target is not None and not folded and target is not None and _strays(target):
            continue
        if pattern.covers(action, target):
            return pattern.text
        if folded and target is not None and pattern.folded(_fold).covers(action, _fold(target)):
            return pattern.text
    return None


def normalize_target(effect: Effect) -> str:
    """Return the target that rules are matched against: of a path its shortest form, with forward slashes."""
    if effect.kind not in PATH_EFFECTS:
        return effect.target
    return posixpath.normpath(effect.target.replace("\\", "/"))


def _strays(target: str) -> bool:
    return target.startswith("/") or ".." in target.split("/")


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
