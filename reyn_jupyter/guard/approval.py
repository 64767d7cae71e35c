"""One "always" of a person.

Invariant: where the action is somebody else's, it holds only for the description and the schema that were approved.
"""

from __future__ import annotations

from dataclasses import dataclass

from reyn_jupyter.catalog.action_face import ActionFace, FaceRecord
from reyn_jupyter.config import ActionPattern
from reyn_jupyter.support.effect_targets import EffectKind


@dataclass(frozen=True)
class Approval:
    """One answer.

    Attributes:
        pattern: what is allowed.
        at: when it was given, in seconds since the epoch.
        face: what the action said of itself then; None where that does not matter.
        by_itself: only a call that names no effect is allowed, since the question showed none.
    """

    pattern: ActionPattern
    at: float = 0.0
    face: FaceRecord | None = None
    by_itself: bool = False

    def covers(self, action: str, kind: EffectKind | None, target: str | None) -> bool:
        """Return whether a call is among what is allowed."""
        return not (self.by_itself and kind is not None) and self.pattern.allows(action, kind, target)

    def holds_for(self, face: ActionFace | None) -> bool:
        """Return whether the action still says of itself what was approved."""
        return self.face is None or (face is not None and face.record.digest == self.face.digest)
