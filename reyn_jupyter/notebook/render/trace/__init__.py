"""A run as blocks: its card, steps, calls, details and the difference of two."""

from __future__ import annotations
