"""Everything that a study found: the sentence, the figures, how far to trust them, and the failures."""

from __future__ import annotations

import pytest

from reyn_jupyter.evaluation.results.failure_examples import FAILURES
from reyn_jupyter.evaluation.results.report import format_figure, report
from reyn_jupyter.evaluation.results.trial_set import EvidenceError
from reyn_jupyter.evaluation.statistics.rates import Rate
from tests.evaluation.study_support import BASE, BEST, ByVariant, study
from tests.evaluation.trial_set_support import evidence, many, mixed, trial


def test_without_a_trial_there_is_no_report() -> None:
    with pytest.raises(EvidenceError, match=r"study\.run"):
        report(evidence({"a": {}}))


def test_one_variant_is_told_by_its_rate() -> None:
    found = report(evidence({"a": mixed(9, 12)}))
    assert (
        found.sentence == "75 % (95 % CI 43 to 95) on lists first, 12 trials in 12 scenarios, variant a."
        and found.comparisons == ()
    )
    assert found.failures[0].beside is None


def test_a_sentence_comes_first_and_each_variant_is_compared_with_the_first() -> None:
    arms = {f"v{number}": mixed(4 + 2 * number, 30) for number in range(9)}
    found = report(evidence(arms))
    assert found.sentence == found.comparisons[0].sentence
    assert [(each.a, each.b) for each in found.comparisons] == [("v0", f"v{n}") for n in range(1, 9)]
    assert all(
        each.adjusted_p is not None and each.adjusted_p >= (each.difference.p or 0)
        for each in found.comparisons
    )
    assert len(found.df) == 9 * 3


def test_missing_and_not_applicable_are_counted_and_never_graded() -> None:
    arms = {"a": {**mixed(6, 10), "s010": ("error",), "s011": ("timeout",)}}
    found = report(evidence(arms)).figures["a"]["first_call_is"]
    assert (found.missing, found.not_applicable) == (2, 0) and found.bounds == pytest.approx((0.5, 8 / 12))
    assert isinstance(found.found, Rate) and (found.found.passed, found.found.trials) == (6, 10)
    flat = [trial("b", f"s{n:03}", 0, True, surface="flat") for n in range(4)]
    mixed_in = report(evidence({"a": mixed(6, 10), "b": {}}, more=flat))
    figure = mixed_in.figures["b"]["first_call_is"]
    assert figure.found is None and figure.not_applicable == 4 and format_figure(figure) == "does not apply"


def test_a_variant_whose_trials_are_all_missing_is_said_to_have_no_graded_one() -> None:
    found = report(evidence({"a": many(3, "error"), "b": mixed(1, 3)}))
    assert format_figure(found.figures["a"]["first_call_is"]) == "no graded trial"
    assert any("a: 3 trials are missing (3 errors)" in warning for warning in found.warnings)
    assert found.comparisons == () and found.sentence.startswith("33 % (95 % CI")
    found = report(evidence({"a": many(3, "timeout")}))
    assert found.sentence == "No trial could be graded: 3 ended in an error or a timeout."


def test_all_passes_and_all_failures_have_intervals_of_their_own() -> None:
    found = report(evidence({"none": many(16, False), "all": many(16, True)}))
    none, all_ = (found.figures[name]["first_call_is"].found for name in ("none", "all"))
    assert isinstance(none, Rate) and isinstance(all_, Rate)
    assert none.low == 0 < none.high < 0.25 and 0.75 < all_.low < all_.high == 1


def test_sources_models_that_changed_and_trials_that_stand_apart_are_warned_of() -> None:
    simulated = [trial("a", f"s{n:03}", 5, True, source="simulated", key=f"sim{n}") for n in range(3)]
    moved = [trial("a", "s000", 6, True, fingerprints=("fp_2",), started=99.0)]
    found = report(
        evidence({"a": mixed(2, 6), "b": many(6, True)}, sources={"b": "offline"}, more=[*simulated, *moved])
    )
    told = "\n".join(found.warnings)
    assert "The trials of b are offline" in told and "3 simulated trials stand apart" in told
    assert "a: the model changed during the study (2 fingerprints: fp_1, fp_2)" in told
    assert set(found.df.set_index("variant")["source"].to_dict().items()) == {("a", "real"), ("b", "offline")}


def test_few_scenarios_and_lacking_power_are_warned_of() -> None:
    found = report(evidence({"a": mixed(3, 8, 3), "b": mixed(4, 8, 3)}))
    told = "\n".join(found.warnings)
    assert "below about 40, add scenarios before repeats" in told
    assert "would have been found with a chance of" in told
    rate = found.figures["a"]["first_call_is"].found
    assert rate is not None and rate.design_effect is not None and rate.design_effect > 2.9
    assert rate.effective_n is not None and rate.effective_n < 8.1, "repeats that agree add nothing"


