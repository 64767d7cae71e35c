"""The offline model and documents: a corpus is called by its whole name, and its hits are the answer."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import reyn_jupyter as reyn


def test_passages_that_a_named_call_finds_are_the_answer(tmp_path: Path) -> None:
    pages = "\n\n".join(f"## Rule {n}\n\n" + f"Refund number {n} is paid. " * 40 for n in range(12))
    (tmp_path / "refunds.md").write_text(f"# Refunds\n\n{pages}\n")
    (tmp_path / "hours.md").write_text("# Hours\n\nOpen from nine.\n")
    with closing(reyn.Session(tmp_path, config={"action_retrieval": {"embedding_class": None}})) as session:
        session.index_corpus("desk", ["."])
        trace = session.ask("call rag_corpus__desk with query='refund'")
    assert [call.resolved.name for call in trace.calls if call.resolved.name] == ["rag_corpus__desk"]
    assert "refunds.md:" in trace.answer and "Refunds › Rule" in trace.answer
    assert "error" not in trace.answer and "[blob:" not in trace.answer
