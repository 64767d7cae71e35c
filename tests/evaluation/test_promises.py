"""What an evaluation promises to a person, through the public face: on stand-ins, on bad input, in one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.models import fake_provider
from reyn_jupyter.evaluation.plan.suite import SuiteError
from reyn_jupyter.evaluation.results.settings_file import RecommendationError
from reyn_jupyter.evaluation.statistics.rates import Rate
from reyn_jupyter.models.scripted import ScriptedModel
from tests.evaluation.study_support import BASE, BEST, ByVariant, small
from tests.evaluation.trial_support import READ, Scripts

TOOLS = {
    "tools": [
        {
            "name": "close_issue",
            "description": "Close an issue of the tracker.",
            "inputSchema": {
                "type": "object",
                "properties": {"number": {"type": "integer"}},
                "required": ["number"],
            },
        }
    ]
}


def closing(action: str, **args: Any) -> reyn.Scenario:
    gold = reyn.Gold(steps=((reyn.AcceptedCall(action=action, args=args),),))
    return reyn.Scenario(
        id="close", family="issues", prompts={"natural": "Issue 12 is done."}, catalog="tools", gold=gold
    )


def tracker(scenario: reyn.Scenario) -> reyn.Suite:
    return reyn.Suite(
        name="issues", title="Our tracker", primary="chain", scenarios=(scenario,),
        checks=("right_action", "arguments_correct"),
        catalogs={"tools": lambda: reyn.Catalog.from_records(TOOLS)},
    )  # fmt: skip


# -- the published claims, on a simulator that keeps to them ---------------------------------------------------------


@pytest.fixture(scope="module")
def claims() -> reyn.Study:
    """The mandates, on a simulator whose table holds the published rates."""
    made = reyn.Study(None, suite="mandates", seed=3)
    suite = made.parts.spec()
    assert (
        suite.primary == "task_done"
    )  # what applies to every surface; the rule is a means, named for this run
    generic = reyn.Variant("generic-1x", model="simulator", mandate="generic", reinforcement=1)
    once = generic.but("explicit-1x", mandate="explicit")
    thrice = once.but("explicit-3x", reinforcement=3)
    assert (
        made.run(generic, once, thrice, families=["discover"], repeats=1, check="first_call_is").ended
        == "complete"
    )
    return made


def test_a_study_of_the_simulator_recovers_the_rates_of_its_table(claims: reyn.Study) -> None:
    found = claims.report()
    for variant in ("generic-1x", "explicit-1x", "explicit-3x"):
        figure = found.figures[variant]["first_call_is"]
        assert isinstance(figure.found, Rate) and figure.truth is not None
        assert figure.found.low - 0.05 <= figure.truth <= figure.found.high + 0.05
    best = claims.compare("generic-1x", "explicit-3x")
    assert best.sentence.startswith("Simulated trials: explicit-3x beats generic-1x on lists first: ")
    assert (
        best.truth is not None
        and (best.difference.low or 0) - 0.05 < best.truth < (best.difference.high or 0) + 0.05
    )


def test_the_report_says_what_each_published_sample_supports_and_what_it_would_need(
    claims: reyn.Study,
) -> None:
    found = {each.claim.id: each for each in claims.report().claims}
    assert len(found) >= 9 and all(each.support for each in found.values())
    counted = [each for each in found.values() if each.published is not None]
    assert all(f"{each.claim.passed} of {each.claim.trials}" in each.support for each in counted)
    assert any("scenarios" in each.support for each in counted), "how many it would need"
    tried = [each for each in found.values() if each.found is not None]
    assert tried and {each.source for each in tried} == {"simulated"}


def test_a_recommendation_from_it_is_no_advice_and_writes_nothing(claims: reyn.Study, tmp_path: Path) -> None:
    a, b = (claims.evidence.variants[name] for name in ("generic-1x", "explicit-3x"))
    assert "as simulated trials have it" in claims.plan(a, b).sentence
    found = claims.recommend(check="first_call_is")
    assert found.chosen.variant.name == "explicit-3x" and "no advice for a real model" in found.sentence
    with pytest.raises(RecommendationError, match="simulated"):
        found.write(tmp_path / "reyn.yaml")


# -- other stand-ins -------------------------------------------------------------------------------------------------


def test_the_offline_model_is_measured_as_it_is_and_marked() -> None:
    with reyn.Study(None, suite="arguments-all") as study:
        study.run(reyn.Variant("offline", model="offline"), n=4, repeats=1)
        assert study.report().sentence.startswith("Offline trials: 0 % (95 % CI ")
        assert {view.trial.source for view in study.trials} == {"offline"}


def test_a_provider_that_misbehaves_over_http_is_measured_through_the_same_face(tmp_path: Path) -> None:
    weak, broken = reyn.Variant("weak", model="weak"), reyn.Variant("failing", model="failing")
    with (
        fake_provider.serve() as server,
        reyn.Study(
            tmp_path / "p.sqlite", small(2), models={name: server.model(name) for name in ("weak", "failing")},
            timeout=300,
        ) as study,
    ):  # fmt: skip
        summary = study.run(weak, broken, repeats=1)
        assert summary.missing["failing"] == 2 and summary.missing["weak"] == 0
        found = study.report()
        assert found.figures["failing"]["first_call_is"].found is None, "an error is no failure"
        assert any("failing: 2 trials are missing (2 errors)" in warning for warning in found.warnings)
        assert found.sentence.startswith("Simulated trials: ") and found.sentence.endswith("variant weak.")


def test_a_tool_list_is_measured_without_its_server() -> None:
    study = reyn.Study(None, suite=tracker(closing("tool__close_issue", number=(12,))))
    study.run(reyn.Variant("a", model="simulator"), repeats=1)
    (view,) = study.trials
    assert view.trial.outcome == "ok" and study.report().figures["a"].keys() >= {"chain", "right_action"}


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "told"),
    [
        (closing("tool__close_isue", number=(12,)), "did you mean 'tool__close_issue'"),
        (closing("tool__close_issue", number=("twelve",)), "its schema refuses"),
        (closing("close", number=(12,)), "no qualified name"),
    ],
)
def test_gold_that_the_catalog_does_not_have_is_refused_before_the_first_trial(
    scenario: reyn.Scenario, told: str, tmp_path: Path
) -> None:
    study = reyn.Study(tmp_path / "a.sqlite", suite=tracker(scenario))
    with pytest.raises(SuiteError, match=told):
        study.run(reyn.Variant("a", model="simulator"))
    assert study.spent.trials == 0 and not study.evidence.tried


def test_scenarios_alone_are_held_to_the_installed_actions() -> None:
    gold = reyn.Gold(steps=((reyn.AcceptedCall(action="file__raed"),),))
    alone = reyn.Scenario(id="a", family="f", prompts={"natural": "Read it."}, gold=gold)
    with pytest.raises(SuiteError, match="'file__read'"):
        reyn.Study(None, [alone]).run(reyn.Variant("a", model="simulator"))
    with pytest.raises(SuiteError, match="2 scenarios 'a'"):
        reyn.Study(None, [alone, alone])


# -- one file, several sources ---------------------------------------------------------------------------------------


def test_real_and_other_trials_of_one_file_are_never_pooled_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    never = ScriptedModel(otherwise="The notes say hello.", real=True)
    with reyn.Study(path, small(3), models={"scripted": Scripts(*READ)}) as fake:
        fake.run(BASE, BEST, repeats=1)
    with reyn.Study(path, small(3), models={"scripted": never}) as real:
        real.run(BASE, BEST, repeats=1)
        for variant in ("base", "best"):
            figure = real.report().figures[variant]["first_call_is"]
            assert isinstance(figure.found, Rate)
            assert (figure.source, figure.found.passed, figure.found.trials) == ("real", 0, 3)
        found = real.compare("base", "best")
        assert (
            found.sources == ("real", "real")
            and found.difference.pairs == 3
            and found.difference.a.estimate == 0
        )
        with pytest.raises(RecommendationError, match="passes 0 of 3 trials"):
            real.recommend(check="first_call_is")
        assert real.plan(BASE, BEST).tokens is not None
        assert any("3 scripted trials stand apart" in warning for warning in real.report().warnings)
        lines = [json.loads(line) for line in real.export(tmp_path / "t.jsonl").read_text().splitlines()]
        assert sorted(line["source"] for line in lines) == ["real"] * 6 + ["scripted"] * 6
        by_source = real.trials.df.groupby("source")["first_call_is"].sum().to_dict()
        assert by_source == {"real": 0, "scripted": 6}


def test_a_report_leaves_as_page_markdown_and_table_with_its_mark(tmp_path: Path) -> None:
    with reyn.Study(None, small(4), models={"scripted": ByVariant()}) as study:
        study.run(BASE, BEST)
        report = study.report()
    for name in ("report.html", "report.md"):
        reyn.export(tmp_path / name, report)
        text = (tmp_path / name).read_text()
        assert "Scripted trials" in text and "<script src" not in text
    reyn.export(tmp_path / "report.parquet", report)
    import duckdb

    rows = duckdb.sql(f"SELECT DISTINCT source FROM '{tmp_path / 'report.parquet'}'").fetchall()
    assert rows == [("scripted",)]
