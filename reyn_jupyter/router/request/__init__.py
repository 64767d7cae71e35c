"""What a model is told and offered: the prompt, mandates, its tools, the one that it is held to."""

from __future__ import annotations
