"""The record of a run: its events, the log that holds them, and what is read from it."""

from __future__ import annotations
