"""The line of %reyn: its words, options, holes and completions, and the line that would put a call right."""

from __future__ import annotations
