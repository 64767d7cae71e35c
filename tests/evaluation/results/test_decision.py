"""What a report says to somebody who decides: its words agree with the numbers, and promise nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.comparison import compare
from reyn_jupyter.evaluation.results.decision import Decision, decide, leading_check, more_scenarios
from reyn_jupyter.evaluation.results.report import report
from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.evaluation.statistics.power import mcnemar_power
from tests.evaluation.trial_set_support import Outcomes, evidence, many, mixed, trial

CHECKS = ("first_call_is",)
MORE = re.compile(r"about ([\d,]+) more scenarios would settle it, if the difference is as large as it looks")


def arm(outcomes: Sequence[bool | str]) -> dict[str, Outcomes]:
    return {f"s{number:03}": (each,) for number, each in enumerate(outcomes)}


def table(a_only: int, b_only: int, both: int, neither: int) -> TrialSet:
    """Two variants A and B by who passes, one pair a scenario."""
    a = [True] * a_only + [False] * b_only + [True] * both + [False] * neither
    b = [False] * a_only + [True] * b_only + [True] * both + [False] * neither
    return evidence({"B": arm(b), "A": arm(a)}, checks=CHECKS)


def decision(on: TrialSet) -> Decision:
    found = decide(on)
    assert found is not None
    return found


def test_two_variants_that_are_close_are_told_by_counts_and_what_would_settle_it() -> None:
    assert decision(table(9, 2, 9, 80)).sentence == (
        "A passes “lists first” in 18 of 100 trials, B 11; too close to call; about 90 more scenarios would settle it, "
        "if the difference is as large as it looks."
    )


def test_tasks_that_are_done_lead_and_are_counted_as_tasks() -> None:
    failing = [trial("b", f"s{n:03}", 0, True, answer="No idea.") for n in range(30, 40)]
    arms = {"a": mixed(5, 40), "b": {name: each for name, each in mixed(40, 40).items() if name < "s030"}}
    made = report(evidence(arms, more=failing))
    assert made.finding == "a finishes 40 of 40 tasks, b 30; a is better, by 14 to 40 points."
    assert made.sentence.startswith("b beats a on lists first"), (
        "the check that was named in advance stays below"
    )
    assert str(made).startswith(
        f"{made.finding}\n  a: task done 100 % (91 to 100), n = 40, lists first 12 % (4 to 27), n = 40, 1,200"
    )
    assert (
        "b does best on lists first, but that is a means; what counts is task done: 75 % for b, 100 % for a."
        in (made.advice)
    )


def test_repeats_are_tries_at_tasks() -> None:
    found = decision(evidence({"a": mixed(5, 30, 2), "b": mixed(25, 30, 2)}))
    assert found.sentence.startswith("a finishes 60 of 60 trials at 30 tasks, b 60; both lie on the ceiling")


def test_what_leads_applies_to_every_surface() -> None:
    flat = [trial("flat", f"s{n:03}", 0, False, surface="flat") for n in range(24)]
    variants = {"flat": Variant("flat", model="gpt-mini", surface="flat")}
    given_ = {"more": flat, "variants": variants, "checks": ("first_call_is", "right_action", "tokens")}
    on = evidence({"plain": mixed(3, 24)}, **given_)
    assert leading_check(on) == "right_action" and leading_check(on, ["plain"]) == "first_call_is"
    assert "flat 24" in decision(on).sentence
    missing = evidence({"plain": mixed(3, 24), "b": many(24, "error")}, checks=CHECKS)
    assert leading_check(missing) == "first_call_is", "what could not be graded rules nothing out"


@given(st.tuples(*[st.integers(0, 30)] * 4).filter(lambda each: sum(each) > 0))
@example((0, 0, 0, 2))
def test_the_words_agree_with_the_numbers(cells: tuple[int, int, int, int]) -> None:
    a_only, b_only, both, _ = cells
    on = table(*cells)
    found = decision(on)
    said, (comparison,) = found.sentence, found.comparisons
    size = sum(cells)
    trials = "1 trial" if size == 1 else f"{size} trials"
    counts = {"A": a_only + both, "B": b_only + both}
    first, second = ("A", "B") if counts["A"] > counts["B"] else ("B", "A")
    assert said.startswith(
        f"{first} passes “lists first” in {counts[first]} of {trials}, {second} {counts[second]}; "
    )
    told = [
        f"{first} is better" in said,
        *(words in said for words in ("too close to call", "cannot tell them apart", "too few to say more")),
    ]
    assert sum(told) == 1 and told[0] is comparison.clear and f"{second} is better" not in said
    if "floor" in said:
        assert counts == {"A": 0, "B": 0} or (max(counts.values()) == 1 and size > 30)
    if "ceiling" in said:
        assert min(counts.values()) >= size - 1
    number = more_scenarios(comparison)
    match = MORE.search(said)
    assert (match is not None) is (number is not None)
    if match is not None and number is not None:
        assert number <= int(match[1].replace(",", "")) <= number + max(9, 0.1 * number)


@given(st.tuples(*[st.integers(0, 25)] * 4))
def test_the_number_that_would_settle_it_is_the_smallest_that_finds_what_was_seen(
    cells: tuple[int, int, int, int],
) -> None:
    a_only, b_only, _, _ = cells
    size = sum(cells)
    if size == 0:
        return
    found = compare(table(*cells), "A", "B")
    number = more_scenarios(found)
    gap, discordant = abs(a_only - b_only) / size, (a_only + b_only) / size
    error = ((discordant - gap**2) / size) ** 0.5
    if found.clear or size < 20 or a_only + b_only < 6 or gap == 0 or gap < error - 1e-9:
        assert number is None
    elif number is not None:
        split = (discordant + gap) / (2 * discordant)
        assert mcnemar_power(size + number, discordant, split) >= 0.8
        assert number == 1 or mcnemar_power(size + number - 1, discordant, split) < 0.8


def test_a_difference_that_may_be_chance_promises_no_number() -> None:
    assert (
        "so small that nothing says how many scenarios would settle it"
        in decision(table(6, 5, 9, 80)).sentence
    )
    assert "too few scenarios differ to say how many would settle it" in decision(table(4, 0, 9, 80)).sentence
    assert "the two do so equally well" in decision(table(5, 5, 9, 80)).sentence
    assert "10 scenarios are too few to say how many would settle it" in decision(table(3, 0, 4, 3)).sentence
    assert "one scenario says nothing of others" in decision(table(1, 0, 0, 0)).sentence


def test_several_comparisons_take_more_scenarios_than_one() -> None:
    found = decision(table(9, 2, 9, 80)).comparisons[0]
    alone, among = more_scenarios(found), more_scenarios(found, 5)
    assert alone is not None and among is not None and among > 1.3 * alone


def test_repeats_that_agree_are_no_evidence_for_fewer_scenarios() -> None:
    once = compare(table(9, 2, 9, 80), "A", "B")
    a = {**{f"s{n:03}": (n < 18,) * 4 for n in range(100)}}
    b = {**{f"s{n:03}": (9 <= n < 20,) * 4 for n in range(100)}}
    often = compare(evidence({"A": a, "B": b}, checks=CHECKS), "A", "B")
    needs = more_scenarios(once), more_scenarios(often)
    assert needs[0] is not None and needs[1] is not None and needs[1] >= 0.9 * needs[0]


def test_of_two_that_never_passed_few_scenarios_are_not_said_to_show_a_floor() -> None:
    found = report(evidence({"a": mixed(0, 8), "b": mixed(0, 8)}, checks=CHECKS))
    told = " ".join((found.decision.sentence, *found.comparisons[0].warnings))
    assert (
        "both failed in every scenario, and these are too few" in told
        and "try the easier suite first-steps" in told
    )
    # 0 of 8 goes with any rate up to 37 %: more scenarios may well tell them apart.
    assert "floor of this suite" not in told and "8 scenarios are too few to say whether more" in told
    assert "scenarios would" not in told and "chance of" not in told and "it takes up to" not in told
    one = report(evidence({"a": mixed(1, 8), "b": mixed(0, 8)}, checks=CHECKS))
    assert "floor" not in " ".join((one.decision.sentence, *one.comparisons[0].warnings))


def test_who_is_on_the_floor_of_first_steps_is_not_sent_to_first_steps() -> None:
    arms = {"a": mixed(0, 24), "b": mixed(0, 24)}
    found = report(replace(evidence(arms, checks=CHECKS), suite="first-steps"))
    told = " ".join((found.decision.sentence, *found.comparisons[0].warnings, found.advice))
    assert (
        "try the easier suite first-steps" not in told
        and told.count("take easier scenarios, or a larger model") == 3
    )


@pytest.mark.parametrize(("passing", "end"), [(0, "floor"), (40, "ceiling")])
def test_the_ends_of_the_scale_are_named_and_no_scenarios_are_promised(passing: int, end: str) -> None:
    made = report(evidence({"a": mixed(passing, 40), "b": mixed(passing, 40)}, checks=CHECKS))
    assert f"both lie on the {end} of this suite, which cannot tell them apart" in made.finding
    told = "\n".join((*made.warnings, made.finding))
    assert (
        "more scenarios would settle" not in told and "chance of" not in told and "it takes up to" not in told
    )


def test_a_chance_of_nothing_is_not_called_nothing_or_more() -> None:
    found = compare(table(1, 0, 2, 1), "A", "B")
    assert any("with a chance of less than 1 %" in each for each in found.warnings)
    assert not any("0 % or more" in each for each in found.warnings if "10 %" not in each)


def test_a_run_that_looks_on_its_way_promises_no_number_and_says_by_how_much_it_decided() -> None:
    names = [f"s{number:03}" for number in range(24)]
    run = {"rule": "evalue", "alpha": 0.05, "variants": ["a", "b"], "order": names, "repeats": [0],
           "check": "first_call_is"}  # fmt: skip
    open_ = evidence({"a": mixed(10, 24), "b": mixed(16, 24)}, checks=CHECKS, runs=[run])
    assert decision(open_).sentence.endswith(
        "; too close to call so far; the run looks after each scenario, so more of them may settle it."
    )
    decided = decision(evidence({"a": mixed(0, 24), "b": mixed(24, 24)}, checks=CHECKS, runs=[run])).sentence
    assert "; b is better, by " in decided and decided.endswith(" points.")


def test_many_variants_are_told_in_groups_against_the_first() -> None:
    arms = {
        "base": mixed(10, 40),
        "up": mixed(35, 40),
        "more": mixed(38, 40),
        "down": mixed(0, 40),
        "near": mixed(14, 40),
    }
    assert decision(evidence(arms, checks=CHECKS)).sentence == (
        "base passes “lists first” in 10 of 40 trials. Of the 4 others, 2 pass more (more 38, up 35), 1 passes fewer "
        "(down 0) and 1 is too close to call (near 14)."
    )
    close = {
        "base": arm([True] * 11 + [False] * 89),
        "a": arm([True] * 9 + [False] * 2 + [True] * 9 + [False] * 80),
    }
    alike = evidence({**close, "b": close["a"]}, checks=CHECKS)
    assert decision(alike).sentence == (
        "base passes “lists first” in 11 of 100 trials. Both others are too close to call (a 18, b 18). About 120 more "
        "scenarios would settle a, if the difference is as large as it looks."
    )


def test_one_variant_is_told_with_what_is_likely_of_many() -> None:
    assert decision(evidence({"a": mixed(9, 12)}, checks=CHECKS)).sentence == (
        "a passes “lists first” in 9 of 12 trials; of many such scenarios 43 to 95 % is likely."
    )
    assert "the floor of this suite" in decision(evidence({"a": mixed(0, 24)}, checks=CHECKS)).sentence


def test_variants_without_a_pair_are_not_compared() -> None:
    apart = {"a": mixed(3, 9), "b": {f"t{n}": (True,) for n in range(4)}}
    assert decision(evidence(apart, checks=CHECKS)).sentence == (
        "a passes “lists first” in 3 of 9 trials, b 4 of 4; they share no scenario, so nothing says which is better."
    )


def test_what_no_real_model_did_is_marked_and_numbers_have_no_decision() -> None:
    simulated = evidence({"a": mixed(3, 9), "b": mixed(4, 9)}, sources={"a": "simulated", "b": "simulated"})
    assert decision(simulated).sentence.startswith("Simulated trials: a finishes 9 of 9 tasks, b 9; ")
    partly = decision(evidence({"a": mixed(3, 9), "b": mixed(4, 9)}, sources={"b": "offline"})).sentence
    assert partly.startswith("Trials of several sources (a: real, b: offline): ")
    numbers = evidence({"a": many(3, True)}, primary="tokens", checks=("tokens",))
    assert decide(numbers) is None and report(numbers).finding == report(numbers).sentence


def test_a_report_says_what_to_use_or_why_nothing_is_recommended() -> None:
    made = report(evidence({"a": mixed(2, 40), "b": mixed(36, 40)}, checks=CHECKS))
    assert made.advice.startswith("Use b: gpt-mini as tier standard") and "; a safe choice: no" in made.advice
    floor = report(evidence({"a": mixed(0, 40), "b": mixed(0, 40)}, checks=CHECKS))
    assert floor.advice.startswith("No settings for gpt-mini can be recommended")
    models = report(
        evidence({"a": mixed(2, 40), "b": mixed(36, 40)}, variants={"b": Variant("b", model="other")})
    )
    assert "say which" in models.advice
