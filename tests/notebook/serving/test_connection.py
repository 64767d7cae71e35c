"""One channel to the kernel: every request is answered once, nonsense is answered with what is wrong, and questions
about consent reach whoever can answer them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.serving import connection as transport
from reyn_jupyter.notebook.serving.connection import MOST, Connection
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.notebook.serving.operation import OperationContext, ServedOperation, WireMessage, operations
from reyn_jupyter.outputs.content import BlobNotFoundError
from reyn_jupyter.runtime.questions.approval_queue import UnknownQuestionError, all_pending
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.sessions.current import SESSION_ID
from reyn_jupyter.sessions.runs.background_run import BackgroundRun
from tests.support.waiting import PATIENCE, awaited, until

HELLO = {"protocol": 1, "host": "page", "version": "0", "approves": True}


class Channel:
    """A connection whose messages are kept, as a page would hear them."""

    def __init__(self, hub: Hub, **hello: Any) -> None:
        self.heard: list[dict[str, Any]] = []
        self.connection = Connection(hub, self.heard.append, None)
        if hello:
            self.ask("hello", **hello)

    def send(self, message: object) -> None:
        self.connection.receive(message)

    def ask(self, op: str, number: int = 1, **args: Any) -> dict[str, Any]:
        """Request, and wait for the answer."""
        self.send({"type": "request", "id": number, "op": op, "args": args})
        return self.wait(lambda each: each.get("id") == number and each["type"] in ("answer", "error"))

    def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        found = until(lambda: next((each for each in list(self.heard) if wanted(each)), None))
        assert found is not None
        self.heard.remove(found)
        return found

    def answer(self, asked: dict[str, Any], answer: str, number: int = 3) -> dict[str, Any]:
        """Answer a question with what this connection was sent for it."""
        secret = next(each["secret"] for each in asked["choices"] if each["answer"] == answer)
        return self.ask("approval.answer", number, id=asked["id"], answer=answer, secret=secret)

    def event(self, name: str) -> dict[str, Any]:
        found = self.wait(lambda each: each["type"] == "event" and each["event"]["name"] == name)
        event: dict[str, Any] = found["event"]
        return event


@pytest.fixture
def session(workspace: Path) -> reyn.Session:
    return reyn.Session(workspace, model=writes())


@pytest.fixture
def hub(session: reyn.Session) -> Iterator[Hub]:
    made = Hub(lambda: session)
    yield made
    for connection in list(made.connections):
        connection.close()


def writes(path: str = "new.txt") -> ScriptedModel:
    write = call("invoke_action", action_name="file__write", args={"path": path, "content": "hello\n"})
    return ScriptedModel(write, "Done.")


def ended(run: BackgroundRun) -> str:
    return run.result(PATIENCE).calls[0].finished.output  # type: ignore[union-attr]


# Messages


def test_hello_tells_the_session_and_the_versions(hub: Hub) -> None:
    answer = Channel(hub).ask("hello", **HELLO)
    assert answer["value"]["session"] == SESSION_ID
    assert answer["value"]["versions"]["reyn-jupyter"] == answer["value"]["version"]


def test_another_version_of_the_protocol_is_told_what_to_do_and_does_not_join(hub: Hub) -> None:
    answer = Channel(hub).ask("hello", **{**HELLO, "protocol": 99})
    assert answer["code"] == "protocol" and "version 99" in answer["message"]
    assert "Install the same reyn-jupyter" in answer["hint"]
    assert not hub.connections


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"type": "request", "id": 7, "op": "no.such"}, "unknown"),
        ({"type": "request", "id": 7}, "invalid"),
        ({"type": "dance", "id": 7}, "invalid"),
        ({"id": 7}, "invalid"),
        ({"type": "request", "id": 7, "op": "approval.answer", "args": {"id": 3}}, "invalid"),
        ({"type": "request", "id": 7, "op": "approval.answer", "args": [1]}, "invalid"),
        ({"type": "request", "id": 7, "op": "hello", "args": {"protocol": {}}}, "invalid"),
        ({"type": "request", "id": 7, "op": "hello", "extra": 1}, "invalid"),
    ],
)
def test_what_is_wrong_with_a_request_is_answered(hub: Hub, message: dict[str, Any], code: str) -> None:
    channel = Channel(hub)
    channel.send(message)
    answer = channel.wait(lambda each: each["id"] == 7)
    assert (answer["type"], answer["code"]) == ("error", code) and answer["message"]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["type", "id", "op", "args"]), inner)
        ),
        max_leaves=8,
    )
)
def test_no_message_raises_into_the_kernel(hub: Hub, message: object) -> None:
    Channel(hub).send(message)


def test_huge_and_deep_messages_are_answered(hub: Hub) -> None:
    channel = Channel(hub)
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    for number, args in ((1, {"id": "x" * 3_000_000, "answer": "once"}), (2, {"id": deep, "answer": "once"})):
        answer = channel.ask("approval.answer", number, **args)
        assert answer["type"] == "error" and len(answer["message"]) < 2000


class Nothing(WireMessage):
    pass


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Operations of the test's own: one that never ends, one that fails, one whose answer cannot be written."""
    log: list[str] = []

    async def hang(asked: OperationContext, arguments: Nothing) -> Nothing:
        asked.progress(1, 2, "half")
        try:
            await asyncio.sleep(60)
        finally:
            log.append("ended")
        return arguments

    async def fail(asked: OperationContext, arguments: Nothing) -> Nothing:
        raise RuntimeError(f"no luck with {os.environ['DEMO_API_KEY']}")

    for name, run in (("test.hang", hang), ("test.fail", fail)):
        monkeypatch.setitem(operations(), name, ServedOperation(name, Nothing, Nothing, run))
    return log


