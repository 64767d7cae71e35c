"""The notebook about utilities, plans and workflows, run from top to bottom."""

from __future__ import annotations

from typing import Any

import pytest

from tests.notebooks.executing_support import executed, outputs, shown


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return executed("07_workflows.ipynb", tmp_path_factory.mktemp("workflows"))


def test_every_cell_runs(ran: Any) -> None:
    code = [cell for cell in ran.cells if cell.cell_type == "code"]
    assert code and all(cell.execution_count for cell in code)
    assert [cell.id for cell in code for each in cell.outputs if each.output_type == "error"] == []


def test_a_request_in_plain_words_becomes_steps_and_the_steps_run(ran: Any) -> None:
    assert "csv-to-parquet@1.0.0" in shown(ran, "utilities")
    assert "[complete]" in shown(ran, "plan") and "5 steps" in shown(ran, "plan")
    assert "plan of 5 steps, 5 done" in shown(ran, "dispatch")
    (card,) = outputs(ran, "dispatch")
    assert "<svg" in card.data["text/html"] or "image/svg+xml" in card.data["text/html"]
    assert "[preview]" in shown(ran, "dry") and "main.py" in shown(ran, "dry")


def test_the_files_that_were_made_are_what_was_asked_for(ran: Any) -> None:
    made = shown(ran, "made")
    assert "| tea | 4.20 |" in made and "583.5" in made


def test_what_a_machine_lacks_is_said_before_anything_starts(ran: Any) -> None:
    plan = shown(ran, "video")
    assert "youtube.download" in plan and "steps.step-1.out" in plan
    assert "youtube-downloader@1.0.0" in shown(ran, "resolve")


def test_a_gap_is_closed_where_it_is_shown(ran: Any) -> None:
    assert "no_capability_match" in shown(ran, "gap") and "%reyn scaffold text.count-words" in shown(
        ran, "gap"
    )
    assert "tools/text-count-words/main.py" in shown(ran, "scaffold")
    assert "[executed]" in shown(ran, "closed") and "9" in shown(ran, "counted")


def test_a_policy_stops_a_run_before_it_begins(ran: Any) -> None:
    assert "[blocked by policy]" in shown(ran, "policy")


def test_a_failed_run_goes_on_with_what_was_not_done(ran: Any) -> None:
    assert "plan of 2 steps, 1 done" in shown(ran, "fail") and "costs.csv" in shown(ran, "fail")
    assert "plan of 2 steps, 2 done" in shown(ran, "resume")


def test_a_run_is_kept_and_runs_again_without_a_model(ran: Any) -> None:
    assert "skills/pack-table.yaml" in shown(ran, "keep") and "costs.parquet" in shown(ran, "packed")
    assert "skills/mean-amount.yaml" in shown(ran, "save")
    assert "✓ ok" in shown(ran, "again") and "tea" in shown(ran, "again")
    assert "mean-amount" in shown(ran, "kept")
