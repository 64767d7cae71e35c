"""What a session shows people of its parts, and what they do to them by hand."""

from __future__ import annotations
