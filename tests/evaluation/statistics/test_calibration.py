"""Forecasts: batch 26's golden figures, scikit-learn, and the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from reyn_jupyter.evaluation.statistics.calibration import brier, reliability_table
from reyn_jupyter.evaluation.statistics.rates import clopper_pearson, rate

FORECAST = {"verified": 0.80, "inconclusive": 0.08, "refuted": 0.04, "blocked": 0.08}
DISTRIBUTION = st.lists(st.floats(0.01, 1), min_size=3, max_size=3).map(
    lambda weights: {name: weight / sum(weights) for name, weight in zip("abc", weights, strict=True)}
)


def test_batch_26_scores_as_published_and_worse_than_climatology() -> None:
    found = brier([FORECAST] * 35, ["verified"] * 32 + ["inconclusive"] * 3)
    assert found.sum == pytest.approx(0.1778, abs=5e-5)
    assert found.mean == pytest.approx(0.1778 / 4, abs=5e-5)
    assert found.skill == pytest.approx(-0.13, abs=5e-3)
    split = brier([FORECAST] * 35, ["verified"] * 32 + ["inconclusive"] * 2 + ["blocked"])
    assert split.sum == pytest.approx(found.sum)
    assert split.skill == pytest.approx(-0.11, abs=5e-3)


def test_merging_classes_changes_the_score() -> None:
    outcomes = ["verified"] * 32 + ["inconclusive"] * 2 + ["blocked"]
    merged = brier([FORECAST] * 35, outcomes, merge={"inconclusive": "open", "blocked": "open"})
    assert merged.classes == ("open", "refuted", "verified")
    assert merged.sum == pytest.approx((32 * (0.04 + 0.0256 + 0.0016) + 3 * (0.64 + 0.7056 + 0.0016)) / 35)
    assert merged.skill == pytest.approx(-0.13, abs=5e-3)


@given(st.lists(st.tuples(DISTRIBUTION, st.sampled_from("abc")), min_size=3, max_size=40))
def test_the_sum_form_is_that_of_scikit_learn(rows: list[tuple[dict[str, float], str]]) -> None:
    forecasts, outcomes = [row[0] for row in rows], [row[1] for row in rows]
    table = np.array([[forecast[name] for name in "abc"] for forecast in forecasts])
    table = table / table.sum(axis=1, keepdims=True)
    theirs = brier_score_loss(outcomes, table, labels=list("abc"), scale_by_half=False)
    found = brier(forecasts, outcomes)
    assert found.sum == pytest.approx(theirs, abs=1e-9)
    assert 0 <= found.sum <= 2
    assert found.mean == pytest.approx(found.sum / 3)


def test_saying_the_frequencies_has_no_skill() -> None:
    outcomes = ["a"] * 6 + ["b"] * 3 + ["c"]
    found = brier([{"a": 0.6, "b": 0.3, "c": 0.1}] * 10, outcomes)
    assert found.skill == pytest.approx(0)
    assert found.sum == pytest.approx(found.climatology)


def test_always_the_same_outcome_has_no_skill_to_speak_of() -> None:
    found = brier([{"a": 0.9, "b": 0.1}] * 4, ["a"] * 4)
    assert (found.skill, found.climatology) == (None, 0)
    assert found.warnings[0].startswith("All outcomes are the same")


def test_an_outcome_that_nobody_forecast_had_probability_0() -> None:
    assert brier([{"a": 1.0}, {"a": 1.0}], ["a", "z"]).sum == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("forecasts", "outcomes", "said"),
    [
        ([], [], "at least one"),
        ([{"a": 1.0}], ["a", "a"], "one forecast an outcome"),
        ([{"a": 0.4, "b": 0.4}], ["a"], "add up to 0.8"),
        ([{"a": 1.2, "b": -0.2}], ["a"], "is not a probability"),
        ([{"a": math.nan}], ["a"], "is not a probability"),
    ],
)
def test_what_is_no_forecast_is_refused(
    forecasts: list[dict[str, float]], outcomes: list[str], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        brier(forecasts, outcomes)


def test_the_reliability_table_has_the_bins_of_scikit_learn() -> None:
    random = np.random.default_rng(6)
    forecasts = random.random(500)
    happened = random.random(500) < forecasts
    observed, mean = calibration_curve(happened, forecasts, n_bins=10)
    found = reliability_table(forecasts.tolist(), happened.tolist())
    assert [row.observed for row in found] == pytest.approx(list(observed))
    assert [row.forecast for row in found] == pytest.approx(list(mean))
    assert sum(row.count for row in found) == 500
    for row in found:
        assert (row.low, row.high) == pytest.approx(
            clopper_pearson(round(row.observed * row.count), row.count)
        )


def test_empty_bins_are_left_out_and_1_belongs_to_the_last() -> None:
    found = reliability_table([0.0, 1.0, 0.95], [False, True, False], bins=4)
    assert [(row.lower, row.upper, row.count) for row in found] == [(0, 0.25, 1), (0.75, 1, 2)]
    assert found[0].low == 0
    assert reliability_table([], []) == ()


@pytest.mark.parametrize(
    ("forecasts", "happened", "bins"), [([0.5], [], 10), ([1.5], [True], 10), ([0.5], [True], 0)]
)
def test_what_makes_no_reliability_table_is_refused(
    forecasts: list[float], happened: list[bool], bins: int
) -> None:
    with pytest.raises(ValueError, match=r"one outcome and one scenario a forecast|not a probability"):
        reliability_table(forecasts, happened, bins=bins)


def test_repeats_of_a_scenario_are_no_forecasts_of_their_own() -> None:
    scenarios = [f"s{n}" for n in range(8) for _ in range(5)]
    happened = [n < 4 for n in range(8) for _ in range(5)]
    (clustered,) = reliability_table([0.45] * 40, happened, scenarios=scenarios)
    (alone,) = reliability_table([0.45] * 40, happened)
    found = rate({f"s{n}": dict.fromkeys(range(5), float(n < 4)) for n in range(8)})
    assert (clustered.low, clustered.high, clustered.count) == (found.low, found.high, 40)
    assert (alone.low, alone.high) == pytest.approx(clopper_pearson(20, 40))
    assert clustered.high - clustered.low > 1.5 * (alone.high - alone.low)
    (uneven,) = reliability_table([0.4, 0.4, 0.48], [True, True, False], scenarios=["a", "a", "b"])
    assert (uneven.observed, uneven.forecast) == (0.5, pytest.approx(0.44))
