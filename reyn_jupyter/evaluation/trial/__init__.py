"""One trial: its environment, its model, the session that runs it, and the record that it leaves."""

from __future__ import annotations
