"""The gate's rules: may this call run?

Invariant: deny wins everywhere, over ``--approve all`` and over the person too; and a call is allowed only
when every one of its effects is. Who decides, strongest first: a deny rule · the person's own call ·
``--approve all`` · an earlier "always" · an ask rule · an allow rule · what needs no consent (pure actions,
reads inside the workspace, functions that the person registered). Everything else asks. A rule that denies
`file__read` or asks about it is about reading, and stands for the reads of every action.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

from reyn_jupyter.config import ActionPattern, PatternError, Settings
from reyn_jupyter.guard.approval import Approval
from reyn_jupyter.support.effect_targets import EffectKind, leads_out
from reyn_jupyter.support.sanitize import printable_path
from reyn_jupyter.support.text import clip_middle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reyn_jupyter.catalog.action import Purity
    from reyn_jupyter.catalog.action_face import ActionFace, FaceRecord
    from reyn_jupyter.catalog.effects import Effect
    from reyn_jupyter.config import Permissions
    from reyn_jupyter.guard.workspace import FileDecision

__all__ = [
    "ActionPattern",
    "PatternError",
    "PermissionVerdict",
    "Policy",
    "PolicyInForce",
    "suggest_patterns",
]

Approve = Literal["ask", "read", "all"]
Actor = Literal["model", "person", "peer", "workflow"]
MOST_KEPT = 20  # targets of one "always"
READING = "file__read"  # the action whose rules say what may be read, by whatever action
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
        approved_face: what the action said of itself when the person said "always", where it says something else now
            and so asks again.
    """

    decision: Literal["allow", "ask", "deny"]
    by: str
    reason: str
    pattern: str | None = None
    approved_face: FaceRecord | None = None


