"""A session as an A2A agent, by the SDK's own client over HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import Client
from a2a.helpers import new_data_part, new_raw_part
from a2a.types import CancelTaskRequest, GetTaskRequest, ListTasksRequest
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError

import reyn_jupyter as reyn
from reyn_jupyter.backends.serving.agent_endpoint import MOST_BODY
from reyn_jupyter.backends.serving.connected_clients import MOST_CALLS, MOST_WAITING
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.displays.mime import mimebundle
from reyn_jupyter.runtime.questions.approval_queue import all_pending, queue_of
from reyn_jupyter.sessions.assembly import ENGINE
from tests.support.a2a_client import Heard, asked, by_agent, message, token_of
from tests.support.mcp_client import by_client
from tests.support.mcp_client import call as mcp_call
from tests.support.waiting import awaited, clock_of

Make = Callable[..., reyn.Session]
READ = call("invoke_action", action_name="file__read", args={"path": "notes.txt"})
WRITE = call("invoke_action", action_name="file__write", args={"path": "new.txt", "content": "hello"})


@pytest.mark.parametrize("options", [{}, {"streaming": False}], ids=["streaming", "polling"])
def test_a_message_is_a_turn_of_the_session_s_agent(make: Make, options: dict[str, Any]) -> None:
    session = make(model=ScriptedModel(READ, "It has two lines."))
    heard = by_agent(session, lambda client: asked(client, "What is in the notes?"), **options)
    assert (heard.state, heard.answer) == ("COMPLETED", "It has two lines.")
    run = session.trace()
    assert (run.started.run_kind, run.started.client, run.started.prompt) == (
        "turn", "asker/7", "What is in the notes?",
    )  # fmt: skip
    assert "for the A2A client “asker/7”" in mimebundle(run)["text/plain"]
    if not options:
        assert "file__read" in heard.words


def test_the_card_names_what_there_is_and_where(make: Make) -> None:
    session = make(model=ScriptedModel())

    async def work(client: Client) -> Any:
        return client._card

    card = by_agent(session, work)
    assert session.served is not None
    assert {each.url for each in card.supported_interfaces} == {session.served.origin + "/a2a"}
    assert {each.protocol_version for each in card.supported_interfaces} == {"1.0", "0.3"}
    skills = {each.id for each in card.skills}
    assert (
        card.capabilities.streaming and "file" in skills and "agent.peer" not in skills
    )  # none is configured


def test_each_context_has_a_history_of_its_own_and_each_client_its_own_contexts(make: Make) -> None:
    model = ScriptedModel(otherwise="fine")
    session = make(model=model)

    def prompts() -> list[str]:
        return [each.content for each in model.requests[-1].messages if each.role == "user"]

    async def work(client: Client) -> str:
        first = await asked(client, "one")
        await asked(client, "two", context_id=first.context)
        assert prompts() == ["one", "two"]
        await asked(client, "three")
        assert prompts() == ["three"]
        return first.context

    context = by_agent(session, work)
    by_agent(session, lambda client: asked(client, "four", context_id=context), name="another/1")
    assert prompts() == ["four"]
    session.ask("mine")
    assert prompts() == ["mine"]


def test_tasks_are_looked_at_by_who_began_them_and_by_nobody_else(make: Make) -> None:
    session = make(model=ScriptedModel(otherwise="fine"))

    async def begin(client: Client) -> str:
        heard = await asked(client, "one")
        found = Heard().take(await client.get_task(GetTaskRequest(id=heard.task)))
        assert (found.state, found.answer) == ("COMPLETED", "fine")
        assert [each.id for each in (await client.list_tasks(ListTasksRequest())).tasks] == [heard.task]
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(CancelTaskRequest(id=heard.task))
        return heard.task

    task = by_agent(session, begin)

    async def look(client: Client) -> None:
        assert not (await client.list_tasks(ListTasksRequest())).tasks
        for asking in (
            client.get_task(GetTaskRequest(id=task)),
            client.cancel_task(CancelTaskRequest(id=task)),
            asked(client, "go on", task_id=task),
        ):
            with pytest.raises(TaskNotFoundError):
                await asking

    by_agent(session, look, name="another/1")
    assert {each.name for each in session.served.connections} == {"asker/7", "another/1"}  # type: ignore[union-attr]


def test_what_asks_asks_in_the_notebook_and_the_client_hears_that_it_waits(
    make: Make, workspace: Path
) -> None:
    session, details = make(model=ScriptedModel(WRITE, "Written.")), []

    async def work(client: Client) -> Heard:
        heard = Heard()
        asking = asyncio.ensure_future(heard.hear(client, message("write it")))
        question = (await awaited(all_pending))[0]
        details.append(question.question.text)
        await awaited(lambda: any("waiting for the person" in each for each in heard.words))
        assert not (workspace / "new.txt").exists()
        queue_of(question.id).answer(question.id, "once")
        return await asking

    assert by_agent(session, work).answer == "Written."
    assert (workspace / "new.txt").read_text() == "hello"
    assert "for a client that calls itself “asker/7”" in details[0] and "A2A client asker/7" in details[0]


def test_it_is_denied_when_nobody_answers(make: Make, workspace: Path) -> None:
    session = make(model=ScriptedModel(WRITE, "It was denied."))

    async def work(client: Client) -> Heard:
        asking = asyncio.ensure_future(asked(client, "write it"))
        await awaited(all_pending)
        advance(51.0)
        return await asking

    with clock_of(ENGINE.loop) as advance:
        assert by_agent(session, work).answer == "It was denied."
    assert not (workspace / "new.txt").exists() and all_pending() == ()


def test_a_client_s_words_count_as_text_of_others(make: Make, workspace: Path) -> None:
    rules = {"permissions": {"allow": ["file__write(**)"], "after_untrusted": "deny"}}
    session = make(model=ScriptedModel(WRITE, "Denied."), config=rules)
    assert by_agent(session, lambda client: asked(client, "write it")).answer == "Denied."
    assert not (workspace / "new.txt").exists()


def test_variables_are_shown_by_their_schema_to_a_client_s_turn(make: Make) -> None:
    import pandas as pd

    look = call("invoke_action", action_name="variable__orders", args={})
    model = ScriptedModel(look, "Seen.")
    session = make({"orders": pd.DataFrame({"region": ["north", "south"]})}, model=model)
    by_agent(session, lambda client: asked(client, "look"))
    seen = str(model.requests[-1].messages[-1].content)
    assert "region" in seen and "north" not in seen


def test_cancelling_ends_the_turn_and_takes_its_question_back(make: Make) -> None:
    session = make(model=ScriptedModel(WRITE, "never"))

    async def work(client: Client) -> None:
        heard = Heard()
        asking = asyncio.ensure_future(heard.hear(client, message("write it")))
        await awaited(lambda: all_pending() and heard.task)
        ended = Heard().take(await client.cancel_task(CancelTaskRequest(id=heard.task)))
        assert ended.state == "CANCELED"
        await asking
        await awaited(lambda: all_pending() == ())

    by_agent(session, work)
    assert session.trace().status in ("cancelled", "interrupted")


def test_the_end_of_serving_ends_turns_that_are_under_way(make: Make) -> None:
    session = make(model=ScriptedModel(WRITE, "never"))

    async def work(client: Client) -> None:
        asking = asyncio.ensure_future(asked(client, "write it"))
        await awaited(all_pending)
        asking.cancel()

    by_agent(session, work)
    assert all_pending()  # a client that goes away does not end its task
    session.served.stop()  # type: ignore[union-attr]
    assert session.served is None and all_pending() == ()
    assert session.trace().status in ("cancelled", "interrupted")


def test_a_turn_that_fails_is_a_task_that_failed_in_words(make: Make) -> None:
    session = make(model="nowhere/at-all")
    heard = by_agent(session, lambda client: asked(client, "hi"))
    assert heard.state == "FAILED" and "nowhere" in heard.words[-1]


def test_data_is_taken_as_text_and_files_and_nothing_are_declined(make: Make) -> None:
    model = ScriptedModel(otherwise="fine")
    session = make(model=model)

    async def work(client: Client) -> list[str]:
        data = message("add these")
        data.message.parts.append(new_data_part({"a": 1}))
        assert (await Heard().hear(client, data)).state == "COMPLETED"
        file = message("read this")
        file.message.parts.append(new_raw_part(b"x", filename="x.bin"))
        return [
            (await Heard().hear(client, each)).state for each in (file, message(" "), message("x" * 200_000))
        ]

    assert by_agent(session, work) == ["REJECTED"] * 3
    assert model.requests[-1].messages[-1].content.startswith('add these\n\n{"a": 1')


def test_more_turns_than_are_taken_are_declined_and_mcp_calls_count_among_them(make: Make) -> None:
    session = make(model=ScriptedModel(otherwise=WRITE))
    session.serve_a2a()
    session.serve_mcp()

    async def work(client: Client) -> list[Heard]:
        heard = [Heard() for _ in range(MOST_CALLS + MOST_WAITING)]
        asking = [asyncio.ensure_future(each.hear(client, message("write"))) for each in heard]
        await awaited(lambda: len(all_pending()) == MOST_CALLS)
        await awaited(lambda: all(each.task for each in heard))
        more = await asked(client, "one more")
        assert more.state == "REJECTED" and "at once" in more.words[-1]
        for each in asking:
            each.cancel()
        return heard

    by_agent(session, work)
    assert by_client(session, mcp_call("file__read", path="notes.txt")).is_error
    session.close()
    assert all_pending() == ()  # none of them goes on


def test_one_door_serves_both_protocols_and_its_token_is_shown_nowhere(make: Make) -> None:
    session = make(model=ScriptedModel(otherwise="fine"))
    served = session.serve_a2a()
    token = token_of(session)
    assert served.offers == ("a2a",) and session.serve_mcp() is served and served.offers == ("a2a", "mcp")
    assert by_agent(session, lambda client: asked(client, "hi")).answer == "fine"
    assert not by_client(session, mcp_call("file__read", path="notes.txt")).is_error
    drawn = mimebundle(served)
    assert "an A2A agent and an MCP server" in drawn["text/plain"] and served.origin in drawn["text/plain"]
    for text in (*drawn.values(), repr(served), json.dumps(served.payload), str(session.trace())):
        assert token not in str(text)
    served.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{served.origin}/.well-known/agent-card.json")


def posted(session: reyn.Session, **more: Any) -> httpx.Response:
    assert session.served is not None
    content = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    headers = {
        "Content-Type": "application/json",
        "A2A-Version": "1.0",
        "Authorization": f"Bearer {token_of(session)}",
    }
    request = {
        "method": "POST",
        "url": session.served.origin + "/a2a",
        "content": json.dumps(content),
        **more,
    }
    request["headers"] = {**headers, **more.get("headers", {})}
    return httpx.request(timeout=60, **request)


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, 200),
        ({"headers": {"Authorization": ""}}, 401),
        ({"headers": {"Authorization": "Bearer wrong"}}, 401),
        ({"headers": {"Host": "evil.example"}}, 421),
        ({"headers": {"Origin": "https://evil.example"}}, 403),
        ({"content": b"x" * (MOST_BODY + 1)}, 413),
        ({"method": "GET"}, 405),
    ],
    ids=["right", "no token", "wrong token", "another host", "a page", "huge", "another method"],
)
def test_who_gets_in(make: Make, more: dict[str, Any], status: int) -> None:
    session = make(model=ScriptedModel())
    session.serve_a2a()
    assert posted(session, **more).status_code == status


@pytest.mark.parametrize(
    "path",
    [
        "/a2a/",
        "/a2a/../mcp",
        "/%2e%2e/a2a",
        "/.well-known/agent-card.json/x",
        "/.well-known/agent.json",
        "/mcp",
        "/",
    ],
)
def test_nothing_else_is_there(make: Make, path: str) -> None:
    session = make(model=ScriptedModel())
    served = session.serve_a2a()
    assert posted(session, url=served.origin + path).status_code in (404, 405)


def test_the_card_needs_the_token_too(make: Make) -> None:
    session = make(model=ScriptedModel())
    served = session.serve_a2a()
    answer = httpx.get(f"{served.origin}/.well-known/agent-card.json")
    assert answer.status_code == 401 and "file" not in answer.text


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": 7}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "CreateTaskPushNotificationConfig", "params": {"taskId": "t"}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": {}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "__class__", "params": {}}',
    ],
)
def test_a_wrong_request_is_an_error_of_the_protocol_and_begins_nothing(make: Make, content: bytes) -> None:
    session = make(model=ScriptedModel())
    session.serve_a2a()
    answer = posted(session, content=content)
    assert answer.status_code == 200 and "error" in answer.json()
    assert not session.runs.rows


def test_a_client_of_the_older_protocol_is_answered(make: Make) -> None:
    session = make(model=ScriptedModel("fine"))
    session.serve_a2a()
    sent = {"role": "user", "kind": "message", "messageId": "m", "parts": [{"kind": "text", "text": "hi"}]}
    content = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": sent}}

    async def send() -> Any:
        return await asyncio.to_thread(
            posted, session, content=json.dumps(content), headers={"A2A-Version": "0.3"}
        )

    result = ENGINE.run(send()).json()["result"]
    assert result["status"]["state"] == "completed"
    assert result["artifacts"][0]["parts"][0]["text"] == "fine"


def test_no_log_gets_the_token_however_much_is_logged(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    session = make(model=ScriptedModel(otherwise="fine"))
    with caplog.at_level(logging.NOTSET), caplog.at_level(logging.NOTSET, "a2a"):
        session.serve_a2a()
        by_agent(session, lambda client: asked(client, "hi"))
        assert posted(session, content=b"{").status_code == 200
        token = token_of(session)
        session.served.stop()  # type: ignore[union-attr]
    assert caplog.records and token not in caplog.text
