"""From a request and records to an order: by words, by meaning, by name."""

from __future__ import annotations
