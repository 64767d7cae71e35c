"""One run of a study: which trials are missing, how many run at once, what they cost, where they are written."""

from __future__ import annotations