def test_what_is_odd_about_one_variant_names_it_and_about_all_does_not() -> None:
    found = report(evidence({"a": {f"s{n}": (False,) * 3 for n in range(8)}, "b": mixed(4, 8, 3)}))
    assert "a: Every trial failed: how alike repeats are" in "\n".join(found.warnings)
    assert any(each.startswith("8 scenarios: below about 40") for each in found.warnings)


def test_failures_are_those_of_the_variant_in_the_sentence_disagreements_first_and_bounded() -> None:
    found = report(
        evidence(
            {"a": mixed(30, 40), "b": {**many(25, False), **{f"s{n:03}": (n >= 35,) for n in range(25, 40)}}}
        )
    )
    assert len(found.failures) == FAILURES and all(each.trial.variant == "b" for each in found.failures)
    assert all(
        each.beside is not None and each.beside.calls[0].wrapper == "list_actions" for each in found.failures
    )
    assert all("called" in each.reason or each.reason for each in found.failures)


def test_families_have_rates_of_their_own() -> None:
    families = {f"s{n:03}": "edit" if n < 4 else "discover" for n in range(10)}
    found = report(evidence({"a": mixed(4, 10)}, families=families))
    assert {name: rates["a"].estimate for name, rates in found.families.items()} == {
        "edit": 1.0,
        "discover": 0.0,
    }


def test_a_table_says_what_a_trial_and_a_success_cost_of_the_trials_with_a_price() -> None:
    arms = {"a": mixed(2, 8), "none": many(4, False), "free": {}}
    unpriced = [trial("a", f"s{n:03}", 1, True, cost=None) for n in range(8)]
    missing = [trial("a", "s000", 2, "error", cost=0.009)]
    free = [trial("free", f"s{n:03}", 0, True, cost=None) for n in range(4)]
    rows = report(evidence(arms, more=[*unpriced, *missing, *free])).df.set_index(["variant", "check"])
    lists = rows.xs("first_call_is", level="check")
    assert lists.loc["a", "cost_per_success"] == pytest.approx(8 * 0.001 / 2)
    assert lists.loc["a", "cost_per_trial"] == pytest.approx((8 * 0.001 + 0.009) / 9)
    assert lists.loc["none", "cost_per_trial"] == pytest.approx(0.001)
    assert lists["cost_per_success"].isna().to_dict() == {"a": False, "none": True, "free": True}
    assert lists["cost_per_trial"].isna().to_dict() == {"a": False, "none": False, "free": True}
    assert rows.xs("tokens", level="check")["cost_per_success"].isna().all(), "numbers are no successes"


def test_a_numeric_primary_check_has_means_and_no_failures() -> None:
    spread = [trial(name, f"s{n:03}", 0, True, prompt_tokens=size + 10 * n) for n in range(20) for name, size in
              (("a", 4_000), ("b", 1_000))]  # fmt: skip
    found = report(evidence({"a": {}, "b": {}}, more=spread, primary="tokens", checks=("tokens",)))
    assert found.sentence.startswith("b beats a on tokens: 20 pairs") and found.failures == ()
    assert format_figure(found.figures["a"]["tokens"]).startswith("4,295 (4,") and found.families == {}


def test_passing_again_is_pass_hat_k_and_forecasts_are_scored_with_their_scale() -> None:
    arms = {"a": {f"s{n:03}": ((True, True), (True, False))[n < 10] for n in range(30)}}
    (found,) = report(evidence(arms, forecast=0.8)).predictability
    assert found.k == 2 and found.again is not None and found.again.estimate == pytest.approx(2 / 3)
    assert found.again.low is not None and found.again.low > 0.4
    assert (
        found.score is not None and found.score.events == 60 and found.score.sum == pytest.approx(2 * 0.2**2)
    )
    assert [(each.forecast, each.observed, each.count) for each in found.bins] == [
        (pytest.approx(0.8), 1.0, 60)
    ]
    always = report(evidence({"a": many(12, True, True)})).predictability[0]
    assert always.again is not None and (always.again.low or 0) < 1.0, "certainty has a width"
    once = report(evidence({"a": many(12, True)})).predictability[0]
    assert once.again is None and once.score is None


def test_provenance_says_who_answered_with_what_on_which_ground_and_when() -> None:
    made = study(None, 4, models={"scripted": ByVariant()})
    made.run(BASE.but("base", parameters={"temperature": 0.2, "seed": 7}), BEST)
    found = made.report().evidence
    known = found.provenance
    assert {"catalogs", "versions", "seed", "first run", "last run", "sources", "code"} <= known.keys()
    prompts = known["system prompts"]
    assert set(prompts) == {"base", "best"} and prompts["base"] != prompts["best"]
    assert all(len(digest) == 64 for digest in prompts.values())
    assert found.variants["base"].parameters == {"temperature": 0.2, "seed": 7}
    assert {each.catalog for each in found.trials} == set(known["catalogs"].values())
