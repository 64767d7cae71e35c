"""How far a run is: told in a terminal, and how long it takes once that can be known."""

from __future__ import annotations

import io

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.run.progress import Progress, remaining
from reyn_jupyter.evaluation.run.progress_listener import watch_with, watcher
from reyn_jupyter.evaluation.run.terminal_progress import EVERY, TerminalProgress
from tests.evaluation.study_support import BASE, BEST, ByVariant, study

PROGRESS = Progress(done=3, total=9, running=1, seconds=40.0, rate=0.1, eta=None, usd=0.0, tokens=0, calls=3,
                    missing={"base": 2}, timeouts=1)  # fmt: skip


def test_nothing_is_foretold_of_few_trials_and_a_range_of_trials_that_differ() -> None:
    assert remaining([0, 1, 2, 3, 4], 10) is None
    least, most = remaining([0, 1, 3, 4, 90, 91], 10) or (0.0, 0.0)
    assert least < 182 < most  # ten times the mean
    narrow = remaining([0, 18, 36, 55, 73, 91], 10) or (0.0, 0.0)
    assert narrow[1] - narrow[0] < (most - least) / 5
    assert remaining([0, 1, 2, 3, 4, 5], 0) == (0.0, 0.0)


def test_a_terminal_hears_now_and_then_how_far_a_run_is_and_what_went_wrong() -> None:
    now, said = [0.0], io.StringIO()
    listener = TerminalProgress(said, lambda: now[0])
    for now[0] in (0.1, EVERY, EVERY + 0.1, 2 * EVERY):
        listener(PROGRESS)

    assert said.getvalue() == "3 of 9 trials done, 1 under way, 1 error, 1 timeout.\n" * 2


def test_a_run_that_is_over_soon_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    watch_with(None)
    with study() as made:
        made.run(BASE, BEST, repeats=1, n=2)

    assert isinstance(watcher(), TerminalProgress)
    assert capsys.readouterr().err == ""


def test_a_run_whose_model_loads_says_what_it_loads() -> None:
    class Loading(ByVariant):
        loading = "loading weights.gguf (98 MB) for 4 s"

    told: list[Progress] = []
    model = Loading()
    with study(models={"scripted": model}) as made:
        made.run(BASE, BEST, repeats=1, n=2, on_progress=told.append)
        assert f"0 of 4 trials done, 0 under way, {model.loading}." in repr(told[0])
        model.loading = ""
        told.clear()
        made.run(BASE, BEST, repeats=2, n=2, on_progress=told.append)

    assert told
    assert not any(each.loading for each in told)


def test_the_pace_of_a_study_has_a_public_name() -> None:
    pace = reyn.Concurrency(start=1, most=2)
    made = reyn.Study(None, "mandates", concurrency=pace)
    made.close()
    assert "Concurrency" in reyn.__all__
