"""Show the catalog to a model or a person: listings, their filters, results of a search, visibility."""

from __future__ import annotations
