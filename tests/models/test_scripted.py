"""The scripted model: what a test writes down is what comes out."""

from __future__ import annotations

import asyncio
import json

import pytest

from reyn_jupyter.models.base import Message, Model, ModelError, Request, Response, ToolCall
from reyn_jupyter.models.scripted import ScriptedModel, call, raw_call

REQUEST = Request("scripted", (Message("user", "Hello"),))


async def test_texts_calls_and_responses_come_in_order() -> None:
    model = ScriptedModel(
        "hello", call("list_actions"), [call("a"), call("b")], Response(text="done", cost=0.5)
    )

    text, one, two, whole = [await model.complete(REQUEST) for _ in range(4)]

    assert (text.text, text.finish_reason) == ("hello", "stop")
    assert (one.tool_calls[0].name, one.finish_reason) == ("list_actions", "tool_calls")
    assert [each.name for each in two.tool_calls] == ["a", "b"]
    assert (whole.text, whole.cost) == ("done", 0.5)


async def test_ids_are_unique_over_a_conversation() -> None:
    model = ScriptedModel(otherwise=[call("a"), call("a")])

    ids = [each.id for _ in range(5) for each in (await model.complete(REQUEST)).tool_calls]

    assert len(set(ids)) == 10


async def test_an_id_that_a_test_gives_is_kept() -> None:
    model = ScriptedModel(ToolCall("mine", "a", "{}"))

    assert (await model.complete(REQUEST)).tool_calls[0].id == "mine"


async def test_an_argument_may_be_called_name() -> None:
    made = call("describe_action", name="file__read")

    assert (made.name, json.loads(made.arguments)) == ("describe_action", {"name": "file__read"})


async def test_arguments_may_be_malformed() -> None:
    model = ScriptedModel(raw_call("invoke_action", '{"action_name": '))

    assert (await model.complete(REQUEST)).tool_calls[0].arguments == '{"action_name": '


async def test_functions_see_the_request_and_may_be_async() -> None:
    async def shout(request: Request) -> str:
        await asyncio.sleep(0)
        return request.messages[-1].content.upper()

    model = ScriptedModel(lambda request: call("echo", said=request.messages[0].content), shout)

    first = await model.complete(REQUEST)

    assert json.loads(first.tool_calls[0].arguments) == {"said": "Hello"}
    assert (await model.complete(REQUEST)).text == "HELLO"


async def test_exceptions_are_raised() -> None:
    model = ScriptedModel(ModelError("timeout", "nothing came"), lambda request: ModelError("auth", "no key"))

    for kind in ("timeout", "auth"):
        with pytest.raises(ModelError) as raised:
            await model.complete(REQUEST)
        assert raised.value.kind == kind


async def test_at_the_end_of_the_script_it_says_so() -> None:
    model = ScriptedModel("only this")
    await model.complete(REQUEST)

    with pytest.raises(ModelError) as raised:
        await model.complete(REQUEST)

    assert raised.value.kind == "miss"
    assert "after 1 answers" in raised.value.message


async def test_text_streams_line_by_line_and_requests_are_kept() -> None:
    model = ScriptedModel("one\ntwo")
    heard: list[str] = []

    await model.complete(REQUEST, heard.append)

    assert heard == ["one\n", "two"]
    assert model.requests == [REQUEST]


async def test_a_delay_can_be_cancelled() -> None:
    model = ScriptedModel("late", delay=60)
    task = asyncio.create_task(model.complete(REQUEST))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


def test_it_says_of_itself_what_it_is_told() -> None:
    model: Model = ScriptedModel(label="openai/gpt-4o-mini", tier="light", host="api.openai.com", real=True)

    assert (model.label, model.tier, model.host, model.real) == (
        "openai/gpt-4o-mini",
        "light",
        "api.openai.com",
        True,
    )