def test_a_cancelled_request_is_stopped_and_not_answered(hub: Hub, hanging: list[str]) -> None:
    channel = Channel(hub, **HELLO)
    channel.send({"type": "request", "id": 5, "op": "test.hang"})
    assert channel.wait(lambda each: each["type"] == "progress")["note"] == "half"
    channel.send({"type": "cancel", "id": 5})
    channel.send({"type": "cancel", "id": 6})
    until(lambda: hanging == ["ended"])
    assert not channel.heard


def test_a_closed_connection_stops_what_it_asked_for(hub: Hub, hanging: list[str]) -> None:
    channel = Channel(hub, **HELLO)
    channel.send({"type": "request", "id": 5, "op": "test.hang"})
    channel.wait(lambda each: each["type"] == "progress")
    channel.connection.close()
    until(lambda: hanging == ["ended"])


def test_a_failure_is_told_without_secrets(
    hub: Hub, hanging: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "correct-horse-battery")
    answer = Channel(hub).ask("test.fail", 2)
    assert answer["message"] == "RuntimeError: no luck with [redacted:DEMO_API_KEY]"


def test_a_number_in_use_and_too_many_requests_are_refused(hub: Hub, hanging: list[str]) -> None:
    channel = Channel(hub)
    for number in range(1, MOST + 1):
        channel.send({"type": "request", "id": number, "op": "test.hang"})
    again, further = channel.ask("test.hang", 3), channel.ask("approval.pending", MOST + 1)
    assert "in use" in again["message"] and "under way" in further["message"]
    channel.connection.close()
    until(lambda: len(hanging) == MOST)


def test_a_channel_that_fails_hurts_no_other(hub: Hub, session: reyn.Session) -> None:
    def broken(message: dict[str, Any]) -> None:
        raise OSError("the page is gone")

    bad, good = Connection(hub, broken, None), Channel(hub, **HELLO)
    bad.receive({"type": "request", "id": 1, "op": "hello", "args": HELLO})
    session.parts.model = ScriptedModel("Done.")
    run = session.start("go")
    assert good.event("run")["run"] == run.run_id
    run.result(PATIENCE)
    assert bad not in hub.connections and good.connection in hub.connections


def test_a_closed_connection_is_told_nothing_and_leaves_nothing_behind(hub: Hub) -> None:
    channel = Channel(hub, **HELLO)
    hub.caches["frame"] = object()
    channel.connection.close()
    channel.send({"type": "request", "id": 9, "op": "approval.pending"})
    assert not hub.connections and not hub.caches
    time.sleep(0.05)
    assert not channel.heard


async def test_answers_come_from_the_loop_that_asked(hub: Hub) -> None:
    loops: list[asyncio.AbstractEventLoop] = []
    connection = Connection(
        hub, lambda _: loops.append(asyncio.get_running_loop()), asyncio.get_running_loop()
    )
    connection.receive({"type": "request", "id": 1, "op": "hello", "args": HELLO})
    connection.receive({"type": "request", "id": 2, "op": "approval.pending"})
    await awaited(lambda: len(loops) == 2)
    assert set(loops) == {asyncio.get_running_loop()}


def test_a_comm_carries_its_opening_message_too() -> None:
    class Comm:
        def __init__(self) -> None:
            self.sent: list[Any] = []

        def send(self, data: Any) -> None:
            self.sent.append(data)

        def on_msg(self, callback: Any) -> None:
            self.received = callback

        def on_close(self, callback: Any) -> None:
            self.closed = callback

    channel = Comm()
    hello = {"type": "request", "id": 1, "op": "hello", "args": HELLO}
    transport.open_comm(channel, {"content": {"data": hello}})
    assert channel.sent[0]["value"]["session"] == SESSION_ID
    for message in ({}, {"content": None}, {"content": {"data": "x"}}, None):
        channel.received(message)
    channel.closed({})


