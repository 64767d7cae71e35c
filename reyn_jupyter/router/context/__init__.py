"""What a conversation holds, and what of it fits a request."""

from __future__ import annotations
