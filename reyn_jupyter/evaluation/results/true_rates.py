"""The true rates that a study on the simulator should find, worked out once and kept with the runs that they are of.

Invariants: a true rate says how it was had. "computed" follows from the table and the requests that the loop really
makes, without error; "simulated" is the share in many independent trials through the same loop, and comes with its
Monte-Carlo standard error. Neither depends on the simulator's seed or correlations. A rate is taken from an earlier run
only if everything that it depends on is the same (the code, the table, the check's version, what the variant asks, the
settings, the catalogs, the scenarios and how often each phrasing is taken), and it is shown only beside trials that
stand on the same code, catalogs and model.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.models.simulator.simulator import Simulator
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.trial.model_factory import SIMULATOR
from reyn_jupyter.evaluation.trial.trial import MISSING, Trial
from reyn_jupyter.models.base import Request, Response, canonical

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner


# Variant's name → check's name → the rate's record, with the key of what it is of.
Truths = dict[str, dict[str, Any]]


async def find_true_rates(
    suite: Suite,
    variants: Iterable[Variant],
    repeats: Sequence[int],
    checks: Iterable[Check],
    trial_runner: TrialRunner,
    models: Mapping[str, Any],
    config: Mapping[str, Any] | None,
    runs: Iterable[Mapping[str, Any]],
) -> Truths:
    """Work out what the simulators of a run should show, of the check whose rate follows from the table.

    Other rates take trials of their own, and to be called true many more than the study has: see `true_rates`.

    Args:
        suite: the scenarios of the run, with their catalogs.
        variants, repeats, checks: of the run.
        trial_runner: the study's; only asked.
        models: the study's own, by name.
        config: the settings of every trial.
        runs: the study's earlier ones, whose rates are taken where they are of the same.
    """
    known = {truth["key"]: truth for run in runs for rates in run.get("truths", {}).values()
             for truth in rates.values() if "key" in truth}  # fmt: skip
    wanted = [check for check in checks if check.name == COMPUTED]
    found: Truths = {}
    for variant in variants:
        simulator = models.get(variant.model, Simulator() if variant.model == SIMULATOR else None)
        if not isinstance(simulator, Simulator):
            continue  # a fake provider is simulated too, but has no table here
        keys = {
            check.name: _key(check, variant, simulator, suite, repeats, trial_runner, config)
            for check in wanted
        }
        rates = {name: known[key] for name, key in keys.items() if key in known}
        missing = [check for check in wanted if check.name not in rates]
        if missing:
            made = await true_rates(suite, [variant], missing, simulator, repeats=repeats, config=config)
            rates |= {name: {**rate.record, "key": keys[name]} for name, rate in made[variant.name].items()}
        if rates:
            found[variant.name] = rates
    return found


def _key(
    check: Check,
    variant: Variant,
    simulator: Simulator,
    suite: Suite,
    repeats: Sequence[int],
    trial_runner: TrialRunner,
    config: Mapping[str, Any] | None,
) -> str:
    """Return a digest of all that a true rate depends on."""
    whole = len(repeats)
    scenarios = sorted(
        [
            scenario.digest,
            trial_runner.catalog_hashes[scenario.catalog],
            [
                [phrasing, str(Fraction(share, whole))]
                for phrasing, share in sorted(phrasing_shares(scenario, repeats).items())
            ],
        ]
        for scenario in suite.scenarios
    )
    asked = variant.but(variant.name, model=SIMULATOR).behaviour_digest
    parts = [
        trial_runner.code,
        simulator.table.digest,
        check.name,
        check.version,
        asked,
        dict(config or {}),
        scenarios,
    ]
    return hashlib.sha256(canonical(parts)).hexdigest()


def recorded_true_rates(
    runs: Sequence[Mapping[str, Any]],
    variants: Mapping[str, Variant],
    code: str,
    catalogs: Mapping[str, str],
    stamps: Mapping[str, str],
) -> dict[str, dict[str, float]]:
    """Variant → check → true rate, as the run says that had most scenarios and repeats of it.

    Args:
        runs: what is known of each, the oldest first.
        variants: by name.
        code, catalogs, stamps: what the trials that are shown stand on; what is not in the last two is not held
            against a run.
    """
    found: dict[str, dict[str, float]] = {}
    for run in sorted(runs, key=lambda each: (each["scenarios"], len(each["repeats"]))):
        if run["code"] != code or not _agree(run["catalogs"], catalogs):
            continue
        for name, checks in run.get("truths", {}).items():
            model = variants[name].model
            if _agree({model: run["stamps"].get(model)}, stamps):
                rates = {check: truth["rate"] for check, truth in checks.items() if truth["rate"] is not None}
                found.setdefault(name, {}).update(rates)
    return found


def _agree(some: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    return all(some[key] == others[key] for key in some.keys() & others.keys())


MODEL, _WITNESS = "simulator", "witness"
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
    repeats: int | Sequence[int] = 2,
    trials: int = 1_000,
    config: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, TrueRate]]:
    """Return the rates that a study of these variants on this simulator should find.

    Args:
        suite: its scenarios count alike, each by its phrasings as `repeats` take them.
        variants: their `model` is not looked at.
        checks: what is asked of the trials.
        simulator: its table counts; its seed and correlations do not.
        repeats: how often the study tries each scenario, or which of its repeats.
        trials: simulated trials a variant, for the checks that are not computed.
        config: settings besides the variants', as the study has them.

    Returns:
        variant's name → check's name → true rate.
    """
    from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner

    numbers = tuple(range(repeats)) if isinstance(repeats, int) else tuple(repeats)
    found: dict[str, dict[str, TrueRate]] = {}
    rest = [check for check in checks if check.name != COMPUTED]
    witness = _Witness()
    models: dict[str, Any] = {MODEL: simulator.independent, _WITNESS: witness}
    with TrialRunner(suite, models=models, config=config) as trial_runner:
        for variant in variants:
            rates: dict[str, TrueRate] = {}
            if len(rest) < len(checks):
                seen = variant.but(variant.name, model=_WITNESS)
                rates[COMPUTED] = await _compute_rate(trial_runner, seen, witness, simulator, numbers)
            if rest:
                played = variant.but(variant.name, model=MODEL)
                rates |= await _simulate_rates(trial_runner, played, rest, numbers, trials)
            found[variant.name] = {check.name: rates[check.name] for check in checks}
        await trial_runner.release()
    return found


def phrasing_shares(scenario: Scenario, repeats: Sequence[int]) -> dict[int, int]:
    """Index of a phrasing → how many of the repeats take it.

    >>> phrasing_shares(Scenario(id="s", family="f", prompts={"natural": "Hi", "terse": "hi"}), range(3))
    {0: 2, 1: 1}
    """
    return dict(Counter(repeat % len(scenario.prompts) for repeat in repeats))


async def _compute_rate(
    trial_runner: TrialRunner,
    variant: Variant,
    witness: _Witness,
    simulator: Simulator,
    repeats: Sequence[int],
) -> TrueRate:
    chances = []
    for scenario in trial_runner.suite.scenarios:
        for phrasing, share in phrasing_shares(scenario, repeats).items():
            witness.seen.clear()
            await trial_runner.run(trial_runner.plan(scenario, variant, phrasing))
            if witness.seen:
                chances.append((share, simulator.lists_first(witness.seen[0])))
    total = sum(share for share, _ in chances)
    rate = sum(share * chance for share, chance in chances) / total if total else None
    return TrueRate(rate, 0.0, "computed")


async def _simulate_rates(
    trial_runner: TrialRunner, variant: Variant, checks: Sequence[Check], repeats: Sequence[int], trials: int
) -> dict[str, TrueRate]:
    values: dict[str, list[float]] = {check.name: [] for check in checks}
    scenarios = trial_runner.suite.scenarios
    draws = math.ceil(trials / (len(repeats) * len(scenarios)))
    for scenario in scenarios:
        # Repeat r of the study takes phrasing r; every draw keeps to the phrasings that the study uses.
        cycle = _cycle(max(repeats) + 1, len(scenario.prompts))
        for draw, repeat in product(range(draws), repeats):
            trial, _ = await trial_runner.run(trial_runner.plan(scenario, variant, draw * cycle + repeat))
            if trial.outcome not in MISSING:
                _grade(trial, scenario, checks, values)
    total = draws * len(repeats) * len(scenarios)
    return {name: _mean(found, total) for name, found in values.items()}


def _grade(
    trial: Trial, scenario: Scenario, checks: Sequence[Check], values: Mapping[str, list[float]]
) -> None:
    for check in checks:
        value = check.grade(trial, scenario).value
        if value is not None:
            values[check.name].append(value)


def _cycle(repeats: int, phrasings: int) -> int:
    """Return the smallest number of repeats, not under `repeats`, after which phrasings begin again."""
    return phrasings * math.ceil(repeats / phrasings)


def _mean(values: Sequence[float], trials: int) -> TrueRate:
    if not values:
        return TrueRate(None, 0.0, "simulated", trials)
    mean = math.fsum(values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
    return TrueRate(mean, math.sqrt(spread / len(values)), "simulated", trials, len(values))
