"""The base of everything that a study holds: frozen, checked on the way in, and one canonical JSON each."""

from __future__ import annotations

import hashlib
from functools import cached_property

from pydantic import BaseModel, ConfigDict

from reyn_jupyter.models.seam import canonical


class Frozen(BaseModel):
    """A value that never changes: equal values have equal digests in every process."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON, in hex."""
        return hashlib.sha256(canonical(self.model_dump(mode="json"))).hexdigest()
