"""Trials in processes of their own: the same trials, and nothing left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.evaluation.run.planning import PlanError
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.executors.local import LocalExecutor
from reyn_jupyter.executors.processes import ProcessExecutor
from reyn_jupyter.models.base import Response
from reyn_jupyter.models.scripted import ScriptedModel
from tests.evaluation.study_support import BASE, HoldingAnywhere, scenarios, small, study
from tests.evaluation.trial_support import scenario, suite
from tests.support.processes import child, is_gone, started
from tests.support.waiting import until

SIMULATED = BASE.but("simulated", model="simulator", mandate="explicit")
DIES = """
    import multiprocessing, os, signal, sys
    from tests.evaluation.study_support import BASE, small, study
    from reyn_jupyter.evaluation.study import Study
    from reyn_jupyter.executors.processes import ProcessExecutor

    def hear(progress):
        if progress.done:
            print(*(process.pid for process in multiprocessing.active_children()), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    if __name__ == "__main__":
        made = Study(None, small(20), executor=ProcessExecutor(1))
        made.run(BASE.but("simulated", model="simulator"), on_progress=hear)
"""


def test_the_same_seed_gives_the_same_trials_on_every_executor() -> None:
    with ProcessExecutor(2) as processes, LocalExecutor() as here:  # shared by studies, as a person may

        @settings(max_examples=5, deadline=None)
        @given(st.integers(0, 10_000), st.integers(1, 3))
        def compare(seed: int, repeats: int) -> None:
            rows = []
            for executor in ("asyncio", here, processes):
                with Study(None, small(3), seed=seed, executor=executor) as made:
                    summary = made.run(SIMULATED, repeats=repeats)
                    assert (summary.ended, summary.done, made.verify().faults) == (
                        "complete",
                        3 * repeats,
                        (),
                    )
                    assert made.trials[0].transcript.status == "ok"
                    assert len({view.trial.run for view in made.trials}) == 3 * repeats
                    rows.append(
                        {(view.trial.scenario, view.trial.repeat): facts(view.trial) for view in made.trials}
                    )
            assert rows[0] == rows[1] == rows[2]

        compare()


def facts(trial: Trial) -> dict[str, Any]:
    """Return all of a trial but its run's name and what the clock gave."""
    return trial.model_dump(exclude={"run", "seconds", "started"})


def test_hosted_models_are_called_here() -> None:
    model = ScriptedModel(otherwise="Done.", real=True, host="api.example.com")
    with study(None, 2, models={"scripted": model}, executor="processes") as made:
        assert made.run(BASE).done == 4 == len(model.requests)


def test_what_cannot_be_sent_to_a_worker_is_told_before_the_start() -> None:
    scripted = {"scripted": ScriptedModel(lambda request: "Done.")}
    with (
        study(None, 2, models=scripted, executor="processes") as made,
        pytest.raises(
            PlanError, match=r"lambda.*Define functions and classes in a module .*without executor="
        ),
    ):
        made.run(BASE)
    with (
        study(None, 2, executor="processes", cassette="record", cassette_path="nowhere.jsonl") as made,
        pytest.raises(PlanError, match="one file for one process"),
    ):
        made.run(BASE)


def test_workers_end_with_the_process_that_started_them() -> None:
    process = started(DIES)
    assert process.stdout is not None
    workers = [int(each) for each in process.stdout.readline().split()]
    process.wait(300)
    assert workers and process.returncode == -9
    until(lambda: all(map(is_gone, workers)))
    process.communicate()


def test_workers_start_where_the_main_module_is_a_bare_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = types.ModuleType("__main__")  # as an embedded shell leaves it
    del bare.__spec__
    monkeypatch.setitem(sys.modules, "__main__", bare)
    with Study(None, small(2), executor="processes") as made:
        assert made.run(SIMULATED).ended == "complete"


class Stubborn:
    """A model that keeps its process busy and cannot be asked to stop; it leaves a file with the number of that.

    Args:
        folder: an empty folder.
    """

    label, tier, host, real = "stubborn", "standard", None, False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def complete(self, request: Any, on_text: Any = None) -> Any:
        (self._folder / str(os.getpid())).touch()
        time.sleep(600)


def workers() -> list[int]:
    return [each.pid for each in multiprocessing.active_children() if each.pid is not None]


def test_a_worker_that_is_killed_costs_nothing_and_its_trials_are_made_by_another(tmp_path: Path) -> None:
    killed: list[int] = []
    model = HoldingAnywhere(tmp_path / "calls", 10)

    def hear(progress: Any) -> None:
        if progress.done >= 3 and not killed:
            killed.append(workers()[0])
            os.kill(killed[0], signal.SIGKILL)
            model.go_on()

    with (
        ProcessExecutor(2) as executor,
        study(tmp_path / "a.sqlite", 20, models={"holding": model}, executor=executor) as made,
    ):
        summary = made.run(BASE.but("holding", model="holding"), on_progress=hear)
        assert killed and (summary.ended, summary.done) == ("complete", 40)
        assert made.spent.trials == 40 and made.verify().faults == ()
    assert not workers()


class Deadly:
    """A model whose process ends at one scenario."""

    label, tier, host, real = "deadly", "standard", None, False

    def __init__(self, last_words: str) -> None:
        self._last_words = last_words

    async def complete(self, request: Any, on_text: Any = None) -> Response:
        if any(self._last_words in message.content for message in request.messages):
            os._exit(9)
        return Response("Done.")


def test_a_trial_that_ends_every_worker_is_an_error_and_the_others_are_made(tmp_path: Path) -> None:
    deadly = scenario("deadly", prompts={"natural": "Go over the edge."})
    models = {"deadly": Deadly("over the edge")}
    asked = suite(*scenarios(5), deadly, checks=("first_call_is", "arguments_correct"))
    with (
        ProcessExecutor(1) as executor,
        Study(tmp_path / "a.sqlite", asked, models=models, executor=executor) as made,
    ):
        summary = made.run(BASE.but("deadly", model="deadly"), repeats=1)
        trials = {view.trial.scenario: view.trial for view in made.trials}
        assert (summary.ended, len(trials), made.verify().faults) == ("complete", 6, ())
        assert [one for one, trial in trials.items() if trial.outcome == "error"] == [deadly.id]
        assert "worker died" in (trials[deadly.id].error or "")
        assert "Done." in {trial.answer for trial in trials.values()}
        assert len(made.trials.df) == 6


def test_workers_that_die_at_once_end_the_run_with_what_to_do() -> None:
    models = {"deadly": Deadly("")}
    with (
        ProcessExecutor(1) as executor,
        Study(None, small(2), models=models, executor=executor) as made,
        pytest.raises(PlanError, match=r"__main__"),
    ):
        made.run(BASE.but("deadly", model="deadly"))


def test_an_interrupt_ends_a_worker_whatever_it_does_and_the_next_run_has_another(tmp_path: Path) -> None:
    def press() -> None:
        until(lambda: list(tmp_path.iterdir()))
        os.kill(os.getpid(), signal.SIGINT)

    with study(None, 4, models={"stubborn": Stubborn(tmp_path)}, executor="processes") as made:
        pressing = threading.Thread(target=press)
        pressing.start()
        summary = made.run(BASE.but("stubborn", model="stubborn"))
        pressing.join()
        assert summary.ended == "interrupted" and not workers()
        assert made.run(SIMULATED).ended == "complete"
    assert not workers()


# The key is pressed once a worker is there, which imports for a while; until then no trial ends.
GROUP = """
    import multiprocessing, os, pathlib, signal, sys, threading
    from tests.evaluation.study_support import BASE, HoldingAnywhere, study
    from tests.support.waiting import until
    from reyn_jupyter.executors.processes import ProcessExecutor

    def press():
        until(multiprocessing.active_children)
        os.killpg(0, signal.SIGINT)

    if __name__ == "__main__":
        os.setpgrp()
        model = HoldingAnywhere(pathlib.Path(sys.argv[1]) / "calls", 0)
        made = study(None, 6, models={"holding": model}, executor=ProcessExecutor(2))
        variant = BASE.but("holding", model="holding")
        threading.Thread(target=press).start()
        print(made.run(variant).ended)
        model.go_on()
        print(made.run(variant).ended)
"""


def test_an_interrupt_of_the_whole_group_while_workers_start_leaves_workers_that_work(tmp_path: Path) -> None:
    done = child(GROUP, str(tmp_path))
    assert (done.stdout.split(), done.returncode) == (["interrupted", "complete"], 0), done.stderr
    assert "KeyboardInterrupt" not in done.stderr
