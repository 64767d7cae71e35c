"""Published sentences beside what a study found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reyn_jupyter.evaluation.plan.suite import Claim
from reyn_jupyter.evaluation.results.findings import find_claims
from reyn_jupyter.notebook.render.blocks import View
from reyn_jupyter.notebook.render.hosts.plain_text import to_text
from reyn_jupyter.notebook.render.study.report_view import claims_section
from reyn_jupyter.notebook.render.value_text import Look
from tests.evaluation.trial_set_support import evidence, many, mixed

LISTED = Claim(id="listed", sentence="Unknown work is listed first.", family="", check="first_call_is",
               variant="base", passed=16, trials=16, benchmark=0.5)  # fmt: skip
RANGE = Claim(id="range", sentence="Three times is 75 to 85 %.", family="", check="first_call_is",
              variant="best", against="base", low=0.75, high=0.85)  # fmt: skip


def test_a_claim_stands_with_what_its_sample_supports_and_how_many_it_needs() -> None:
    (found,) = find_claims(evidence({"base": mixed(38, 40)}, claims=(LISTED,)))
    assert found.published is not None and (found.published.low, found.published.high) == pytest.approx(
        (0.794, 1.0), abs=1e-3
    )
    assert "16/16" in found.support or "16 of 16" in found.support
    assert found.found is not None and found.found.estimate == 0.95 and found.agrees is True


def test_a_finding_that_cannot_be_true_beside_the_claim_is_said() -> None:
    (found,) = find_claims(evidence({"base": mixed(4, 40)}, claims=(LISTED,)))
    assert found.agrees is False


def test_a_range_without_counts_has_no_made_up_interval_and_is_compared() -> None:
    (found,) = find_claims(evidence({"base": mixed(12, 40), "best": mixed(32, 40)}, claims=(RANGE,)))
    assert found.published is None and "without counts" in found.support
    assert found.agrees is True and found.against is not None and found.against.estimate == 0.3
    assert found.comparison is not None and found.comparison.winner == "best"


def test_few_trials_that_nearly_every_claim_would_fit_are_said_to_be_too_few() -> None:
    trials = evidence({"base": mixed(1, 3), "best": mixed(2, 3)}, claims=(RANGE,))
    (found,) = find_claims(trials)
    assert found.agrees is None and found.too_few
    shown = to_text(View("report", "Report", blocks=(claims_section([found], Look()),)))
    assert "too few to tell" in shown and "fits" not in shown
    (never,) = find_claims(evidence({"base": mixed(1, 6), "best": mixed(0, 6)}, claims=(RANGE,)))
    assert never.agrees is False, "what cannot be true is said of few trials too"


def test_a_claim_that_nothing_was_tried_for_says_what_was_published_alone() -> None:
    listed, ranged = find_claims(evidence({"other": many(4, True)}, claims=(LISTED, RANGE)))
    assert listed.found is None and listed.agrees is None and listed.support
    assert ranged.comparison is None


def test_a_claim_about_a_family_looks_at_that_family_and_marks_its_source() -> None:
    claim = Claim(id="f", sentence="Edits are edits.", family="edit", check="first_call_is", variant="base",
                  against="best", passed=3, trials=4)  # fmt: skip
    families = {f"s{n:03}": "edit" if n < 10 else "discover" for n in range(40)}
    truths = {"base": {"first_call_is": 0.5}, "best": {"first_call_is": 0.9}}
    on = evidence({"base": mixed(10, 40), "best": many(40, True)}, claims=(claim,), families=families, truths=truths,
                  sources={"base": "simulated", "best": "simulated"})  # fmt: skip
    (found,) = find_claims(on)
    assert found.found is not None and (found.found.estimate, found.found.scenarios) == (1.0, 10)
    assert found.source == "simulated" and found.truth is None
    assert found.comparison is not None and found.comparison.truth is None


def test_a_claim_without_a_pair_or_a_trial_that_it_applies_to_has_no_comparison() -> None:
    claim = Claim(id="n", sentence="None is made up.", family="", check="abstained_when_unanswerable", variant="base",
                  passed=35, trials=35)  # fmt: skip
    (found,) = find_claims(evidence({"base": many(3, True)}, claims=(claim,)))
    assert found.found is None
    apart = evidence({"base": {"x": (True,)}, "best": {"y": (True,)}}, claims=(RANGE,))
    assert find_claims(apart)[0].comparison is None


def test_numbers_are_claimed_by_their_mean() -> None:
    claim = Claim(
        id="d", sentence="Fewer tokens.", family="", check="tokens", variant="base", low=0.0, high=5_000.0
    )
    (found,) = find_claims(evidence({"base": many(4, True)}, claims=(claim,)))
    assert found.found is not None and found.found.estimate == 1_200 and found.agrees is True
    (unknown,) = find_claims(evidence({"base": many(4, True)}, claims=(replace(claim, high=1_000.0),)))
    assert unknown.agrees is None, "without an interval nothing says how far other scenarios lie"


def test_what_several_claims_compare_is_corrected_together_and_the_same_question_once() -> None:
    third = replace(RANGE, id="third", variant="third")
    arms = {"base": mixed(10, 24), "best": mixed(16, 24), "third": mixed(24, 24)}
    (alone,) = find_claims(evidence(arms, claims=(RANGE,)))
    one, two, again = find_claims(evidence(arms, claims=(RANGE, third, replace(RANGE, id="again"))))
    assert alone.comparison is not None and one.comparison is not None and again.comparison is not None
    assert alone.comparison.p == pytest.approx(2**-5) and alone.comparison.adjusted_p is None
    assert one.comparison.p == again.comparison.p == pytest.approx(2**-5), "the last step of two"
    assert two.comparison is not None and two.comparison.p == pytest.approx(2 * 2**-13)
