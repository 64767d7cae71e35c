"""Two variants under one check: what may be said of them, and what may not."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.evaluation.checks.check_registry import UnknownCheckError
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.comparison import adjust, compare
from reyn_jupyter.evaluation.results.trial_set import EvidenceError
from reyn_jupyter.evaluation.statistics.multiple import benjamini_hochberg, closed_e
from reyn_jupyter.evaluation.statistics.power import pairs_needed, plan
from tests.evaluation.study_support import BASE, BEST, ByVariant, study
from tests.evaluation.trial_set_support import evidence, many, mixed, trial

VARIANTS = {
    "base": Variant("base", model="gpt-mini"),
    "best": Variant("best", model="gpt-mini", mandate="explicit", reinforcement=3),
}


def test_the_sentence_names_winner_pairs_points_interval_and_design_effect() -> None:
    arms = {"base": mixed(9, 40, 2), "best": {**mixed(34, 40, 2), "s039": (True, False)}}
    found = compare(evidence(arms, variants=VARIANTS), "base", "best")
    assert found.sentence == (
        "best beats base on lists first: 51 v 0 discordant of 80 pairs in 40 scenarios, +64 points "
        f"(95 % CI {100 * (found.difference.low or 0):.0f} to {100 * (found.difference.high or 0):.0f}), "
        f"design effect {found.difference.design_effect:.1f}."
    )
    assert found.winner == "best" and found.changed == {
        "mandate": ("none", "explicit"),
        "reinforcement": (1, 3),
    }


def test_the_sentence_sees_the_difference_from_the_winner_whoever_is_named_first() -> None:
    on = evidence({"base": mixed(5, 40), "best": mixed(35, 40)})
    one, other = compare(on, "base", "best"), compare(on, "best", "base")
    assert one.sentence == other.sentence
    assert one.difference.estimate == -other.difference.estimate == 0.75


def test_what_cannot_be_told_apart_is_said_with_the_chance_of_telling_it() -> None:
    found = compare(evidence({"a": mixed(10, 20), "b": mixed(11, 20)}), "a", "b")
    assert found.sentence.startswith(
        "b and a cannot be told apart on lists first: 1 v 0 discordant of 20 pairs"
    )
    assert found.winner is None and found.power is not None and found.power < 0.3 and found.needed is not None
    (told,) = [each for each in found.warnings if "would have been found" in each]
    assert f"{found.needed} scenarios" in told and found.needed > 20


def test_a_large_study_without_a_difference_has_the_power_to_say_so() -> None:
    found = compare(evidence({"a": mixed(100, 400), "b": mixed(104, 400)}), "a", "b")
    assert found.power == pytest.approx(1.0) and found.needed is not None and found.needed < 400
    assert not [each for each in found.warnings if "would have been found" in each]


def test_what_is_not_real_is_marked_in_the_sentence_and_in_the_table() -> None:
    arms = {"a": mixed(2, 20), "b": mixed(18, 20)}
    same = compare(evidence(arms, sources={"a": "simulated", "b": "simulated"}), "a", "b")
    assert same.sentence.startswith("Simulated trials: b beats a") and set(same.df["source"]) == {"simulated"}
    apart = compare(evidence(arms, sources={"b": "offline"}), "a", "b")
    assert apart.sentence.startswith("a (real) against b (offline): ")
    assert set(apart.df["source"]) == {"real / offline"}
    assert compare(evidence(arms), "a", "b").mark == ""


def test_trials_of_two_sources_never_stand_in_one_arm() -> None:
    real = {"a": mixed(2, 20), "b": mixed(18, 20)}
    simulated = [trial("a", f"s{n:03}", 7, True, source="simulated", key=f"sim{n}") for n in range(20)]
    on = evidence(real, more=simulated)
    assert compare(on, "a", "b").difference.estimate == compare(evidence(real), "a", "b").difference.estimate
    assert on.left_out == {"a": {"simulated": 20}} and set(on.sources.values()) == {"real"}


@pytest.mark.parametrize(
    ("a", "b", "check", "error", "told"),
    [
        ("base", "base", None, EvidenceError, "compared with itself"),
        ("base", "beste", None, EvidenceError, "did you mean 'best'"),
        ("base", "zzz", None, EvidenceError, "There are trials of: base, best"),
        ("base", "best", "first_call", UnknownCheckError, "first_call_is"),
        ("base", "best", "abstained_when_unanswerable", EvidenceError, "applies to"),
    ],
)
def test_what_cannot_be_compared_is_told_with_what_could(
    a: str, b: str, check: str | None, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        compare(evidence({"base": mixed(1, 3), "best": mixed(2, 3)}), a, b, check)


def test_without_a_pair_in_common_nothing_is_compared() -> None:
    with pytest.raises(EvidenceError, match="run both in one"):
        compare(evidence({"a": {"s1": (True,)}, "b": {"s2": (True,)}}), "a", "b")


def test_only_pairs_count_and_missing_trials_bound_what_might_have_been() -> None:
    arms = {
        "a": {**many(10, False), "s010": ("error",), "only-a": (True,)},
        "b": {**many(10, True), "s010": ("timeout",)},
    }
    found = compare(evidence(arms), "a", "b")
    assert (found.difference.pairs, found.difference.dropped) == (10, 1)
    assert found.missing == {"a": 1, "b": 1} and found.bounds is not None
    assert found.bounds[0] < found.difference.estimate == 1.0
    assert any("no partner" in warning for warning in found.warnings)


def test_one_scenario_has_no_test_and_zero_width_is_never_shown_for_certainty() -> None:
    one = compare(evidence({"a": {"s": (False, False)}, "b": {"s": (True, True)}}), "a", "b")
    assert one.p is None and one.power is None and "in 1 scenario," in one.sentence and one.warnings
    ten = compare(evidence({"a": {"s": (False,) * 10}, "b": {"s": (True,) * 10}}), "a", "b")
    assert (ten.difference.low or 0) > 0 and not ten.clear and ten.winner is None, "there is no test"
    equal = compare(evidence({"a": many(12, True), "b": many(12, True)}), "a", "b")
    assert equal.winner is None and equal.difference.low is not None and equal.difference.low < 0


def test_numbers_are_compared_by_their_means_and_less_effort_wins() -> None:
    on = evidence({"a": many(12, True), "b": many(12, True)}, tokens={"a": 5_000, "b": 1_000})
    spread = [trial("b", f"s{n:03}", 1, True, prompt_tokens=1_000 + 40 * n) for n in range(12)]
    spread += [trial("a", f"s{n:03}", 1, True, prompt_tokens=5_000 + 30 * n) for n in range(12)]
    found = compare(evidence({"a": {}, "b": {}}, more=spread), "a", "b", "tokens")
    assert found.winner == "b" and found.power is None and found.bounds is None
    assert found.sentence.startswith("b beats a on tokens: 12 pairs in 12 scenarios, −3,945 (95 % CI −3,")
    assert "e+" not in found.sentence
    assert compare(on, "a", "b", "tokens").difference.estimate == -4_000


def test_several_comparisons_are_corrected_together_and_one_alone_is_not() -> None:
    on = evidence({"a": mixed(10, 24), **{f"v{n}": mixed(16, 24) for n in range(8)}})
    alone = compare(on, "a", "v0")
    together = adjust([compare(on, "a", f"v{n}") for n in range(8)])
    assert alone.clear and alone.p == alone.difference.p and adjust([alone]) == (alone,)
    assert all(each.p == pytest.approx(8 * (alone.p or 0)) for each in together)
    assert not any(each.clear for each in together)


def test_a_run_that_looked_on_its_way_is_judged_by_the_e_value_and_never_by_p() -> None:
    made = study(None, 30, models={"scripted": ByVariant()})
    summary = made.run(BASE, BEST, repeats=1, stop="evalue")
    found, turned = made.compare(BASE, BEST), made.compare(BEST, BASE)
    assert summary.ended == "evalue" and found.clear and turned.winner == "best"
    assert found.e_value is not None and found.e_value >= 20 and found.p == pytest.approx(1 / found.e_value)
    assert "e-value" in found.sentence and any("the e-value decides" in each for each in found.warnings)
    row = found.df.iloc[0]
    assert row["p"] == pytest.approx(found.p) and row["e_value"] == pytest.approx(found.e_value)
    assert found.difference.method.startswith("confidence sequence")
    assert made.compare(BASE, BEST, "arguments_correct").stop is not None, (
        "its trials were chosen by the look too"
    )


def looking(*order: str, **fields: Any) -> dict[str, Any]:
    """A run of a and b that looked at scenarios in an order."""
    return {
        "rule": "evalue",
        "alpha": 0.05,
        "variants": ["a", "b"],
        "order": order,
        "repeats": [0],
        "check": "first_call_is",
        **fields,
    }


NAMES = tuple(f"s{n:03}" for n in range(24))


def test_evidence_that_never_sufficed_is_no_finding_whatever_p_says() -> None:
    arms = {"a": mixed(10, 24), "b": mixed(16, 24)}
    assert compare(evidence(arms), "a", "b").clear
    found = compare(evidence(arms, runs=[looking(*NAMES)]), "a", "b")
    assert not found.clear and found.winner is None and found.e_value == pytest.approx(2**6 * 231 / 1024)
    assert found.difference.low is not None and found.difference.low < 0 < found.difference.estimate


def test_what_was_looked_at_once_stays_so_whatever_runs_later() -> None:
    arms = {"a": mixed(10, 24), "b": mixed(16, 24), "c": mixed(12, 24)}
    later = [
        looking(*NAMES, variants=["a", "c"], rule="fixed"),
        looking("s001", variants=["b"], rule="fixed"),
        looking(*NAMES, rule="fixed"),
    ]
    on = evidence(arms, runs=[looking(*NAMES), *later])
    assert compare(on, "a", "b").stop is not None and not compare(on, "b", "a").clear
    assert compare(on, "a", "c").stop is None and compare(on, "a", "b", family="discover").stop is not None


def test_a_look_ends_at_the_first_scenario_that_is_not_finished() -> None:
    arms = {"a": mixed(0, 24), "b": {**mixed(24, 24), "s012": ()}}
    found = compare(evidence(arms, runs=[looking(*NAMES)]), "a", "b")
    assert found.stop is not None and (found.stop.scenarios, found.stop.stopped_at) == (12, 7) and found.clear
    absent = {**arms, "b": {**mixed(24, 24), "s002": ("error",)}}
    missing = compare(evidence(absent, runs=[looking(*NAMES)]), "a", "b")
    assert missing.stop is not None and missing.stop.scenarios == 23, (
        "a missing trial is finished, and has no sign"
    )
    begun = compare(evidence({"a": mixed(0, 24), "b": {"s003": (True,)}}, runs=[looking(*NAMES)]), "a", "b")
    assert (
        begun.e_value == 1.0 and not begun.clear and (begun.difference.low, begun.difference.high) == (-1, 1)
    )


def test_several_comparisons_that_were_looked_at_are_corrected_together_too() -> None:
    arms = {"a": mixed(0, 24), "b": mixed(9, 24), "c": mixed(24, 24)}
    runs = [looking(*NAMES, variants=["a", other]) for other in ("b", "c")]
    on = evidence(arms, runs=runs)
    alone = [compare(on, "a", other) for other in ("b", "c")]
    assert all(each.clear for each in alone) and all(each.e_value and each.e_value > 20 for each in alone)
    weak, strong = adjust(alone)
    assert strong.clear and weak.clear is ((weak.adjusted_p or 1) <= 0.05)
    closed = closed_e([math.exp(each.stop.log_e) for each in alone if each.stop is not None])
    assert [each.adjusted_p for each in (weak, strong)] == pytest.approx([1 / e for e in closed])


def test_a_check_that_nobody_named_in_advance_is_called_exploration() -> None:
    arms = {"a": mixed(10, 24), "b": mixed(16, 24)}
    primary, other = (compare(evidence(arms), "a", "b", check) for check in ("first_call_is", "tokens"))
    assert primary.named and not other.named
    assert any("not named in advance" in each for each in other.warnings)
    on = evidence(arms, runs=[looking(*NAMES, rule="fixed", check="tokens")])
    assert compare(on, "a", "b", "tokens").named


def test_families_stand_beside_and_the_true_difference_is_that_of_all_scenarios() -> None:
    arms = {"a": mixed(2, 20), "b": mixed(18, 20)}
    families = {f"s{n:03}": "edit" if n < 8 else "discover" for n in range(20)}
    truths = {"a": {"first_call_is": 0.1}, "b": {"first_call_is": 0.8}}
    on = evidence(arms, families=families, truths=truths, sources={"a": "simulated", "b": "simulated"})
    found = compare(on, "a", "b")
    assert found.truth == pytest.approx(0.7) and set(found.families) == {"edit", "discover"}
    assert list(found.df["family"]) == ["all", "edit", "discover"]
    apart = [each.p or 1.0 for each in found.families.values()]
    assert list(found.df["p"])[1:] == pytest.approx(benjamini_hochberg(apart)) != apart
    one = compare(on, "a", "b", family="edit")
    assert one.truth is None and one.difference.scenarios == 8 and one.families == {}


OUTCOMES = st.sampled_from([True, False, "error", "timeout"])
ARMS = st.dictionaries(
    st.sampled_from([f"s{n}" for n in range(6)]), st.lists(OUTCOMES, max_size=3), min_size=1
)


@given(ARMS, ARMS)
def test_any_two_arms_are_compared_alike_in_either_order_or_refused(
    a: dict[str, list[bool | str]], b: dict[str, list[bool | str]]
) -> None:
    on = evidence({"a": a, "b": b})
    try:
        one = compare(on, "a", "b")
    except EvidenceError:
        with pytest.raises(EvidenceError):
            compare(on, "b", "a")
        return
    other = compare(on, "b", "a")
    assert one.difference.estimate == pytest.approx(-other.difference.estimate)
    assert one.winner == other.winner and -1 <= one.difference.estimate <= 1
    assert one.sentence.endswith(".") and "nan" not in one.sentence


def test_pairs_that_happened_to_agree_promise_no_small_study() -> None:
    few = compare(evidence({"a": many(3, True, True), "b": many(3, True, True)}), "a", "b")
    more = compare(evidence({"a": many(30, True), "b": {**many(30, True), **many(3, False)}}), "a", "b")
    best = pairs_needed(0.15, 1.0)  # were every pair that differs won by the same variant
    assert few.needed is not None and few.needed > 90, "six pairs say nothing of how often pairs differ"
    assert more.needed is not None and best < more.needed < plan(detect=0.15).scenarios
    assert few.power is not None and few.power < 0.05
