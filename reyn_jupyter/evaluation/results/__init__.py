"""What the trials of a study say: comparison, report, findings, recommendation."""

from __future__ import annotations
