"""Recorded answers: their file, and the model that serves them again."""

from __future__ import annotations
