"""`%reyn eval` in a shell: one study a suite and model, and one plain line for what cannot be."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.notebook import extension
from reyn_jupyter.sessions import current

Run = Callable[[str], str]


@pytest.fixture
def run(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    """Runs a cell in a shell of this process and gives what it printed."""
    monkeypatch.chdir(workspace)
    monkeypatch.setattr(current, "_current", [])
    hooks = (sys.excepthook, sys.displayhook)
    shell = InteractiveShell(colors="nocolor")
    shell.history_manager.enabled = False
    extension.load(shell)

    def run(code: str) -> str:
        capsys.readouterr()
        shell.run_cell(code, store_history=False)
        return capsys.readouterr().out.strip()

    yield run
    extension.unload(shell)
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()
    sys.excepthook, sys.displayhook = hooks


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


def test_a_model_that_cannot_be_reached_is_reported_with_its_reason(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    printed = run("%reyn eval mandates -n 1 --repeats 1 -m openai/gpt-4o-mini")
    assert "No trial could be graded: 2 ended in an error or a timeout." in printed
    assert "OPENAI_API_KEY is not set" in printed