@dataclass(frozen=True)
class Policy:
    """The rules in force, parsed.

    Example:
        >>> from reyn_jupyter.catalog.action import Effect, Purity
        >>> policy = Policy.from_settings(Settings(), [Approval(ActionPattern.parse("file__write(data/**)"))])
        >>> policy.decide("file__write", Purity.WRITE, [Effect("write", "data/a.csv")], "model").decision
        'allow'
        >>> policy.decide("file__write", Purity.WRITE, [Effect("write", "data/../a.csv")], "model").decision
        'ask'
    """

    allow: tuple[ActionPattern, ...] = ()
    ask: tuple[ActionPattern, ...] = ()
    deny: tuple[ActionPattern, ...] = ()
    approved: tuple[Approval, ...] = ()

    @property
    def has_restrictions(self) -> bool:
        """Return whether any rule denies a call or asks about one."""
        return bool(self.deny or self.ask)

    @classmethod
    def from_settings(cls, settings: Settings, approvals: Iterable[Approval] = ()) -> Policy:
        """Make the policy of the settings' rules and the person's "always" answers.

        Raises:
            PatternError: a pattern that cannot be read.
        """
        rules = settings.permissions
        return cls(_parsed(rules.allow), _parsed(rules.ask), _parsed(rules.deny), tuple(approvals))

    def decide(
        self,
        action: str,
        purity: Purity,
        effects: Sequence[Effect],
        actor: Actor = "model",
        approve: Approve = "ask",
        face: ActionFace | None = None,
        unasked: str = "",
    ) -> PermissionVerdict:
        """Return the verdict on a call: the strictest over all of its effects.

        Args:
            action: the resolved action's qualified name.
            purity: the call's.
            effects: what the call would do; paths relative to the workspace root.
            actor: who calls.
            approve: what ``--approve`` says for this run: "ask", "read" (deny whatever would ask) or "all".
            face: what the action says of itself, for approvals that are bound to it.
            unasked: why a call that names no effects needs no consent, where that is so; see `Tool.unasked`.
        """
        verdicts = [
            self._decide_one(action, purity, effect, actor, approve, face, unasked)
            for effect in _targets(purity, effects)
        ]
        worst = max(verdicts, key=lambda verdict: _WORST[verdict.decision])
        if worst.decision != "ask":
            return worst
        outdated = next((each.approved_face for each in verdicts if each.approved_face is not None), None)
        return replace(worst, approved_face=outdated)

    def asked_about(
        self,
        action: str,
        purity: Purity,
        effects: Sequence[Effect],
        actor: Actor,
        approve: Approve,
        face: ActionFace | None,
        unasked: str = "",
    ) -> tuple[Effect | None, ...]:
        """Return the effects of a call that need consent, see `decide`; None stands for the call by itself."""
        return tuple(
            effect
            for effect in _targets(purity, effects)
            if self._decide_one(action, purity, effect, actor, approve, face, unasked).decision == "ask"
        )

    @staticmethod
    def reads_inside(action: str, purity: Purity, effects: Sequence[Effect]) -> bool:
        """Return whether a call only reads inside the workspace, so that it needs no consent of its own.

        >>> from reyn_jupyter.catalog.action import Effect, Purity
        >>> Policy.reads_inside("file__read", Purity.READ, [Effect("read", "a.md")])
        True
        >>> Policy.reads_inside("web__fetch", Purity.NETWORK, [Effect("network", "example.org")])
        False
        """
        # Nobody knows what a registered function does with its arguments.
        return not action.startswith("function__") and all(
            purity.repeatable if effect is None else _only_reads(effect)
            for effect in _targets(purity, effects)
        )

    def denies_below(self, action: str, effects: Sequence[Effect]) -> bool:
        """Return whether a rule may deny a file below what a call names, which may be a folder.

        The files are not looked at: a call on a folder that has none of those is one, too.

        >>> from reyn_jupyter.catalog.effects import Effect
        >>> policy = Policy(deny=(ActionPattern.parse("file__read(data/**/*.key)"),))
        >>> [policy.denies_below("file__grep", [Effect("read", path)]) for path in (".", "data/old", "src")]
        [True, True, False]
        """
        return any(
            rule.may_restrict_below(name, effect.kind, effect.target)
            for effect in effects
            if effect.kind.is_path
            for name in ((action, READING) if effect.kind is EffectKind.READ else (action,))
            for rule in self.deny
        )

    def of_files(
        self,
        action: str,
        effects: Sequence[Effect],
        actor: Actor = "model",
        approve: Approve = "ask",
        face: ActionFace | None = None,
    ) -> Callable[[str], FileDecision] | None:
        """Return the verdict on each file that an allowed call opens, by its path; None where no rule has a say.

        A call is judged by what it names, which may be a folder; the rules hold for the files in it too. What the
        call itself was asked about is settled: its own targets, and all that the same rule covers.

        Args:
            action, actor, approve, face: as for `decide`.
            effects: those that the call was allowed with.
        """
        if not self.has_restrictions:
            return None
        own = [effect for effect in effects if effect.kind.is_path]
        targets = {effect.target for effect in own}
        # What a call does to the files that it names it may do to those that it finds; all of them it reads.
        kinds = {EffectKind.READ, *(effect.kind for effect in own)}

        @cache
        def rules() -> tuple[list[ActionPattern], list[ActionPattern]]:
            """Return the rules of this action that deny, and those that ask about more than the call."""
            denied = [rule for rule in self.deny if _is_about(rule, action)]
            if actor == "person" or approve == "all":
                return denied, []
            asked = [rule for rule in self.ask if rule.target is not None and _is_about(rule, action)]
            return denied, [
                rule
                for rule in asked
                if not any(_restricts(rule, action, effect.kind, effect.target) for effect in own)
            ]

        def restricted(patterns: Sequence[ActionPattern], path: str) -> list[EffectKind]:
            return [kind for kind in kinds if any(_restricts(rule, action, kind, path) for rule in patterns)]

        @lru_cache(1024)
        def verdict(path: str) -> FileDecision:
            if path in targets:  # what denies it has denied the call
                return "allow"
            denied, asked = rules()
            if restricted(denied, path):
                return "deny"
            if all(self._approval(action, kind, path, face)[0] for kind in restricted(asked, path)):
                return "allow"
            return "deny" if approve == "read" else "ask"

        return verdict

    def _decide_one(
        self,
        action: str,
        purity: Purity,
        effect: Effect | None,
        actor: Actor,
        approve: Approve,
        face: ActionFace | None,
        unasked: str,
    ) -> PermissionVerdict:
        kind, target = (effect.kind, effect.target) if effect is not None else (None, None)
        denied = _first_restricting(self.deny, action, kind, target)
        if denied:
            return PermissionVerdict(
                "deny", "policy", f"the rule {denied} denies {_named(action, target)}", denied
            )
        if actor == "person":
            return PermissionVerdict("allow", "person", "the person called it")
        if approve == "all":
            return PermissionVerdict("allow", "approve", "this run approves whatever is not denied")
        approved, outdated = self._approval(action, kind, target, face)
        if approved:
            return PermissionVerdict("allow", "person", "the person said always", approved)
        asked = _first_restricting(self.ask, action, kind, target)
        if asked is None:
            if allowed := next((each.text for each in self.allow if each.allows(action, kind, target)), None):
                return PermissionVerdict("allow", "policy", f"the rule {allowed} allows it", allowed)
            if action.startswith("function__"):
                return PermissionVerdict("allow", "person", "the person registered this function")
            if effect is None and unasked:
                return PermissionVerdict("allow", "purity", unasked)
            if _only_reads(effect) if effect else purity.repeatable:
                return PermissionVerdict("allow", "purity", "it only reads inside the workspace")
        by, what = "policy" if asked else "default", _named(action, target)
        if approve == "read":
            return PermissionVerdict(
                "deny", "approve", f"{what} needs consent, and this run only reads", asked
            )
        return PermissionVerdict("ask", by, f"{what} needs consent", asked, outdated)

    def _approval(
        self, action: str, kind: EffectKind | None, target: str | None, face: ActionFace | None
    ) -> tuple[str | None, FaceRecord | None]:
        """Return the approval that covers a target; where none does, the face that one was given for."""
        outdated = None
        for approval in self.approved:
            if approval.covers(action, kind, target):
                if approval.holds_for(face):
                    return approval.pattern.text, None
                outdated = approval.face
        return None, outdated


