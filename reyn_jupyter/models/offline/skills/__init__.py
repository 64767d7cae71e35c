"""The jobs of the offline model, one module each."""

from __future__ import annotations
