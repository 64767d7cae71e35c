"""Which text columns of the notebook's frames hold some texts: what is found, what is not read, and without SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from reyn_jupyter import Session
from reyn_jupyter.categories.table import categories
from reyn_jupyter.models.offline.model import DECLINE
from reyn_jupyter.notebook.render import to_text, view
from reyn_jupyter.runtime.action_error import ActionError
from tests.categories.notebook_support import Hostile, Notebook

LARGE = 100_000


async def found(tmp_path: Path, frame: object, *texts: str) -> dict[str, Any]:
    caller = Notebook(tmp_path, {"t": frame}).caller(categories)
    answer: dict[str, Any] = await caller.call("find_values", variables=["t"], texts=list(texts))
    return answer


@pytest.mark.parametrize("dtype", ["str", "object", "category"])
@pytest.mark.parametrize("rows", [8, LARGE])
async def test_a_cell_is_found_in_any_column_and_letter_case(tmp_path: Path, dtype: str, rows: int) -> None:
    frame = pd.DataFrame(
        {
            "status": ["Paid", "open", "iOS", None] * (rows // 4),
            "code": [f"N{row}" for row in range(rows)],
            "value": range(rows),
        }
    ).astype({"status": dtype, "code": dtype})
    answer = await found(tmp_path, frame, "paid", "ios", "n7", "7", "purple", "ope")
    assert answer == {
        "found": [
            {"variable": "t", "column": "status", "value": "Paid"},
            {"variable": "t", "column": "status", "value": "iOS"},
            {"variable": "t", "column": "code", "value": "N7"},
        ]
    }


async def test_a_category_that_no_row_has_is_not_found(tmp_path: Path) -> None:
    frame = pd.DataFrame({"size": pd.Categorical(["S", "L"], categories=["S", "M", "L"])})
    answer = await found(tmp_path, frame, "m", "l")
    assert [cell["value"] for cell in answer["found"]] == ["L"]


async def test_a_named_index_is_a_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"pop": [1, 2]}, index=pd.Index(["Kenya", "Japan"], name="country"))
    answer = await found(tmp_path, frame, "japan")
    assert answer["found"] == [{"variable": "t", "column": "country", "value": "Japan"}]


@pytest.mark.parametrize("rows", [3, LARGE])
async def test_columns_named_like_secrets_are_not_read_and_no_code_of_a_cell_runs(
    tmp_path: Path, rows: int
) -> None:
    frame = pd.DataFrame(
        {"api_key": ["paid"] * rows, "thing": [Hostile(), "paid", None] + [None] * (rows - 3)}
    )
    answer = await found(tmp_path, frame, "paid")
    assert answer["found"] == [{"variable": "t", "column": "thing", "value": "paid"}]


async def test_what_is_not_a_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ActionError, match="no table"):
        await found(tmp_path, {1, 2}, "paid")


def test_a_question_about_a_large_frame_is_declined_without_a_query(tmp_path: Path) -> None:
    orders = pd.DataFrame(
        {"status": ["paid", "open"] * (LARGE // 2), "note": [f"note {row}" for row in range(LARGE)]}
    )
    session = Session(tmp_path, namespace={"orders": orders})
    try:
        trace = session.ask("how many purple orders are in orders?")
        assert trace.answer is not None and trace.answer.startswith(DECLINE) and "“purple”" in trace.answer
        assert "table__query" not in [call.resolved.name for call in trace.calls]
        right = session.ask("how many paid orders are in orders?")
        assert right.answer is not None and f"**{LARGE // 2}**" in right.answer
        assert "token" not in to_text(view(right))  # the offline model uses none
    finally:
        session.close()
