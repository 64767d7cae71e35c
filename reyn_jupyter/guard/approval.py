"""One "always" of a person.

Invariant: where the action is somebody else's, it holds only for the description and the schema that were approved.
"""

from __future__ import annotations

from dataclasses import dataclass

from reyn_jupyter.catalog.action_face import ActionFace, FaceRecord
from reyn_jupyter.config import ActionPattern


@dataclass(frozen=True)
class Approval:
    """One answer.

    Attributes:
        pattern: what is allowed.
        at: when it was given, in seconds since the epoch.
        face: what the action said of itself then; None where that does not matter.
    """

    pattern: ActionPattern
    at: float = 0.0
    face: FaceRecord | None = None

    def holds_for(self, face: ActionFace | None) -> bool:
        """Return whether the action still says of itself what was approved."""
        return self.face is None or (face is not None and face.record.digest == self.face.digest)
