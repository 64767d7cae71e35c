"""The face of a study: what is asked of its trials, one trial again, and what leaves it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from reyn_jupyter.evaluation.checks import check_registry
from reyn_jupyter.evaluation.checks.check_registry import check, find_check, forget
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import SuiteError
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.trial_export import ExportError
from reyn_jupyter.evaluation.run.planning import PlanError
from reyn_jupyter.evaluation.run.sample_size import plan_comparison
from reyn_jupyter.evaluation.statistics.rates import clopper_pearson, rate
from reyn_jupyter.evaluation.store.study_file import StoreError
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.models.scripted import ScriptedModel, raw_call
from reyn_jupyter.runtime.record.verdict import Verdict, failed, passed
from tests.evaluation.study_support import BASE, BEST, BLIND, ByVariant, small, study
from tests.evaluation.trial_set_support import evidence, many, mixed
from tests.evaluation.trial_support import READ, Scripts, scenario


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study of four scenarios in which the explicit variant lists first and the other one does not."""
    made = study(tmp_path_factory.mktemp("study") / "a.sqlite", 4, models={"scripted": ByVariant()})
    made.run(BASE, BEST)
    return made


def test_failed_and_passed_name_trials_and_the_table_says_what_each_check_found(compared: Study) -> None:
    failing = compared.trials.failed("first_call_is")
    assert {view.variant.name for view in failing} == {"base"} and len(failing) == 8
    assert len(compared.trials.of(BEST).passed("first_call_is")) == 8
    frame = compared.trials.df
    assert len(frame) == 16 and set(frame["source"]) == {"scripted"}
    assert frame.groupby("variant")["first_call_is"].sum().to_dict() == {"base": 0, "best": 8}
    assert list(frame["cost"]) == [None] * 16 or frame["cost"].isna().all()
    assert len(compared.trials[:3]) == 3 and "TrialTable(16 trials" in repr(compared.trials)


def test_the_check_that_the_runs_named_in_advance_leads_the_report() -> None:
    made = study(None, 4, models={"scripted": ByVariant()})
    made.run(BASE, BEST, check="chain", n=2)
    assert made.compare(BASE, BEST).check.name == made.report().comparisons[0].check.name == "chain"
    assert made.evidence.checks[:2] == ("chain", "first_call_is")
    assert made.evidence.provenance["notes"] == ()
    made.run(BASE, BEST)  # names the suite's own: the two do not agree
    assert made.compare(BASE, BEST).check.name == made.evidence.primary == "first_call_is"
    (note,) = made.evidence.provenance["notes"]
    assert note.startswith("first_call_is decides: not every run of this file named chain.")


def test_what_a_study_found_prints_as_sentences(compared: Study) -> None:
    found, report = compared.compare("base", "best"), compared.report()
    assert str(found) == found.sentence and repr(found) == f"Comparison({found.sentence!r})"
    assert str(report).startswith(f"{report.finding}\n") and report.sentence in str(report)
    assert len(repr(report)) < 500
    advice = compared.recommend(check="first_call_is")
    assert str(advice).startswith(f"{advice.sentence}\n") and advice.measured_with in str(advice)
    assert len(repr(advice)) < 500


def test_a_trial_has_its_transcript_and_verdict(compared: Study) -> None:
    view = compared.trials.of(BEST)[0]
    trace = view.transcript
    assert trace.prompt == view.scenario.prompt(view.trial.repeat)[1] and trace.answer == view.trial.answer
    assert [call.label for call in trace.calls] == ["list_actions", "file__read"]
    assert view.verdict("first_call_is").kind == "pass" and "'best'" in repr(view)


def test_a_replay_goes_through_the_loop_and_asks_no_model(compared: Study) -> None:
    model: ByVariant = compared.parts.options.models["scripted"]
    before, stored = sum(model.asked.values()), len(compared.trials)
    view = compared.trials.of(BEST)[0]
    again = view.replay()
    assert (again.trial.source, again.trial.outcome, again.trial.answer) == (
        "replayed",
        "ok",
        view.trial.answer,
    )
    assert [call.name for call in again.trial.calls] == [call.name for call in view.trial.calls]
    assert again.transcript.run != view.transcript.run
    assert (sum(model.asked.values()), len(compared.trials)) == (before, stored)


def test_a_fork_runs_the_same_scenario_and_repeat_under_another_variant_and_keeps_it() -> None:
    made = study(None, 2)
    made.run(BASE)
    view = made.trials[0]
    forked = view.fork(BASE.but("gate", discovery="gate"))
    assert (forked.trial.scenario, forked.trial.repeat, forked.variant.name) == (
        view.trial.scenario,
        view.trial.repeat,
        "gate",
    )
    assert len(made.trials) == 5
    assert view.fork(forked.variant).trial == forked.trial and len(made.trials) == 5


def test_verdicts_are_arms_for_the_statistics(compared: Study) -> None:
    arms = compared.verdicts("first_call_is")
    assert rate(arms["best"]).estimate == 1.0 and rate(arms["base"]).passed == 0
    assert arms["base"].keys() == {f"s00{n}" for n in range(4)}


