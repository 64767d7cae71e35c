"""`%reyn eval` in a shell: one study a suite and model, and one plain line for what cannot be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.notebook import completion
from tests.support.openai_server import Answer, OpenAIServer

Run = Callable[[str], str]
OWN = """
name: own
title: One question
primary: chain
scenarios:
- {id: a, family: f, natural: Read it., workspace: {notes.md: hello}, gold: [{file__read: {path: notes.md}}]}
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("mandate", "There is no suite 'mandate'; did you mean 'mandates'?"),
        (
            "mandates --variants explict-3x",
            "The suite has no variant 'explict-3x'. Did you mean explicit-3x or",
        ),
        ("mandates --check first_cal", "There is no check 'first_cal'; did you mean first_call_is?"),
        ("mandates --stop evalu", "--stop cannot be 'evalu'. Did you mean evalue?"),
        ("mandates -n 0", "--n cannot be '0': it must be at least 1."),
        (
            "mandates --file nowhere/a.sqlite",
            "nowhere; make it first. --file FILE keeps this study in another",
        ),
    ],
)
def test_a_mistake_is_one_line_without_the_name_of_a_class(run: Run, options: str, said: str) -> None:
    printed = run(f"%reyn eval {options}")
    assert said in printed
    assert "Error:" not in printed and "%reyn debug" not in printed and "Traceback" not in printed


def test_each_model_has_a_study_of_its_own_that_the_same_line_goes_on_with(run: Run, workspace: Path) -> None:
    line = "found = %reyn eval mandates -n 1 --repeats 1 -m {}"
    for model in ("simulator", "offline", "simulator"):
        assert run(line.format(model)) == ""
    folder = workspace / ".reyn" / "studies"
    assert {file.name for file in folder.glob("*.sqlite")} >= {
        "mandates-simulator.sqlite",
        "mandates-offline.sqlite",
    }
    with Study.open(folder / "mandates-simulator.sqlite") as study:
        assert len(study.trials) == 2 and {view.trial.source for view in study.trials} == {"simulated"}


@pytest.mark.parametrize(
    "models", ["-m simulator,offline", "-m simulator -m offline", "-m simulator -m offline,simulator"]
)
def test_several_models_are_compared_with_each_other(run: Run, workspace: Path, models: str) -> None:
    printed = run(f"%reyn eval mandates -n 1 --repeats 1 {models}")
    assert "simulator" in printed and "offline" in printed
    (file,) = (workspace / ".reyn" / "studies").glob("mandates-simulator-offline*.sqlite")
    with Study.open(file) as study:
        assert [(view.variant.name, view.variant.model) for view in study.trials] == [
            ("simulator", "simulator"),
            ("offline", "offline"),
        ]


def test_a_report_is_shown_again_and_exported_without_trying_anything(run: Run, workspace: Path) -> None:
    assert "No study was run here yet." in run("%reyn report")
    run("%reyn eval mandates -n 1 --repeats 1 -m simulator")
    run("again = %reyn report mandates-simulator")
    assert "Report on mandates" in (told := run("%reyn report")) and "2 trials · " in told
    assert "There is no study 'mandates'. Did you mean mandates-simulator?" in run("%reyn report mandates")
    run("%reyn export report.html again")
    assert "Simulated trials" in (workspace / "report.html").read_text()
    assert "names neither one run, one blob nor a variable" in run("%reyn export other.html workspace")


