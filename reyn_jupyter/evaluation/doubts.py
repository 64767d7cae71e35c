"""What stands in the way of believing a report's figures.

Invariant: what no real model did, what is missing, and a model that changed are always said; nothing is said twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reyn_jupyter.evaluation.checks import CHECKS
from reyn_jupyter.evaluation.statistics.arms import counted

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.comparison import Comparison
    from reyn_jupyter.evaluation.evidence import Evidence
    from reyn_jupyter.evaluation.report import Figure

_STAND_INS = {
    "offline": "The offline model is a small program; its rates say nothing of a language model.",
    "replayed": "They are recorded replies, sent through today's loop.",
    "scripted": "They show how the measurement works, not how a model behaves.",
    "simulated": "They show how the measurement works, not how a model behaves.",
}


def warnings(
    evidence: Evidence, figures: Mapping[str, Mapping[str, Figure]], comparisons: Sequence[Comparison]
) -> tuple[str, ...]:
    """What stands in the way of believing a report's figures, most important first."""
    told: list[str] = []
    errors: list[str] = []
    sources = sorted({evidence.sources[name] for name in evidence.tried} - {"real"})
    for source in sources:
        names = [name for name in evidence.tried if evidence.sources[name] == source]
        whose = "These trials" if len(names) == len(evidence.tried) else f"The trials of {', '.join(names)}"
        told.append(f"{whose} are {source}. {_STAND_INS[source]}")
    for name in evidence.checks:
        if name not in CHECKS:
            told.append(
                f"{name} is no check of this session, so its verdicts are those of the run. Run the cell that "
                "defines it to have it asked anew."
            )
        times, why = evidence.broken(name)
        if times:
            graded = len(evidence.verdicts(name))
            told.append(
                f"{name}: {why}. So it is with {times:,} of {counted(graded, 'trial')}, which it leaves ungraded."
            )
    for variant, left in evidence.left_out.items():
        counts = ", ".join(f"{count} {source}" for source, count in left.items())
        told.append(f"{variant}: {counts} trials stand apart from its {evidence.sources[variant]} ones.")
    for variant in evidence.tried:
        found = figures[variant][evidence.primary]
        if found.missing:
            bounds = found.bounds
            range_ = (
                f"; its rate lies between {bounds[0]:.0%} and {bounds[1]:.0%} whatever they would have shown"
                if bounds
                else ""
            )
            outcomes = evidence.outcomes(variant)
            how = ", ".join(counted(outcomes[kind], kind) for kind in ("error", "timeout") if outcomes[kind])
            told.append(
                f"{variant}: {counted(found.missing, 'trial')} {'is' if found.missing == 1 else 'are'} missing "
                f"({how}){range_}.".replace("%", " %")
            )
            error, times = _why_missing(evidence, variant)
            if error:
                errors.append(error)
                told.append(f"{variant}: {error}{f' ({times:,} times)' if times > 1 else ''}")
        marks = evidence.fingerprints(variant)
        if len(marks) > 1:
            told.append(
                f"{variant}: the model changed during the study ({len(marks)} fingerprints: {', '.join(marks[:4])})."
            )
    said_once = dict.fromkeys(
        warning
        for found in _primary(evidence, figures)
        if found.found is not None
        for warning in found.found.warnings
    )
    told += said_once
    told += dict.fromkeys(
        f"{each.b} against {each.a}: {warning}" if len(comparisons) > 1 else warning
        for each in comparisons
        for warning in each.warnings
        if warning not in said_once
    )
    # A run notes each variant's first error; the most frequent one stands above already.
    notes = map(str, evidence.provenance.get("notes", ()))
    return (*told, *(note for note in notes if not note.endswith(tuple(errors))))


def _primary(evidence: Evidence, figures: Mapping[str, Mapping[str, Figure]]) -> list[Figure]:
    return [figures[variant][evidence.primary] for variant in evidence.tried]


def _why_missing(evidence: Evidence, variant: str) -> tuple[str, int]:
    """What most of a variant's missing trials ended with, and how many; "" where none says."""
    said = Counter(
        trial.error for trial in evidence.by_variant[variant] if trial.outcome == "error" and trial.error
    )
    return said.most_common(1)[0] if said else ("", 0)
