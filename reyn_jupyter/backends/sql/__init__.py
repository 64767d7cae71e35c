"""SQL over what it was given: sources found and covered, frames sent to a process of its own, the answer read."""

from __future__ import annotations
