"""The plan of a study: scenarios, variants, suites and frozen catalogs."""

from __future__ import annotations
