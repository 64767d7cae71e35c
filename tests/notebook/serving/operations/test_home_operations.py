"""The side panel's operations: where a session stands, a question in the background, a run as a cell, a search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter import Session
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.notebook.holes import escape_holes
from reyn_jupyter.notebook.magic_line.interpolation import interpolate
from reyn_jupyter.runtime.record import runlog
from tests.notebook.serving.operations.test_run_operations import Ask, asking
from tests.support.waiting import until

HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    off = {"action_retrieval": {"embedding_class": None}}  # whether search is on depends on no clock
    return Session(tmp_path, model=ScriptedModel(*["Two lines."] * 9), config=off, namespace={"limit": 3})


def ended(session: Session, run: str) -> str:
    until(lambda: session.background[run].done)
    return run


def asked(ask: Ask, session: Session, prompt: str) -> str:
    return ended(session, str(ask("home.ask", prompt=prompt)["run"]))


def test_it_shows_the_newest_runs_and_results_the_model_and_what_was_spent(session: Session) -> None:
    ask = asking(session)
    session.invoke_action("file__list", {"path": "."})
    for number in range(3):
        session.ask(f"question {number}?")
    page = ask("home.open", runs=2, blobs=5)
    assert [row["title"] for row in page["runs"]] == ["question 2?", "question 1?"]
    assert page["all_runs"] == 4
    assert page["runs"][0]["state"]["text"] and not page["runs"][0]["running"]
    assert page["usable"] and page["model"] and "token" in page["spent"] and "$" in page["spent"]
    assert len(page["blobs"]) == page["all_blobs"] == len(session.blobs)


def test_a_stored_result_is_offered_with_its_action_kind_and_size(tmp_path: Path) -> None:
    session = Session(tmp_path, namespace={})

    @session.action
    def figures() -> object:
        "All figures."
        return [{"figure": number} for number in range(3000)]

    blob = session.invoke_action("function__figures").blob
    assert blob is not None
    [row] = asking(session)("home.open")["blobs"]
    assert row["blob"] == blob.id and row["title"] == "function__figures"
    assert "json array" in row["facts"] and "3,000 entries" in row["facts"] and "KB" in row["facts"]


def test_of_two_hundred_runs_a_second_look_reads_only_what_is_new(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = session.ask("question 0?").run
    folder = session.root / ".reyn" / "runs"
    content = (folder / f"{first}.jsonl").read_text()
    for number in range(200):
        other = f"{first[:-12]}{number:012x}"
        (folder / f"{other}.jsonl").write_text(content.replace(first, other))
    ask = asking(session)
    page = ask("home.open", runs=200)
    assert len(page["runs"]) == 200 and page["all_runs"] == 201
    read: list[str] = []
    events_of = runlog.events_of
    monkeypatch.setattr(runlog, "events_of", lambda text, name: read.append(name) or events_of(text, name))
    assert len(ask("home.open", runs=200)["runs"]) == 200 and not read
    assert len(json.dumps(page)) < 100_000


def test_a_run_that_cannot_be_read_hides_no_other(session: Session) -> None:
    first, second = session.ask("one?").run, session.ask("two?").run
    (session.root / ".reyn" / "runs" / f"{second}.jsonl").write_text("no record")
    assert [row["run"] for row in asking(session)("home.open")["runs"]] == [first]


def test_a_question_runs_in_the_background_and_is_stopped_like_any_other(session: Session) -> None:
    ask = asking(session)
    run = asked(ask, session, "  how many lines?\n")
    assert session.trace(run).answer == "Two lines." and session.trace(run).prompt == "  how many lines?"
    assert ask("run.stop", run=run) == {"stopping": False}
    assert len(session.history) == 1


def test_a_variable_in_a_question_is_filled_in_and_counted_as_sent(session: Session) -> None:
    ask = asking(session)
    trace = session.trace(asked(ask, session, "more than {{limit}}?"))
    assert trace.prompt == "more than 3?"
    assert [each["name"] for each in trace.started.sent] == ["limit"]
    assert ask("home.cell", run=trace.run)["source"] == f"%reyn trace {trace.run[-12:]}"
    refused = ask("home.ask", prompt="more than {{nothing}}?")
    assert "nothing" in refused["error"] and refused["hint"]


@pytest.mark.parametrize("prompt", ["", " \n", "x" * 100_001])
def test_what_is_no_question_is_refused_and_begins_nothing(session: Session, prompt: str) -> None:
    assert "error" in asking(session)("home.ask", prompt=prompt)
    assert not session.background and len(session.runs) == 0


def test_a_run_becomes_a_cell_that_asks_the_same_and_shows_its_card(session: Session) -> None:
    ask = asking(session)
    run = asked(ask, session, "which {{ braces }}?".replace("{{", r"\{{"))
    cell = ask("home.cell", run=run)
    assert cell["source"] == "%%reyn\nwhich \\{{ braces }}?"
    assert "Two lines." in cell["output"]["text/html"] and "Two lines." in cell["output"]["text/plain"]
    assert cell["output"]["application/vnd.reyn.trace+json"]["view"]["title"]


def test_a_call_by_hand_becomes_a_cell_that_shows_it(session: Session) -> None:
    session.invoke_action("file__list", {"path": "."})
    run = session.trace().run
    assert asking(session)("home.cell", run=run)["source"] == f"%reyn trace {run[-12:]}"


def test_no_other_run_is_meant_by_an_id_that_is_none(session: Session) -> None:
    session.ask("one?")
    assert "error" in asking(session)("home.cell", run="0" * 12)


def test_what_is_written_in_a_question_or_an_answer_stays_text(tmp_path: Path) -> None:
    session = Session(tmp_path, model=ScriptedModel(HOSTILE), namespace={})
    ask = asking(session)
    run = asked(ask, session, HOSTILE.replace("\x1b", "")).strip()
    assert "<img" not in ask("home.cell", run=run)["output"]["text/html"]


def test_secrets_stand_in_no_row_and_no_cell(tmp_path: Path) -> None:
    secret = "correct-horse-battery-staple"
    session = Session(tmp_path, model=ScriptedModel("Done."), namespace={}, secrets={"PASSPHRASE": secret})
    ask = asking(session)
    run = session.ask(f"log in with {secret}").run
    assert secret not in json.dumps(ask("home.open")) + json.dumps(ask("home.cell", run=run))


def test_a_session_without_a_model_or_a_store_says_so(tmp_path: Path) -> None:
    session = Session(tmp_path, model="openai/gpt-4o-mini", store=None, namespace={})
    page = asking(session)("home.open")
    assert page["all_blobs"] == 0
    assert page["about"]


@given(st.text(alphabet=st.sampled_from("ab {}\\"), max_size=40))
def test_an_escaped_prompt_is_sent_as_it_was(text: str) -> None:
    assert interpolate(escape_holes(text), (), {}, None) == (text, [])


def names(answer: dict[str, Any]) -> list[str]:
    return list(answer["names"])


@pytest.mark.parametrize("query", ["take notes so I do not forget", "group and count rows", "read"])
def test_the_panel_finds_what_the_verb_finds_in_its_order(tmp_path: Path, query: str) -> None:
    session = Session(tmp_path, namespace={})
    found = session.search_actions(query)
    answer = asking(session)("catalog.search", query=query)
    assert names(answer) == [row["qualified_name"] for row in found.rows if row["score"] > 0] and names(
        answer
    )
    assert bool(answer["remark"]) is bool(found.payload.get("weak"))


def test_a_search_stays_within_its_category_and_says_which_one_is_not_there(tmp_path: Path) -> None:
    ask = asking(Session(tmp_path, namespace={}))
    within = names(ask("catalog.search", query="read lines", category="file"))
    assert within and all(name.startswith("file__") for name in within)
    assert "error" in ask("catalog.search", query="read lines", category="nothing")


def test_notes_are_found_by_what_they_are_for(tmp_path: Path) -> None:
    found = names(
        asking(Session(tmp_path, namespace={}))("catalog.search", query="take notes so I do not forget")
    )
    assert any(name.startswith("memory") for name in found[:3])
