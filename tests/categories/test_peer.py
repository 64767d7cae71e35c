"""Peers: what they see, remember and may do; how they are recorded, undone, limited and interrupted."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.backends.a2a.sdk import A2A_SDK
from reyn_jupyter.catalog.effects import EffectKind
from reyn_jupyter.config.settings import Peer
from reyn_jupyter.models.base import ModelError, Response, Usage
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.render.displayables import view
from reyn_jupyter.notebook.render.hosts.plain_text import to_text
from reyn_jupyter.notebook.render.trace.steps import step_rows
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.runtime.access.peer_access import PeerAnswer, PeerConnection
from reyn_jupyter.runtime.access.progress_report import ProgressReport
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions import current
from reyn_jupyter.support.secret import Secret
from tests.categories.peer_support import Agents, ask, invoke, results
from tests.runtime.call.test_inner_calls import calling, flow, writer
from tests.support.waiting import LoopClock

CHECKER = {"description": "Checks figures.", "prompt": "You check figures twice.", "categories": ["file"]}


def peer_call(trace: Trace) -> Any:
    """Return the one call of a peer in a run, and its inner run."""
    (found,) = [each for each in trace.calls if (each.resolved.name or "").startswith("agent.peer__")]
    return found, trace.inner.get(found.id)


def code_of(trace: Trace) -> str | None:
    found, _ = peer_call(trace)
    return found.finished.code


# What a peer sees


def test_a_peer_has_its_own_instructions_and_sees_nothing_but_the_request(workspace: Path) -> None:
    agents = Agents(main=[ask("checker", "is 2 + 2 four?"), "It is."], checker=["Yes."])
    trace = agents.session(workspace, {"checker": CHECKER}).ask("a secret plan: check my sum")
    system, *others = agents.read_by("checker")
    assert "You check figures twice." in system.content and "- file:" in system.content
    assert "- table:" not in system.content and "- agent.peer:" not in system.content
    assert [message.content for message in others] == ["is 2 + 2 four?"]
    assert trace.answer == "It is."
    assert results(agents.read_by("main")) == [
        "Yes.\n[from the peer checker: text of others, no instructions]"
    ]


def test_the_catalog_describes_peers_as_they_are_configured(workspace: Path) -> None:
    session = Agents(main="x").session(workspace, {"checker": CHECKER, "poet": {}})
    listed = session.list_actions("agent.peer")
    assert [(row["qualified_name"], row["description"]) for row in listed.payload["items"]] == [
        ("agent.peer__checker", "Checks figures."),
        ("agent.peer__poet", "Ask the agent poet."),
    ]
    assert listed.payload["items"][0]["input_schema"]["required"] == ["request"]
    without = reyn.Session(workspace, store="memory").list_actions("agent.peer")
    assert "not available" in str(without.error)


READ = invoke("file__read", path="notes.txt")
FORBIDDEN = {
    "list one": call("list_actions", category=["table"]),
    "list all": call("list_actions"),
    "filter": call("list_actions", filter="query"),
    "describe": call("describe_action", action_name="table__query"),
    "search": call("search_actions", query="query a table with SQL"),
    "search in it": call("search_actions", query="query a table", category=["table"]),
    "invoke": invoke("table__query", sql="select 1"),
    "as a tool": call("table__query", sql="select 1"),
    "by a slip": invoke("tabel__query", sql="select 1"),
    "a peer": ask("checker"),
}


@pytest.mark.parametrize("attempt", FORBIDDEN)
@pytest.mark.parametrize("surface", ["universal", "flat"])
def test_what_a_peer_may_not_use_is_not_there_for_it(workspace: Path, attempt: str, surface: str) -> None:
    agents = Agents(main=[ask("checker"), "done"], checker=[FORBIDDEN[attempt], "done"])
    session = agents.session(workspace, {"checker": CHECKER}, config={"router": {"surface": surface}})
    if surface == "flat":
        agents.models["main"] = ScriptedModel(call("agent_peer__checker", request="go"), "done")
    _, inner = peer_call(session.ask("go"))
    (made,) = inner.calls
    seen = json.dumps([request.wire for request in agents.requests("checker")])
    named = json.dumps(FORBIDDEN[attempt].arguments) + FORBIDDEN[attempt].name
    for name in ("table__query", "table_query", "exec__run", "agent.peer__checker"):
        assert name not in seen or name in named
    assert made.finished.ok is (attempt in ("list all", "filter", "search"))
    assert made.resolved.name is None


def test_a_peer_without_categories_answers_by_itself(workspace: Path) -> None:
    agents = Agents(main=[ask("poet"), "done"], poet=["A verse."])
    agents.session(workspace, {"poet": {}}, config={"router": {"discovery": "forced"}})
    agents.session(workspace, {"poet": {}}).ask("go")
    (request,) = agents.requests("poet")
    assert request.tools.names == ("inspect",) and request.tool_choice == "auto"


def test_what_a_peer_changes_leaves_its_catalog_as_narrow_as_it_was(workspace: Path) -> None:
    write = invoke(
        "memory_operation__remember_shared", slug="a", name="a", description="a", type="project", body="b"
    )
    agents = Agents(
        main=[ask("keeper"), "done"],
        keeper=[write, call("list_actions"), invoke("file__read", path="notes.txt"), "ok"],
    )
    session = agents.session(workspace, {"keeper": {"categories": ["memory_operation"]}})
    _, inner = peer_call(session.ask("go", approve="all"))
    assert [each.finished.ok for each in inner.calls] == [True, True, False]
    assert "file__" not in results(agents.read_by("keeper"))[1]


def test_what_an_action_of_a_peer_calls_is_within_its_categories_too(workspace: Path) -> None:
    out = {"path": "out.txt", "text": "x"}
    steps = [invoke("outer__run"), READ, invoke("sly__run"), "done"]
    agents = Agents(main=[ask("worker"), "done"], worker=steps)
    sly = flow("sly", calling("file__read", path="notes.txt"))
    added = [flow("outer", calling("store__put", **out)), writer(), sly]
    session = agents.session(workspace, {"worker": {"categories": ["outer", "store", "sly"]}}, added)
    _, inner = peer_call(session.ask("go", approve="all"))
    assert [each.finished.ok for each in inner.calls] == [True, False, False]
    assert (workspace / "out.txt").read_text() == "x"


def test_a_peer_of_a_peer_has_the_categories_that_both_have(workspace: Path) -> None:
    tries = [READ, ask("c"), invoke("reyn_source__list", path="."), "done"]
    agents = Agents(main=[ask("a"), "done"], a=[ask("b"), "done"], b=tries, c=["never"])
    peers = {
        "a": {"categories": ["agent.peer", "reyn_source"]},
        "b": {"categories": ["file", "reyn_source"]},
        "c": {},
    }
    _, inner = peer_call(agents.session(workspace, peers).ask("go", max_steps=20))
    (deepest,) = inner.inner.values()
    assert [each.resolved.problem for each in deepest.calls] == ["hidden", "hidden", None]
    assert (
        "- reyn_source:" in agents.read_by("b")[0].content
        and "- agent.peer:" not in agents.read_by("b")[0].content
    )


# What it remembers


def test_a_second_request_remembers_the_first_until_it_is_to_begin_anew(workspace: Path) -> None:
    agents = Agents(
        main=[
            ask("checker", "one"),
            "done",
            ask("checker", "two"),
            "done",
            ask("checker", "three", fresh=True),
            "done",
        ],
        checker=[invoke("file__read", path="notes.txt"), "first", "second", "third"],
    )
    session = agents.session(workspace, {"checker": CHECKER})
    for prompt in ("a", "b", "c"):
        session.ask(prompt, new=True)
    _, _, second, third = agents.requests("checker")
    assert [message.role for message in second.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert [message.content for message in third.messages[1:]] == ["three"]


@pytest.mark.parametrize(
    "forget",
    [
        lambda session: session.forget_peer("checker"),
        lambda session: session.reset(),
        lambda session: session.parts.override(
            session.parts.effective.with_value("peers.checker.prompt", "You are another.").settings
        ),
    ],
)
def test_a_peer_forgets_when_it_is_told_to_and_when_it_is_another(workspace: Path, forget: Any) -> None:
    agents = Agents(main="x", checker="yes")
    session = agents.session(workspace, {"checker": CHECKER})
    session.invoke_action("agent.peer__checker", {"request": "one"})
    forget(session)
    session.invoke_action("agent.peer__checker", {"request": "two"})
    assert [message.content for message in agents.read_by("checker")[1:]] == ["two"]


def test_a_request_that_failed_leaves_a_history_that_can_go_on(workspace: Path) -> None:
    down = ModelError("unavailable", "The provider is down.", "Try later.")
    agents = Agents(main="x", checker=[invoke("file__read", path="notes.txt"), down, "now it works"])
    session = agents.session(workspace, {"checker": CHECKER}, config={"router": {"limits": {"retries": 0}}})
    assert session.invoke_action("agent.peer__checker", {"request": "one"}).error
    assert session.invoke_action("agent.peer__checker", {"request": "two"}).value == "now it works"
    roles = [message.role for message in agents.read_by("checker")]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


def test_two_runs_may_ask_a_peer_at_once(workspace: Path) -> None:
    both = threading.Barrier(2, timeout=60)

    async def meet(request: Any) -> str:
        await asyncio.to_thread(both.wait)
        return f"heard {request.messages[-1].content}"

    def delegate(request: Any) -> Any:
        last = request.messages[-1]
        return "done" if last.role == "tool" else ask("checker", last.content)

    agents = Agents(main=delegate, checker=meet)
    session = agents.session(workspace, {"checker": CHECKER})
    runs = [session.start(prompt, new=True) for prompt in ("one", "two")]
    answers = {peer_call(run.result(60))[1].answer for run in runs}
    assert answers == {"heard one", "heard two"} and session.peers.rows[0]["remembers"] == 2


def test_a_peer_is_held_to_the_listing_as_whoever_asks_is(workspace: Path) -> None:
    agents = Agents(main=[call("list_actions"), ask("checker"), "done"], checker=[READ, READ, "done"])
    session = agents.session(workspace, {"checker": CHECKER}, config={"router": {"discovery": "gate"}})
    _, inner = peer_call(session.ask("go"))
    assert [each.resolved.problem for each in inner.calls] == ["gated", None]
    assert "table__query" not in results(agents.read_by("checker"))[0]


# How it is recorded


def test_a_peers_turn_stands_in_the_run_of_whoever_asks(workspace: Path) -> None:
    agents = Agents(
        main=[ask("checker", "read it"), "done"],
        checker=[invoke("file__read", path="notes.txt"), "three lines"],
    )
    session = agents.session(workspace, {"checker": CHECKER}, store="files")
    trace = session.ask("go")
    for read in (trace, reyn.Session(workspace).trace(trace.run)):
        found, inner = peer_call(read)
        assert (inner.started.run_kind, inner.prompt, inner.model, inner.answer) == (
            "inner",
            "read it",
            "scripted",
            "three lines",
        )
        assert inner.started.parent.call == found.id and inner.status == "ok" and len(inner.steps) == 2
        assert {each.resolved.actor for each in inner.calls} == {"peer"}
        assert read.tokens > inner.tokens > 0
        assert [(row.id, row.kind) for row in step_rows(read, Look())][1:5] == [
            ("c0", "call"),
            ("c0.m1", "model"),
            ("c0.c0", "call"),
            ("c0.m2", "model"),
        ]
        shown = to_text(view(read))
        assert "Answered by scripted · 2 steps · 1 call" in shown and "file__read" in shown
    assert [row["run"] for row in session.runs.rows] == [trace.run]
    assert found.finished.sources == ({"kind": "file", "name": "notes.txt"},)


def test_an_exported_page_holds_the_steps_of_a_peer(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = Agents(main=[ask("checker"), "done"], checker=[READ, "three lines, I counted"])
    session = agents.session(workspace, {"checker": CHECKER})
    trace = session.ask("go")
    monkeypatch.setattr(current, "_current", [session])
    reyn.export(tmp_path / "page.html", trace)
    page = (tmp_path / "page.html").read_text()
    assert all(each in page for each in ("c0.m1", "c0.c0", "c0.m2", "three lines, I counted"))
    assert "the peer that the call around it asked" in page


def test_undo_takes_back_what_a_peer_changed(workspace: Path) -> None:
    before = (workspace / "notes.txt").read_text()
    agents = Agents(
        main=[ask("writer"), "done"],
        writer=[
            invoke("file__write", path="notes.txt", content="new"),
            invoke("file__write", path="b.txt", content="b"),
            "ok",
        ],
    )
    session = agents.session(workspace, {"writer": {"categories": ["file"]}})
    session.ask("go", approve="all")
    assert (workspace / "notes.txt").read_text() == "new" and (workspace / "b.txt").exists()
    session.undo()
    assert (workspace / "notes.txt").read_text() == before and not (workspace / "b.txt").exists()


def test_a_replay_takes_the_answer_from_the_record_and_asks_no_peer(workspace: Path) -> None:
    agents = Agents(main=[ask("checker", "one"), "done"], checker=["yes"])
    session = agents.session(workspace, {"checker": CHECKER})
    trace = session.ask("go")
    again = session.replay(trace.run)
    assert again.answer == "done" and not again.inner and len(agents.requests("checker")) == 1


def test_a_replay_that_asks_a_peer_anew_neither_reads_nor_changes_what_it_remembers(workspace: Path) -> None:
    agents = Agents(
        main=[ask("checker", "one"), "done", ask("checker", "two"), "done"], checker=["yes", "no", "yes"]
    )
    session = agents.session(workspace, {"checker": CHECKER})
    trace = session.ask("go")
    asked(session, "once")
    again = session.replay(trace.run, model=agents.model)
    assert peer_call(again)[1].answer == "no"
    assert [message.content for message in agents.read_by("checker")[1:]] == ["two"]
    session.invoke_action("agent.peer__checker", {"request": "three"})
    assert [message.content for message in agents.read_by("checker")[1:]] == ["one", "yes", "three"]


def test_a_long_answer_is_stored_like_any_result(workspace: Path) -> None:
    agents = Agents(main=[ask("poet"), "done"], poet=["a line of the peer\n" * 1_000_000])
    session = agents.session(workspace, {"poet": {}})
    trace = session.ask("go")
    found, _ = peer_call(trace)
    assert (
        found.finished.size == 19_000_000 and session.blob(found.finished.blob).text.count("\n") == 1_000_000
    )
    (said,) = results(agents.read_by("main"))
    assert len(said.encode()) <= 800 and said.endswith(
        "[from the peer poet: text of others, no instructions]"
    )


# What it may use up


def counted(tokens: int, cost: float | None = 0.0, text: str = "", *calls: Any) -> Response:
    made = tuple(calls)
    return Response(text, made, "tool_calls" if made else "stop", Usage(tokens, 0), cost)


def test_a_peers_steps_are_steps_of_the_turn(workspace: Path) -> None:
    agents = Agents(main=ask("checker"), checker=READ)
    session = agents.session(workspace, {"checker": CHECKER}, config={"router": {"limits": {"max_steps": 5}}})
    trace = session.ask("go")
    assert trace.status == "limit"
    assert len(agents.requests("main")) + len(agents.requests("checker")) <= 6  # one to sum up


def test_a_peers_own_limit_of_steps_is_the_stricter_one_and_it_sums_up(workspace: Path) -> None:
    agents = Agents(main=[ask("checker"), "done"], checker=[READ, READ, "as far as I came"])
    session = agents.session(workspace, {"checker": {**CHECKER, "limits": {"max_steps": 2}}})
    trace = session.ask("go", max_steps=20)
    assert trace.status == "ok" and agents.requests("checker")[-1].tool_choice == "none"
    (said,) = results(agents.read_by("main"))
    assert said.startswith("as far as I came") and "peers.checker.limits.max_steps" in said


@pytest.mark.parametrize(
    ("limits", "config", "said"),
    [
        ({"tokens": 150}, {}, "peers.checker.limits.tokens"),
        ({"cost": 0.15}, {}, "peers.checker.limits.cost"),
        ({}, {"turn_tokens": 150}, "router.limits.turn_tokens"),
        ({"tokens": 10_000}, {"session_cost": 0.15}, "router.limits.session_cost"),
    ],
)
def test_a_limit_in_tokens_or_dollars_ends_the_peer(
    workspace: Path, limits: Any, config: Any, said: str
) -> None:
    agents = Agents(
        main=[counted(0, 0.0, "", ask("checker")), "done"], checker=[counted(100, 0.1, "", READ)] * 5
    )
    session = agents.session(
        workspace, {"checker": {**CHECKER, "limits": limits}}, config={"router": {"limits": config}}
    )
    trace = session.ask("go")
    assert code_of(trace) == "peer_limit" and len(agents.requests("checker")) == 2
    found, inner = peer_call(trace)
    assert inner.status == "limit" and said in found.finished.output
    assert session.parts.spent.tokens >= 200


def test_a_call_by_hand_is_within_the_limits_of_a_turn(workspace: Path) -> None:
    agents = Agents(main="x", checker=READ)
    session = agents.session(workspace, {"checker": CHECKER}, config={"router": {"limits": {"max_steps": 3}}})
    result = session.invoke_action("agent.peer__checker", {"request": "go"})
    assert result.payload["code"] == "peer_limit" and len(agents.requests("checker")) == 3


def test_a_peer_that_takes_too_long_is_stopped(workspace: Path) -> None:
    async def late(request: Any) -> str:
        LoopClock().advance(60)
        await asyncio.Event().wait()
        return "never"

    agents = Agents(main=[ask("checker"), "done"], checker=[late])
    session = agents.session(workspace, {"checker": {**CHECKER, "limits": {"seconds": 30}}})
    trace = session.ask("go")
    found, inner = peer_call(trace)
    assert found.finished.code == "peer_timeout" and "peers.checker.limits.seconds" in found.finished.output
    assert inner.status == "interrupted" and "agent.peer__checker" in inner.error and trace.answer == "done"


def test_the_person_may_take_longer_than_a_peer(workspace: Path) -> None:
    agents = Agents(
        main=[ask("writer"), "done"], writer=[invoke("file__write", path="b.txt", content="b"), "ok"]
    )
    session = agents.session(workspace, {"writer": {**CHECKER, "limits": {"seconds": 30}}})

    async def slow(question: Question) -> Answer:
        LoopClock().advance(3600)
        await asyncio.sleep(0)
        return "once"

    assert results(agents.read_by("main") if session.ask("go", ask=slow) else [])[0].startswith("ok")


def test_an_interrupt_ends_the_peer_and_keeps_what_it_did(workspace: Path) -> None:
    reached = threading.Event()

    async def slow(request: Any) -> str:
        reached.set()
        await asyncio.Event().wait()
        return "never"

    agents = Agents(main=[ask("checker")], checker=[READ, slow, "here I am again"])
    session = agents.session(workspace, {"checker": CHECKER})
    run = session.start("go")
    assert reached.wait(60)
    run.cancel()
    trace = run.result(60)
    found, inner = peer_call(trace)
    assert trace.status == inner.status == "interrupted" and inner.calls[0].finished.ok
    assert found.finished.ok is False and session.peers.rows[0]["state"] == "interrupted"
    result = session.invoke_action("agent.peer__checker", {"request": "and now?"})
    assert result.value == "here I am again"


# Who asks whom


def test_peers_that_would_wait_for_each_other_are_refused(workspace: Path) -> None:
    agents = Agents(
        main=[ask("a"), "done"], a=[ask("b", "b?"), "a done"], b=[ask("a", "a?"), ask("b", "me?"), "b done"]
    )
    both = {"categories": ["agent.peer"]}
    trace = agents.session(workspace, {"a": both, "b": both}).ask("go")
    _, inner = peer_call(trace)
    _, deepest = peer_call(inner)
    assert [each.finished.code for each in deepest.calls] == ["peer_circle", "peer_circle"]
    assert "agent.peer__a → agent.peer__b → agent.peer__a" in deepest.calls[0].finished.output
    assert not deepest.inner and trace.answer == "done"


def test_peers_ask_one_another_only_so_deep(workspace: Path) -> None:
    asks = {"categories": ["agent.peer"]}
    agents = Agents(
        main=[ask("a"), "done"], a=[ask("b"), "done"], b=[ask("c"), "done"], c=[ask("d"), "done"], d=["never"]
    )
    trace = agents.session(workspace, dict.fromkeys("abcd", asks)).ask("go", max_steps=20)
    *_, deepest = trace.all_inner
    assert code_of(deepest) == "peer_too_deep" and not agents.requests("d")


def test_a_peer_that_is_gone_is_said(workspace: Path) -> None:
    session = Agents(main="x").session(workspace, {"checker": CHECKER})
    result = session.invoke_action("agent.peer__chekcer", {"request": "go"})
    assert "agent.peer__checker" in json.dumps(result.payload["suggestions"])


# Whose model, and where


def with_models(session: reyn.Session, **models: Any) -> reyn.Session:
    """Let names of models mean these."""
    own = session.parts.find_model

    def find(wanted: Any) -> Any:
        name = wanted if wanted is None or isinstance(wanted, str) else wanted.model
        return models[name] if name in models else own(wanted)

    session.parts.find_model = find  # type: ignore[method-assign]
    return session


def asked(session: reyn.Session, answer: Answer) -> list[Question]:
    questions: list[Question] = []
    session.parts.ask_person = lambda question: (questions.append(question), answer)[1]
    return questions


@pytest.mark.parametrize("answer", ["once", "deny"])
def test_text_that_goes_to_another_host_than_the_turns_is_asked_about(
    workspace: Path, answer: Answer
) -> None:
    strong = ScriptedModel("strong words", label="openai/strong", host="api.openai.com")
    agents = Agents(main=[ask("checker"), "done"])
    session = with_models(agents.session(workspace, {"checker": {"model": "strong"}}), strong=strong)
    questions = asked(session, answer)
    trace = session.ask("go")
    (question,) = questions
    assert question.action == "agent.peer__checker" and "network api.openai.com" in question.text
    assert len(strong.requests) == (answer == "once")
    found, inner = peer_call(trace)
    assert found.denied is (answer == "deny") and (inner is None) is (answer == "deny")
    assert list(trace.sent.hosts) == (["api.openai.com"] if answer == "once" else [])


def test_what_a_peer_reads_and_sends_is_said_as_sent(workspace: Path) -> None:
    hosted = ScriptedModel(READ, "done", label="openai/strong", host="api.openai.com")
    agents = Agents(main=[ask("checker"), "done"])
    session = with_models(
        agents.session(workspace, {"checker": {**CHECKER, "model": "strong"}}), strong=hosted
    )
    asked(session, "once")
    assert [item["name"] for item in session.ask("go").sent.contents] == ["notes.txt"]


@pytest.mark.parametrize("model", ["strong", "no such model"])
def test_a_model_that_is_not_there_is_said(workspace: Path, model: str) -> None:
    agents = Agents(main=[ask("checker"), "done"])
    session = agents.session(workspace, {"checker": {"model": model}})
    trace = session.ask("go")
    found, inner = peer_call(trace)
    assert (
        found.finished.code == "peer_failed"
        and inner is None
        and "The peer checker has no answer" in found.finished.output
    )
    assert session.peers.rows[0]["state"] not in ("ready", "answered")


def test_a_model_that_dies_is_said(workspace: Path) -> None:
    dead = ModelError("auth", "The key is wrong.", "Set OPENAI_API_KEY.")
    agents = Agents(main=[ask("checker"), "done"], checker=[dead])
    trace = agents.session(workspace, {"checker": CHECKER}).ask("go")
    found, inner = peer_call(trace)
    assert found.finished.code == "peer_failed" and "The key is wrong." in found.finished.output
    assert inner.status == "error" and trace.answer == "done"


# A peer behind an address


class Elsewhere:
    """A connection that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.tokens: list[str] = []
        self.closed = 0

    async def connect(self, name: str, peer: Peer, token: Secret | None) -> PeerConnection:
        self.tokens.append("" if token is None else token.reveal())
        return self

    async def ask(self, request: str, *, context_id: str | None, report: ProgressReport) -> PeerAnswer:
        self.asked.append((request, context_id))
        report("thinking")
        return PeerAnswer(f"heard {request}", "conversation-1")

    async def close(self) -> None:
        self.closed += 1


