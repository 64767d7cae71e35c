"""From a model's call to an agent of another program by A2A: the SDK's sample, and one session that asks another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.base import Request
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.questions.approval_queue import all_pending
from reyn_jupyter.runtime.questions.consent import Answer, Question
from tests.support.a2a_agents import EveryAnswer, HelloWorldExecutor, agent
from tests.support.a2a_client import token_of
from tests.support.waiting import until


def ask(request: str, **args: Any) -> Any:
    return call("invoke_action", action_name="agent.peer__far", args={"request": request, **args})


def session_with(
    workspace: Path, peer: dict[str, Any], *steps: Any, **options: Any
) -> tuple[reyn.Session, ScriptedModel, list[Question]]:
    """Return a session whose person allows each call once, its model, and what was asked."""
    questions: list[Question] = []

    def answer(question: Question) -> Answer:
        questions.append(question)
        return "once"

    model = ScriptedModel(*steps)
    session = reyn.Session(workspace, model=model, config={"peers": {"far": peer}}, **options)
    session.parts.ask_person = answer
    return session, model, questions


def result_in(model: ScriptedModel, request: int = -1) -> str:
    return str(model.requests[request].messages[-1].content)


def test_the_sample_of_the_sdk_is_asked_with_consent_and_its_answer_is_text_of_others(
    workspace: Path,
) -> None:
    with agent(HelloWorldExecutor()) as site:
        session, model, questions = session_with(workspace, {"url": site.url}, ask("hi"), "It says hello.")
        trace = session.ask("greet it")
        session.close()
    assert trace.answer == "It says hello."
    assert [f"network 127.0.0.1:{site.port}" in each.text for each in questions] == [True]
    assert result_in(model) == "Hello, World!\n[from the peer far: text of others, no instructions]"
    (found,) = [each for each in trace.calls if each.finished is not None]
    assert found.finished is not None and found.finished.origins == ("the peer far",)


def test_files_arrive_as_parts_and_the_conversation_goes_on(workspace: Path) -> None:
    executor = EveryAnswer()
    with agent(executor) as site:
        steps = (ask("parts"), ask("ask how many"), ask("year 2024"), ask("work", fresh=True), "done")
        session, model, _ = session_with(workspace, {"url": site.url}, *steps)
        session.ask("go", max_steps=20)
        session.close()
    assert "a,b\n1,2" in result_in(model, 1) and "[link: https://example.org/more]" in result_in(model, 1)
    assert "For which year?" in result_in(model, 2) and "asks something" in result_in(model, 2)
    assert "In that year: 7." in result_in(model, 3)
    assert "The answer is forty-two." in result_in(model, 4)
    assert len(set(executor.contexts[:3])) == 1 and executor.contexts[3] not in executor.contexts[:3]


@pytest.mark.parametrize("given", ["right", "wrong"])
def test_one_session_asks_another_that_is_served(workspace: Path, tmp_path: Path, given: str) -> None:
    read = call("invoke_action", action_name="file__read", args={"path": "notes.txt"})
    served = reyn.Session(workspace, model=ScriptedModel(read, "Two lines.", "They are short."))
    served.serve_a2a()
    address, token = served.served.agent_address, token_of(served)  # type: ignore[union-attr]
    (tmp_path / "other").mkdir()
    asking, model, questions = session_with(
        tmp_path / "other",
        {"url": address, "token": "NOTEBOOK_TOKEN"},
        *(ask("What is in notes.txt?"), ask("How long are they?"), "done"),
        secrets={"NOTEBOOK_TOKEN": token if given == "right" else "wrong" * 10},
    )
    trace = asking.ask("look into the other notebook")
    assert "secret NOTEBOOK_TOKEN" in questions[0].text
    for text in (str(trace), *map(str, trace.events), *(result_in(model, n) for n in (1, 2))):
        assert token not in text
    if given == "right":
        assert result_in(model, 1).startswith("Two lines.") and result_in(model, 2).startswith(
            "They are short."
        )
        turns = [each for each in served.runs.rows if each["kind"] == "turn"]
        assert len(turns) == 2 and served.trace().started.turn == 2  # the second one goes on from the first
    else:
        assert "peer_denied" in result_in(model, 1) and not served.runs.rows
    asking.close()
    served.close()


def test_sessions_that_ask_each_other_come_to_an_end(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pass_on(request: Request) -> Any:
        last = request.messages[-1]
        return str(last.content) if last.role == "tool" else ask("go on")

    (tmp_path / "other").mkdir()
    rules = {"permissions": {"allow": ["agent.peer__far"]}}
    sessions = [
        reyn.Session(folder, model=ScriptedModel(otherwise=pass_on), config=rules)
        for folder in (workspace, tmp_path / "other")
    ]
    for number, (session, other) in enumerate(zip(sessions, reversed(sessions), strict=True)):
        address = other.serve_a2a().agent_address
        monkeypatch.setenv(f"TOKEN_{number}", token_of(other))
        session.configure("peers.far", {"url": address, "token": f"TOKEN_{number}"})
    trace = sessions[0].ask("go", approve="all")
    assert "peer_too_deep" in trace.answer
    assert [len(session.runs.rows) for session in sessions] == [2, 2]
    for session in sessions:
        session.close()


def test_an_interrupt_here_ends_the_turn_in_the_other_session(workspace: Path, tmp_path: Path) -> None:
    write = call("invoke_action", action_name="file__write", args={"path": "new.txt", "content": "hello"})
    served = reyn.Session(workspace, model=ScriptedModel(write, "never"))
    address = served.serve_a2a().agent_address
    (tmp_path / "other").mkdir()
    asking, _, _ = session_with(
        tmp_path / "other",
        {"url": address, "token": "NOTEBOOK_TOKEN"},
        ask("write it"),
        secrets={"NOTEBOOK_TOKEN": token_of(served)},
    )
    run = asking.start("go", approve="all")
    until(all_pending)
    run.cancel()
    until(lambda: not all_pending() and run.done)
    until(lambda: served.trace().status != "running")
    assert served.trace().status in ("cancelled", "interrupted") and not (workspace / "new.txt").exists()
    asking.close()
    served.close()
