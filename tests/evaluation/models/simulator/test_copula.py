"""The simulator's draws: repeats and arms resemble each other as stated, and in no other way."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from reyn_jupyter.evaluation.models.simulator import Simulator
from reyn_jupyter.evaluation.models.simulator.copula import Latent
from reyn_jupyter.evaluation.statistics.rates import rate
from tests.evaluation.models.simulator.simulator_support import (
    DRAWS,
    asking,
    lists,
    opening,
)


@pytest.mark.parametrize(
    ("stated", "interaction", "between"), [(0.0, 0.0, 0.0), (0.3, 0.0, 0.3), (0.6, 0.0, 0.8), (0.6, 0.6, 0.2)]
)
def test_the_icc_of_repeats_is_the_stated_one(stated: float, interaction: float, between: float) -> None:
    model = Simulator(icc=stated, arm_correlation=between, interaction=interaction)
    request = opening("explicit")

    def listed(prompt: int, repeat: int) -> float:
        return float(lists(model, asking(request, f"Read notes-{prompt}.md.", repeat)))

    arm = {str(prompt): {repeat: listed(prompt, repeat) for repeat in range(5)} for prompt in range(500)}

    expected = _implied_correlation(0.36, 0.36, stated)
    assert rate(arm).icc == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize(
    ("shares", "same_repeat", "other_repeat"),
    [
        ({"icc": 0.2, "arm_correlation": 0.7}, 0.7, 0.2),
        ({"icc": 0.4, "arm_correlation": 0.2, "interaction": 0.3}, 0.2, 0.1),
        ({"icc": 0.0, "arm_correlation": 0.0}, 0.0, 0.0),
    ],
)
def test_arms_are_correlated_as_stated(
    shares: dict[str, float], same_repeat: float, other_repeat: float
) -> None:
    model = Simulator(**shares)
    once, twice = opening("explicit"), opening("explicit twice")
    texts = [f"Read notes-{n}.md." for n in range(DRAWS)]

    here = [lists(model, asking(once, text)) for text in texts]
    there = [lists(model, asking(twice, text)) for text in texts]
    later = [lists(model, asking(twice, text, 1)) for text in texts]

    assert _correlation(here, there) == pytest.approx(_implied_correlation(0.36, 0.60, same_repeat), abs=0.1)
    assert _correlation(here, later) == pytest.approx(_implied_correlation(0.36, 0.60, other_repeat), abs=0.1)


def _correlation(left: list[bool], right: list[bool]) -> float:
    p, q = sum(left) / len(left), sum(right) / len(right)
    both = sum(a and b for a, b in zip(left, right, strict=True)) / len(left)
    return float((both - p * q) / (p * (1 - p) * q * (1 - q)) ** 0.5)


@pytest.mark.parametrize(
    "impossible",
    [{"icc": -0.1}, {"icc": 0.2, "interaction": 0.3}, {"icc": 0.5, "arm_correlation": 0.2},
     {"icc": 0.6, "arm_correlation": 0.7, "interaction": 0.4}],
)  # fmt: skip
def test_correlations_that_cannot_hold_together_are_refused(impossible: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="cannot hold together"):
        Simulator(**{"icc": 0.0, "arm_correlation": 0.0, **impossible})


@given(
    st.floats(0, 1),
    st.floats(0, 1),
    st.text(max_size=20),
    st.integers(0, 10**6),
    st.text(max_size=8),
    st.integers(),
)
def test_a_draw_is_in_the_open_unit_interval_and_always_the_same(
    icc: float, interaction: float, prompt: str, repeat: int, arm: str, seed: int
) -> None:
    latent = Latent(seed, icc, icc * (1 - interaction), icc * interaction)

    draw = latent.uniform(prompt, repeat, arm, "decision")

    assert 0.0 < draw < 1.0
    assert draw == replace(latent).uniform(prompt, repeat, arm, "decision")


def _implied_correlation(p: float, q: float, rho: float) -> float:
    """Return the correlation of two decisions of rates p and q whose normal scores correlate by rho."""
    limits = [NormalDist().inv_cdf(p), NormalDist().inv_cdf(q)]
    normal = multivariate_normal(cov=[[1.0, rho], [rho, 1.0]], allow_singular=True)
    both = float(normal.cdf(limits))
    return (both - p * q) / math.sqrt(p * (1 - p) * q * (1 - q))
