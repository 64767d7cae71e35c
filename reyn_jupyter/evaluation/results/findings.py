"""Published sentences beside what a study found, each with what its own sample could support.

Invariants: a claim's interval comes from its published counts alone; where only a range was published, no interval is
made up for it; the comparisons that a suite's claims ask for are corrected together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reyn_jupyter.evaluation.plan.scenario import Source
from reyn_jupyter.evaluation.plan.suite import Claim
from reyn_jupyter.evaluation.results.comparison import Comparison, adjust, compare
from reyn_jupyter.evaluation.results.trial_set import EvidenceError, TrialSet
from reyn_jupyter.evaluation.statistics.intervals import rate_limits
from reyn_jupyter.evaluation.statistics.power import least, scenarios_for_width
from reyn_jupyter.evaluation.statistics.rates import Mean, Rate, clopper_pearson, mean, rate
from reyn_jupyter.support.text import count


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
        """The support that the published sample gives, and how many scenarios it would need, in words."""
        return (
            "only a range was published, without counts"
            if self.published is None
            else self.published.sentence
        )

    @property
    def agrees(self) -> bool | None:
        """True if the intervals of the found and the published rate meet, so both can be true; None if unknown, or if
        the found one is so wide that to meet it says nothing."""
        published = self.published or self.claim
        low, high = published.low, published.high
        if self.found is None or low is None or high is None:
            return None
        if self.found.low is None or self.found.high is None:
            return True if low <= self.found.estimate <= high else None
        meet = self.found.low <= high and low <= self.found.high
        return None if meet and self.too_few else meet

    @property
    def too_few(self) -> bool:
        """Whether what was found is a rate that may lie anywhere on more than half of the scale."""
        return isinstance(self.found, Rate) and self.found.high - self.found.low > _WIDE


_WIDE = 0.5


def find_claims(evidence: TrialSet) -> tuple[ClaimFinding, ...]:
    """Return every claim of the suite beside the study's own figures, in the suite's order."""
    found = [_finding(evidence, claim) for claim in evidence.claims]
    asked = {_compared_variants(each.claim): each.comparison for each in found if each.comparison is not None}
    corrected = dict(zip(asked, adjust(list(asked.values())), strict=True))
    return tuple(replace(each, comparison=corrected.get(_compared_variants(each.claim))) for each in found)


def _compared_variants(claim: Claim) -> tuple[str | None, ...]:
    """Return what a claim compares; two claims may ask for the same."""
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


HALF_WIDTH = 0.1


@dataclass(frozen=True)
class ClaimSupport:
    """The interval of a published rate, and what its sample can support.

    Attributes:
        estimate: the share that passed.
        low, high: confidence limits for independent trials.
        supported: whether the interval leaves `against` out; None where nothing was to be left out.
        needed: scenarios, one trial each, at which the same share would leave `against` out, or, without one, would
            be known to within 10 points either way; None where the share equals `against`.
        sentence: the same in words.
    """

    estimate: float
    low: float
    high: float
    supported: bool | None
    needed: int | None
    sentence: str


def claim_support(
    passed: int, trials: int, against: float | None = None, *, level: float = 0.95
) -> ClaimSupport:
    """Return what the sample behind a claim supports, and how many scenarios it would need.

    Args:
        passed: passes that the claim reports.
        trials: trials that it reports, taken as independent, which is the best case.
        against: a rate that the claim means to beat or to stay under; None where it only states a figure.
        level: the confidence level.

    Returns:
        A `ClaimSupport`.

    Raises:
        ValueError: the counts or rates make no sense, or more than 100,000 scenarios would be needed.

    Example:
        >>> claim_support(3, 4, against=0.5).sentence
        '3 of 4 is 75 % (30 to 95), so perhaps 50 %; 16 scenarios of the same share would tell.'
    """
    low, high = clopper_pearson(passed, trials, level)
    share = passed / trials
    head = f"{passed:,} of {trials:,} is {100 * share:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
    if against is None:
        needed = scenarios_for_width(share, HALF_WIDTH, level=level)
        tail = f"{count(needed, 'scenario')} would tell it to within {100 * HALF_WIDTH:.0f} points"
        return ClaimSupport(share, low, high, None, needed, f"{head}; {tail}.")
    if not 0 <= against <= 1:
        raise ValueError(f"a rate of {against!r} cannot be held against a claim; it must lie between 0 and 1")
    if share == against:
        sentence = f"{head}: it is the very rate that it is held against, which no sample leaves out."
        return ClaimSupport(share, low, high, False, None, sentence)
    supported = not low <= against <= high
    enough = least(lambda size: not _holds(share, size, against, level), 1)
    side = ("more than" if share > against else "less than") if supported else "perhaps"
    tail = "" if supported else f"; {count(enough, 'scenario')} of the same share would tell"
    sentence = f"{head}, so {side} {100 * against:.0f} %{tail}."
    return ClaimSupport(share, low, high, supported, enough, sentence)


def _holds(share: float, size: int, against: float, level: float) -> bool:
    low, high = rate_limits(np.asarray(share), np.asarray(float(size)), level)
    return bool(low <= against <= high)
