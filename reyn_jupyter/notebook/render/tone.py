"""What a colour repeats of what words say.

Invariant: no state is told by a tone alone.
"""

from __future__ import annotations

from typing import Literal

Tone = Literal["plain", "good", "bad", "warn", "info", "muted"]