def test_several_models_are_tried_with_every_variant_that_is_named(run: Run, workspace: Path) -> None:
    run("%reyn eval mandates -n 1 --repeats 1 -m simulator,offline --variants generic-1x,explicit-3x")
    with Study.open(workspace / ".reyn" / "studies" / "mandates-simulator-offline.sqlite") as study:
        names = {view.variant.name for view in study.trials}
    assert names == {
        f"{name} {model}" for name in ("generic-1x", "explicit-3x") for model in ("simulator", "offline")
    }


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("openai/gpt-4o-mini", "OPENAI_API_KEY is not set"),
        ("light", "No model is configured for the tier light"),
        ("opnai/gpt-4o-mini", "Did you mean openai/gpt-4o-mini?"),
        ("simulatr", "Did you mean simulator?"),
    ],
)
def test_a_model_that_no_call_could_reach_is_refused_before_the_first_trial(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch, model: str, said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    printed = run(f"%reyn eval mandates -n 1 --repeats 1 -m {model}")
    assert said in printed and printed.endswith("-m simulator shows how all of it looks.")
    for file in (workspace / ".reyn" / "studies").glob("*.sqlite"):
        with Study.open(file) as study:
            assert study.spent.trials == 0


def test_a_suite_without_variants_is_tried_with_the_defaults(run: Run, workspace: Path) -> None:
    (workspace / "own.yaml").write_text(OWN, "utf-8")
    assert "Report on own" in run("%reyn eval own.yaml -m simulator")
    assert "suggests no variants" in run("%reyn eval own.yaml -m simulator --variants generic-1x")


def own_suite(workspace: Path, model: str) -> None:
    judge = f"checks: [{{grade: helpful, model: {model}, rubric: It names a next step.}}]\n"
    (workspace / "own.yaml").write_text(OWN + judge, "utf-8")


@pytest.mark.parametrize(
    ("model", "said"),
    [("openai/gpt-4o-mini", "OPENAI_API_KEY is not set"), ("strong", "No model is configured for the tier")],
)
def test_a_grader_that_cannot_be_asked_is_refused_before_a_trial_and_left_out_at_a_word(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch, model: str, said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    own_suite(workspace, model)
    line = "%reyn eval own.yaml -m simulator --repeats 1 --file a.sqlite"
    printed = run(line)
    assert "The model grader 'helpful': " in printed and said in printed
    assert "--no-judge leaves the graders unasked." in printed and "Traceback" not in printed
    with Study.open(workspace / "a.sqlite") as study:
        assert study.spent.trials == 0
    assert "Report on own" in run(f"{line} --no-judge")


def test_model_graders_are_asked_after_the_trials_and_what_they_leave_is_told(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_suite(workspace, "openai/gpt-4o-mini")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789")
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        server.otherwise = Answer("It passes.")
        line = "%reyn eval own.yaml -m simulator --repeats 2 --file a.sqlite"
        printed = run(f"{line} --judge-budget 0.0000001")
        assert "helpful: 1 trial judged" in printed and "1 trial left" in printed
        assert "helpful: " not in run(line).partition("helpful is judged by")[0]
        assert len(server.requests) == 2
    with Study.open(workspace / "a.sqlite") as study:
        assert study.evidence.judged_by(study.evidence.graders[0]).total() == 2


def test_a_folder_of_studies_that_cannot_be_made_is_named(run: Run, workspace: Path) -> None:
    (workspace / ".reyn").mkdir(exist_ok=True)
    (workspace / ".reyn" / "studies").write_text("a file")
    printed = run("%reyn eval mandates -m simulator -n 1")
    assert "studies cannot be made: studies is a link or no folder" in printed


def test_suites_variants_checks_and_models_complete(run: Run, workspace: Path) -> None:
    (workspace / "own.yaml").write_text(OWN, "utf-8")
    complete = completion.complete
    assert complete("%reyn eval ", 0, 11)[1][-1].text == "own.yaml"  # type: ignore[index]
    for line, found in {
        "%reyn eval man": ["mandates"],
        "%reyn eval mandates --variants explicit-3": ["explicit-3x"],
        "%reyn eval mandates --variants generic-1x,generic": ["generic-1x,generic-3x"],
        "%reyn eval mandates --variants=mu": ["--variants=must", "--variants=must-hidden"],
        "%reyn eval mandates --check first": ["first_call_is"],
        "%reyn eval mandates -m sim": ["simulator"],
        "%reyn eval mandates -m offline,sim": ["offline,simulator"],
        "%reyn eval mandates --stop e": ["evalue"],
        "%reyn eval nosuch.yaml --variants a": [],
    }.items():
        matches = completion.matcher()(
            SimpleNamespace(full_text=line, cursor_line=0, cursor_position=len(line))
        )
        assert [each.text for each in matches["completions"]] == found
