"""The suites that are shipped, and the loader that a person's own suite goes through too."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.suites import check_suite, describe_suites, load_suite, suite_names
from tests.data.generate_suites import DATA, SOURCES, generate, says_all


def of_family(suite: Suite, family: str) -> list[Scenario]:
    return [scenario for scenario in suite.scenarios if scenario.family == family]


# --- what is shipped


@pytest.mark.parametrize("name", suite_names())
def test_a_shipped_suite_fits_its_catalogs(name: str) -> None:
    suite = load_suite(name)
    check_suite(suite)
    assert suite.title == describe_suites()[name]
    assert all(scenario.origin for scenario in suite.scenarios)


def test_the_suites_that_are_shipped() -> None:
    assert suite_names() == (
        "abstention", "arguments", "arguments-all", "first-steps", "mandates", "surface", "toolmaking",
    )  # fmt: skip


def test_first_steps_are_one_action_out_of_three_that_the_request_says_all_of() -> None:
    suite = load_suite("first-steps")
    assert len(suite.scenarios) >= 30 and len({scenario.family for scenario in suite.scenarios}) == 6
    for scenario in suite.scenarios:
        assert len(suite.catalog(scenario.catalog).snapshot) == 3, scenario.id
        assert len(scenario.gold.steps) == 1 and not scenario.setup_error, scenario.id
        assert sum(map(len, scenario.workspace.values())) < 400, scenario.id
        (given,) = (call.args for call in scenario.gold.steps[0][:1])
        assert given and tuple(scenario.prompts) == ("explicit", "natural"), scenario.id
        for asked in map(str.lower, scenario.prompts.values()):
            assert all(str(values[0]).lower() in asked for values in given.values()), scenario.id
        assert scenario.gold.steps[0][0].action in scenario.prompts["explicit"], scenario.id


# --- what is generated


def shipped(name: str) -> str:
    if name.startswith("bfcl/"):
        return gzip.decompress((DATA / f"{name}.gz").read_bytes()).decode()
    return (DATA / name).read_text("utf-8")


def test_the_shipped_data_is_what_the_generator_makes_of_the_sources() -> None:
    def rows(kind: str) -> Iterator[dict[str, Any]]:
        return map(json.loads, (SOURCES / f"bfcl_{kind}.jsonl").read_text("utf-8").splitlines())

    made = generate(rows("actions"), rows("queries"))
    assert {name for name, text in made.items() if text != shipped(name)} == set()
    assert len(made) == 8


def test_what_is_shipped_is_small() -> None:
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) <= 1_500_000


def test_arguments_covers_four_kinds_of_requests_with_exact_golds() -> None:
    suite = load_suite("arguments")
    assert Counter(scenario.family for scenario in suite.scenarios) == dict.fromkeys(
        ("simple", "multiple", "parallel", "live"), 100
    )
    assert all(call.exact for s in suite.scenarios for step in s.gold.steps for call in step)
    assert all(len(suite.catalog(s.catalog).snapshot) == 20 for s in suite.scenarios[::40])


def labelled(scenario: Scenario) -> list[dict[str, list[Any]]]:
    return [
        {name: list(values) for name, values in call.args.items()}
        for step in scenario.gold.steps
        for call in step
    ]


# Flagged by the rule below, read, and right: the number is written another way, part of a unit or no
# argument's; or the year is worked out, or may be left out.
READ = """
live_multiple_129-50-1 live_multiple_269-127-4 live_multiple_270-127-5 live_multiple_341-133-5
live_multiple_401-139-5 live_multiple_484-146-9 live_multiple_493-148-3 live_multiple_676-163-1
live_multiple_788-174-2 live_simple_138-91-0 live_simple_164-97-0 live_simple_185-110-0 multiple_108
multiple_117 multiple_195 multiple_91 parallel_2 parallel_62 parallel_81 parallel_85 parallel_88
parallel_91 parallel_multiple_121 parallel_multiple_149 simple_python_127 simple_python_182
simple_python_290 simple_python_322 simple_python_52 simple_python_61
"""


def test_each_number_of_a_request_stands_in_its_label_and_each_year_of_a_label_in_its_request() -> None:
    flagged = {
        scenario.origin.rpartition(" ")[2]
        for name in ("arguments", "abstention", "surface")
        for scenario in load_suite(name).scenarios
        if scenario.gold.steps and not says_all(scenario.prompts["natural"], labelled(scenario))
    }
    assert flagged == set(READ.split())


def test_abstention_withholds_every_action_that_counts_and_asks_as_much_that_can_be_done() -> None:
    suite = load_suite("abstention")
    groups = {
        row["id"]: {identity for ids in row["gold"] for identity in ids}
        for row in map(json.loads, (SOURCES / "bfcl_queries.jsonl").read_text("utf-8").splitlines())
    }
    withheld = of_family(suite, "withheld")
    assert len(withheld) == len(of_family(suite, "offered")) == 100
    for scenario in suite.scenarios:
        group = groups[scenario.origin.rpartition(" ")[2]]
        there = group & set(suite.catalogs[scenario.catalog]().names)
        assert bool(there) is not scenario.gold.unanswerable, scenario.id


def test_who_should_abstain_has_no_search_engine_person_model_or_command_to_turn_to() -> None:
    suite = load_suite("abstention")
    general = re.compile(
        r"search (query )?on (the web|Google)|Duck ?Duck ?Go|on the internet|human agent|ChatGPT|system-level command|"
        r"with an? \w+ (large )?language model|(GET request to the|type to the provided|using os.system)",
        re.IGNORECASE,
    )
    for scenario in of_family(suite, "withheld"):
        for action in suite.catalogs[scenario.catalog]().snapshot:
            found = general.search(action.description)
            assert found is None, (scenario.id, action.name.text, action.description)


def test_surface_asks_the_same_in_catalogs_that_contain_each_other() -> None:
    suite = load_suite("surface")
    names = [set(suite.catalogs[f"actions-{size}"]().names) for size in (20, 200, 2000)]
    assert [len(each) for each in names] == [20, 200, 2000]
    assert names[0] < names[1] < names[2]
    asked = [
        {scenario.origin for scenario in of_family(suite, f"actions-{size}")} for size in (20, 200, 2000)
    ]
    assert len(asked[0]) == 40
    assert asked[0] == asked[1] == asked[2]
