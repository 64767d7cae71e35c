"""Categories of other packages in trials: one instance a runner, started once; each call has its trial's workspace."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.evaluation.plan.frozen_catalog import STANDARD_CATEGORIES, Catalog
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.models.scripted import call
from tests.evaluation.trial_support import Scripts, run, scenario, suite
from tests.support import station
from tests.support.installation import import_place, install_module
from tests.support.station import COUNTS

ASK = call("invoke_action", action_name="station__all", args={})
WRITE = call("invoke_action", action_name="file__write", args={"path": "notes.md", "content": "changed\n"})


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[None]:
    """The station as a package that is installed."""
    site = tmp_path / "site"
    code = "from tests.support.station import categories\n"
    install_module(site, "stationary", code, name="stationary", version="1.0")
    station.reset()
    with import_place(site):
        yield
    sys.modules.pop("stationary", None)
    station.reset()


def trials(agent: Scripts, count: int) -> list[dict[str, Any]]:
    """Run so many trials with the station in their catalog; what its action gave in each."""
    catalogs = {"standard": lambda: Catalog.standard([*STANDARD_CATEGORIES, "station"])}
    chosen = suite(scenario(), catalogs=catalogs)
    found = []
    with TrialRunner(chosen, models={"scripted": agent}) as on:
        for repeat in range(count):
            trial, events = run(on, repeat=repeat)
            assert [(each.name, each.ok) for each in trial.calls if each.name == "station__all"], trial
            outputs = [
                e for e in events if getattr(e, "name", None) == "station__all" and hasattr(e, "output")
            ]
            found += [{"ok": each.ok, "output": each.output} for each in outputs]  # type: ignore[union-attr]
    return found


def test_six_trials_share_one_instance_that_starts_once_and_is_closed_with_the_runner(
    installed: None,
) -> None:
    found = trials(Scripts(ASK, "Two stations."), 6)
    assert len(found) == 6 and all(each["ok"] and "oslo rome" in each["output"] for each in found)
    # One more was made for the frozen faces, in which nothing ever runs.
    assert (COUNTS["made"], COUNTS["started"], COUNTS["closed"], COUNTS["read"]) == (2, 1, 1, 6)


def test_a_call_gets_the_workspace_of_its_own_trial(installed: None) -> None:
    found = trials(Scripts(ASK, WRITE, ASK, "Done."), 2)
    one, still_one, other, still_other = (json.loads(each["output"])["folder"] for each in found)
    assert one == still_one and other == still_other and one != other
    assert (COUNTS["made"], COUNTS["started"]) == (2, 1)
