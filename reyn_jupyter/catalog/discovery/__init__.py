"""What a model or a person is told of the catalog: listings, their filters, results of a search, visibility."""

from __future__ import annotations
