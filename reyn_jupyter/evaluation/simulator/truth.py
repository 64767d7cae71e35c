"""What a study on the simulator should find: its true rates, from the table and the real loop.

Invariant: a true rate says how it was had. "computed" follows from the table and the requests that the loop really
makes, without error; "simulated" is the share in many independent trials through the same loop, and comes with its
Monte-Carlo standard error. Neither depends on the simulator's seed or correlations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.evaluation.scenario import Scenario
from reyn_jupyter.evaluation.simulator.model import Simulator
from reyn_jupyter.evaluation.suite import Suite
from reyn_jupyter.evaluation.trial import Trial
from reyn_jupyter.evaluation.variant import Variant
from reyn_jupyter.evaluation.verdict import Check
from reyn_jupyter.models.seam import Request, Response

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.trial_run import Bench

MODEL = "simulator"
COMPUTED = "first_call_is"  # the check whose rate is an entry of the table for each request


@dataclass(frozen=True)
class TrueRate:
    """A rate that a study should find.

    Attributes:
        rate: the share of passes, or the mean of a number, of the trials that the check applies to; None for none.
        error: the standard error of it; 0 for what is computed.
        how: "computed" or "simulated".
        trials: the trials that it rests on; 0 for what is computed.
        applies: how many of them the check applies to.
    """

    rate: float | None
    error: float
    how: Literal["computed", "simulated"]
    trials: int = 0
    applies: int = 0

    @property
    def record(self) -> dict[str, Any]:
        """As plain JSON, for a study's provenance."""
        return asdict(self)


class _Witness:
    """Keeps the requests of a trial, and says nothing that goes on."""

    label, tier, host, real, source = Simulator.label, Simulator.tier, None, False, Simulator.source

    def __init__(self) -> None:
        self.seen: list[Request] = []

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        self.seen.append(request)
        return Response("Seen.", cost=0.0, model=self.label)


async def true_rates(
    suite: Suite,
    variants: Iterable[Variant],
    checks: Sequence[Check],
    simulator: Simulator,
    *,
    repeats: int = 2,
    trials: int = 1_000,
    config: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, TrueRate]]:
    """The rates that a study of these variants on this simulator should find.

    Args:
        suite: its scenarios count alike, each by its phrasings as `repeats` take them.
        variants: their `model` is not looked at.
        checks: what is asked of the trials.
        simulator: its table counts; its seed and correlations do not.
        repeats: how often the study tries each scenario.
        trials: simulated trials a variant, for the checks that are not computed.
        config: settings besides the variants', as the study has them.

    Returns:
        variant's name → check's name → true rate.
    """
    found: dict[str, dict[str, TrueRate]] = {}
    rest = [check for check in checks if check.name != COMPUTED]
    for variant in (each.but(each.name, model=MODEL) for each in variants):
        rates: dict[str, TrueRate] = {}
        if len(rest) < len(checks):
            rates[COMPUTED] = await _computed(suite, variant, simulator, repeats, config)
        if rest:
            rates |= await _simulated(suite, variant, rest, simulator, repeats, trials, config)
        found[variant.name] = {check.name: rates[check.name] for check in checks}
    return found


async def _computed(
    suite: Suite, variant: Variant, simulator: Simulator, repeats: int, config: Mapping[str, Any] | None
) -> TrueRate:
    witness = _Witness()
    chances = []
    with _bench(suite, witness, config) as bench:
        for scenario in suite.scenarios:
            for repeat in range(min(repeats, len(scenario.prompts))):
                witness.seen.clear()
                await bench.run(bench.plan(scenario, variant, repeat))
                share = len(range(repeat, repeats, len(scenario.prompts)))
                if witness.seen:
                    chances.append((share, simulator.lists_first(witness.seen[0])))
    total = sum(share for share, _ in chances)
    rate = sum(share * chance for share, chance in chances) / total if total else None
    return TrueRate(rate, 0.0, "computed")


async def _simulated(
    suite: Suite,
    variant: Variant,
    checks: Sequence[Check],
    simulator: Simulator,
    repeats: int,
    trials: int,
    config: Mapping[str, Any] | None,
) -> dict[str, TrueRate]:
    values: dict[str, list[float]] = {check.name: [] for check in checks}
    draws = math.ceil(trials / (repeats * len(suite.scenarios)))
    with _bench(suite, simulator.independent, config) as bench:
        for scenario in suite.scenarios:
            # Repeat r of the study takes phrasing r; every draw keeps to the phrasings that the study uses.
            cycle = _cycle(repeats, len(scenario.prompts))
            for draw, repeat in product(range(draws), range(repeats)):
                trial, _ = await bench.run(bench.plan(scenario, variant, draw * cycle + repeat))
                if trial.outcome not in ("error", "timeout"):
                    _grade(trial, scenario, checks, values)
    total = draws * repeats * len(suite.scenarios)
    return {name: _mean(found, total) for name, found in values.items()}


def _grade(
    trial: Trial, scenario: Scenario, checks: Sequence[Check], values: Mapping[str, list[float]]
) -> None:
    for check in checks:
        value = check.grade(trial, scenario).value
        if value is not None:
            values[check.name].append(value)


def _cycle(repeats: int, phrasings: int) -> int:
    """The smallest number of repeats, not under `repeats`, after which phrasings begin again."""
    return phrasings * math.ceil(repeats / phrasings)


def _mean(values: Sequence[float], trials: int) -> TrueRate:
    if not values:
        return TrueRate(None, 0.0, "simulated", trials)
    mean = math.fsum(values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
    return TrueRate(mean, math.sqrt(spread / len(values)), "simulated", trials, len(values))


@contextmanager
def _bench(suite: Suite, model: Any, config: Mapping[str, Any] | None) -> Iterator[Bench]:
    from reyn_jupyter.evaluation.trial_run import Bench

    bench = Bench(suite, models={MODEL: model}, config=config)
    try:
        yield bench
    finally:
        bench.close()
