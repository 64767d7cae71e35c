"""Results with a MIME type: several texts, images, sounds, JSON values and links that one action gave together."""

from __future__ import annotations
