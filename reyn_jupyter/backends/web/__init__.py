"""What the category `web` works with: guarded requests, robots.txt, pages as Markdown, search engines."""

from __future__ import annotations
