"""The true rates of a study's simulated variants: worked out once, and kept with the runs that they are of.

Invariant: a rate is taken from an earlier run only if everything that it depends on is the same (the code, the table,
the check's version, what the variant asks, the settings, the catalogs, the scenarios and how often each phrasing is
taken), and it is shown only beside trials that stand on the same code, catalogs and model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from reyn_jupyter.evaluation.answers import SIMULATOR
from reyn_jupyter.evaluation.simulator import COMPUTED, Simulator, phrasing_shares, true_rates
from reyn_jupyter.evaluation.suite import Suite
from reyn_jupyter.evaluation.tally import Order
from reyn_jupyter.evaluation.variant import Variant
from reyn_jupyter.evaluation.verdict import Check
from reyn_jupyter.models.seam import canonical

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.trial_run import Bench

# Variant's name → check's name → the rate's record, with the key of what it is of.
Truths = dict[str, dict[str, Any]]


async def truths_of(
    order: Order,
    suite: Suite,
    bench: Bench,
    models: Mapping[str, Any],
    config: Mapping[str, Any] | None,
    runs: Iterable[Mapping[str, Any]],
) -> Truths:
    """What the simulators of an order should show, of the check whose rate follows from the table.

    Other rates take trials of their own, and to be called true many more than the study has: see `true_rates`.

    Args:
        order: its variants, scenarios, repeats and checks.
        suite: those scenarios, with their catalogs.
        bench: the study's; only asked.
        models: the study's own, by name.
        config: the settings of every trial.
        runs: the study's earlier ones, whose rates are taken where they are of the same.
    """
    known = {truth["key"]: truth for run in runs for rates in run.get("truths", {}).values()
             for truth in rates.values() if "key" in truth}  # fmt: skip
    wanted = [check for check in (order.check, *order.others) if check.name == COMPUTED]
    found: Truths = {}
    for variant in order.variants:
        simulator = models.get(variant.model, Simulator() if variant.model == SIMULATOR else None)
        if not isinstance(simulator, Simulator):
            continue  # a practice provider is simulated too, but has no table here
        keys = {check.name: _key(check, variant, simulator, order, bench, config) for check in wanted}
        rates = {name: known[key] for name, key in keys.items() if key in known}
        missing = [check for check in wanted if check.name not in rates]
        if missing:
            made = await true_rates(
                suite, [variant], missing, simulator, repeats=order.repeats, config=config
            )
            rates |= {name: {**rate.record, "key": keys[name]} for name, rate in made[variant.name].items()}
        if rates:
            found[variant.name] = rates
    return found


def _key(
    check: Check,
    variant: Variant,
    simulator: Simulator,
    order: Order,
    bench: Bench,
    config: Mapping[str, Any] | None,
) -> str:
    """What a true rate depends on."""
    whole = len(order.repeats)
    scenarios = sorted(
        [
            scenario.digest,
            bench.catalog_hashes[scenario.catalog],
            [
                [phrasing, str(Fraction(share, whole))]
                for phrasing, share in sorted(phrasing_shares(scenario, order.repeats).items())
            ],
        ]
        for scenario in order.scenarios
    )
    asked = variant.but(variant.name, model=SIMULATOR).behaviour_digest
    parts = [
        bench.code,
        simulator.table.digest,
        check.name,
        check.version,
        asked,
        dict(config or {}),
        scenarios,
    ]
    return hashlib.sha256(canonical(parts)).hexdigest()


def shown_truths(
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
