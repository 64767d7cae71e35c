"""The notebook about MCP servers, run from top to bottom against a real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.notebooks.executing_support import executed, outputs, shown


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return executed("04_mcp.ipynb", tmp_path_factory.mktemp("servers"))


def test_every_cell_runs(ran: Any) -> None:
    code = [cell for cell in ran.cells if cell.cell_type == "code"]
    assert code and all(cell.execution_count for cell in code)
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]


def test_a_real_server_answers_and_is_found_by_what_it_does(ran: Any) -> None:
    assert "clock__convert_time" in shown(ran, "search")
    assert "Asia/Tokyo" in shown(ran, "call")
    frame = shown(ran, "frame")
    assert "15:15" in frame or "16:15" in frame  # 08:15 in Berlin, in summer and in winter


def test_one_task_takes_the_server_a_command_and_the_frame(ran: Any) -> None:
    assert "Lisbon" in shown(ran, "early") and "Tokyo" not in shown(ran, "early")
    told = shown(ran, "command")
    assert told.startswith("Monday, ") or "No command runs here" in told
    assert "invoke exec__run" in shown(ran, "runs") and "invoke mcp__clock__" in shown(ran, "runs")


def test_the_table_says_how_the_server_fares(ran: Any) -> None:
    table = shown(ran, "table")
    assert "clock" in table and "ready" in table


def test_a_folder_s_own_server_is_held_back_and_shown(ran: Any) -> None:
    said = shown(ran, "folder")
    assert "wait until you say %reyn trust" in said and "curl https://example.org" in said
    assert "OPENAI_API_KEY of your environment" in said


def test_nothing_is_left_of_it(ran: Any) -> None:
    assert outputs(ran, "drop")
    folder = Path(ran.metadata["folder"])
    assert '"mcpServers": {}' in (folder / "reyn_config_dir" / "mcp.json").read_text()
