"""What a report rests on: models, settings, versions, hashes.

Invariant: every variant is named with the model that answered; a hash is shown by its first digits, which tell it from
others, and stands whole in `report.evidence.provenance`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reyn_jupyter.notebook.render.model import Facts, Fold, Span

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.evidence import Evidence
    from reyn_jupyter.notebook.render.untrusted import Look

_HASH = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b")


def provenance(evidence: Evidence, look: Look) -> Fold:
    """The last part of a report."""
    known = evidence.provenance.items()
    pairs = [(look.line(name, 60), look.line(_said(value), 800)) for name, value in known if name != "notes"]
    for name in evidence.tried:
        trials = evidence.by_variant[name]
        answered = ", ".join(dict.fromkeys(trial.model for trial in trials if trial.model)) or "unknown"
        marks = ", ".join(evidence.fingerprints(name)[:4]) or "none given"
        said = f"{_settings(evidence.variants[name])}; answered by {answered}; fingerprint: {marks}"
        pairs.append((look.line(name, 60), look.line(said, 400)))
    return Fold((Span("Provenance"),), (), "models, settings, versions, hashes", (Facts(tuple(pairs)),))


def _settings(variant: Any) -> str:
    changed = variant.model_dump(exclude={"name"}, exclude_defaults=True).items()
    return ", ".join(f"{name}={value}" for name, value in changed) or "defaults"


def _said(value: object) -> str:
    """A value in words: what is not there is "none", and what is the same for all is said once.

    >>> _said({"a": "simulated", "b": "simulated", "c": "simulated"}), _said({"usd": None})
    ('simulated', 'none')
    """
    if isinstance(value, Mapping):
        inner = {str(name): _said(each) for name, each in value.items() if each not in (None, "", (), [], {})}
        if len(inner) > 1 and len(set(inner.values())) == 1:
            return next(iter(inner.values()))
        return ", ".join(f"{name} {said}" for name, said in inner.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value)) or "none"
    return "none" if value is None else _HASH.sub(r"\1", str(value))
