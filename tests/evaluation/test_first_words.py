"""What somebody writes who has the help of the shell and nothing else."""

from __future__ import annotations

import inspect

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.plan.suite import SuiteError
from reyn_jupyter.evaluation.results.trial_set import EvidenceError
from reyn_jupyter.evaluation.suites import check_suite
from tests.evaluation.study_support import BASE, scenarios, study

OWN = reyn.Catalog.from_records([{"name": "close_issue", "description": "Close it."}])


@pytest.mark.parametrize("kind", [reyn.Scenario, reyn.Variant, reyn.Gold, reyn.AcceptedCall])
def test_the_signature_shows_what_to_write_and_not_how_it_is_held_to_that(kind: type) -> None:
    said = str(inspect.signature(kind))
    assert "Annotated" not in said and "<function" not in said and "factory" not in said
    assert "Identifier" not in said


def test_the_signature_tells_what_must_be_given_from_what_may() -> None:
    places = inspect.signature(reyn.Scenario).parameters
    needed = [name for name, each in places.items() if each.default is inspect.Parameter.empty]
    assert needed == ["id", "family", "prompts"]
    assert inspect.signature(reyn.Variant).parameters["name"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


def test_a_suite_over_files_needs_no_catalog() -> None:
    suite = reyn.Suite(name="own", title="Own", primary="task_done", scenarios=scenarios(2))
    check_suite(suite)
    assert "file__read" in {action.name.text for action in suite.catalog("standard").snapshot.actions}


def test_a_catalog_that_the_suite_has_not_is_named_with_the_way_to_give_it() -> None:
    with pytest.raises(SuiteError, match=r"it has mine\. Name one of them, or give it: catalogs=\{'tools': "):
        reyn.Suite(
            name="own", title="Own", primary="chain", catalogs={"mine": OWN},
            scenarios=scenarios(1, catalog="tools"),
        )  # fmt: skip


def test_a_step_whose_first_call_is_not_whole_says_three_ways_out() -> None:
    gold = reyn.Gold(
        steps=((reyn.AcceptedCall(action="file__grep"), reyn.AcceptedCall(action="file__read")),)
    )
    suite = reyn.Suite(name="own", title="Own", primary="chain", scenarios=scenarios(1, gold=gold))
    with pytest.raises(SuiteError, match="pattern: is required; the first call of a step is one that can be"):
        check_suite(suite)


def test_a_table_without_trials_says_so_and_not_only_that_a_number_is_too_large() -> None:
    with study() as opened:
        opened.run(BASE, repeats=1)
        with pytest.raises(IndexError, match="none is here"):
            opened.trials.failed("first_call_is")[0]
        with pytest.raises(IndexError, match="4 are here, from 0 on"):
            opened.trials[4]


def test_a_plan_says_what_the_scenarios_that_there_are_can_find() -> None:
    with study(count=30) as opened:
        plan = opened.plan(BASE, BASE.but("best", mandate="explicit"), repeats=1)
        assert plan.reach is not None and plan.reach > 0.15
        assert f"the suite has 30 scenarios, which find {100 * plan.reach:.0f} points" in plan.sentence
    with study(count=3) as opened:
        assert opened.plan(BASE, BASE.but("best"), repeats=1).reach is None


def test_a_report_without_trials_says_where_older_ones_are_read() -> None:
    with study() as opened, pytest.raises(EvidenceError, match=r"reyn\.Study\.open\(path\) reads"):
        opened.report()
