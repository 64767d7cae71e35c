"""A suite: scenarios, the catalogs that they run on, the variants that they compare, and what they are to show.

Invariant: ids are unique, every scenario names a catalog of the suite, and every gold action is in it (checked when
the suite is opened on a study, since a catalog may depend on what is installed).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reyn_jupyter.config import ActionPattern, PatternError
from reyn_jupyter.evaluation.plan.model_grader import ModelGrader
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.support.text import meant_clause
from reyn_jupyter.support.user_errors import UserError
from reyn_jupyter.support.validation_messages import quote_value

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog

STANDARD = "standard"  # the catalog of a scenario that names none: the installed actions


class SuiteError(UserError, ValueError):
    """A suite that cannot be used; the message says which scenario, why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence that somebody published and a suite can test again.

    Attributes:
        id, sentence: the claim.
        family: the scenarios that it is about; "" for all.
        check: the check that measures it.
        variant: the variant under which it is claimed; `against` the one that it is compared with.
        passed, trials: the evidence that was published, None where only a range was.
        low, high: the published range of the rate (0 to 1), where one was.
        benchmark: the rate that the claim means to beat, or to stay under; None where it only states a figure.
        source: the document.
    """

    id: str
    sentence: str
    family: str
    check: str
    variant: str
    against: str | None = None
    passed: int | None = None
    trials: int | None = None
    low: float | None = None
    high: float | None = None
    benchmark: float | None = None
    source: str = "Universal Action Catalog (FP-0034), weak-model discovery and selection reliability"


@dataclass(frozen=True, kw_only=True, repr=False)
class Suite:
    """Scenarios with everything that they need.

    Attributes:
        name, title: "mandates", and a line for people.
        primary: the check that a comparison is about unless another is named; named in advance.
        checks: the checks that the report shows, the primary one first.
        catalogs: name → the catalog, or a function that makes it (frozen when a study runs). The installed actions are
            "standard" where nothing else is.
        variants: name → the variants that the suite suggests; their model is set by the person.
        claims: what it re-measures.
        allow_actions: patterns of actions that trials may run although they act outside the trial's own workspace,
            as in `permissions.allow`: an action, or an action with a target. All else of the kind is denied.
        graders: models that judge answers, each a check more; asked by `study.judge()`.
    """

    name: str
    title: str
    primary: str
    scenarios: tuple[Scenario, ...]
    checks: tuple[str, ...] = ()
    catalogs: Mapping[str, Catalog | Callable[[], Catalog]] = field(default_factory=dict)
    variants: Mapping[str, Variant] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    allow_actions: tuple[str, ...] = ()
    graders: tuple[ModelGrader, ...] = ()

    def __post_init__(self) -> None:
        for name in ("scenarios", "checks", "claims", "allow_actions", "graders"):
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Sequence):
                raise SuiteError(f"{name}={quote_value(given)}: give a list, even of one")
            object.__setattr__(self, name, tuple(given))
        for scenario in self.scenarios:
            if not isinstance(scenario, Scenario):
                raise SuiteError(
                    f"{quote_value(scenario)} is no scenario; make one: reyn.Scenario(id=…, family=…, prompts=…)"
                )
        _check_patterns(self.allow_actions)
        _check_graders(self)
        if not self.scenarios:
            raise SuiteError(f"the suite {self.name!r} has no scenario; give it at least one")
        for identity, count in Counter(scenario.id for scenario in self.scenarios).items():
            if count > 1:
                raise SuiteError(
                    f"the suite {self.name!r} has {count} scenarios {identity!r}; give each an id of its own"
                )
        if any(scenario.catalog == STANDARD for scenario in self.scenarios):
            object.__setattr__(self, "catalogs", {STANDARD: _standard, **self.catalogs})
        for scenario in self.scenarios:
            if scenario.catalog not in self.catalogs:
                raise SuiteError(
                    f"scenario {scenario.id!r} runs on the catalog {scenario.catalog!r}, which the suite "
                    f"{self.name!r} has not; it has {', '.join(self.catalogs) or 'none'}. Name one of them, or give "
                    f"it: catalogs={{{scenario.catalog!r}: reyn.Catalog.from_records(…)}}"
                )

    def scenario(self, identity: str) -> Scenario:
        """Return the scenario of an id. Raises SuiteError."""
        for scenario in self.scenarios:
            if scenario.id == identity:
                return scenario
        near = meant_clause(identity, (scenario.id for scenario in self.scenarios))
        raise SuiteError(f"the suite {self.name!r} has no scenario {identity!r}{near}")

    def only(self, *ids: str) -> Suite:
        """Return the suite with these of its scenarios, in their order there, and with what concerns them: catalogs
        that they run on, claims about their families. Trials of them count in both suites.

        Raises:
            SuiteError: no id is given, or the suite has no scenario of one.

        Example:
            >>> load_suite("mandates").only("port", "failed-disk")   # doctest: +SKIP
        """
        if not ids:
            raise SuiteError(f"only(…) picks scenarios of the suite {self.name!r}; give at least one id")
        chosen = {self.scenario(identity).id for identity in ids}
        scenarios = tuple(scenario for scenario in self.scenarios if scenario.id in chosen)
        families = {"", *(scenario.family for scenario in scenarios)}
        used = {scenario.catalog for scenario in scenarios}
        return replace(
            self,
            scenarios=scenarios,
            catalogs={name: catalog for name, catalog in self.catalogs.items() if name in used},
            claims=tuple(claim for claim in self.claims if claim.family in families),
        )

    def allowing(self, patterns: Sequence[str]) -> Suite:
        """Return the suite with these patterns too in `allow_actions`. Raises SuiteError where one is none."""
        if isinstance(patterns, str) or not isinstance(patterns, Sequence):
            raise SuiteError(f"allow_actions={quote_value(patterns)}: give a list, even of one")
        return replace(self, allow_actions=tuple(dict.fromkeys((*self.allow_actions, *patterns))))

    def catalog(self, name: str) -> Catalog:
        """Return the catalog of a name, made where a function stands for it."""
        found = self.catalogs[name]
        return found() if callable(found) else found

    def __repr__(self) -> str:
        families = ", ".join(dict.fromkeys(scenario.family for scenario in self.scenarios))
        return (
            f"Suite({self.name!r}, {len(self.scenarios)} scenarios of {families}, primary={self.primary!r})"
        )


def _check_graders(suite: Suite) -> None:
    names = [suite.primary, *suite.checks, *(getattr(grader, "people", "") for grader in suite.graders)]
    for grader in suite.graders:
        if not isinstance(grader, ModelGrader):
            raise SuiteError(
                f"{quote_value(grader)} is no grader; make one: reyn.ModelGrader(name=…, model=…, rubric=…)"
            )
        if grader.name in names:
            raise SuiteError(
                f"the suite {suite.name!r} has {grader.name!r} twice among its checks and graders; give each grader a "
                "name of its own, and let a check that needs no judge be the primary one"
            )
        names.append(grader.name)


def _check_patterns(patterns: Sequence[object]) -> None:
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise SuiteError(f"allow_actions: {quote_value(pattern)} is no text; write the name of an action")
        try:
            ActionPattern.parse(pattern, loosens=True)
        except PatternError as error:
            raise SuiteError(f"allow_actions: {quote_value(pattern)}: {error}") from error


def _standard() -> Catalog:
    from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog

    return Catalog.standard()
