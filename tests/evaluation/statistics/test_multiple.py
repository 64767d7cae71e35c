"""Several comparisons at once: Holm against the library, e-values that are closed, and how often both err."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.evaluation.statistics.confidence_sequence import Sequential, SequentialState
from reyn_jupyter.evaluation.statistics.multiple import closed_e, holm
from reyn_jupyter.models.scripted import Step, call
from tests.evaluation.study_support import BASE, BLIND, ByVariant, study

ALPHA, SCENARIOS, STUDIES = 0.05, 60, 400


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0, 1e6), max_size=6))
def test_a_comparison_stands_as_far_as_the_worst_set_that_it_belongs_to(e_values: list[float]) -> None:
    adjusted = closed_e(e_values)
    for place, found in enumerate(adjusted):
        rest = [other for other in range(len(e_values)) if other != place]
        means = [
            np.mean([e_values[place], *(e_values[other] for other in others)])
            for size in range(len(rest) + 1)
            for others in combinations(rest, size)
        ]
        assert found == pytest.approx(min(means)) and found <= e_values[place]


@pytest.mark.parametrize("wrong", [-1.0, float("nan")])
def test_what_is_no_e_value_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="no e-value"):
        closed_e([20.0, wrong])


def looked(gaps: np.ndarray) -> SequentialState:
    """A person who looks after every scenario, and stops where the evidence suffices."""
    looking = Sequential(ALPHA)
    for gap in gaps:
        if looking.add(float(gap)).stopped:
            break
    return looking.state


@pytest.mark.parametrize(
    ("rates", "alike"),
    [((0.5, 0.5, 0.5, 0.5), (0, 1, 2)), ((0.5, 0.5, 0.5, 0.95), (0, 1)), ((0.5, 0.5, 0.95, 0.05), (0,))],
)
def test_three_rivals_of_one_base_are_told_apart_by_mistake_in_no_more_than_five_percent(
    rates: tuple[float, ...], alike: tuple[int, ...]
) -> None:
    """The base's trials are shared, so the comparisons hang together; each is looked at after every scenario."""
    chance, false = np.random.default_rng(11), 0
    for _ in range(STUDIES):
        passed = chance.random((4, SCENARIOS)) < np.array(rates)[:, None]
        states = [looked(passed[rival].astype(int) - passed[0]) for rival in (1, 2, 3)]
        adjusted = closed_e([math.exp(each.log_e) for each in states])
        false += any(1 / adjusted[place] <= ALPHA for place in alike)
    assert false <= ALPHA * STUDIES


def test_three_rivals_that_were_each_stopped_by_evidence_stay_findings_together() -> None:
    """By Holm they would not: 1 / E is hardly below .05, and stands against .05 / 3."""
    e_values = [21.0, 24.0, 22.0]
    assert min(closed_e(e_values)) >= 1 / ALPHA and min(holm([1 / e for e in e_values])) > ALPHA
    assert max(closed_e([21.0, 24.0, 1.0])) < 1 / ALPHA, "one that shows nothing holds the others back"


def test_a_report_closes_the_evidence_of_rivals_that_were_all_looked_at() -> None:
    listed: tuple[Step, ...] = (call("list_actions"), "Done.")
    made = study(None, 40, models={"scripted": ByVariant(explicit=listed, other=BLIND)})
    rivals = [BASE.but(f"rival-{number}", mandate="explicit", reinforcement=number) for number in (1, 2, 3)]
    for rival in rivals:
        assert made.run(BASE, rival, stop="evalue", repeats=1).ended == "evalue"
    looks = [made.compare(BASE, rival).stop for rival in rivals]
    closed = closed_e([math.exp(each.log_e) for each in looks if each is not None])
    together = made.report().comparisons
    assert [each.adjusted_p for each in together] == pytest.approx([1 / e for e in closed])
    assert [each.clear for each in together] == [True] * 3
    made.run(BASE, BASE.but("fourth", mandate="generic"), n=12, repeats=1)
    mixed = made.report().comparisons
    tested = [each.difference.p for each in mixed if each.difference.p is not None]
    assert [each.adjusted_p for each in mixed if each.p is not None] == pytest.approx(list(holm(tested)))
