"""The file of a study: trials, events, verdicts and runs in one SQLite database."""

from __future__ import annotations
