"""Honest statistics for trials of language models: pure functions over plain data.

The modules, each with one subject: `rates` (rates and means with intervals), `clusters` (how alike repeats are),
`paired` (two variants), `evalue` and `sequences` (stopping early), `power` (planning), `reliability` (pass^k),
`forecasts` (Brier), `multiple` (many comparisons) and `missing` (worst cases). Missing trials are absent, never
failures. numpy comes with these modules, scipy on first use.
"""

from __future__ import annotations
