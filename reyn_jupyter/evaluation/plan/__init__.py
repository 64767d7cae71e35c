"""What is to be tried: scenarios, variants, suites and frozen catalogs."""

from __future__ import annotations