# Questions about consent


def test_a_background_run_asks_where_somebody_can_answer(
    hub: Hub, session: reyn.Session, workspace: Path
) -> None:
    channel = Channel(hub, **HELLO)
    run = session.start("write it")
    asked = channel.event("approval")
    assert asked["run"] == run.run_id and asked["action"] == "file__write"
    assert asked["heading"] == "Allow file__write?" and asked["title"] == "file__write asks for consent to:"
    lines = [(each["kind"], each["text"]) for each in asked["lines"]]
    assert ("effect", "write new.txt") in lines and ("added", "+hello") in lines
    labels = [(each["answer"], each["label"], each["allows"]) for each in asked["choices"]]
    assert labels == [
        ("once", "Allow once", True),
        ("always", "Always for file__write(write:new.txt)", True),
        ("deny", "Deny", False),
    ]
    assert [each["id"] for each in channel.ask("approval.pending", 2)["value"]["questions"]] == [asked["id"]]
    assert channel.answer(asked, "once", 3)["type"] == "answer"
    assert channel.event("settled")["id"] == asked["id"]
    decision = run.result(PATIENCE).calls[0].decision
    assert decision is not None and (decision.decision, decision.by) == ("allowed", "person")
    assert (workspace / "new.txt").read_text() == "hello\n"


def test_no_means_no(hub: Hub, session: reyn.Session, workspace: Path) -> None:
    channel = Channel(hub, **HELLO)
    run = session.start("write it")
    channel.answer(channel.event("approval"), "deny")
    assert "the person said no" in ended(run) and not (workspace / "new.txt").exists()


def test_always_is_kept_and_not_asked_again(hub: Hub, session: reyn.Session) -> None:
    channel = Channel(hub, **HELLO)
    run = session.start("write it")
    channel.answer(channel.event("approval"), "always")
    run.result(PATIENCE)
    assert session.parts.approvals.list() == ("file__write(write:new.txt)",)
    session.parts.model = writes()
    assert session.start("again").result(PATIENCE).calls[0].ok


def test_always_is_refused_where_no_pattern_stands_for_it(
    hub: Hub, session: reyn.Session, workspace: Path
) -> None:
    (workspace / "wild*.txt").write_text("a")
    session.parts.model = writes("wild*.txt")
    channel = Channel(hub, **HELLO)
    run = session.start("write it")
    asked = channel.event("approval")
    assert [each["answer"] for each in asked["choices"]] == ["once", "deny"]
    secret = channel.connection.answer_key.secret(asked["id"], "always")
    refused = channel.ask("approval.answer", 3, id=asked["id"], answer="always", secret=secret)
    assert "say once or deny" in refused["message"] and "still open" in refused["hint"]
    assert run.pending
    channel.answer(asked, "deny", 4)
    assert "said no" in ended(run)


def test_the_first_of_two_answers_wins_and_the_other_is_told(hub: Hub, session: reyn.Session) -> None:
    one, other = Channel(hub, **HELLO), Channel(hub, **HELLO)
    run = session.start("write it")
    asked = one.event("approval")
    again = other.event("approval")
    assert again["id"] == asked["id"] and again["lines"] == asked["lines"]
    one.answer(asked, "once", 3)
    assert other.event("settled")["id"] == asked["id"]
    late = other.answer(again, "deny", 3)
    assert late["type"] == "error" and "no open question" in late["message"].lower()
    assert run.result(PATIENCE).calls[0].ok


def test_a_view_that_connects_later_is_told_what_is_open(hub: Hub, session: reyn.Session) -> None:
    Channel(hub, **HELLO)
    run = session.start("write it")
    late = Channel(hub, **HELLO)
    asked = late.event("approval")
    late.answer(asked, "once", 3)
    assert run.result(PATIENCE).calls[0].ok


def test_the_questions_of_a_run_end_with_it(hub: Hub, session: reyn.Session) -> None:
    channel = Channel(hub, **HELLO)
    run = session.start("write it")
    asked = channel.event("approval")
    run.cancel()
    assert channel.event("settled")["id"] == asked["id"]
    assert run.result(PATIENCE).status == "interrupted" and not all_pending()


