"""The conditions of a trial besides scenario, variant, repeat and code: the catalog, the study's settings, a stand-in.

Invariant: trials that stand on different ground are never pooled. The key of a trial does not hold these, since they
are the study's and not the trial's; the study's file keeps them beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from reyn_jupyter.models.base import canonical


def conditions_digest(config: Mapping[str, Any] | None, made_of: Mapping[str, Any] | None) -> str:
    """Return a digest of a study's settings and of what a stand-in's answers depend on; "" where there is neither.

    Args:
        config: the settings of every trial.
        made_of: a simulator's table, seed and correlations; None for a model that does not say.
    """
    if not config and not made_of:
        return ""
    return hashlib.sha256(canonical([dict(config or {}), dict(made_of or {})])).hexdigest()


def conditions_of(catalog: str, stamp: str) -> str:
    """Return the ground of a trial, from the hash of its frozen catalog and the stamp of its model."""
    return hashlib.sha256(f"{catalog} {stamp}".encode()).hexdigest() if stamp else catalog
