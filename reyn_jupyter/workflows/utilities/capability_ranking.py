"""Which of the utilities that declare a capability serves it, and why the others do not.

Invariant: no utility is chosen that does not fit the contract, is not trusted, or lacks a program that it declares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from reyn_jupyter.support.encoding import one_line
from reyn_jupyter.support.text import enumerate_words
from reyn_jupyter.workflows.utilities.contract import Contract, Violation, step_violations
from reyn_jupyter.workflows.utilities.manifest import Utility, is_capability, semver_key
from reyn_jupyter.workflows.utilities.program import missing_dependencies
from reyn_jupyter.workflows.utilities.registry import UtilityRegistry, precedence

THRESHOLD = 0.75
Verdict = Literal["fits", "incompatible", "low confidence", "not trusted", "not ready"]


@dataclass(frozen=True)
class RankedUtility:
    """One utility that declares a capability, and what becomes of it.

    Attributes:
        utility: which.
        verdict: "fits", or the first gate that it did not pass.
        why: the same in a sentence.
        violations: of the contract; none where no contract was asked about.
    """

    utility: Utility
    verdict: Verdict
    why: str
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True)
class CapabilityRanking:
    """The utilities that declare a capability, best first: those that fit, then the others.

    Attributes:
        capability: as it was asked for.
        rows: see `RankedUtility`.
        reason: why none was chosen, as gaps have it; None where one was.
        message: the same in a sentence; which one was chosen and why, where one was.
    """

    capability: str
    rows: tuple[RankedUtility, ...]
    reason: (
        Literal["invalid_capability", "no_capability_match", "schema_incompatible", "low_confidence"] | None
    )
    message: str

    @property
    def chosen(self) -> Utility | None:
        """The utility that serves the capability; None where none does."""
        return self.rows[0].utility if self.reason is None else None


def rank(
    registry: UtilityRegistry,
    capability: str,
    contract: Contract | None = None,
    confidence: object = None,
    threshold: float = THRESHOLD,
    *,
    by_model: bool = False,
) -> CapabilityRanking:
    """Rank the utilities that declare a capability, and choose one.

    The order is that of the specification: contract, confidence, then priority, stability, version, name.

    Args:
        registry: what there is.
        capability: ``domain.action``.
        contract: of the step, see `step_violations`; None where nothing is known of it.
        confidence: of the language model that planned the step; anything but a number from 0 to 1 counts as 0.
        threshold: the least confidence.
        by_model: whether a language model planned the step. Only then does confidence count; a confidence that is given
            counts always.

    Example:
        >>> rank(UtilityRegistry(), "tg.scrape").reason
        'no_capability_match'
    """
    if not is_capability(capability):
        message = (
            f"{one_line(str(capability)[:100])} is no capability: domain.action, small letters, digits and -."
        )
        return CapabilityRanking(capability, (), "invalid_capability", message)
    rows = [
        _judged(utility, contract, confidence, threshold, by_model or confidence is not None)
        for utility in registry.candidates(capability)
    ]
    # Sorted by the last key first: sorting is stable.
    rows.sort(key=lambda row: row.utility.id)
    rows.sort(key=lambda row: precedence(row.utility)[1:], reverse=True)
    rows.sort(
        key=lambda row: (row.utility.manifest.priority, row.utility.manifest.stability == "stable"),
        reverse=True,
    )
    rows.sort(key=lambda row: _VERDICTS.index(row.verdict))
    if rows and rows[0].verdict == "fits":
        message = f"{rows[0].utility.id} serves {capability}{_lead(rows)}."
        return CapabilityRanking(capability, tuple(rows), None, message)
    if not rows:
        return CapabilityRanking(capability, (), "no_capability_match", f"No utility declares {capability}.")
    verdict = rows[0].verdict
    reason: Literal["schema_incompatible", "low_confidence", "no_capability_match"] = (
        "low_confidence"
        if verdict == "low confidence"
        else "schema_incompatible"
        if verdict == "incompatible"
        else "no_capability_match"
    )
    words = "; ".join(f"{row.utility.id}: {row.why}" for row in rows[:5])
    return CapabilityRanking(
        capability, tuple(rows), reason, f"No utility that may run serves {capability}. {words}"
    )


# In the order in which they are listed.
_VERDICTS: tuple[Verdict, ...] = ("fits", "low confidence", "incompatible", "not ready", "not trusted")


def as_confidence(value: object) -> float:
    """Return a confidence, or 0 for what is none: missing, no number, not from 0 to 1.

    >>> as_confidence(0.8), as_confidence(True), as_confidence(float("nan")), as_confidence("1"), as_confidence(None)
    (0.8, 0.0, 0.0, 0.0, 0.0)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return 0.0
    return float(value)


def missing_words(utility: Utility) -> str:
    """Return what a utility needs on this machine that is not there, as a sentence without its dot; "" for nothing.

    >>> missing_words(utility)  # doctest: +SKIP
    'ffmpeg is not installed'
    """
    missing = missing_dependencies(utility)
    words = [each.name if each.kind == "command" else f"the package {each.name}" for each in missing]
    verb = "is" if len(words) == 1 else "are"
    return f"{enumerate_words(words, 'and')} {verb} not installed" if words else ""


def _judged(
    utility: Utility, contract: Contract | None, confidence: object, threshold: float, counts: bool
) -> RankedUtility:
    """Return what becomes of one utility, by the gates in their order."""
    manifest = utility.manifest
    violations = () if contract is None else step_violations(contract, manifest.contract)
    if not utility.trusted:
        return RankedUtility(
            utility, "not trusted", f"{utility.trust_name} is not trusted; see '%reyn trust'", violations
        )
    if missing := missing_words(utility):
        return RankedUtility(utility, "not ready", missing, violations)
    if violations:
        first = violations[0]
        more = f", and {len(violations) - 1} more" if len(violations) > 1 else ""
        return RankedUtility(
            utility,
            "incompatible",
            f"its {first.direction} does not fit at {first.path or 'its whole'}: {first.message}{more}",
            violations,
        )
    if counts and as_confidence(confidence) < threshold:
        return RankedUtility(
            utility,
            "low confidence",
            f"the model's confidence is {as_confidence(confidence):g}, below {threshold:g}",
        )
    return RankedUtility(
        utility, "fits", f"priority {manifest.priority}, {manifest.stability}, version {manifest.version}"
    )


def _lead(rows: Sequence[RankedUtility]) -> str:
    """Return the end of the sentence that says why the first row is before the second."""
    if len(rows) < 2 or rows[1].verdict != "fits":
        return ", the only one that fits" if len(rows) > 1 else ""
    first, second = rows[0].utility.manifest, rows[1].utility.manifest
    if first.priority != second.priority:
        return f" before {second.id}: priority {first.priority} is above {second.priority}"
    if first.stability != second.stability:
        return f" before {second.id}: {first.stability} comes before {second.stability}"
    if semver_key(first.version) != semver_key(second.version):
        return f" before {second.id}: its version is higher"
    return f" before {second.id}: by name"
