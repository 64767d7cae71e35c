"""The scenarios written by hand: varied, solvable, and about what they say that they are about."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from reyn_jupyter.catalog.names import WRAPPERS
from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.checks.text_match import missing_words
from reyn_jupyter.evaluation.models.baselines import Manner, NullAgent, Oracle
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.suites import load_suite
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.models.scripted import call
from reyn_jupyter.runtime.record.events import ActionFinished
from reyn_jupyter.runtime.record.verdict import Verdict
from tests.evaluation.trial_support import Scripts, run

# Answers that are counted or rounded from what the calls give, or stand there between other digits.
WORKED_OUT = {"grep-count-errors", "query-join-city", "follow-the-pointer", "other-way-query-down"}
# The call that a model makes which takes the request at its word, where the request itself holds the mistake.
STUMBLES: dict[str, tuple[str, dict[str, Any]]] = {
    "typo-in-path": ("file__read", {"path": "reports/2024/mai.md"}),
    "typo-in-folder": ("file__read", {"path": "archive/contract/seeblick.txt"}),
    "typo-in-module": ("file__read", {"path": "src/app/paging.py"}),
    "typo-in-name": ("file__read", {"path": "Readme.md"}),
    "moved-file": ("file__read", {"path": "contracts/nordwind.txt"}),
    "moved-config": ("file__read", {"path": "config.py"}),
    "wrong-year": ("file__read", {"path": "reports/june.md"}),
    "wrong-ending": ("table__query", {"sql": "FROM e", "sources": {"e": "expenses.csv"}}),
    "edit-wrong-path": ("file__edit", {"path": "app/config.py", "old_string": "3", "new_string": "5"}),
    "delete-wrong-path": ("file__delete", {"path": "archive/seeblick.txt"}),
    "ambiguous-server": (
        "file__edit",
        {"path": "servers.toml", "old_string": "enabled = true", "new_string": "enabled = false"},
    ),
    "ambiguous-sleep": (
        "file__edit",
        {"path": "src/app/client.py", "old_string": "time.sleep(1)", "new_string": "time.sleep(2)"},
    ),
    "ambiguous-open-box": ("file__edit", {"path": "todo.md", "old_string": "[ ]", "new_string": "[x]"}),
    "misquoted-line": (
        "file__edit",
        {
            "path": "welcome.txt",
            "old_string": "The WiFi is named Möwe",
            "new_string": "It is called Kormoran",
        },
    ),
    "misquoted-constant": (
        "file__edit",
        {"path": "src/app/pagination.py", "old_string": "PAGE=50", "new_string": "PAGE=25"},
    ),
    "sql-wrong-column": (
        "table__query",
        {"sql": "SELECT avg(temperature) FROM o", "sources": {"o": "observations.csv"}},
    ),
    "sql-wrong-join": (
        "table__query",
        {
            "sql": "SELECT sum(rain_mm) FROM o JOIN s ON o.station = s.station",
            "sources": {"o": "observations.csv", "s": "stations.csv"},
        },
    ),
    "sql-wrong-word": (
        "table__query",
        {"sql": "SELECT sum(weekly_hours) FROM s", "sources": {"s": "staff.csv"}},
    ),
    "sql-wrong-key": (
        "table__query",
        {"sql": "SELECT sum(amount) FROM e", "sources": {"e": "expenses.json"}},
    ),
    "memory-wrong-slug": ("memory_entry__toner-type", {}),
    "memory-forget-wrong-slug": ("memory_operation__forget", {"layer": "shared", "slug": "summer"}),
    "memory-wrong-layer": ("memory_operation__forget", {"layer": "shared", "slug": "ssh-port"}),
}


# Ways that nobody wrote down first, and that come to the same.
OTHER_WAYS: dict[str, tuple[str, dict[str, Any], str]] = {
    "list-top-folder": ("file__list", {"path": "./"}, "orders.csv, orders_archive.csv and customers.csv"),
    "glob-all-markdown": ("file__list", {"path": "./"}, "`protocole.md` and `日誌.md`"),
    "list-one-folder": ("file__grep", {"pattern": "windows", "path": "maintenance"}, "Q2 and Q3"),
    "list-accented-folder": ("file__grep", {"pattern": "jour", "path": "données/"}, "Winter and summer."),
    "read-certificate-date": ("file__read", {"path": "./certs/README.txt"}, "November 2nd, 2024"),
    "edit-add-branch": (
        "file__edit",
        {
            "path": "src/store/prices.py",
            "old_string": "        return total * 0.20\n",
            "new_string": '        return total * 0.20\n    elif code == "SUMMER":\n        return total * 0.15\n',
        },
        "Added.",
    ),
}


@pytest.fixture(scope="module")
def mandates() -> Suite:
    return load_suite("mandates")


def of_family(suite: Suite, family: str) -> list[Scenario]:
    return [scenario for scenario in suite.scenarios if scenario.family == family]


def test_mandates_holds_forty_scenarios_a_family_in_two_phrasings(mandates: Suite) -> None:
    families = Counter(scenario.family for scenario in mandates.scenarios)
    assert families.pop("obscure") >= 16
    assert families == {"discover": 40, "edit": 40, "recover": 40}
    for scenario in mandates.scenarios:
        assert tuple(scenario.prompts) == ("explicit", "natural"), scenario.id
        assert len(set(scenario.prompts.values())) == 2, scenario.id
        assert scenario.forecast is not None, scenario.id


def test_no_request_holds_the_name_of_an_action(mandates: Suite) -> None:
    for scenario in mandates.scenarios:
        for text in scenario.prompts.values():
            assert "__" not in text, scenario.id
            assert not any(wrapper in text for wrapper in WRAPPERS), scenario.id
            assert not any(entry in text.split() for entry in ("grep", "glob")), scenario.id


def test_no_request_tells_the_model_to_list(mandates: Suite) -> None:
    """What is measured in this family is whether the model lists by itself."""
    for scenario in of_family(mandates, "obscure"):
        for text in scenario.prompts.values():
            assert not re.search(r"look up|list (the|what)|find the routine|search", text, re.I), scenario.id


def test_the_names_of_obscure_actions_cannot_be_guessed_from_the_requests(mandates: Suite) -> None:
    for scenario in of_family(mandates, "obscure"):
        for action in scenario.gold.actions:
            entry = action.partition("__")[2]
            assert not any(entry in text.lower() for text in scenario.prompts.values()), scenario.id


def test_the_workspaces_hold_many_kinds_of_files_and_names(mandates: Suite) -> None:
    paths = {path for scenario in mandates.scenarios for path in scenario.workspace}
    endings = {path.rpartition(".")[2] for path in paths}
    assert endings >= {"csv", "md", "json", "yaml", "py", "log", "toml", "txt", "jsonl", "ini", "sql"}
    assert any(not path.isascii() for path in paths)
    assert any(path.count("/") >= 3 for path in paths if not path.startswith("."))


def test_some_edits_are_of_files_where_rewriting_is_costly(mandates: Suite) -> None:
    long = [
        scenario
        for scenario in of_family(mandates, "edit")
        if any(len(scenario.workspace[e.path].splitlines()) >= 200 for e in scenario.expected if e.text)
    ]
    assert len(long) >= 5


def test_an_edit_keeps_the_rest_of_the_workspace(mandates: Suite) -> None:
    for scenario in of_family(mandates, "edit"):
        assert {each.path for each in scenario.expected} >= set(scenario.workspace), scenario.id
        assert any(each.text or each.contains for each in scenario.expected), scenario.id


def test_an_edit_that_writes_the_file_anew_may_be_done_but_is_no_edit(mandates: Suite) -> None:
    for scenario in of_family(mandates, "edit"):
        assert scenario.gold.actions == {"file__edit", "file__write"}, scenario.id


def test_published_claims_stand_in_the_suite_with_their_figures(mandates: Suite) -> None:
    counts = {claim.id: (claim.passed, claim.trials) for claim in mandates.claims if claim.trials}
    assert counts == {
        "unknown-lists-first": (16, 16),
        "schemas-arguments": (12, 20),
        "no-schemas-arguments": (0, 20),
        "reasoned-ignored": (0, 20),
        "must-followed": (3, 4),
        "end-to-end": (32, 35),
        "no-hallucination": (35, 35),
    }
    ranges = {claim.id: (claim.low, claim.high) for claim in mandates.claims if claim.low is not None}
    assert ranges["enumerating-wording"] == (0.25, 0.55)
    assert ranges["generic-wording"] == (0.0, 0.10)
    assert ranges["placed-three-times"] == (0.75, 0.85)


def test_a_claim_compares_variants_that_differ_in_one_thing(mandates: Suite) -> None:
    for claim in mandates.claims:
        if claim.against is not None:
            here, there = mandates.variants[claim.variant], mandates.variants[claim.against]
            assert len(here.differences(there)) == 1, claim.id


def test_every_hand_written_scenario_is_solved_by_its_gold_and_its_facts_can_be_found(
    mandates: Suite,
) -> None:
    bench = TrialRunner(mandates, models={"oracle": Oracle()})
    try:
        for scenario in mandates.scenarios:
            trial, events = run(bench, scenario, Variant("oracle", model="oracle", max_steps=12))
            verdict = find_check("task_done").grade(trial, scenario)
            assert verdict.kind == "pass", (scenario.id, verdict.reason)
            answers = " ".join(event.output for event in events if isinstance(event, ActionFinished))
            if scenario.id not in WORKED_OUT:
                assert not missing_words(scenario.says, answers), scenario.id
    finally:
        bench.close()


def test_a_planned_error_comes_once_to_whoever_takes_the_planned_way(mandates: Suite) -> None:
    planned = [scenario for scenario in of_family(mandates, "recover") if scenario.setup_error]
    bench = TrialRunner(mandates, models={"oracle": Oracle()})
    verdicts = Counter(recovered(bench, scenario) for scenario in planned)
    bench.close()
    assert len(planned) == 18
    # The gold of four goes the other way at once, and meets no error.
    assert verdicts == {"pass": 14, "na": 4}


def recovered(bench: TrialRunner, scenario: Scenario) -> str:
    trial, _ = run(bench, scenario, Variant("oracle", model="oracle"))
    return find_check("recovered_after_error").grade(trial, scenario).kind


@pytest.mark.parametrize("manner", ["pastes", "enumerates"])
def test_no_fact_is_told_by_pasting_the_file_or_by_naming_all_that_it_holds(
    mandates: Suite, manner: Manner
) -> None:
    asking = [scenario for scenario in mandates.scenarios if scenario.says]
    with TrialRunner(mandates, models={manner: NullAgent(manner)}) as bench:
        for scenario in asking:
            for repeat in range(len(scenario.prompts)):
                trial, _ = run(bench, scenario, Variant("null", model=manner), repeat)
                assert find_check("task_done").grade(trial, scenario).kind == "fail", (
                    scenario.id,
                    trial.answer,
                )


@pytest.mark.parametrize("identity", OTHER_WAYS)
def test_another_sensible_way_counts_too(mandates: Suite, identity: str) -> None:
    verdict = done(mandates, identity, *OTHER_WAYS[identity])
    assert verdict.kind == "pass", verdict.reason


def test_a_rewrite_that_loses_a_part_nobody_named_is_not_done(mandates: Suite) -> None:
    content = mandates.scenario("edit-add-branch").workspace["src/store/prices.py"]
    lost = content.replace(
        '    if code == "SPRING"',
        '    if code == "SUMMER":\n        return total * 0.15\n    if code == "SPRING"',
    )
    lost = lost.replace("    return SHIPPING\n", "    return 0.0\n")
    verdict = done(
        mandates, "edit-add-branch", "file__write", {"path": "src/store/prices.py", "content": lost}, "Added."
    )
    assert verdict.kind == "fail"


def done(suite: Suite, identity: str, name: str, args: dict[str, Any], answer: str) -> Verdict:
    steps = call("list_actions"), call("invoke_action", action_name=name, args=args), answer
    scenario = suite.scenario(identity)
    with TrialRunner(suite, models={"other": Scripts(*steps)}) as bench:
        trial, _ = run(bench, scenario, Variant("other", model="other"))
    return find_check("task_done").grade(trial, scenario)


def test_every_other_request_to_recover_from_holds_the_mistake_itself(mandates: Suite) -> None:
    unplanned = {s.id for s in of_family(mandates, "recover") if not s.setup_error}
    assert unplanned == set(STUMBLES)


@pytest.mark.parametrize("identity", STUMBLES)
def test_who_takes_the_request_at_its_word_meets_an_error(mandates: Suite, identity: str) -> None:
    name, args = STUMBLES[identity]
    literal = Scripts(call("invoke_action", action_name=name, args=args), "I gave up.")
    bench = TrialRunner(mandates, models={"literal": literal})
    try:
        trial, _ = run(bench, mandates.scenario(identity), Variant("literal", model="literal"))
    finally:
        bench.close()
    (made,) = trial.calls
    assert made.ok is not True
    assert not any(fact.changed for fact in trial.files.values())
