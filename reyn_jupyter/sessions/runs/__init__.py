"""Runs of a session: begun, kept in the background, estimated, replayed, undone."""

from __future__ import annotations
