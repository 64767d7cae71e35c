"""How objects reach the page: their bundle, what is updated in place, widgets, formatters of the shell."""

from __future__ import annotations
