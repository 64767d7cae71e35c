"""Blobs: identifiers, manifests, and the stores that hold them."""

from __future__ import annotations
