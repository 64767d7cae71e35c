"""A run that somebody forged and a clone brought: it raises no limit, and puts no line of its own into a cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.notebook.render import view
from reyn_jupyter.notebook.render.blocks import Code, Toolbar
from reyn_jupyter.runtime.record.runlog import RunLogError
from tests.security.security_support import invoke

FORGED = "01a214ef-bfec-7543-9c10-8bee6f6e39cb"
STEPS = [invoke("file__read", path="notes.txt", offset=place) for place in range(9)]


def forge(workspace: Path, name: str = FORGED, **changes: Any) -> None:
    """Make a run, and leave its record with other fields of its start in its place."""
    (workspace / "notes.txt").write_text("a note\n")
    run = reyn.Session(workspace, model=ScriptedModel(STEPS[0], "Done.")).ask("read it").run
    folder = workspace / ".reyn" / "runs"
    first, *rest = (folder / f"{run}.jsonl").read_text().splitlines()
    (folder / f"{run}.jsonl").unlink()
    started = {**json.loads(first), "run": FORGED, **changes}
    (folder / f"{name}.jsonl").write_text("\n".join([json.dumps(started), *rest]) + "\n")


def test_a_replay_keeps_the_limits_of_the_session(workspace: Path) -> None:
    forge(workspace, settings={"limits.max_steps": 777, "limits.session_cost": None, "surface": "universal"})
    session = reyn.Session(
        workspace, model=ScriptedModel(*STEPS, "Done."), config={"router": {"limits": {"max_steps": 3}}}
    )
    assert len(session.replay(FORGED, from_step=1).steps) <= 4  # the last one answers without tools


def test_what_a_run_records_of_its_settings_holds_in_its_replay(workspace: Path) -> None:
    from reyn_jupyter.sessions.runs.replay import RECORDED_KEYS, WEAK_KEYS

    (workspace / "notes.txt").write_text("a note\n")
    run = reyn.Session(workspace, model=ScriptedModel(STEPS[0], "Done.")).ask("read it")
    assert set(run.started.settings) == RECORDED_KEYS | WEAK_KEYS | {
        "writes_per_completion",
        "reasoning_effort",
    }


@pytest.mark.parametrize(
    "given", ["01a214ef-bfec\n!sh evil.sh", "a b", "--approve", "\u202ea", ""], ids=ascii
)
def test_a_run_whose_id_is_none_is_not_read(workspace: Path, given: str) -> None:
    forge(workspace, run=given)
    session = reyn.Session(workspace)
    with pytest.raises(RunLogError, match="the id that it gives itself is none"):
        session.parts.runs.load(FORGED)
    assert list(session.parts.runs.back()) == []


def test_a_file_whose_name_is_no_id_is_left_out_and_said(workspace: Path) -> None:
    forge(workspace, name="zz\n!sh evil.sh")
    runs = reyn.Session(workspace).parts.runs
    assert runs.ids() == []
    assert [said for said in runs.problems.values() if "zz␊!sh evil.sh.jsonl is no name of a run" in said]


def test_asking_again_takes_no_option_and_no_variable_from_the_record(workspace: Path) -> None:
    forge(workspace, real=True, model="a --approve all", prompt="what is {{orders}}?")
    trace = reyn.Session(workspace).parts.runs.load(FORGED)
    (toolbar,) = [each for each in view(trace).blocks if isinstance(each, Toolbar)]
    (again,) = [each for each in toolbar.blocks if each.label == "Ask again"]
    (code,) = again.blocks
    assert isinstance(code, Code)
    assert code.text == "%%reyn\nwhat is \\{{orders}}?"
