"""What of an order is still to be tried.

Invariant: a trial that is in the file is not tried again, unless it ended in an error or a timeout and the person asks
for that; variants that behave alike share a trial, which is tried once and counts for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reyn_jupyter.evaluation.plans import ordered
from reyn_jupyter.evaluation.scenario import Source
from reyn_jupyter.evaluation.store_rows import Found
from reyn_jupyter.evaluation.tally import MISSING, Order, Tally
from reyn_jupyter.evaluation.trial_run import Bench, TrialPlan


@dataclass
class Remaining:
    """The plans of what is to be tried, in their order.

    Attributes:
        alike: (trial's key, source) → the variants that a trial of several counts for.
    """

    plans: list[TrialPlan] = field(default_factory=list)
    alike: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def names(self, plan: TrialPlan, source: Source) -> list[str]:
        """The variants that a trial counts for."""
        return self.alike.get((plan.key, source), [plan.variant.name])


def remaining(
    order: Order,
    bench: Bench,
    stored: Mapping[Found, tuple[str, float | None]],
    ground: Callable[[TrialPlan], str],
    tally: Tally,
) -> Remaining:
    """Sort what is there already, and count it, from what is to be tried.

    Args:
        order: what to do.
        bench: makes the plans.
        stored: what a trial is found by → its outcome and the primary check's value.
        ground: what a trial stands on besides.
        tally: counts what is there.
    """
    left, planned = Remaining(), dict[tuple[str, str], list[str]]()
    sources = {variant.name: bench.source(variant) for variant in order.variants}
    for scenario, variant, repeat in ordered(order.scenarios, order.variants, order.repeats, order.seed):
        plan, source = bench.plan(scenario, variant, repeat), sources[variant.name]
        outcome, value = stored.get((plan.key, source, ground(plan)), ("", None))
        if outcome and not (order.retry and outcome in MISSING):
            tally.earlier += 1
            tally.count(variant.name, scenario.id, repeat, outcome, value)
            continue
        alike = planned.setdefault((plan.key, source), [])
        alike.append(variant.name)
        if len(alike) == 1:
            left.plans.append(plan)
    left.alike = {place: alike for place, alike in planned.items() if len(alike) > 1}
    return left
