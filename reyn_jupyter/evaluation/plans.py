"""What is tried, and in which order.

Invariant: the order follows from the seed and the scenarios alone. All variants of one scenario and repeat stand side
by side, in random order, and families come in proportion; so a study that is stopped anywhere is balanced, and
whatever drifts with time (a provider's load, a model that is replaced) touches all variants alike.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from reyn_jupyter.config.wording import nearest, shown
from reyn_jupyter.evaluation.scenario import Scenario
from reyn_jupyter.evaluation.variant import Variant
from reyn_jupyter.support.user_errors import UserError


class PlanError(UserError, ValueError):
    """What was asked for cannot be run; the message says why and what to do."""


def selected(
    scenarios: Sequence[Scenario], n: int | None, families: Collection[str] | None, seed: int
) -> tuple[Scenario, ...]:
    """The scenarios to try, in the order of trying.

    Args:
        scenarios: those of the suite.
        n: how many; all when None. The first n of an order are the first n of it for every larger n.
        families: only those of these families; all when None.
        seed: of the shuffle.

    Raises:
        PlanError: none is left, or a family is not known.
    """
    there = {scenario.family for scenario in scenarios}
    if isinstance(families, str):
        families = (families,)
    if families is not None and not isinstance(families, Collection):
        raise PlanError(f"families={shown(families)}: give names of families: {', '.join(sorted(there))}.")
    unknown = sorted(str(each) for each in set(families or ()) - there)
    if unknown:
        near = nearest(unknown[0], there) or "."
        raise PlanError(f"The suite has no family {unknown[0]!r}{near} It has {', '.join(sorted(there))}.")
    kept = [scenario for scenario in scenarios if families is None or scenario.family in families]
    if not kept:
        raise PlanError(f"No scenario is selected; name families among {', '.join(sorted(there))}.")
    return tuple(_proportional(kept, random.Random(seed))[:n])  # noqa: S311 - an order, no secret


def _proportional(scenarios: Sequence[Scenario], chance: random.Random) -> list[Scenario]:
    """Shuffled within families, and families in proportion in every part of the order."""
    families: dict[str, list[Scenario]] = defaultdict(list)
    for scenario in scenarios:
        families[scenario.family].append(scenario)
    placed = []
    for members in families.values():
        chance.shuffle(members)
        offset = chance.random()
        placed += [((place + offset) / len(members), scenario) for place, scenario in enumerate(members)]
    return [scenario for _, scenario in sorted(placed, key=lambda each: (each[0], each[1].id))]


def ordered(
    scenarios: Sequence[Scenario], variants: Sequence[Variant], repeats: Sequence[int], seed: int
) -> Iterator[tuple[Scenario, Variant, int]]:
    """Every trial of a run, in order: scenario, variant, repeat.

    Example:
        >>> s = [Scenario(id=f"s{i}", family="f", prompts={"natural": "Hi"}) for i in range(2)]
        >>> [scenario.id for scenario, _, _ in ordered(s, [Variant("a"), Variant("b")], [0], 0)]
        ['s0', 's0', 's1', 's1']
    """
    for scenario in scenarios:
        for repeat in repeats:
            # A generator of its own for each pair: what is done already does not move the order of the rest.
            beside = list(variants)
            random.Random(f"{seed}/{scenario.id}/{repeat}").shuffle(beside)  # noqa: S311 - an order, no secret
            for variant in beside:
                yield scenario, variant, repeat


def checked(variants: Sequence[object]) -> None:
    """Refuse what cannot be run. Raises PlanError."""
    if not variants:
        raise PlanError("Run what? Name at least one variant: study.run(base, best).")
    names: dict[str, Variant] = {}
    for variant in variants:
        if isinstance(variant, list | tuple):
            raise PlanError("Name the variants one by one; a list with a star: study.run(*variants).")
        if not isinstance(variant, Variant):
            raise PlanError(
                f"{shown(variant)} is no variant; make one, reyn.Variant({variant!r:.80}, model=…), or take one of the "
                "suite: study.suite.variants."
            )
        other = names.get(variant.name)
        if other is not None and other.behaviour_digest != variant.behaviour_digest:
            moved = ", ".join(variant.differences(other))
            raise PlanError(
                f"Two variants are called {variant.name!r} and differ in {moved}; give each a name of its own."
            )
        if other is not None:
            raise PlanError(f"The variant {variant.name!r} is named twice; name it once.")
        names[variant.name] = variant
