"""Corpora: documents of the person's, read, cut into passages and found again by words and meaning."""

from __future__ import annotations
