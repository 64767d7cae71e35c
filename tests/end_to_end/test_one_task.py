"""One task that takes a file, a table, an MCP server, a page, a corpus and a peer: what was done, read and asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.notebook.render import to_text, view
from tests.end_to_end.e2e_support import invoke
from tests.security.security_support import Attacker
from tests.support.mcp_servers import program
from tests.support.web_site import Site, web_site

TEA = "Green tea is sold at four euros a pound, and never at less."


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with web_site() as running:
        yield running


@pytest.fixture
def desk(workspace: Path, site: Site) -> Iterator[Attacker]:
    """A session with all of it, whose person says "once" to every question."""
    (workspace / "rules").mkdir()
    (workspace / "rules" / "prices.md").write_text(f"# Prices\n\n## Tea\n\n{TEA}\n")
    settings = {
        "action_retrieval": {"embedding_class": None},
        "router": {"limits": {"max_steps": 12}},
        "web": {"private_hosts": [urlsplit(site.url).netloc]},
        "peers": {"checker": {"description": "Check a claim.", "categories": ["rag_corpus"]}},
    }
    opened = Attacker(workspace, answer="once", settings=settings, servers=[program()])
    with closing(opened.session):
        opened.session.index_corpus("rules", ["rules"])
        yield opened


def asked(desk: Attacker, site: Site) -> reyn.Trace:
    """Return the trace of the task."""
    orders = {"orders": "data/orders.csv"}
    model = ScriptedModel(
        invoke("file__read", path="notes.txt"),
        invoke("table__query", sql="SELECT sum(value) AS total FROM orders", sources=orders),
        invoke("mcp__lab__echo", text="price check"),
        invoke("web__fetch", url=f"{site.url}/tea"),
        invoke("rag_corpus__rules", query="what does green tea cost?"),
        invoke("agent.peer__checker", request="Is green tea sold at four euros?"),
        invoke("rag_corpus__rules", query="green tea"),  # the peer's own call
        "Yes: rules/prices.md, line 3.",  # the peer's answer
        invoke("file__write", path="answer.txt", content="four euros"),
        "Green tea costs four euros.",
    )
    return desk.session.ask("What does green tea cost?", model=model)


def test_all_of_one_task_stands_in_one_trace(desk: Attacker, site: Site, workspace: Path) -> None:
    trace = asked(desk, site)
    assert trace.status == "ok" and trace.answer == "Green tea costs four euros."
    assert (workspace / "answer.txt").read_text() == "four euros"
    assert [call.resolved.name for call in trace.calls] == [
        "file__read", "table__query", "mcp__lab__echo", "web__fetch", "rag_corpus__rules", "agent.peer__checker",
        "file__write",
    ]  # fmt: skip
    assert all(call.finished is not None and call.finished.ok for call in trace.calls)
    (inner,) = trace.inner.values()
    assert [call.resolved.name for call in inner.calls] == ["rag_corpus__rules"]
    shown = to_text(view(trace))
    assert "agent.peer__checker" in shown and "Is green tea sold at four euros?" in shown


def test_a_write_is_asked_about_with_whatever_was_read_before_it(desk: Attacker, site: Site) -> None:
    asked(desk, site)
    question = desk.questions[-1]
    assert question.action == "file__write"
    assert "which may have asked for this" in question.text
    for place in ("lab", f"{site.url}/tea", "the corpus rules", "checker"):
        assert place in question.text, place


def test_undo_takes_back_what_the_task_wrote(desk: Attacker, site: Site, workspace: Path) -> None:
    trace = asked(desk, site)
    desk.session.undo(trace.run)
    assert not (workspace / "answer.txt").exists()
