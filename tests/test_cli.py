"""The command `reyn`: studies in a terminal, as a process of its own wherever a signal or an import counts."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.cli import _parser, main
from reyn_jupyter.evaluation.models.fake_provider import FakeProvider, ProviderSettings
from reyn_jupyter.evaluation.run.planning import PlanError
from reyn_jupyter.evaluation.suites import load_suite
from tests.support.waiting import until

Captured = pytest.CaptureFixture[str]
RUN = ["study", "run", "first-steps", "-m", "simulator", "-n", "2", "--repeats", "1"]
OWN = """
name: own
title: One question
primary: {primary}
scenarios:
- {{id: a, family: f, natural: Read it., workspace: {{notes.md: hello}}, gold: [{{file__read: {{path: notes.md}}}}]}}
"""
HEAVY = ("litellm", "openai", "torch", "transformers", "pandas", "numpy", "duckdb", "IPython", "ipywidgets")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class SlowServer(FakeProvider):
    """Its slow model answers nothing more while a file holds so many trials, so that no study ends meanwhile."""

    file, most = Path(), 1_000

    def wait(self, seconds: float) -> None:
        super().wait(seconds)
        while stored(self.file) >= self.most and not self._closing.is_set():
            super().wait(0.02)


@pytest.fixture
def slow_server(folder: Path) -> Iterator[SlowServer]:
    with SlowServer(manners=ProviderSettings(slow=0.05)) as server:
        server.file = folder / "a.sqlite"
        yield server


def stored(file: Path) -> int:
    """How many trials a file holds, also while another process writes it."""
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as base:
            return int(base.execute("SELECT count(*) FROM trials").fetchone()[0])
    except sqlite3.OperationalError:  # it is not there yet, or not whole
        return 0


def trials(file: Path) -> list[tuple[str, str, int]]:
    with reyn.Study.open(file) as study:
        return [(each.variant.name, each.trial.scenario, each.trial.repeat) for each in study.trials]


def test_help_imports_no_model_library_and_no_tables() -> None:
    code = f"""
        import sys
        from reyn_jupyter.cli import main
        for words in ([], ["--help"], ["study", "run", "--help"]):
            try:
                main(words)
            except SystemExit as ended:
                assert not ended.code
        print([name for name in {HEAVY!r} if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert "exit codes: 0 " in done.stdout and done.stdout.endswith("[]\n")


def test_the_command_is_installed_under_its_name() -> None:
    from importlib.metadata import distribution

    (entry,) = (each for each in distribution("reyn-jupyter").entry_points if each.group == "console_scripts")
    assert (entry.name, entry.load()) == ("reyn", main)


def test_a_study_runs_and_the_same_line_tries_nothing_again(folder: Path, capsys: Captured) -> None:
    for new in ("4 new trials", "0 new trials and 4 from before"):
        assert main([*RUN, "--variants", "alone", "mandate"]) == 0
        printed = capsys.readouterr()
        assert "alone [simulated]: task done" in printed.out and "mandate [simulated]" in printed.out
        assert new in printed.err and "\x1b" not in printed.err and "\r" not in printed.err
    assert len(trials(folder / ".reyn" / "studies" / "first-steps-simulator.sqlite")) == 4


def test_scenarios_models_file_and_limits_are_chosen_by_words(folder: Path, capsys: Captured) -> None:
    only = [each.id for each in reyn.load_suite("first-steps").scenarios[:3:2]]
    words = [
        "-m",
        "simulator",
        "-m",
        "offline",
        "--variants",
        "alone",
        "--repeats",
        "2",
        "--file",
        "s.sqlite",
    ]
    limits = ["--dollars", "2", "--minutes", "10", "--concurrency", "1"]
    assert main(["study", "run", "first-steps", *words, *limits, "--only", *only]) == 0
    assert sorted(trials(folder / "s.sqlite")) == sorted(
        (model, scenario, repeat)
        for model in ("simulator", "offline")
        for scenario in only
        for repeat in (0, 1)
    )


def test_a_signal_keeps_what_is_done_and_the_line_that_is_told_goes_on(
    folder: Path, slow_server: SlowServer, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789")
    monkeypatch.setenv("OPENAI_API_BASE", slow_server.url)
    file, slow_server.most = folder / "a.sqlite", 1
    words = ["study", "run", "first-steps", "-m", "openai/slow", "-n", "2", "--repeats", "2"]
    words += ["--file", "a.sqlite", "--concurrency", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "reyn_jupyter", *words],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until(lambda: stored(file) >= 1 or process.poll() is not None)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=300)
    kept = len(trials(file))
    assert process.returncode == 130, err
    assert 1 <= kept < 8 and "Traceback" not in err and out == ""
    assert err.splitlines()[-1] == f"Go on with: reyn {' '.join(words)}"

    slow_server.most = kept + 1

    def press() -> None:
        until(lambda: stored(file) > kept)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    assert main(words) == 130
    assert kept < (more := len(trials(file))) < 8
    capsys.readouterr()
    slow_server.most = 1_000
    assert main(words) == 0
    assert f"{8 - more} new trials and {more} from before" in capsys.readouterr().err
    assert len(set(trials(file))) == len(trials(file)) == stored(file) == 8


def test_the_end_of_the_time_is_no_failure_and_keeps_what_is_done(
    folder: Path, slow_server: SlowServer, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789")
    monkeypatch.setenv("OPENAI_API_BASE", slow_server.url)
    before, slow_server.most = signal.getsignal(signal.SIGTERM), 3
    words = ["study", "run", "first-steps", "-m", "openai/slow", "--concurrency", "1", "--file", "a.sqlite"]
    assert main([*words, "--minutes", "0.05"]) == 0
    assert "The time is up. The same line goes on." in capsys.readouterr().err
    assert len(trials(folder / "a.sqlite")) < 20 and signal.getsignal(signal.SIGTERM) is before


def test_model_graders_are_asked_after_the_trials(
    folder: Path, slow_server: SlowServer, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789")
    monkeypatch.setenv("OPENAI_API_BASE", slow_server.url)
    judge = "checks: [{grade: helpful, model: openai/refuses, rubric: It names a next step.}]\n"
    (folder / "own.yaml").write_text(OWN.format(primary="chain") + judge, "utf-8")
    words = ["study", "run", "own.yaml", "-m", "simulator", "--repeats", "1"]
    for times in (1, 0):
        assert main([*words, "--judge-dollars", "1"]) == 0
        printed = capsys.readouterr()
        judged = "1 trial judged, 1 of them with no verdict" if times else "0 trials judged; 0 tokens"
        assert f"helpful, judged by openai/refuses: {judged}" in printed.err
        assert "helpful is judged by openai/refuses at 127.0.0.1:" in printed.out
    assert slow_server.asked == {"refuses": 1}


def test_a_grader_that_cannot_be_asked_is_refused_before_a_trial_and_left_out_at_a_word(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    words = ["study", "run", "own.yaml", "-m", "simulator", "--repeats", "1"]
    for model, why in (
        ("standard", "No model is configured for the tier"),
        ("openai/gpt-4o-mini", "API_KEY is not set"),
    ):
        judge = f"checks: [{{grade: helpful, model: {model}, rubric: It names a next step.}}]\n"
        (folder / "own.yaml").write_text(OWN.format(primary="chain") + judge, "utf-8")
        assert main(words) == 1
        printed = capsys.readouterr()
        assert "reyn: The model grader 'helpful': " in printed.err and why in printed.err
        assert printed.out == "" and list(folder.glob(".reyn/studies/*")) == []
    assert main(["suite", "check", "own.yaml"]) == 0
    assert "0 variants, 1 model grader; nothing is wrong with it." in capsys.readouterr().out
    assert main([*words, "--no-judge"]) == 0
    assert "1 new trial" in capsys.readouterr().err


def test_a_study_that_was_refused_leaves_no_file_and_one_with_trials_stays(
    folder: Path, capsys: Captured
) -> None:
    assert main([*RUN[:3], "-m", "offlin"]) == 1
    assert list(folder.glob(".reyn/studies/*")) == []
    assert main(RUN) == 0
    assert main([*RUN, "--check", "first_call"]) == 1
    assert "did you mean first_call_is" in capsys.readouterr().err
    assert len(trials(folder / ".reyn" / "studies" / "first-steps-simulator.sqlite")) == 4


def test_a_file_that_somebody_else_opened_meanwhile_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = []

    def refuse(self: reyn.Study, *_: object, **__: object) -> None:
        others.append(reyn.Study(self.parts.store.path, "first-steps"))
        raise PlanError("no")

    monkeypatch.setattr(reyn.Study, "run", refuse)
    assert main([*RUN, "--file", "a.sqlite"]) == 1
    assert (folder / "a.sqlite").exists()
    others[0].close()


def test_the_check_that_decides_and_the_rule_that_stops_are_chosen_by_words(capsys: Captured) -> None:
    assert main([*RUN, "--check", "first_call_is", "--stop", "evalue", "--variants", "alone", "mandate"]) == 0
    assert "on lists first: " in capsys.readouterr().out
    assert main(["study", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["primary"] == "first_call_is"


def test_what_happened_in_a_trial_is_shown_in_the_terminal(capsys: Captured) -> None:
    assert main(RUN) == 0
    with reyn.Study.open(".reyn/studies/first-steps-simulator.sqlite") as study:
        scenario = study.trials[0].trial.scenario
    capsys.readouterr()
    assert main(["study", "show", "--trial", "alone", scenario]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{scenario}  [") and "What the checks say" in shown and "Step 1 · model" in shown
    why = shown[shown.index("What the checks say") : shown.index("The run ·")]
    assert "…" not in why and "came_to_end" in why, "why a trial failed is said in whole"
    assert main(["study", "show", "--trial", "alone", scenario[:-1]]) == 1
    assert f"Did you mean {scenario}?" in capsys.readouterr().err
    assert main(["study", "show", "--trial", "alone", "zzz"]) == 1
    told = capsys.readouterr().err
    assert "Its scenarios are " in told and scenario in told


def test_a_text_of_the_command_proposes_what_a_terminal_takes(capsys: Captured) -> None:
    assert main(RUN) == 0
    capsys.readouterr()
    assert main(["study", "show"]) == 0
    shown = capsys.readouterr()
    assert "all of it: reyn study export first-steps-simulator report.html" in shown.out
    assert "reyn_jupyter.Study.open('" in shown.err
    assert main(["suites", "first-steps"]) == 0
    told = capsys.readouterr()
    assert "helped-two-steps" in told.out and "two-steps-stop-200" in told.out, "all variants"
    assert "study.suite" not in told.out and "state reached (state_reached)" in told.out
    assert told.err == "One of them: reyn suites first-steps lamp-on-kitchen\n"
    assert main(["suites", "first-steps", "lamp-on-kitchen"]) == 0
    assert "Turn on the lamp in the kitchen." in capsys.readouterr().out


def test_a_study_is_shown_as_text_and_as_json(capsys: Captured) -> None:
    assert main(RUN) == 0
    capsys.readouterr()
    assert main(["study", "show"]) == 0
    shown = capsys.readouterr().out
    assert main(["study", "show", "first-steps-simulator", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "Report on first-steps" in shown and "4 trials" in shown and "Provenance" in shown
    assert found["suite"] == "first-steps" and found["spent"]["trials"] == 4
    (done,) = (
        each for each in found["figures"] if (each["variant"], each["check"]) == ("alone", "task_done")
    )
    assert done["trials"] == 2 and 0 <= done["low"] <= done["estimate"] <= done["high"] <= 1


def test_a_study_is_exported_by_the_ending_of_the_file(folder: Path, capsys: Captured) -> None:
    assert main(RUN) == 0
    for name in ("t.csv", "t.parquet", "t.jsonl", "r.html", "r.md", "logs"):
        assert main(["study", "export", "first-steps-simulator", name]) == 0
        assert (folder / name).exists()
    with (folder / "t.csv").open(encoding="utf-8", newline="") as lines:
        assert len(list(csv.DictReader(lines))) == 4
    assert "Simulated trials" in (folder / "r.html").read_text("utf-8")
    assert len(list((folder / "logs").glob("*.eval"))) == 2
    assert main(["study", "export", "first-steps-simulator", "t.xlsx"]) == 1
    assert "names no format; let it end in .parquet, .csv or .jsonl" in capsys.readouterr().err


def test_suites_are_listed_and_one_is_told_with_its_scenarios_and_variants(capsys: Captured) -> None:
    assert main(["suites"]) == 0
    assert "\nmandates " in capsys.readouterr().out
    assert main(["suites", "mandates"]) == 0
    told = capsys.readouterr().out
    assert "explicit-3x" in told and "\n  read-free-shipping\n" in told


def test_a_suite_of_ones_own_is_checked(folder: Path, capsys: Captured) -> None:
    (folder / "own.yaml").write_text(OWN.format(primary="chain"), "utf-8")
    assert main(["suite", "check", "own.yaml"]) == 0
    assert capsys.readouterr().out == "own.yaml: 1 scenario, 0 variants; nothing is wrong with it.\n"
    (folder / "\x1b[2Kown.yaml").write_text(OWN.format(primary="chain"), "utf-8")
    assert main(["suite", "check", "\x1b[2Kown.yaml"]) == 0
    assert capsys.readouterr().out.startswith("␛[2Kown.yaml: 1 scenario")
    (folder / "own.yaml").write_text(OWN.format(primary="chian"), "utf-8")
    assert main(["suite", "check", "own.yaml"]) == 1
    assert "there is no check 'chian'; did you mean chain?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("study run", "reyn: the following arguments are required: SUITE. reyn study run --help says"),
        ("study run mandates -n 0", "reyn: argument -n: 0 is no whole number above 0."),
        ("study run mandate -m simulator", "there is no suite 'mandate'; did you mean 'mandates'?"),
        (
            "study run mandates --variants explict-3x",
            "has no variant 'explict-3x'. Did you mean explicit-3x or",
        ),
        ("study run mandates --only read-free-shiping", "did you mean 'read-free-shipping'?"),
        ("study run mandates -m openai/gpt-4o-mini", "OPENAI_API_KEY is not set"),
        ("study run mandates --modle simulator", "study run takes no '--modle'. Did you mean --model?"),
        ("suites mandates read-free-shiping", "did you mean 'read-free-shipping'?"),
        ("study show", "reyn: No study was run here yet."),
        ("study show nothing", "There is no study 'nothing'. .reyn/studies holds none yet."),
        ("study show other.txt", "other.txt is no study"),
        ("suite check missing.yaml", "missing.yaml cannot be read"),
    ],
)
def test_what_cannot_be_done_is_one_message(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: str, said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (folder / "other.txt").write_text("no database" * 100, "utf-8")
    assert main(words.split()) == 1
    printed = capsys.readouterr()
    assert said in printed.err and printed.out == "" and "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("table", "place", "value"),
    [
        ("runs", "$.truths.mandate", "x"),
        ("runs", "$.stop", [1]),
        ("runs", "$.check", {"a": 1}),
        ("variants", "$.name", "\x1b[31m"),
    ],
)
def test_a_study_that_somebody_made_up_is_told_in_one_message(
    folder: Path, capsys: Captured, table: str, place: str, value: object
) -> None:
    assert main([*RUN, "--file", "a.sqlite", "--variants", "mandate"]) == 0
    with closing(sqlite3.connect(folder / "a.sqlite")) as base:
        base.execute(f"UPDATE {table} SET data = json_set(data, ?, json(?))", (place, json.dumps(value)))
        base.execute("UPDATE trials SET cost = -1000.0")
        base.commit()
    with reyn.Study.open(folder / "a.sqlite") as made:
        assert made.spent.usd == 0
    capsys.readouterr()
    for words in (["show", "a.sqlite"], ["show", "a.sqlite", "--json"], ["export", "a.sqlite", "t.csv"]):
        assert main(["study", *words]) == 1
        printed = capsys.readouterr()
        assert "is damaged: study.verify()" in printed.err and "\x1b" not in printed.err
        assert printed.out == ""


def test_what_a_suite_file_lets_its_trials_do_is_said_before_they_run(folder: Path, capsys: Captured) -> None:
    allows = "allow_actions: [web__fetch, 'exec__run']\n"
    (folder / "own.yaml").write_text(OWN.format(primary="chain") + allows, "utf-8")
    said = "The suite lets its trials act outside their own workspaces: web__fetch, exec__run."
    assert main(["suite", "check", "own.yaml"]) == 0
    assert said in capsys.readouterr().out
    assert main(["study", "run", "own.yaml", "-m", "simulator", "--repeats", "1"]) == 0
    assert capsys.readouterr().err.startswith(said)


def test_the_version_and_the_examples_of_the_help_are_real(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"reyn-jupyter {version('reyn-jupyter')}\n"
    for words in (["--help"], ["study", "run", "--help"]):
        with pytest.raises(SystemExit):
            main(words)
        said = " ".join(capsys.readouterr().out.split())
        (line,) = re.findall(r"reyn (study run mandates [^.]*?)(?:\.| options:| commands:)", said)
        options = _parser().parse_args(line.split())
        assert set(options.variants) <= set(load_suite(options.suite).variants)
