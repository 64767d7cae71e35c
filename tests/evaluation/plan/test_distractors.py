"""What fills a catalog up follows from scenario and size alone, and does not do what is asked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reyn_jupyter.evaluation.plan.distractors import ANYTHING, Distractors, shipped_distractors
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Gold, Scenario
from reyn_jupyter.evaluation.plan.suite import SuiteError
from reyn_jupyter.evaluation.suites import load_suite
from tests.data.generate_suites import DATA, SOURCES

SUITES = {name: load_suite(name) for name in ("first-steps", "abstention", "arguments", "mandates")}


def names(catalog: Catalog) -> set[str]:
    return {action.name.text for action in catalog.snapshot.actions}


def filled(scenario: Scenario, catalog: Catalog, size: int) -> Catalog:
    return shipped_distractors().fill(scenario, catalog, size)


def record(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "description": description}


def pool(*records: Mapping[str, Any], more: int = 0) -> Distractors:
    """Return these, and as many of which each has a word of its own."""
    others = [record(f"x{number}", f"Xylo{number} qua{number}.") for number in range(more)]
    return Distractors([{"id": f"r{at}", **each} for at, each in enumerate([*records, *others])])


def taken(from_: Distractors, scenario: Scenario, catalog: Catalog) -> set[str]:
    """Return the names of all that a catalog can be filled with."""
    size = len(catalog.snapshot) + len(from_.fitting(scenario, catalog))
    return {name.partition("__")[2] for name in from_.fill(scenario, catalog, size).distractors}


LAMP = Catalog.from_records([record("turn_on", "Turn on the lamp of a room.")], category="lamp")
ON = Scenario(
    id="on",
    family="lamps",
    prompts={"natural": "Switch the bulb of the hall."},
    catalog="lamps",
    gold=Gold(steps=(AcceptedCall(action="lamp__turn_on"),)),
)


# --- determined, nested


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(SUITES)), st.data())
def test_a_smaller_size_is_contained_in_a_larger_one_and_what_the_scenario_has_stays(
    suite: str, data: st.DataObject
) -> None:
    scenario = data.draw(st.sampled_from(SUITES[suite].scenarios))
    catalog = SUITES[suite].catalog(scenario.catalog)
    held = len(catalog.snapshot)
    small, large = sorted(data.draw(st.tuples(*[st.integers(held, 300)] * 2)))
    one, two = filled(scenario, catalog, small), filled(scenario, catalog, large)
    assert (len(one.snapshot), len(two.snapshot)) == (small, large)
    assert names(catalog) <= names(one) <= names(two)
    assert one.distractors == names(one) - names(catalog)
    for action in catalog.snapshot.actions:
        kept = two.snapshot.get(action.name)
        assert kept is not None
        assert (kept.description, kept.input_schema) == (action.description, action.input_schema)
    assert filled(scenario, SUITES[suite].catalog(scenario.catalog), large).hash == two.hash


def test_another_process_fills_a_catalog_with_the_same_actions() -> None:
    code = (
        "from reyn_jupyter.evaluation.plan.distractors import shipped_distractors\n"
        "from reyn_jupyter.evaluation.suites import load_suite\n"
        "suite = load_suite('first-steps')\n"
        "scenario = suite.scenario('order-mugs')\n"
        "print(shipped_distractors().fill(scenario, suite.catalog(scenario.catalog), 200).hash)"
    )
    suite = SUITES["first-steps"]
    scenario = suite.scenario("order-mugs")
    here = filled(scenario, suite.catalog(scenario.catalog), 200).hash
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == here


def test_each_scenario_has_distractors_of_its_own() -> None:
    suite = SUITES["first-steps"]
    one, other = (suite.scenario(each) for each in ("order-mugs", "order-candles"))
    catalog = suite.catalog(one.catalog)
    both = [filled(each, catalog, 200).distractors for each in (one, other)]
    assert both[0] != both[1] and len(both[0] & both[1]) < 60


# --- none does what is asked


def rows(kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SOURCES / f"bfcl_{kind}.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", ["abstention", "arguments"])
def test_no_distractor_is_an_action_that_the_label_of_the_request_counts(name: str) -> None:
    called = {action["id"]: action["name"] for action in rows("actions")}
    counted = {
        row["id"]: {called[identity] for ids in row["gold"] for identity in ids} for row in rows("queries")
    }
    suite = SUITES[name]
    for scenario in suite.scenarios:
        fitting = shipped_distractors().fitting(scenario, suite.catalog(scenario.catalog))
        right = counted[scenario.origin.rpartition(" ")[2]]
        assert len(fitting) > 1_000 and not {called[identity] for identity in fitting} & right, scenario.id


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("turn_on", "Begin something."),
        ("TurnOn", "Begin something."),
        ("light.turn_on", "Begin something."),
        ("glow", "Turn on the lamp of one room."),
        ("web_search", "Look at many pages."),
    ],
)
def test_what_is_called_or_says_what_a_candidate_does_and_what_fits_all_is_not_taken(
    name: str, description: str
) -> None:
    from_ = pool(record(name, description), record("sail", "Plan a voyage."), more=200)
    found = taken(from_, ON, LAMP)
    assert name not in found and "sail" in found


def test_the_words_of_a_request_decide_only_where_no_action_is_known_to_be_right() -> None:
    rival = record("illuminate", "Switch a bulb.")
    from_ = pool(rival, more=200)
    assert "illuminate" in taken(from_, ON, LAMP)
    withheld = Scenario(
        id="none", family="lamps", prompts=ON.prompts, catalog="lamps", gold=Gold(unanswerable=True)
    )
    assert "illuminate" not in taken(from_, withheld, LAMP)


def test_what_is_most_like_the_right_action_is_not_taken() -> None:
    alike = [record(f"a{number}", f"Blink one lamp by pattern{number} now{number}.") for number in range(3)]
    assert not taken(pool(*alike, more=200), ON, LAMP) & {"a0", "a1", "a2"}


PLAYERS = {"play_song", "spotify.play", "play_artist", "Music_3_PlayMedia", "set_volume"}
SHOPS = {
    "grocery_delivery.order",
    "add_product_to_cart",
    "GET_PARCEL_STATE",
    "get_parcel_state",
    "check_order_status",
}
READERS = {"list_files", "list_directory_contents", "doc_qa", "setText", "write_markdown_tool"}
RIVALS = {"lamps": {"ControlAppliance.execute", "ThinQ_Connect"}, "music": PLAYERS, "shop": SHOPS}


def test_no_first_step_can_be_done_by_what_its_catalog_is_filled_with() -> None:
    suite = SUITES["first-steps"]
    seen: set[str] = set()
    for scenario in suite.scenarios[::4]:
        found = filled(scenario, suite.catalog(scenario.catalog), 1_000).distractors
        there = {name.partition("__")[2] for name in found}
        assert not there & (ANYTHING | RIVALS.get(scenario.family, READERS)), scenario.id
        seen |= there
    assert seen & PLAYERS and seen & READERS  # for others they are distractors


# --- limits


def test_a_category_of_records_goes_on_and_its_names_stay() -> None:
    suite = SUITES["arguments"]
    scenario = suite.scenarios[0]
    catalog = suite.catalog(scenario.catalog)
    found = filled(scenario, catalog, 200)
    assert found.snapshot.category_names == catalog.snapshot.category_names == ("tool",)
    assert {key: found.names[key] for key in catalog.names} == dict(catalog.names)
    assert not any(name.endswith(("-2", "-3")) for name in found.distractors)


def test_a_size_that_cannot_be_is_refused() -> None:
    suite = SUITES["arguments"]
    scenario = suite.scenarios[0]
    catalog = suite.catalog(scenario.catalog)
    with pytest.raises(SuiteError, match=rf"catalog_size=19: .*{scenario.id}.* holds 20 actions by itself"):
        filled(scenario, catalog, 19)
    with pytest.raises(SuiteError, match=r"catalog_size=2,700: .* can be filled up to 1,\d\d\d actions"):
        filled(scenario, catalog, 2_700)
    assert filled(scenario, catalog, 20).hash == catalog.hash


def test_the_distractors_are_the_actions_that_come_with_the_package() -> None:
    assert (DATA / "bfcl" / "actions.jsonl.gz").is_file()
    assert shipped_distractors() is shipped_distractors()
