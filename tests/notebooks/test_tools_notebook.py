"""The notebook about tools made at run time, run from top to bottom."""

from __future__ import annotations

from typing import Any

import pytest

from tests.notebooks.executing_support import executed, outputs, shown


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return executed("06_dynamic_tools.ipynb", tmp_path_factory.mktemp("tools"))


def refusal(ran: Any, cell: str) -> str:
    """What a cell says that was refused."""
    (output,) = [each for each in outputs(ran, cell) if each.output_type == "error"]
    return "\n".join(output.traceback)


def test_every_cell_runs_but_the_two_that_show_a_refusal(ran: Any) -> None:
    code = [cell for cell in ran.cells if cell.cell_type == "code"]
    assert code and all(cell.execution_count for cell in code)
    wrong = [cell.id for cell in code for output in cell.outputs if output.output_type == "error"]
    assert wrong == ["wrong", "hostile"]


def test_a_tool_is_made_called_and_held_to_its_schema(ran: Any) -> None:
    assert "net_price is made" in shown(ran, "make")
    assert "100.0" in shown(ran, "invoke") and "222.43" in shown(ran, "python")
    assert "must be at least 0" in refusal(ran, "wrong")


def test_hidden_calls_are_seen_and_hosts_that_nobody_granted_are_out_of_reach(ran: Any) -> None:
    assert "shutil.rmtree" in refusal(ran, "hostile") and "allow:delete_files" in refusal(ran, "hostile")
    assert "JPY" in shown(ran, "fetch")
    assert "is not among the hosts" in shown(ran, "elsewhere")


def test_a_model_makes_a_tool_and_calls_it_in_the_same_turn(ran: Any) -> None:
    answer = shown(ran, "model")
    assert "The median is 3." in answer and "dynamic_tool__median" in answer


def test_tools_are_reviewed_exported_and_gone_at_the_end(ran: Any) -> None:
    assert "passed" in shown(ran, "verify") and "Recommendation: make a tool" in shown(ran, "reflect")
    assert "net_price" in shown(ran, "table") and "tool.run by person: ok" in shown(ran, "one")
    assert "from slug import execute" in shown(ran, "exported")
    assert "Make one: %%reyn tool NAME" in shown(ran, "end")
