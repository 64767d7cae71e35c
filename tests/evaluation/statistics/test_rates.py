"""Rates and means of one variant: intervals against published figures and other libraries, and at every edge."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from reyn_jupyter.evaluation.statistics.arms import few_clusters
from reyn_jupyter.evaluation.statistics.intervals import bootstrap_t
from reyn_jupyter.evaluation.statistics.rates import clopper_pearson, mean, rate

ARMS = st.dictionaries(
    st.integers(0, 60).map(str),
    st.dictionaries(st.integers(0, 9), st.integers(0, 1), max_size=6),
    min_size=1,
    max_size=50,
).filter(lambda arm: any(arm.values()))


def once(passed: int, trials: int) -> dict[str, dict[int, float]]:
    return {f"s{i}": {0: float(i < passed)} for i in range(trials)}


@pytest.mark.parametrize(
    ("passed", "trials", "low", "high"),
    [
        (16, 16, 0.79, 1.0),
        (12, 20, 0.36, 0.81),
        (0, 20, 0.0, 0.17),
        (3, 4, 0.19, 0.99),
        (32, 35, 0.77, 0.98),
        (0, 35, 0.0, 0.10),
    ],
)
def test_the_published_claims_have_these_intervals(passed: int, trials: int, low: float, high: float) -> None:
    assert [round(limit, 2) for limit in clopper_pearson(passed, trials)] == [low, high]


@given(st.integers(1, 200), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_interval_of_counts_is_that_of_scipy_and_statsmodels(
    trials: int, data: st.DataObject, level: float
) -> None:
    passed = data.draw(st.integers(0, trials))
    found = clopper_pearson(passed, trials, level)
    assert found == pytest.approx(tuple(stats.binomtest(passed, trials).proportion_ci(level)), abs=1e-9)
    assert found == pytest.approx(proportion_confint(passed, trials, 1 - level, "beta"), abs=1e-9)


def test_a_rate_of_single_trials_has_the_exact_interval() -> None:
    found = rate(once(12, 20))
    assert (found.estimate, found.trials, found.scenarios, found.passed) == (0.6, 20, 20, 12)
    assert (found.low, found.high) == pytest.approx(clopper_pearson(12, 20))
    assert (found.icc, found.design_effect, found.effective_n) == (None, 1.0, 20.0)
    assert (found.method, found.warnings) == ("Clopper-Pearson", ())


def test_repeats_that_all_agree_are_worth_no_more_than_one_trial_each() -> None:
    single = rate(once(30, 60))
    fivefold = rate({name: dict.fromkeys(range(5), row[0]) for name, row in once(30, 60).items()})
    assert fivefold.icc == pytest.approx(1.0)
    assert fivefold.effective_n == pytest.approx(60, rel=0.02)
    assert fivefold.low <= single.low
    assert fivefold.high >= single.high


def test_few_scenarios_pay_for_the_variance_that_they_leave_unknown() -> None:
    # Korn and Graubard (1998): the effective size times (z / t)², here with 9 degrees of freedom and an ICC of 1.
    found = rate({name: dict.fromkeys(range(5), row[0]) for name, row in once(4, 10).items()})
    size = 10 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 9)) ** 2
    assert found.effective_n == pytest.approx(10)
    assert (found.low, found.high) == pytest.approx(clopper_pearson(0.4 * size, size))


def test_repeats_that_have_nothing_in_common_narrow_the_interval() -> None:
    mixed = {f"s{i}": {j: float((i + j) % 2) for j in range(4)} for i in range(60)}
    found = rate(mixed)
    assert found.effective_n == 240
    assert found.high - found.low < 0.14
    assert found.icc is not None
    assert found.icc < 0


def test_every_scenario_weighs_the_same_however_often_it_was_repeated() -> None:
    arm = {"often": dict.fromkeys(range(8), 1), "once": {0: 0}}
    assert rate(arm).estimate == 0.5
    assert rate(arm).passed == 8


def test_all_passing_repeats_count_each_scenario_once_and_say_so() -> None:
    found = rate({f"s{i}": dict.fromkeys(range(10), 1) for i in range(12)})
    assert (found.low, found.high) == pytest.approx(clopper_pearson(12, 12))
    assert (found.icc, found.design_effect, found.effective_n) == (None, None, None)
    assert few_clusters(12).startswith("12 scenarios: below about 40, add scenarios before repeats")
    assert found.warnings == (
        few_clusters(12),
        "Every trial passed: how alike repeats are is unknown, so each scenario counts once.",
    )


def test_one_scenario_speaks_of_itself_alone() -> None:
    found = rate({"only": {0: 1, 1: 1, 2: 0, 3: 1}})
    assert (found.low, found.high) == pytest.approx(clopper_pearson(3, 4))
    assert found.design_effect is None
    assert found.warnings == (
        "One scenario: the interval speaks of this scenario alone, not of others like it.",
    )
    assert rate({"only": {0: 1}}).high == 1


def test_no_trial_is_no_rate_and_says_what_to_do() -> None:
    for arm in ({}, {"s": {}}):
        with pytest.raises(ValueError, match=r"no trial to take a rate of\. Run the variant"):
            rate(arm)
        with pytest.raises(ValueError, match="no trial to take a mean of"):
            mean(arm)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, 0.5, 2])
def test_what_is_no_verdict_is_refused_by_name(value: float) -> None:
    with pytest.raises(ValueError, match=r"'broken' has the value .* neither 0 nor 1"):
        rate({"fine": {0: 1}, "broken": {3: value}})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_has_no_mean(value: float) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        mean({"fine": {0: 1}, "broken": {3: value}})


@pytest.mark.parametrize("level", [0, 1, 95, math.nan])
def test_a_level_outside_of_0_to_1_is_refused(level: float) -> None:
    for ask in (rate, mean):
        with pytest.raises(ValueError, match="confidence level"):
            ask(once(3, 10), level=level)


@pytest.mark.parametrize(("passed", "trials"), [(1, 0), (5, 4), (-1, 4), (1, math.inf), (math.nan, 3)])
def test_counts_that_make_no_rate_are_refused(passed: float, trials: float) -> None:
    with pytest.raises(ValueError, match="is not a rate"):
        clopper_pearson(passed, trials)


@settings(deadline=None)
@given(ARMS)
def test_any_rate_lies_within_its_interval_and_the_interval_within_0_and_1(
    arm: dict[str, dict[int, float]],
) -> None:
    found = rate(arm)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert found.high > found.low
    if found.effective_n is not None:
        assert found.scenarios <= found.effective_n <= found.trials
    mirrored = rate({name: {i: 1 - value for i, value in row.items()} for name, row in arm.items()})
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((found.low, found.high), abs=1e-9)
    higher = rate(arm, level=0.99)
    assert higher.low <= found.low
    assert higher.high >= found.high


@settings(deadline=None)
@given(ARMS, st.integers(2, 4))
def test_more_scenarios_of_the_same_kind_narrow_the_interval(
    arm: dict[str, dict[int, float]], times: int
) -> None:
    many = {f"{name}/{copy}": row for name, row in arm.items() for copy in range(times)}
    few, more = rate(arm), rate(many)
    if few.scenarios > 1:
        assert more.high - more.low < few.high - few.low


def test_a_mean_of_few_scenarios_has_the_t_interval() -> None:
    values = [12.0, 15.0, 11.0, 18.0, 14.0]
    found = mean({f"s{i}": {0: value} for i, value in enumerate(values)})
    expected = stats.t.interval(0.95, 4, np.log(np.mean(values)), stats.sem(values) / np.mean(values))
    assert (found.low, found.high) == pytest.approx(tuple(np.exp(expected)))
    assert found.method == "t, 4 degrees of freedom, of the mean's logarithm"
    signed = mean({f"s{i}": {0: value - 14} for i, value in enumerate(values)})
    expected = stats.t.interval(0.95, 4, 0, stats.sem(values))
    assert (signed.low, signed.high) == pytest.approx(expected)
    assert signed.method == "t, 4 degrees of freedom"


@pytest.mark.parametrize("count", [8, 39, 60])
def test_seconds_have_no_limit_below_0(count: int) -> None:
    """One slow trial among quick ones, as the first prompt of a model on this machine is."""
    found = mean({f"s{i}": {0: 90.0 if i == 0 else 0.5} for i in range(count)})
    assert found.low is not None and found.high is not None
    assert 0 < found.low < found.estimate < found.high
    plain = found.estimate - stats.t.ppf(0.975, count - 1) * 89.5 / count
    assert plain < 0, "where t over the seconds themselves goes below"


def test_the_mean_of_few_long_tailed_numbers_is_held_more_often_than_by_t_over_the_numbers() -> None:
    random, truth = np.random.default_rng(21), float(np.exp(0.5))
    held, plain = 0, 0
    for values in random.lognormal(0, 1, (1_000, 8)):
        found = mean({f"s{i}": {0: float(value)} for i, value in enumerate(values)})
        assert found.low is not None and found.high is not None
        low, high = stats.t.interval(0.95, 7, values.mean(), stats.sem(values))
        held, plain = held + (found.low <= truth <= found.high), plain + (low <= truth <= high)
    assert held > plain and held > 850


def test_a_mean_of_many_scenarios_is_resampled_and_the_seed_settles_it() -> None:
    values = np.random.default_rng(4).lognormal(7, 1, 80)
    arm = {f"s{i}": {0: float(value)} for i, value in enumerate(values)}
    found = mean(arm, seed=3)
    assert found.method == "bootstrap-t, 9,999 resamples (seed 3)"
    assert found == mean(arm, seed=3)
    assert found.low != mean(arm, seed=4).low
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.estimate > found.estimate - found.low, "a long tail reaches further up"
    normal = stats.t.interval(0.95, 79, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(normal, rel=0.3)


def test_the_resampled_interval_is_that_of_drawing_values_one_by_one() -> None:
    values = np.random.default_rng(9).exponential(10, 50)
    random = np.random.default_rng(10)
    samples = random.choice(values, (50_000, 50))
    statistics = (samples.mean(axis=1) - values.mean()) / stats.sem(samples, axis=1)
    upper, lower = np.quantile(statistics, [0.025, 0.975])
    expected = (values.mean() - lower * stats.sem(values), values.mean() - upper * stats.sem(values))
    found = bootstrap_t(values, 0.95, seed=0, draws=100_000)
    assert found == pytest.approx(expected, abs=0.015 * (expected[1] - expected[0]))


def test_a_narrow_level_still_holds_the_estimate_of_a_long_tail() -> None:
    values = np.random.default_rng(12).lognormal(0, 2, 60)
    found = mean({f"s{i}": {0: float(value)} for i, value in enumerate(values)}, level=0.02)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.estimate <= found.high
    assert found.low < found.high


def test_where_resamples_lack_variance_the_t_interval_stands_in() -> None:
    arm = {f"s{i}": {0: float(i == 0)} for i in range(50)}
    assert mean(arm).method == "t, 49 degrees of freedom, of the mean's logarithm"


def test_a_constant_mean_has_no_interval_and_says_why() -> None:
    found = mean({f"s{i}": {0: 3.0, 1: 3.0} for i in range(50)})
    assert (found.low, found.estimate, found.high) == (None, 3.0, None)
    assert found.warnings[-1].startswith("All scenarios are equal")
    assert (found.icc, found.design_effect) == (None, None)


def test_a_mean_of_one_scenario_has_no_interval() -> None:
    found = mean({"only": {0: 3.0, 1: 5.0}})
    assert (found.estimate, found.low, found.high) == (4.0, None, None)
    assert found.warnings[0].startswith("One scenario")


def test_limits_that_would_say_nothing_are_not_given() -> None:
    for values in ((2000.0, 10_000.0), (2000.0, 3000.0), (90.0, 0.5, 0.5)):
        found = mean({str(place): {0: value} for place, value in enumerate(values)})
        assert (found.low, found.high) == (None, None)
        assert found.warnings[-1].startswith("So few scenarios")
    near = mean({"a": {0: 2000.0}, "b": {0: 2600.0}})
    assert near.low is not None and near.low > 230


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=3),
        st.dictionaries(st.integers(0, 5), st.floats(-1e9, 1e9), min_size=1, max_size=4),
        min_size=2,
        max_size=60,
    )
)
def test_any_mean_lies_within_its_interval(arm: dict[str, dict[int, float]]) -> None:
    found = mean(arm)
    if found.low is None or found.high is None:
        assert found.low is found.high
        assert found.method in ("none: all scenarios are equal", "none: the limits would be too wide")
    else:
        assert found.low <= found.estimate <= found.high and found.low < found.high
    for value in (found.icc, found.design_effect, found.effective_n):
        assert value is None or math.isfinite(value)
