"""The offline model and documents: passages of a corpus are quoted with their places."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.runtime.record.run_outcome import RunOutcome


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[reyn.Session]:
    """A session with one corpus: long rules about refunds, and a short page about hours."""
    folder = tmp_path_factory.mktemp("desk")
    rules = "\n\n".join(f"## Rule {n}\n\n" + f"Refund number {n} is paid. " * 40 for n in range(12))
    (folder / "refunds.md").write_text(f"# Refunds\n\n{rules}\n")
    (folder / "hours.md").write_text("# Hours\n\nThe desk opens at nine.\n")
    config = {"action_retrieval": {"embedding_class": None}}
    with closing(reyn.Session(folder, store="memory", config=config)) as session:
        session.index_corpus("desk", ["."])
        yield session


def names(trace: reyn.Trace) -> list[str]:
    return [call.resolved.name for call in trace.calls if call.resolved.name is not None]


def test_a_corpus_is_called_by_its_whole_name(desk: reyn.Session) -> None:
    trace = desk.ask("call rag_corpus__desk with query='refund'")
    assert names(trace) == ["rag_corpus__desk"]
    assert "refunds.md:" in trace.answer and "Refunds › Rule" in trace.answer
    assert "error" not in trace.answer and "[blob:" not in trace.answer


@pytest.mark.parametrize(
    "question",
    [
        "what does desk say about opening?",
        "what do the documents say about when the desk opens?",
        "search desk for opens at nine",
        "look up opens at nine in the desk corpus",
        "According to desk: when does it open?",
    ],
)
def test_a_question_about_documents_gets_passages_with_their_places(
    desk: reyn.Session, question: str
) -> None:
    trace = desk.ask(question)
    assert names(trace) == ["rag_corpus__desk"]
    assert "`hours.md`, lines 1 to 3 · Hours" in trace.answer and "The desk opens at nine." in trace.answer
    assert "whether it answers it or not" in trace.answer
    assert trace.outcome is RunOutcome.NEAREST_PASSAGE


def test_long_passages_are_quoted_from_where_they_are_stored(desk: reyn.Session) -> None:
    trace = desk.ask("what does desk say about refund number 7?")
    assert "Refund number 7 is paid." in trace.answer and "`refunds.md`, lines " in trace.answer


@pytest.mark.parametrize(
    "question", ["what does nowhere say about opening?", "find hours in refunds.md", "in 2024: how many?"]
)
def test_what_names_no_corpus_is_left_to_others(desk: reyn.Session, question: str) -> None:
    assert "rag_corpus__desk" not in names(desk.ask(question))


def test_what_nothing_is_near_to_is_said(desk: reyn.Session) -> None:
    assert "nothing in `desk` is near that" in desk.ask("search desk for zebras").answer