def test_a_comparison_a_report_and_advice_come_from_the_stored_trials(compared: Study) -> None:
    found = compared.compare(BASE, "best")
    assert found.check.name == "first_call_is" and found.difference.estimate == 1.0
    assert found.sentence.startswith("Scripted trials: ")
    assert compared.report().comparisons
    assert compared.recommend().confidence == "too little evidence"


def test_another_version_of_a_check_grades_stored_trials_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_registry, "_checks", dict(check_registry._checks))
    monkeypatch.setattr(check_registry, "CHECKS", check_registry._checks)
    model = Scripts(*READ)
    made = study(None, 3, models={"scripted": model})
    made.run(BASE)
    asked = len(model.models)

    def polite(trial: Trial, scenario: Scenario) -> Verdict:
        return passed("thanked") if "thank" in trial.answer else failed("did not thank")

    check("says thanks", "Does it thank?")(polite)
    assert (made.grade("polite"), made.grade("polite")) == (6, 0)
    assert {
        kind for (kind,) in made.parts.store.rows("SELECT kind FROM verdicts WHERE \"check\" = 'polite'")
    } == {"fail"}

    def mended(trial: Trial, scenario: Scenario) -> Verdict:
        return passed("good enough")

    mended.__name__ = "polite"
    check("says thanks", "Does it thank?", version=2)(mended)
    assert made.grade("polite") == 6 and len(made.trials.passed("polite")) == 6
    assert {
        kind for (kind,) in made.parts.store.rows("SELECT kind FROM verdicts WHERE \"check\" = 'polite'")
    } == {"pass"}
    assert made.regrade() == 12 and len(model.models) == asked


def test_a_study_is_opened_for_reading_without_its_suite_and_its_models(compared: Study) -> None:
    assert compared.parts.store.path is not None
    with Study.open(compared.parts.store.path) as reader:
        assert len(reader.trials) == 16 and reader.trials[0].transcript.answer
        assert reader.compare("base", "best").sentence == compared.compare("base", "best").sentence
        assert reader.moved == () and "suite='small'" in repr(reader)
        assert reader.evidence.checks == compared.evidence.checks
        with pytest.raises(PlanError, match="open for reading"):
            reader.run(BASE)
        with pytest.raises(PlanError, match="open for reading"):
            reader.trials[0].replay()
        with pytest.raises(StoreError, match="readonly"):
            reader.regrade()


def test_a_plan_tells_pairs_at_once_and_cost_once_trials_ran(compared: Study) -> None:
    fresh = study(None, 4)
    before = fresh.plan(BASE, BEST, detect=0.3, repeats=1)
    assert before.tokens is None and before.usd is None and "once a few trials ran" in before.sentence
    assert not before.enough and before.plan.scenarios > 4
    after = compared.plan(BASE, BEST, detect=0.3)
    assert after.tokens is not None and after.tokens > after.plan.pairs * 1_000
    assert after.usd is None and after.seconds is not None and after.seconds > 0


def test_trials_leave_as_json_lines_and_parquet_with_their_source(compared: Study, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in compared.export(tmp_path / "trials.jsonl").read_text().splitlines()]
    assert len(lines) == 16 and {line["source"] for line in lines} == {"scripted"}
    assert {line["verdicts"]["first_call_is"]["kind"] for line in lines} == {"pass", "fail"}
    import duckdb

    path = compared.export(tmp_path / "trials.parquet")
    frame: pd.DataFrame = duckdb.sql(f"SELECT variant, source, first_call_is FROM '{path}'").df()
    assert len(frame) == 16 and set(frame["source"]) == {"scripted"} and frame["first_call_is"].sum() == 8
    kept = pd.read_csv(compared.export(tmp_path / "trials.csv"))
    assert list(kept.columns) == list(compared.trials.df.columns) and kept["first_call_is"].sum() == 8
    with pytest.raises(ExportError, match=r"\.parquet, \.csv or \.jsonl"):
        compared.export(tmp_path / "trials.pickle")
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "trials.csv",
        "trials.jsonl",
        "trials.parquet",
    ]


@pytest.mark.parametrize("suite", ["mandates", "arguments", "abstention", "surface"])
def test_the_trials_of_every_suite_leave_as_a_table_each_column_once(suite: str, tmp_path: Path) -> None:
    with Study(None, suite=suite) as made:
        made.run(Variant("offline", model="offline", max_steps=1), n=2, repeats=1)
        columns = list(made.trials.df.columns)
        assert len(columns) == len(set(columns)) and {"cost", "seconds", "model_calls"} <= set(columns)
        for ending in ("parquet", "csv"):
            assert made.export(tmp_path / f"trials.{ending}").stat().st_size > 0


def test_a_check_that_is_called_like_a_fact_has_a_column_of_its_own() -> None:
    @check
    def answer(trial: Trial, scenario: Scenario) -> bool:
        """Is there an answer?"""
        return bool(trial.answer)

    try:
        made = study(None, suite=small(4, checks=("first_call_is", "answer")))
        made.run(BASE)
        frame = made.trials.df
        assert set(frame["answer"]) == {"The notes say hello."} and frame["check_answer"].all()
    finally:
        forget("answer")


