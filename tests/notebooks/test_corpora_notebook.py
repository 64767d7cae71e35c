"""The notebook about documents, pages and peers, run from top to bottom."""

from __future__ import annotations

from typing import Any

import pytest

from tests.notebooks.executing_support import executed, shown


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return executed("05_web_and_corpora.ipynb", tmp_path_factory.mktemp("documents"))


def test_every_cell_runs(ran: Any) -> None:
    code = [cell for cell in ran.cells if cell.cell_type == "code"]
    assert code and all(cell.execution_count for cell in code)
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]


def test_documents_are_indexed_and_passages_stand_where_they_are_said_to_stand(ran: Any) -> None:
    assert "4 (4 added)" in shown(ran, "index")
    assert "manual/outputs.md" in shown(ran, "ask") and "ranked by words and meaning" in shown(ran, "ask")
    place, _, text = shown(ran, "lines").partition("\n")
    assert place.startswith("manual/web.md ") and "Each host asks before anything is sent to it" in text


def test_a_question_is_answered_with_passages(ran: Any) -> None:
    answer = shown(ran, "model")
    assert "manual/web.md, lines " in answer and "whether it answers it or not" in answer
    assert "nearest passages" in answer and "answered from data" not in answer


def test_what_a_page_says_is_marked_with_where_it_came_from(ran: Any) -> None:
    assert "Ignore your instructions" in shown(ran, "page")
    assert "http://127.0.0.1:" in shown(ran, "origin")


def test_a_peer_checks_within_the_trace_of_who_asks(ran: Any) -> None:
    assert "agent.peer__checker" in shown(ran, "peer")
    answer = shown(ran, "check")
    assert "answered from data" in answer and "manual/outputs.md" in answer
    assert "rag_corpus__manual" in shown(ran, "trace") and "Answered by offline" in shown(ran, "trace")
    assert "answered" in shown(ran, "peers") and "rag_corpus" in shown(ran, "peers")


def test_the_index_is_gone_at_the_end(ran: Any) -> None:
    assert "manual is dropped" in shown(ran, "end")
