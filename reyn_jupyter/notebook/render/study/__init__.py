"""A study as blocks: report, comparison, run, suite and failed trials."""

from __future__ import annotations
