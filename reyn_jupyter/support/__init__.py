"""The bottom room: helpers that every room may use. It imports nothing of the package."""

from __future__ import annotations
