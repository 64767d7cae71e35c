"""Trials in processes of their own: the same trials, and nothing left behind."""

from __future__ import annotations

import os
import sys
import time
import types
from pathlib import Path

import pytest
from study_support import BASE, small, started, study

from reyn_jupyter.evaluation.plans import PlanError
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.models.scripted import ScriptedModel

SIMULATED = BASE.but("simulated", model="simulator", mandate="explicit")
DIES = """
    import multiprocessing, os, signal, sys
    from study_support import BASE, small, study
    from reyn_jupyter.evaluation.study import Study

    def hear(progress):
        if progress.done:
            print(*(process.pid for process in multiprocessing.active_children()), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    if __name__ == "__main__":
        made = Study(None, small(20), workers=1)
        made.run(BASE.but("simulated", model="simulator"), on_progress=hear)
"""


def test_workers_make_the_trials_that_would_be_made_here(tmp_path: Path) -> None:
    here = Study(None, small(6))
    here.run(SIMULATED)
    with Study(tmp_path / "a.sqlite", small(6), workers=2) as there:
        summary = there.run(SIMULATED)
        assert (summary.ended, summary.done, there.verify().faults) == ("complete", 12, ())
        facts = [
            {(t.trial.scenario, t.trial.repeat): (t.trial.answer, t.trial.calls) for t in made.trials}
            for made in (here, there)
        ]
        assert facts[0] == facts[1]
        assert there.trials[0].transcript.calls and len({view.trial.run for view in there.trials}) == 12


def test_hosted_models_are_called_here() -> None:
    model = ScriptedModel(otherwise="Done.", real=True, host="api.example.com")
    with study(None, 2, models={"scripted": model}, workers=1) as made:
        assert made.run(BASE).done == 4 == len(model.requests)


def test_what_cannot_be_sent_to_a_worker_is_told_before_the_start() -> None:
    made = study(None, 2, models={"scripted": ScriptedModel(lambda request: "Done.")}, workers=1)
    with pytest.raises(PlanError, match="can be sent to another process"):
        made.run(BASE)
    with pytest.raises(PlanError, match="workers=-1"):
        Study(None, small(1), workers=-1).run(SIMULATED)
    with pytest.raises(PlanError, match="one file for one process"):
        study(None, 2, workers=1, cassette="record", cassette_path="nowhere.jsonl").run(BASE)


def test_workers_end_with_the_process_that_started_them() -> None:
    process = started(DIES)
    assert process.stdout is not None
    workers = [int(each) for each in process.stdout.readline().split()]
    process.communicate(timeout=60)
    assert workers and process.returncode == -9
    deadline = time.monotonic() + 30
    while any(alive(each) for each in workers):
        assert time.monotonic() < deadline, "a worker outlived the study"
        time.sleep(0.2)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_workers_start_where_the_main_module_is_a_bare_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = types.ModuleType("__main__")  # as an embedded shell leaves it
    del bare.__spec__
    monkeypatch.setitem(sys.modules, "__main__", bare)
    with Study(None, small(2), workers=1) as made:
        assert made.run(SIMULATED).ended == "complete"
