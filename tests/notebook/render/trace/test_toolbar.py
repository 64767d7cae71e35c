"""What can be done with an answer: its table, its query, its code, the question again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.notebook.render.blocks import Code, Fold, Grid, Toolbar, ToolbarItem
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.content import Structured
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.session import Session
from tests.notebook.render.samples import BLOB, NOW, Reader, call, invoked, trace

ROWS = [{"product": "tea", "mean": 29.4}, {"product": "rye", "mean": 29.8}]
SQL = 'SELECT "product", AVG(amount) AS mean FROM orders GROUP BY 1'


def queried(output: str = json.dumps(ROWS), sql: str = SQL, **given: Any) -> Trace:
    shown = {"content_kind": "json_array", **given}
    blobs = shown.pop("blobs", None)
    of_run = {key: shown.pop(key) for key in ("mandates",) if key in shown}
    asked = invoked("table__query", sql=sql, sources={"orders": "orders"})
    events = call(
        1,
        "table__query",
        asked,
        output,
        sources=({"kind": "variable", "name": "orders", "rows": 500},),
        **shown,
    )
    events[0] = replace(events[0], target="query_table", purity="read", inner=asked["args"])
    return trace(events, blobs=blobs, **of_run)


def items(run: Trace) -> dict[str, ToolbarItem]:
    found = [block for block in view(run, now=NOW).blocks if isinstance(block, Toolbar)]
    return {item.label: item for item in found[0].blocks} if found else {}


def test_an_answer_stands_first_then_what_it_rests_on_then_what_can_be_done() -> None:
    page = Reader(to_html(view(queried(), now=NOW))).text
    order = [
        "It is 4.",
        "orders, 500 rows · 1 query · 1.20 s · $0 · sent nothing",
        "Table",
        "Query",
        "Ask again",
        "Details",
    ]
    assert [page.index(each) for each in order] == sorted(page.index(each) for each in order)


def test_the_table_the_query_the_code_and_the_question_are_one_press_away() -> None:
    found = items(queried())
    assert list(found) == ["Table", "Query", "Insert as code", "Ask again"]
    (grid,) = found["Table"].blocks
    assert isinstance(grid, Grid) and [[cell.text for cell in row] for row in grid.rows] == [
        ["tea", "29.4"],
        ["rye", "29.8"],
    ]
    (query,) = found["Query"].blocks
    assert isinstance(query, Code) and query.text == SQL
    (again,) = found["Ask again"].blocks
    assert isinstance(again, Code) and again.text == "%%reyn\nWhat is the mean value?"
    assert found["Insert as code"].inserts and found["Ask again"].inserts and not found["Table"].inserts


def test_the_code_of_an_answer_gives_its_table_again(tmp_path: Any) -> None:
    (tmp_path / "orders.csv").write_text("product,amount\ntea,10\ntea,30\nrye,5\n")
    session = Session(tmp_path, store="memory")
    run = session.ask("what is the mean amount by product in orders.csv?")
    (code,) = items(run)["Insert as code"].blocks
    assert isinstance(code, Code)
    names: dict[str, Any] = {}
    exec(code.text.replace("reyn.session()", "given"), {"given": session}, names)
    assert names["result"].to_dict("records") == run.df.to_dict("records")


def test_a_stored_table_shows_its_first_rows_and_names_the_blob() -> None:
    store = MemoryBlobStore()
    kept = store.put(Structured([{"n": number} for number in range(500)]), action="table__query", run="run-1")
    found = items(queried(blob=kept.id, blobs=store))
    (grid,) = found["Table"].blocks
    assert isinstance(grid, Grid) and "500 rows" in grid.caption and 0 < len(grid.rows) < 500
    assert found["Table"].blob == kept.id


def test_a_table_that_is_gone_leaves_the_other_buttons() -> None:
    found = items(queried(blob=BLOB, blobs=MemoryBlobStore()))
    assert list(found) == ["Query", "Insert as code", "Ask again"]


@pytest.mark.parametrize("output", ["[]", "[1, 2]", '{"a": 1}', "not JSON", '[{"a": 1'])
def test_what_is_no_table_has_no_table_button(output: str) -> None:
    assert "Table" not in items(queried(output))


def test_an_answer_without_data_can_only_be_asked_again() -> None:
    assert list(items(trace())) == ["Ask again"]


def test_a_hosted_model_is_asked_again_by_its_name() -> None:
    (code,) = items(trace(text="openai/gpt-4o-mini", real=True))["Ask again"].blocks
    assert isinstance(code, Code) and code.text.startswith("%%reyn -m openai/gpt-4o-mini\n")


def test_a_trial_has_no_buttons_for_data_that_are_not_here() -> None:
    assert not items(trace(run_kind="trial"))


def test_a_terminal_says_in_words_what_the_buttons_give() -> None:
    assert "trace.df is the table · %reyn script gives the code" in to_text(view(queried(), now=NOW))


def test_the_details_are_folded_and_hold_ids_prompt_and_rules() -> None:
    blocks = view(queried(), now=NOW).blocks
    details = blocks[-1]
    assert isinstance(details, Fold) and not details.open
    page = Reader(to_html(view(queried(mandates=("list first",)), now=NOW))).text
    answer, _, inside = page.partition("Details")
    for each in ("list first", "Step 1", "The prompt"):
        assert each in inside and each not in answer
