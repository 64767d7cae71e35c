"""The conditions of a trial besides scenario, variant, repeat and code: the catalog, the study's settings, a stand-in.

Invariant: trials that stand on different ground are never pooled. The key of a trial does not hold these, since they
are the study's and not the trial's; the study's file keeps them beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from reyn_jupyter.models.base import canonical


def conditions_digest(
    config: Mapping[str, Any] | None, made_of: Mapping[str, Any] | None, allow_actions: Sequence[str] = ()
) -> str:
    """Return a digest of a study's settings, of what a stand-in's answers depend on and of what trials may do; "" where
    there is none of it.

    Args:
        config: the settings of every trial.
        made_of: a simulator's table, seed and correlations; None for a model that does not say.
        allow_actions: the patterns of actions that trials may run outside their workspace, in any order.
    """
    if not config and not made_of and not allow_actions:
        return ""
    parts: list[Any] = [dict(config or {}), dict(made_of or {})]
    if allow_actions:
        parts.append(sorted(set(allow_actions)))
    return hashlib.sha256(canonical(parts)).hexdigest()


def conditions_of(catalog: str, stamp: str) -> str:
    """Return the ground of a trial, from the hash of its frozen catalog and the stamp of its model."""
    return hashlib.sha256(f"{catalog} {stamp}".encode()).hexdigest() if stamp else catalog
