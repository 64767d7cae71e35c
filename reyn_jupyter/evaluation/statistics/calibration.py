"""Score forecasts of outcomes.

Invariant: a score always says its scale. The sum form of Brier (1950) goes from 0 to 2 whatever the number of classes;
the mean form is that divided by the classes, which makes the same forecast look better the more classes there are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reyn_jupyter.evaluation.statistics.rates import rate


@dataclass(frozen=True)
class Brier:
    """The Brier score of a set of forecasts.

    Attributes:
        sum: mean over events of the squared errors summed over classes, 0 (best) to 2.
        mean: the same averaged over classes.
        climatology: the sum form of the forecaster who always says the frequencies that were seen.
        skill: 1 − sum / climatology: 0 is as good as that forecaster, negative is worse; None where every event had
            the same outcome, so that the frequencies are never wrong.
        events: how many forecasts there were.
        classes: the classes, in the order of their names.
        warnings: sentences for people.
    """

    sum: float
    mean: float
    climatology: float
    skill: float | None
    events: int
    classes: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Bin:
    """Forecasts of about the same probability.

    Attributes:
        lower, upper: edges of the bin; the upper one belongs to the next, but for 1.
        count: forecasts in it.
        forecast: their mean probability.
        observed: share of them that came true.
        low, high: confidence limits of that share.
    """

    lower: float
    upper: float
    count: int
    forecast: float
    observed: float
    low: float
    high: float


def brier(
    forecasts: Sequence[Mapping[str, float]],
    outcomes: Sequence[str],
    *,
    merge: Mapping[str, str] | None = None,
) -> Brier:
    """Score forecasts over classes against what happened.

    Args:
        forecasts: class → probability, one mapping an event; a class left out has probability 0.
        outcomes: the class that happened, one an event.
        merge: class → the class it is counted as, in forecasts and outcomes alike. Merging changes the score.

    Returns:
        A `Brier`.

    Raises:
        ValueError: no event, unequal lengths, or probabilities that are not a distribution.

    Example:
        >>> round(brier([{"pass": 0.8, "fail": 0.2}], ["pass"]).sum, 2)
        0.08
    """
    if not outcomes or len(forecasts) != len(outcomes):
        raise ValueError(
            f"{len(forecasts)} forecasts for {len(outcomes)} outcomes: give one forecast an outcome, and at least one"
        )
    named = merge or {}
    merged = [_merge(forecast, named) for forecast in forecasts]
    happened = [named.get(outcome, outcome) for outcome in outcomes]
    classes = sorted({name for forecast in merged for name in forecast} | set(happened))
    events = len(happened)
    frequencies = {name: count / events for name, count in Counter(happened).items()}
    score = math.fsum(map(_error, merged, happened)) / events
    climatology = 1 - math.fsum(share**2 for share in frequencies.values())
    constant = len(frequencies) == 1
    warning = "All outcomes are the same: skill against the observed frequencies is not defined."
    return Brier(
        score,
        score / len(classes),
        0.0 if constant else climatology,
        None if constant else 1 - score / climatology,
        events,
        tuple(classes),
        (warning,) if constant else (),
    )


def reliability_table(
    probabilities: Sequence[float],
    happened: Sequence[bool],
    *,
    scenarios: Sequence[str] | None = None,
    bins: int = 10,
    level: float = 0.95,
) -> tuple[Bin, ...]:
    """Forecasts of one event sorted into bins of equal width, with what came of them.

    Args:
        probabilities: forecasts, 0 to 1.
        happened: whether the event came true, one a forecast.
        scenarios: what each forecast is about; those of one scenario resemble each other. None where all stand alone.
        bins: how many there are between 0 and 1.
        level: the confidence level of the limits.

    Returns:
        The bins that hold a forecast, lowest first; each scenario weighs the same, and the limits are those of `rate`.

    Raises:
        ValueError: unequal lengths, no bin, or a probability outside of 0 to 1.

    Example:
        >>> [(bin.count, bin.observed) for bin in reliability_table([0.1, 0.12, 0.9], [False, True, True])]
        [(2, 0.5), (1, 1.0)]
    """
    about = list(map(str, range(len(happened)))) if scenarios is None else scenarios
    if not len(probabilities) == len(happened) == len(about) or bins < 1:
        raise ValueError(
            f"{len(probabilities)} forecasts, {len(happened)} outcomes, {len(about)} scenarios, {bins} bins: "
            "give one outcome and one scenario a forecast, and one bin or more"
        )
    sorted_in: dict[int, list[tuple[str, float, bool]]] = {}
    for name, probability, came in zip(about, probabilities, happened, strict=True):
        _probability(probability)
        sorted_in.setdefault(min(int(probability * bins), bins - 1), []).append((name, probability, came))
    return tuple(_bin(number, bins, sorted_in[number], level) for number in sorted(sorted_in))


def _bin(number: int, bins: int, members: list[tuple[str, float, bool]], level: float) -> Bin:
    arm: dict[str, dict[int, float]] = {}
    for name, _, came in members:
        arm.setdefault(name, {})[len(arm.get(name, {}))] = float(came)
    found = rate(arm, level=level)
    forecast = math.fsum(probability / len(arm[name]) for name, probability, _ in members) / len(arm)
    return Bin(
        number / bins, (number + 1) / bins, len(members), forecast, found.estimate, found.low, found.high
    )


def _merge(forecast: Mapping[str, float], named: Mapping[str, str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, probability in forecast.items():
        _probability(probability)
        found[named.get(name, name)] = found.get(named.get(name, name), 0.0) + probability
    total = math.fsum(found.values())
    if not math.isclose(total, 1, abs_tol=1e-6):
        raise ValueError(f"the probabilities of a forecast add up to {total:.6g}; they must add up to 1")
    return found


def _error(forecast: Mapping[str, float], outcome: str) -> float:
    missed = 0.0 if outcome in forecast else 1.0
    return missed + math.fsum((p - (name == outcome)) ** 2 for name, p in forecast.items())


def _probability(value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{value!r} is not a probability; forecasts lie between 0 and 1")
