"""The size of the catalog as something that a study varies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.names import CHOOSE
from reyn_jupyter.evaluation.models.baselines import Oracle
from reyn_jupyter.evaluation.plan.distractors import shipped_distractors
from reyn_jupyter.evaluation.plan.suite import Suite, SuiteError
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.evaluation.suites import load_suite
from reyn_jupyter.evaluation.trial.trial import trial_key
from reyn_jupyter.models.scripted import Step, call
from tests.evaluation.trial_support import Scripts

SUITE = load_suite("first-steps")
LAMP = SUITE.only("lamp-on-kitchen", "lamp-off-hall")
TURN_ON = call("invoke_action", action_name="lamp__turn_on", args={"room": "kitchen"})


def variant(name: str, **changes: Any) -> Variant:
    return SUITE.variants[name].but(name, **{"model": "scripted", **changes})


def tried(*steps: Step, of: Suite = LAMP, **fields: Any) -> tuple[reyn.TrialView, Scripts]:
    """Run one trial of a variant; return it, and the models that were asked."""
    agent = Scripts(*steps)
    study = Study(None, of, models={"scripted": agent})
    study.run(Variant("v", **{"model": "scripted", "max_steps": 5, **fields}), n=1, repeats=1)
    return study.trials[0], agent


def offered(agent: Scripts, place: int = 0) -> set[str]:
    """Return what the first model was offered in one of its calls, but for the tool that looks into results."""
    return set(agent.models[0].requests[place].tools.names) - {"inspect"}


def invoke(name: str) -> Step:
    return call("invoke_action", action_name=name, args={})


def listed(view: reyn.TrialView) -> list[str]:
    return [name for made in view.trial.calls for name in made.listed]


# --- on every surface


@pytest.mark.parametrize("size", [20, 200])
def test_the_flat_surface_offers_as_many_tools(size: int) -> None:
    view, agent = tried("No.", surface="flat", catalog_size=size)
    assert len(offered(agent)) == size and view.trial.surface == "flat"
    assert {"lamp__turn_on", "lamp__turn_off", "lamp__dim"} <= offered(agent)


def test_the_automatic_surface_goes_by_the_size_of_the_filled_catalog() -> None:
    small, large = (tried("No.", surface="auto", catalog_size=size)[0].trial for size in (20, 200))
    assert (small.surface, large.surface) == ("flat", "universal")


def test_the_wrappers_list_and_call_what_the_catalog_is_filled_with() -> None:
    view, agent = tried(call("list_actions", category=["lamp", "tool"]), "No.", catalog_size=20)
    assert offered(agent) == {"list_actions", "describe_action", "invoke_action"}
    said = json.loads(str(agent.models[0].requests[1].messages[-1].content))
    assert said["total"] == 20 and {"lamp__dim"} < set(listed(view))


def test_two_steps_choose_among_all_of_it() -> None:
    view, agent = tried(
        call(CHOOSE, action="lamp__turn_on"), call("lamp__turn_on", room="kitchen"), call(CHOOSE, action="answer"),
        "Done.", discovery="two_steps", stop_repeats=True, catalog_size=200,
    )  # fmt: skip
    spec = agent.models[0].requests[0].tools.specs[0]["function"]
    choices = spec["parameters"]["properties"]["action"]["enum"]
    assert "lamp__turn_on" in choices and any(name.startswith("tool__") for name in choices)
    assert view.verdict("state_reached").kind == "pass"


def test_search_and_the_hot_list_know_all_of_it() -> None:
    step = call("search_actions", query="find a restaurant or book a hotel room")
    found, _ = tried(step, "No.", search=True, catalog_size=200)
    assert any(name.startswith("tool__") for name in listed(found))
    _, agent = tried("No.", hot_list_n=30, catalog_size=200)
    assert len([name for name in offered(agent) if name.startswith(("tool__", "lamp__"))]) == 30


@pytest.mark.parametrize("surface", ["universal", "flat", "auto"])
def test_every_first_step_can_still_be_done_among_200(surface: str) -> None:
    suite = SUITE.only(*(scenario.id for scenario in SUITE.scenarios[::6]))
    study = Study(None, suite, models={"oracle": Oracle()})
    study.run(Variant("v", model="oracle", surface=surface, catalog_size=200), repeats=1)
    assert len(study.trials.passed("task_done")) == len(suite.scenarios)


# --- paired, and graded


def test_variants_of_one_size_are_offered_the_same_and_a_larger_one_more() -> None:
    agent = Scripts("No.")
    study = Study(None, LAMP, models={"scripted": agent})
    sizes = {"flat-20": (20, 5), "again-20": (20, 6), "flat-200": (200, 5)}
    study.run(*(variant("flat", catalog_size=size, max_steps=steps).but(name) for name, (size, steps) in sizes.items()),
              repeats=1)  # fmt: skip
    sent = {}
    for view in study.trials:
        requested = view.transcript.steps[0].requested
        assert requested is not None and requested.tool_specs is not None
        sent[view.variant.name, view.scenario.id] = {
            each["function"]["name"] for each in requested.tool_specs
        }
    for scenario in ("lamp-on-kitchen", "lamp-off-hall"):
        assert sent["flat-20", scenario] == sent["again-20", scenario] < sent["flat-200", scenario]
    assert sent["flat-20", "lamp-on-kitchen"] != sent["flat-20", "lamp-off-hall"]


def test_a_call_of_a_distractor_answers_as_a_recorded_action_and_counts_as_another_deed() -> None:
    suite = SUITE.only("lamp-on-kitchen")
    (scenario,) = suite.scenarios
    filled = shipped_distractors().fill(scenario, suite.catalog("lamps"), 200)
    some = [action for action in filled.snapshot.actions if action.name.text in filled.distractors]
    free = next(action.name.text for action in some if not action.input_schema.get("required"))
    bound = next(action.name.text for action in some if action.input_schema.get("required"))

    view, _ = tried(TURN_ON, "Done.", of=suite, catalog_size=200)
    assert view.verdict("state_reached").kind == "pass"
    view, agent = tried(TURN_ON, invoke(free), "Done.", of=suite, catalog_size=200)
    assert [each.distractor for each in view.trial.calls] == [False, True]
    assert json.loads(str(agent.models[0].requests[-1].messages[-1].content))["ok"] is True
    verdict = view.verdict("state_reached")
    assert verdict.kind == "fail" and f"{free} was called too" in verdict.reason
    view, _ = tried(TURN_ON, invoke(bound), "Done.", of=suite, catalog_size=200)
    assert view.trial.calls[1].problem == "invalid" and view.verdict("state_reached").kind == "pass"
    view, _ = tried(invoke(free), "Done.", of=suite, catalog_size=200)
    assert {view.verdict(each).kind for each in ("right_action", "chain", "state_reached")} == {"fail"}


def test_where_a_scenario_forbids_nothing_a_distractor_is_a_matter_of_the_other_checks() -> None:
    suite = SUITE.only("read-door")
    (scenario,) = suite.scenarios
    filled = shipped_distractors().fill(scenario, suite.catalog("reading"), 200)
    free = next(action.name.text for action in filled.snapshot.actions
                if action.name.text in filled.distractors and not action.input_schema.get("required"))  # fmt: skip
    read = call("invoke_action", action_name="file__read", args={"path": "codes.txt"})
    view, _ = tried(invoke(free), read, "It is 4417.", of=suite, catalog_size=200)
    assert [each.ok for each in view.trial.calls] == [True, True]
    assert view.verdict("state_reached").kind == "pass" and not view.trial.files["codes.txt"].changed


# --- where it shows


def test_the_size_is_in_the_key_the_table_the_report_the_exports_and_the_log(tmp_path: Path) -> None:
    suite = SUITE.only("lamp-on-kitchen")
    study = Study(tmp_path / "a.sqlite", suite, models={"scripted": Scripts(TURN_ON, "Done.")})
    one, other = variant("alone"), variant("alone-20")
    study.run(one, other, repeats=1)
    scenario, code = suite.scenarios[0], study.trials[0].trial.code
    keys = {view.variant.name: view.trial.key for view in study.trials}
    assert keys == {each.name: trial_key(scenario, each, 0, code) for each in (one, other)}
    assert keys["alone"] != keys["alone-20"]
    frame = study.trials.df.set_index("variant")
    assert frame.loc["alone-20", "catalog_size"] == 20 and frame["catalog_size"].isna().to_dict()["alone"]
    assert study.compare(one, other).changed == {"catalog_size": (None, 20)}
    page = tmp_path / "report.md"
    reyn.export(page, study.report())
    assert "size=20, max" in page.read_text("utf-8")
    study.export(tmp_path / "t.csv")
    assert "catalog_size" in (tmp_path / "t.csv").read_text("utf-8").splitlines()[0]
    study.export_inspect_logs(tmp_path / "logs")
    logs = [reyn.read_inspect_log(path) for path in sorted((tmp_path / "logs").glob("*.eval"))]
    settings = {log.metadata["variant"]: log.metadata["settings"]["catalog_size"] for log in logs}
    assert settings == {"alone": None, "alone-20": 20}
    assert not study.verify().faults


def test_a_replay_stands_on_the_same_actions() -> None:
    view, _ = tried(call("list_actions", category=["tool"]), "No.", catalog_size=20)
    again = view.replay()
    assert again.trial.calls == view.trial.calls and len(listed(view)) > 5


@pytest.mark.parametrize(
    ("size", "why"),
    [(2, "holds 3 actions by itself"), (2_500, "can be filled up to 1,"), (0, "catalog_size")],
)
def test_a_size_that_cannot_be_is_refused_before_any_trial(size: int, why: str) -> None:
    agent = Scripts("No.")
    study = Study(None, LAMP, models={"scripted": agent})
    with pytest.raises((SuiteError, ValueError), match=why):
        study.run(Variant("fine", model="scripted"), Variant("v", model="scripted", catalog_size=size))
    assert not agent.models and len(study.trials) == 0


def test_a_suite_of_ones_own_names_the_size(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "name: mine\ntitle: Mine\nprimary: chain\ncatalogs: {tools: {records: tools.json}}\n"
        "variants: {few: {surface: flat}, many: {surface: flat, catalog_size: 50}}\n"
        "scenarios:\n- {id: ring, family: bells, natural: Ring the bell., catalog: tools,\n"
        "   gold: [{tool__ring_bell: {}}]}\n"
    )
    (tmp_path / "tools.json").write_text(json.dumps([{"name": "ring_bell", "description": "Ring the bell."}]))
    suite = load_suite(tmp_path / "mine.yaml")
    agent = Scripts(call("tool__ring_bell"), "It rings.")
    study = Study(None, suite, models={"scripted": agent})
    study.run(*(each.but(name, model="scripted") for name, each in suite.variants.items()), repeats=1)
    assert len(study.trials.passed("chain")) == 2
    assert sorted(len(model.requests[0].tools.names) - 1 for model in agent.models) == [1, 50]

    text = (tmp_path / "mine.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("catalog_size: 50", "catalog_size: 2700"))
    with pytest.raises(SuiteError, match=r"variant 'many': catalog_size=2,700: .*'ring' can be filled up to"):
        load_suite(tmp_path / "mine.yaml")


def test_a_recommendation_never_compares_catalogs_of_different_sizes() -> None:
    study = Study(None, SUITE, models={"oracle": Oracle()})
    study.run(*(variant(name, model="oracle") for name in ("alone", "flat", "alone-20")), n=4, repeats=1)
    found = study.recommend()
    assert {each.variant.name for each in found.candidates} == {"alone", "flat"}
    assert any("alone-20" in each and "another size" in each for each in found.warnings)
