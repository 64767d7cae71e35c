"""Statistics for trials of language models: pure functions over plain data.

The modules, each with one subject: `arms` (the values of a variant by scenario), `rates` (rates and means with
intervals), `intervals` (their formulas), `clusters` (how alike repeats are), `paired` (two variants),
`confidence_sequence` (stopping early), `power` (planning), `repeat_success` (pass^k), `calibration` (Brier), `multiple`
(many comparisons), `missing` (worst cases) and `glossary` (the terms, a sentence each). Missing trials are absent,
never failures. numpy comes with these modules, scipy on first use (`scipy_import`).
"""

from __future__ import annotations
