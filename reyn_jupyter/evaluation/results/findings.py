"""Published sentences beside what a study found, each with what its own sample could support.

Invariants: a claim's interval comes from its published counts alone; where only a range was published, no interval is
made up for it; the comparisons that a suite's claims ask for are corrected together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reyn_jupyter.evaluation.plan.scenario import Source
from reyn_jupyter.evaluation.plan.suite import Claim
from reyn_jupyter.evaluation.results.comparison import Comparison, adjust, compare
from reyn_jupyter.evaluation.results.trial_set import EvidenceError, TrialSet
from reyn_jupyter.evaluation.statistics.claim_support import ClaimSupport, claim_support
from reyn_jupyter.evaluation.statistics.rates import Mean, Rate, mean, rate


@dataclass(frozen=True)
class ClaimFinding:
    """A claim, its published evidence, and what the study found.

    Attributes:
        published: what the published counts support; None where only a range was published.
        found: the rate under the claim's variant; None where the study has no such trials.
        against: the rate under the variant that the claim compares with.
        comparison: the paired comparison of the two, where there are pairs.
        truth: the true rate, where a simulator's table says it.
        source: where the study's trials come from.
    """

    claim: Claim
    published: ClaimSupport | None
    found: Rate | Mean | None = None
    against: Rate | Mean | None = None
    comparison: Comparison | None = None
    truth: float | None = None
    source: Source = "real"

    @property
    def support(self) -> str:
        """What the published sample can support, and how many scenarios it would need, in words."""
        return (
            "only a range was published, without counts"
            if self.published is None
            else self.published.sentence
        )

    @property
    def agrees(self) -> bool | None:
        """Whether what was found and what was published can both be true (their intervals meet); None where unknown."""
        published = self.published or self.claim
        low, high = published.low, published.high
        if self.found is None or low is None or high is None:
            return None
        if self.found.low is None or self.found.high is None:
            return True if low <= self.found.estimate <= high else None
        return self.found.low <= high and low <= self.found.high


def find_claims(evidence: TrialSet) -> tuple[ClaimFinding, ...]:
    """Every claim of the suite beside the study's own figures, in the suite's order."""
    found = [_finding(evidence, claim) for claim in evidence.claims]
    asked = {_asked(each.claim): each.comparison for each in found if each.comparison is not None}
    corrected = dict(zip(asked, adjust(list(asked.values())), strict=True))
    return tuple(replace(each, comparison=corrected.get(_asked(each.claim))) for each in found)


def _asked(claim: Claim) -> tuple[str | None, ...]:
    """What a claim compares; two claims may ask for the same."""
    return claim.against, claim.variant, claim.check, claim.family


def _finding(evidence: TrialSet, claim: Claim) -> ClaimFinding:
    published = None
    if claim.passed is not None and claim.trials:
        published = claim_support(claim.passed, claim.trials, claim.benchmark)
    found = _rate(evidence, claim, claim.variant)
    if found is None:
        return ClaimFinding(claim, published)
    comparison = None
    if claim.against is not None:
        comparison = _compare(evidence, claim)
    return ClaimFinding(
        claim,
        published,
        found,
        _rate(evidence, claim, claim.against) if claim.against else None,
        comparison,
        evidence.truths.get(claim.variant, {}).get(claim.check) if not claim.family else None,
        evidence.sources[claim.variant],
    )


def _rate(evidence: TrialSet, claim: Claim, variant: str) -> Rate | Mean | None:
    if variant not in evidence.tried:
        return None
    arm = evidence.arm(variant, claim.check, claim.family)
    if not arm:
        return None
    return mean(arm) if evidence.check(claim.check).numeric else rate(arm)


def _compare(evidence: TrialSet, claim: Claim) -> Comparison | None:
    assert claim.against is not None
    try:
        return compare(evidence, claim.against, claim.variant, claim.check, claim.family)
    except EvidenceError:
        return None