def test_a_question_that_no_page_shows_any_more_is_denied_in_the_end(
    hub: Hub, session: reyn.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = Channel(hub, **HELLO)
    monkeypatch.setattr(session.parts.questions, "_seconds", lambda: 0.1)
    run = session.start("write it")
    asked = channel.event("approval")
    next(iter(hub.connections)).hello = None  # it shows no questions any more
    assert "nobody answered in time" in ended(run)
    assert channel.event("settled")["id"] == asked["id"]


def test_where_nobody_can_be_shown_it_a_background_run_is_denied(hub: Hub, session: reyn.Session) -> None:
    Channel(hub, **{**HELLO, "approves": False})
    assert "nobody is there to ask: the run is in the background" in ended(session.start("write it"))


@pytest.mark.parametrize("how", ["read", "rule"])
def test_what_is_denied_is_not_asked(hub: Hub, session: reyn.Session, how: str) -> None:
    channel = Channel(hub, **HELLO)
    if how == "rule":
        session.configure("permissions.deny", ["file__write"])
    run = session.start("write it", approve="read" if how == "read" else "ask")
    assert "Denied" in ended(run)
    assert not [each for each in channel.heard if each.get("event", {}).get("name") == "approval"]


def test_code_answers_a_run_that_waits_for_it(session: reyn.Session, workspace: Path) -> None:
    run = session.start("write it", waits=True)
    until(lambda: bool(run.pending))
    (question,) = run.pending
    assert session.background[run.run_id] is run
    assert ("file__write(write:new.txt)", "asks") in [
        (row["pattern"], row["decision"]) for row in session.approvals
    ]
    with pytest.raises(UnknownQuestionError, match="no open question"):
        run.answer("nonsense", "once")
    with pytest.raises(ValueError, match="say once, always, deny"):
        run.answer(question.id, "nobody")
    run.answer(question.id, "once")
    assert run.result(PATIENCE).calls[0].ok and (workspace / "new.txt").exists()
    with pytest.raises(UnknownQuestionError):
        run.answer(question.id, "once")


async def test_a_call_from_a_panel_is_no_consent_by_itself(session: reyn.Session, workspace: Path) -> None:
    questions: list[Question] = []

    async def no(question: Question) -> Answer:
        questions.append(question)
        return "deny"

    async def yes(question: Question) -> Answer:
        return "once"

    write = {"path": "new.txt", "content": "x"}
    denied = await session.aio.invoke_action("file__write", write, ask=no)
    assert "the person said no" in str(denied.error) and not (workspace / "new.txt").exists()
    assert [question.action for question in questions] == ["file__write"]
    read = await session.aio.invoke_action("file__read", {"path": "notes.txt"}, ask=no)
    assert read.error is None and len(questions) == 1
    assert (await session.aio.invoke_action("file__write", write, ask=yes)).error is None
    assert (workspace / "new.txt").read_text() == "x"


# What is told unasked


def test_a_background_run_is_told_of_at_most_four_times_a_second_and_at_its_end(
    hub: Hub, session: reyn.Session
) -> None:
    session.parts.model = ScriptedModel(
        *[call("invoke_action", action_name="file__read", args={"path": "notes.txt"}) for _ in range(6)], "Done.",
        delay=0.1,
    )  # fmt: skip
    channel = Channel(hub, **HELLO)
    began = time.monotonic()
    run = session.start("go", max_steps=8)
    run.result(PATIENCE)
    last = {"name": "run", "run": run.run_id, "ended": True}
    channel.wait(lambda each: each["type"] == "event" and each["event"] == last)
    told = [each for each in channel.heard if each.get("event", {}).get("name") == "run"]
    assert 1 <= len(told) <= 4 * (time.monotonic() - began) + 2


def test_ended_background_runs_are_kept_up_to_a_bound(
    session: reyn.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reyn_jupyter.sessions.session.KEPT", 2)
    session.parts.model = ScriptedModel(otherwise="Done.")
    runs = []
    for _ in range(5):
        runs.append(session.start("go"))
        runs[-1].result(PATIENCE)
    assert list(session.background) == [run.run_id for run in runs[-2:]]


# Blobs by a part of their id


def test_a_blob_is_named_by_any_unique_part_of_its_id(session: reyn.Session, workspace: Path) -> None:
    (workspace / "big.txt").write_text("a line\n" * 5000)
    stored = session.invoke_action("file__read", {"path": "big.txt"}).blob
    assert stored is not None
    for spelled in (
        stored.id,
        stored.id[:13],
        stored.id[-8:],
        f"[blob:{stored.id}]",
        f"@{stored.id}",
        "last",
    ):
        assert session.blob(spelled).id == stored.id
    for wrong in ("zzzz", "", "../../etc/passwd", "0000000000", "-"):
        with pytest.raises(BlobNotFoundError, match="the last ones"):
            session.blob(wrong)