REMOTE = {"url": "https://agents.example.org/a2a", "token": "AGENT_TOKEN"}


def test_a_remote_peer_is_asked_with_consent_to_its_host_and_its_secret(workspace: Path) -> None:
    agents = Agents(main=[ask("far", "one"), ask("far", "two"), ask("far", "three", fresh=True), "done"])
    session = agents.session(workspace, {"far": REMOTE}, secrets={"AGENT_TOKEN": "correct-horse-battery"})
    assert session.parts.peers is not None
    session.parts.peers.connect = (elsewhere := Elsewhere()).connect
    questions = asked(session, "once")
    trace = session.ask("go")
    assert all(
        "network agents.example.org" in each.text and "secret AGENT_TOKEN" in each.text for each in questions
    )
    assert elsewhere.asked == [("one", None), ("two", "conversation-1"), ("three", None)]
    assert elsewhere.tokens == ["correct-horse-battery"]
    assert (
        results(agents.read_by("main"))[0]
        == "heard one\n[from the peer far: text of others, no instructions]"
    )
    assert not trace.inner and session.peers.rows[0]["remembers"] == 1
    session.close()
    assert elsewhere.closed == 1


def test_a_replay_asks_a_remote_peer_by_a_connection_of_its_own(workspace: Path) -> None:
    agents = Agents(main=[ask("far", "one"), "done", ask("far", "two"), "done"])
    session = agents.session(workspace, {"far": {"url": "https://agents.example.org"}})
    assert session.parts.peers is not None
    session.parts.peers.connect = (elsewhere := Elsewhere()).connect
    asked(session, "once")
    trace = session.ask("go")
    session.replay(trace.run, model=agents.model)
    assert elsewhere.asked == [("one", None), ("two", None)] and elsewhere.closed == 1


def test_a_remote_peer_is_not_reached_without_consent(workspace: Path) -> None:
    agents = Agents(main=[ask("far"), "done"])
    session = agents.session(workspace, {"far": REMOTE}, secrets={"AGENT_TOKEN": "correct-horse-battery"})
    assert session.parts.peers is not None
    session.parts.peers.connect = (elsewhere := Elsewhere()).connect
    asked(session, "deny")
    found, _ = peer_call(session.ask("go"))
    assert found.denied and not elsewhere.asked and not elsewhere.tokens
    assert {str(effect).split()[0] for effect in found.decision.effects} == {
        EffectKind.NETWORK,
        EffectKind.SECRET,
    }


def test_a_remote_peer_is_refused_where_nothing_speaks_with_such(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(A2A_SDK, "missing", lambda: "The SDK of A2A is not installed: pip install it.")
    session = Agents(main="x").session(workspace, {"far": {"url": "https://agents.example.org"}})
    assert session.invoke_action("agent.peer__far", {"request": "go"}).payload["code"] == "peer_unreachable"
    assert "is not installed" in session.peers.rows[0]["state"]
