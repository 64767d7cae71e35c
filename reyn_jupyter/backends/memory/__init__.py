"""Memories: their format, where they are kept, what is taken in, and their state."""

from __future__ import annotations
