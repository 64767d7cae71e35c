"""What a model replied: put in order, its written calls found, its answer held against the conversation."""

from __future__ import annotations
