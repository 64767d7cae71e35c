"""The rules of the gate inside a trial: an allow-list, since nobody is there to be asked.

Invariant: what a trial runs is pure, or reads or writes its own workspace and says what it writes. Everything else is
denied until the study names it in `allow_actions`; a rule of the settings that denies wins over both. A tool that a
model makes in a trial reaches a host or a program only where the study names that very target, since nobody reads its
code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reyn_jupyter.catalog.action import Effect, Purity
from reyn_jupyter.catalog.action_face import ActionFace
from reyn_jupyter.config import ActionPattern, Settings
from reyn_jupyter.guard.permissions import Actor, Approve, PermissionVerdict, Policy, stays_in_workspace

BY = "study"  # who decided, in a run's record
REASON = "a trial acts on nothing outside its own workspace, and the study does not allow this one"
_MADE = "dynamic_tool"  # how the categories of tools begin that are made at run time
_DECLARED = frozenset({Purity.PURE, Purity.READ, Purity.WRITE})


@dataclass(frozen=True)
class TrialPolicy(Policy):
    """The policy of a trial. `named` are the actions that the study allows beside those inside the workspace."""

    named: tuple[ActionPattern, ...] = ()

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
        """See `Policy.decide`."""
        verdict = super().decide(action, purity, effects, actor, approve, face, unasked)
        if verdict.decision == "deny" or all(
            any(self._names(pattern, action, effect) for pattern in self.named)
            for effect in _outside(purity, effects)
        ):
            return verdict
        return PermissionVerdict("deny", BY, REASON)

    @staticmethod
    def _names(pattern: ActionPattern, action: str, effect: Effect | None) -> bool:
        kind, target = (effect.kind, effect.target) if effect is not None else (None, None)
        if effect is not None and pattern.target is None and action.startswith(_MADE):
            return False
        return pattern.allows(action, kind, target)


def trial_policy(settings: Settings, allow_actions: Iterable[str] = ()) -> TrialPolicy:
    """Return the rules of the settings inside a trial. Raises PatternError for a pattern that cannot be read."""
    rules = Policy.from_settings(settings)
    named = tuple(ActionPattern.parse(pattern, loosens=True) for pattern in allow_actions)
    return TrialPolicy(rules.allow, rules.ask, rules.deny, (), named)


def _outside(purity: Purity, effects: Sequence[Effect]) -> list[Effect | None]:
    """Return the effects of a call that lie outside the workspace; None stands for what the action does not say."""
    outside: list[Effect | None] = [effect for effect in effects if not stays_in_workspace(effect)]
    unsaid = purity not in _DECLARED or (purity is Purity.WRITE and not effects)
    return [None] if unsaid and not outside else outside