def test_a_recorded_study_is_replayed_without_its_model_and_marked(tmp_path: Path) -> None:
    recorded = study(tmp_path / "a.sqlite", 3, cassette="record")
    recorded.run(BASE)
    cassette = tmp_path / "a.cassette.jsonl"
    assert cassette.exists()

    class Absent(ScriptedModel):
        async def complete(self, request: object, on_text: object = None) -> object:  # type: ignore[override]
            raise AssertionError("a replay asks no model")

    replay = study(None, 3, models={"scripted": Absent()}, cassette="replay", cassette_path=cassette)
    replay.run(BASE)
    assert {(view.trial.source, view.trial.outcome) for view in replay.trials} == {("replayed", "ok")}
    pairs = zip(
        recorded.trials.df.sort_values("key")["answer"],
        replay.trials.df.sort_values("key")["answer"],
        strict=True,
    )
    assert all(a == b for a, b in pairs)


def test_trials_of_another_source_are_made_beside_and_never_pooled(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    study(path, 2, models={"scripted": Scripts(*BLIND)}).run(BASE)
    real = study(path, 2, models={"scripted": ScriptedModel(otherwise="Done.", real=True)})
    summary = real.run(BASE)
    assert (summary.earlier, summary.done) == (0, 4)
    assert real.evidence.sources == {"base": "real"} and real.evidence.left_out["base"] == {"scripted": 4}
    assert len(real.evidence.by_variant["base"]) == 4 and real.verify().trials == 8


def test_scenarios_alone_make_a_study_and_a_wrong_name_is_told() -> None:
    made = Study(None, [scenario("only")], models={"scripted": Scripts(*READ)})
    made.run(BASE, check="first_call_is", repeats=1)
    assert made.evidence.suite == "scenarios" and made.evidence.primary == "first_call_is"
    assert len(made.trials.passed("task_done")) == 1
    with pytest.raises(SuiteError, match="mandates"):
        Study(None, "mandate")


def test_what_is_stored_of_a_run_says_with_what_it_was_made_and_where_from(compared: Study) -> None:
    (run,) = compared.parts.store.runs()
    assert run["ended_by"] == "complete" and run["sources"] == {"base": "scripted", "best": "scripted"}
    assert {"python", "reyn-jupyter", "litellm"} <= run["versions"].keys() and run[
        "code"
    ] == compared.parts.trial_runner.code
    assert run["catalogs"].keys() == {"standard"} and run["seed"] == 0 and run["date"].endswith("+00:00")
    import socket

    assert socket.gethostname() not in json.dumps(run)
    assert compared.evidence.provenance["notes"] == ()


def test_a_simulated_study_carries_the_true_rates_of_its_table() -> None:
    made = Study(None, small(6))
    a = BASE.but("generic", model="simulator", mandate="generic")
    b = a.but("explicit", mandate="explicit", reinforcement=3)
    made.run(a, b, repeats=1)
    truths = made.evidence.truths
    assert 0 < truths["generic"]["first_call_is"] < truths["explicit"]["first_call_is"] < 1
    assert made.compare(a, b).truth == pytest.approx(
        truths["explicit"]["first_call_is"] - truths["generic"]["first_call_is"]
    )
    assert set(made.trials.df["source"]) == {"simulated"}
    made.run(b, n=1, repeats=1)  # a smaller run says less of the whole
    assert made.evidence.truths == truths


def test_the_primary_check_of_a_suite_is_first_and_graded_with_each_trial(compared: Study) -> None:
    assert compared.evidence.checks[0] == "first_call_is"
    made = compared.parts.store.rows('SELECT "check", count(*) FROM verdicts GROUP BY "check" ORDER BY 1')
    assert made == [("arguments_correct", 16), ("first_call_is", 16)]
    assert (
        find_check("first_call_is").version
        == compared.parts.store.rows("SELECT min(version) FROM verdicts")[0][0]
    )


def test_text_that_no_encoding_knows_is_stored_read_and_exported(tmp_path: Path) -> None:
    odd = raw_call("invoke_action", '{"action_name": "file__read", "args": {"path": "a\\ud800b"}}')
    made = study(tmp_path / "a.sqlite", 1, odd, "Done.")
    assert made.run(BASE, repeats=1).ended == "complete"
    (view,) = made.trials
    assert view.trial.calls[0].args == {"path": "a\ud800b"} and view.transcript.calls[0].ok is False
    assert made.verify().faults == () and made.regrade() == 2
    (line,) = made.export(tmp_path / "trials.jsonl").read_text().splitlines()
    assert json.loads(line)["calls"][0]["args"] == {"path": "a\ud800b"}


def test_repeats_that_are_alike_promise_a_plan_no_more_than_their_scenarios_do() -> None:
    """Three of ten scenarios differ, in each of four repeats: forty pairs, and what ten tell."""
    arms = {"a": many(10, *(False,) * 4), "b": mixed(3, 10, 4)}
    found = plan_comparison(evidence(arms), ("a", "b"), 10, detect=0.15, power=0.8, repeats=2)
    assert found.plan.discordant > 0.6 > clopper_pearson(12, 40)[1]
