"""Draw blocks: HTML, text, Markdown and pages of their own; a host knows no object, only blocks."""

from __future__ import annotations