def _targets(purity: Purity, effects: Sequence[Effect]) -> list[Effect | None]:
    """Return what is judged: the effects, and the call by itself where they do not say what it does."""
    unsaid = not effects or (not purity.repeatable and all(effect.kind == "read" for effect in effects))
    return [*effects, None] if unsaid else list(effects)


class PolicyInForce:
    """The policy of the settings and the approvals now; parsed again only when one of them moved.

    Args:
        approvals: gives those in force, as `Approvals.entries` does.
    """

    def __init__(self, approvals: Callable[[], tuple[Approval, ...]]) -> None:
        self._approvals = approvals
        self._parsed: tuple[Permissions, tuple[Approval, ...], Policy] | None = None

    def under(self, settings: Settings) -> Policy:
        """Return the policy of these settings. Raises PatternError for a pattern that cannot be read."""
        rules, approved = settings.permissions, self._approvals()
        if self._parsed is None or self._parsed[0] is not rules or self._parsed[1] != approved:
            self._parsed = (rules, approved, Policy.from_settings(settings, approved))
        return self._parsed[2]


def _named(action: str, target: str | None) -> str:
    """Return an action with its target, as a sentence names it."""
    return action if target is None else f"{action} on {clip_middle(printable_path(target), 120)}"


def suggest_patterns(action: str, asked: Sequence[Effect | None]) -> tuple[str, ...]:
    """Return the patterns that "always" would stand for: this action on exactly the targets that need consent.

    Args:
        action: its qualified name.
        asked: what needs consent, see `Policy.asked_about`.

    Returns:
        One for each target; none where "always" cannot be offered: a target reads as a wildcard, there are more than
        20, or beside its targets the call needs consent by itself.

    >>> from reyn_jupyter.catalog.effects import Effect
    >>> suggest_patterns("file__write", [Effect("write", "./data/out.csv")])
    ('file__write(write:data/out.csv)',)
    """
    several = tuple(dict.fromkeys(asked))
    if None in several and len(several) > 1:
        return ()
    patterns = [
        ActionPattern.exact(action, *((each.kind, each.target) if each is not None else (None, None)))
        for each in several[: MOST_KEPT + 1]
    ]
    found = tuple(pattern.text for pattern in patterns if pattern is not None)
    return found if len(found) == len(patterns) <= MOST_KEPT else ()


def stays_in_workspace(effect: Effect) -> bool:
    """Return whether an effect is on a path inside the workspace.

    >>> from reyn_jupyter.catalog.effects import Effect
    >>> stays_in_workspace(Effect("write", "a/../b.csv")), stays_in_workspace(Effect("write", "../b.csv"))
    (True, False)
    """
    return effect.kind.is_path and not leads_out(effect.target)


def _only_reads(effect: Effect) -> bool:
    return effect.kind is EffectKind.READ and stays_in_workspace(effect)


def _parsed(patterns: Iterable[str]) -> tuple[ActionPattern, ...]:
    return tuple(ActionPattern.parse(pattern) for pattern in patterns)


def _first_restricting(
    patterns: Sequence[ActionPattern], action: str, kind: EffectKind | None, target: str | None
) -> str | None:
    return next((each.text for each in patterns if _restricts(each, action, kind, target)), None)


def _restricts(rule: ActionPattern, action: str, kind: EffectKind | None, target: str | None) -> bool:
    """Return whether a rule that denies or asks stands for a call; one about reading does for whatever reads."""
    if rule.restricts(action, kind, target):
        return True
    return kind is EffectKind.READ and action != READING and rule.restricts(READING, kind, target)


def _is_about(rule: ActionPattern, action: str) -> bool:
    """Return whether a rule may stand for a file that an action opens."""
    return rule.covers_action(action) or rule.covers_action(READING)
