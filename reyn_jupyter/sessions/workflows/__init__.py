"""Utilities, plans and workflows of a session, for people."""

from __future__ import annotations
