"""A suite against its catalogs: what is expected can be done.

Invariant: a suite that passes can be solved: the first accepted call of every step is complete and the loop takes its
arguments as they stand, so that an oracle which makes these calls, and nothing else, does what is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial

from reyn_jupyter.catalog.action import Action
from reyn_jupyter.catalog.arguments.preparation import prepare
from reyn_jupyter.catalog.names import ActionName, MalformedNameError
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.evaluation.checks import UnknownCheckError, find_check
from reyn_jupyter.evaluation.models.gold_arguments import written_out
from reyn_jupyter.evaluation.plan.distractors import require_size
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import MAY_BE_LEFT_OUT, AcceptedCall, Scenario
from reyn_jupyter.evaluation.plan.suite import Claim, Suite, SuiteError
from reyn_jupyter.evaluation.suites.templates import memory_entries
from reyn_jupyter.support.text import nearest

_MEMORY = "memory_entry"
_REQUIRED = "is required"
_WHOLE = (
    "; the first call of a step is one that can be made: give it what is missing, in a file also under play, or let "
    "another of its calls come first"
)


def check(suite: Suite, places: Mapping[str, str]) -> None:
    """Raise SuiteError for the first thing that cannot be; `places` says where a scenario stands in a file."""
    try:
        for name in (suite.primary, *suite.checks, *(claim.check for claim in suite.claims)):
            find_check(name)
    except UnknownCheckError as error:
        raise SuiteError(f"suite {suite.name!r}: {error}") from error
    for claim in suite.claims:
        _check_claim(suite, claim)
    by_catalog: dict[str, list[Scenario]] = {}
    for scenario in suite.scenarios:
        by_catalog.setdefault(scenario.catalog, []).append(scenario)
    for name, scenarios in by_catalog.items():
        snapshot = suite.catalog(name).snapshot
        for scenario in scenarios:
            for problem in problems(scenario, snapshot):
                where = places.get(scenario.id, f"suite {suite.name!r}")
                raise SuiteError(f"{where}, scenario {scenario.id!r}, {problem}")


def check_sizes(suite: Suite) -> None:
    """Raise SuiteError for a variant whose `catalog_size` a catalog of the suite cannot have."""
    catalogs = {name: suite.catalog(name) for name in {scenario.catalog for scenario in suite.scenarios}}
    for variant in suite.variants.values():
        narrowed = {name: catalog.without(variant.without) for name, catalog in catalogs.items()}
        require_size(variant, suite.scenarios, partial(_catalog_of, narrowed))


def _catalog_of(catalogs: Mapping[str, Catalog], scenario: Scenario) -> Catalog:
    return catalogs[scenario.catalog]


def _check_claim(suite: Suite, claim: Claim) -> None:
    where = f"suite {suite.name!r}, claim {claim.id!r}"
    for name in (claim.variant, claim.against):
        if name is not None and name not in suite.variants:
            known = ", ".join(suite.variants) or "none"
            raise SuiteError(f"{where}: there is no variant {name!r}; the suite has {known}")
    if claim.family and claim.family not in {scenario.family for scenario in suite.scenarios}:
        raise SuiteError(
            f"{where}: no scenario is of its family {claim.family!r}; correct it, or leave it empty"
        )


def problems(scenario: Scenario, snapshot: CatalogSnapshot) -> Iterator[str]:
    """Yield what of a scenario its catalog cannot do, a sentence each."""
    for number, step in enumerate(scenario.gold.steps):
        for place, call in enumerate(step):
            for problem in _call(call, scenario, snapshot, whole=place == 0):
                yield f"gold {number}, {call.action}: {problem}"
    for action in scenario.setup_error:
        if isinstance(found := _action(action, scenario, snapshot), str):
            yield f"setup_error: {found}"
    for action in scenario.no_other:
        if "*" in action:
            if not any(fnmatchcase(each.name.text, action) for each in snapshot.actions):
                yield f"no_other: {action!r} stands for no action in the catalog {scenario.catalog!r}"
        elif isinstance(found := _action(action, scenario, snapshot), str):
            yield f"no_other: {found}"


def _call(call: AcceptedCall, scenario: Scenario, snapshot: CatalogSnapshot, *, whole: bool) -> Iterator[str]:
    action = _action(call.action, scenario, snapshot)
    if action is None:
        return
    if isinstance(action, str):
        yield action
        return
    if whole:
        values = {name: _values(accepted) for name, accepted in call.args.items()}
        for refused in _refusals(action, {name: known[0] for name, known in values.items() if known}):
            yield refused + (_WHOLE if refused.endswith(_REQUIRED) else "")
    for name, accepted in call.args.items():
        for value in _values(accepted):
            yield from _refusals(action, {name: value}, alone=True)


def _values(accepted: tuple[object, ...]) -> list[object]:
    return [written_out(value) for value in accepted if value != MAY_BE_LEFT_OUT]


def _refusals(action: Action, args: dict[str, object], *, alone: bool = False) -> list[str]:
    """Return what the loop would say to a call; with `alone`, to this one argument beside whatever else is needed."""
    invalid = prepare(action.input_schema, args, forgive=False).invalid
    return [
        f"its schema refuses {told['path'] or 'the arguments'}: {told['message']}"
        for told in invalid
        if not (alone and told["message"] == _REQUIRED)
    ]


def _action(name: str, scenario: Scenario, snapshot: CatalogSnapshot) -> Action | str | None:
    """Return the action; None for a memory that the template brings; a sentence where there is none."""
    try:
        parsed = ActionName.parse(name)
    except MalformedNameError:
        return f"{name!r} is no qualified name; write category__operation or category__resource"
    if parsed.category == _MEMORY and parsed.entry in memory_entries(scenario.workspace):
        return None
    action = snapshot.get(parsed)
    if action is not None:
        return action
    near = nearest(name, [each.name.text for each in snapshot.actions])
    hint = f"did you mean {near!r}?" if near else "look at what it holds"
    return f"there is no action {name!r} in the catalog {scenario.catalog!r}; {hint}"
