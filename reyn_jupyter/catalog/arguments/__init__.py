"""The arguments of a call: read, repaired, checked against a schema, their references found."""

from __future__ import annotations
