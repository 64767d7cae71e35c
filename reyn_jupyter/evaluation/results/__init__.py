"""The results of a study, from its trials: comparison, report, findings, recommendation."""

from __future__ import annotations
