"""Record, replay, and what a recording refuses."""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.models.base import Message, ModelError, Request, Response, ToolCall, ToolSet, Usage
from reyn_jupyter.models.cassettes.cassette import CassettePlayer, CassetteRecorder, export
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.record.events import EVENT_TYPES, ModelReplied, ModelRequested

TOOL = {"type": "function", "function": {"name": "list_actions", "parameters": {"type": "object"}}}
REQUEST = Request("openai/gpt-4o-mini", (Message("user", "Which files?"),), ToolSet((TOOL,)))


def looks_like_a_key(text: str) -> bool:
    return "sk-" in text


def nothing(text: str) -> bool:
    return False


async def record(path: Path, *pairs: tuple[Request, Any]) -> None:
    recorder = CassetteRecorder(ScriptedModel(*(reply for _, reply in pairs)), path, looks_like_a_key)
    for request, reply in pairs:
        if isinstance(reply, ModelError):
            with pytest.raises(ModelError):
                await recorder.complete(request)
        else:
            await recorder.complete(request)


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "tape.jsonl"


async def test_a_recorded_answer_is_served_again(tape: Path) -> None:
    await record(tape, (REQUEST, call("list_actions", category=["file"])))

    player = CassettePlayer(tape, looks_like_a_key)
    response = await player.complete(REQUEST)

    assert response.tool_calls == (ToolCall("call_0_0", "list_actions", '{"category": ["file"]}'),)
    assert player.remaining == 0


async def test_the_player_calls_itself_as_the_recorded_model_and_is_not_real(tape: Path) -> None:
    await record(tape, (REQUEST, "hello"))

    player = CassettePlayer(tape, looks_like_a_key)

    assert (player.label, player.host, player.real) == ("openai/gpt-4o-mini", None, False)


async def test_replayed_text_goes_to_the_listener(tape: Path) -> None:
    await record(tape, (REQUEST, "hello"))
    heard: list[str] = []

    await CassettePlayer(tape, looks_like_a_key).complete(REQUEST, heard.append)

    assert heard == ["hello"]


async def test_equal_requests_are_served_in_the_order_of_recording(tape: Path) -> None:
    await record(tape, (REQUEST, "first"), (REQUEST, "second"))
    player = CassettePlayer(tape, looks_like_a_key)

    assert [(await player.complete(REQUEST)).text for _ in range(2)] == ["first", "second"]
    with pytest.raises(ModelError) as raised:
        await player.complete(REQUEST)

    assert raised.value.kind == "miss"
    assert "2 times" in raised.value.message


async def test_repeats_are_samples_of_their_own(tape: Path) -> None:
    again = replace(REQUEST, repeat=1)
    await record(tape, (REQUEST, "first sample"), (again, "second sample"))
    player = CassettePlayer(tape, looks_like_a_key)

    assert (await player.complete(again)).text == "second sample"
    assert (await player.complete(REQUEST)).text == "first sample"


async def test_a_recorded_failure_fails_again(tape: Path) -> None:
    await record(tape, (REQUEST, ModelError("rate_limited", "too many calls", retryable=True)))

    with pytest.raises(ModelError) as raised:
        await CassettePlayer(tape, looks_like_a_key).complete(REQUEST)

    assert (raised.value.kind, raised.value.message) == ("rate_limited", "too many calls")
    assert not raised.value.retryable


@pytest.mark.parametrize(
    ("moved", "change"),
    [
        ("model", {"model": "openai/other"}),
        ("messages", {"messages": (Message("user", "Which tables?"),)}),
        ("tools", {"tools": ToolSet()}),
        ("tool_choice", {"tool_choice": "none"}),
        ("parameters", {"parameters": {"temperature": 1}}),
        ("repeat", {"repeat": 3}),
    ],
)
async def test_a_miss_names_the_part_that_moved(tape: Path, moved: str, change: dict[str, Any]) -> None:
    await record(tape, (REQUEST, "hello"))

    with pytest.raises(ModelError) as raised:
        await CassettePlayer(tape, looks_like_a_key).complete(replace(REQUEST, **change))

    assert raised.value.kind == "miss"
    assert f": {moved} moved (" in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(("first", "told"), [("4000", 4_000), ("null", None), ('"many"', None), ("-1", None)])
async def test_a_model_of_a_recording_takes_what_its_first_request_was_fitted_to(
    tape: Path, first: str, told: int | None
) -> None:
    asked = [
        replace(REQUEST, repeat=number, context=context) for number, context in enumerate((4_000, 8_000))
    ]
    await record(tape, *((request, "hello") for request in asked))
    tape.write_text(tape.read_text().replace('"context": 4000', f'"context": {first}'))
    assert await CassettePlayer(tape, looks_like_a_key).context_length() == told


async def test_a_request_whose_answer_was_lost_is_a_miss(tape: Path) -> None:
    other = replace(REQUEST, repeat=9)
    await record(tape, (REQUEST, "hello"), (other, "lost"))
    lines = tape.read_text("utf-8").splitlines(keepends=True)
    tape.write_text("".join(lines[:-1]), "utf-8")

    with pytest.raises(ModelError, match="its answer was not recorded"):
        await CassettePlayer(tape, looks_like_a_key).complete(other)


async def test_what_is_written_are_the_model_events_of_a_run(tape: Path) -> None:
    longer = replace(
        REQUEST, messages=(*REQUEST.messages, Message("assistant", "None."), Message("user", "Sure?"))
    )
    await record(tape, (REQUEST, "None."), (longer, "Yes."))

    events = [json.loads(line) for line in tape.read_text("utf-8").splitlines()]

    kinds = [event.pop("type") for event in events]
    assert kinds == ["ModelRequested", "ModelReplied"] * 2
    typed = [EVENT_TYPES[kind](**event) for kind, event in zip(kinds, events, strict=True)]
    assert isinstance(typed[2], ModelRequested) and isinstance(typed[3], ModelReplied)
    assert [message["content"] for message in typed[2].messages] == ["None.", "Sure?"]
    assert (typed[2].total_messages, typed[2].tool_specs, typed[2].key) == (3, None, longer.key)


async def test_a_run_log_serves_as_a_cassette(tape: Path, tmp_path: Path) -> None:
    await record(tape, (REQUEST, "hello"))
    requested, replied = tape.read_text("utf-8").splitlines()
    started = {"type": "RunStarted", "run": "r1", "at": 0, "tier": "light", "prompt": "Which files?"}
    ended = {"type": "RunEnded", "run": "r1", "at": 1, "status": "ok"}
    log = tmp_path / "run.jsonl"
    log.write_text("\n".join([json.dumps(started), requested, replied, json.dumps(ended)]) + "\n", "utf-8")

    player = CassettePlayer(log, looks_like_a_key)

    assert (await player.complete(REQUEST)).text == "hello"
    assert player.tier == "light"


async def test_the_model_events_of_a_run_log_can_be_taken_out(tape: Path, tmp_path: Path) -> None:
    await record(tape, (REQUEST, "hello"))
    log = tmp_path / "run.jsonl"
    log.write_text('{"type": "RunStarted", "run": "r1"}\n' + tape.read_text("utf-8"), "utf-8")
    taken = tmp_path / "deep" / "taken.jsonl"

    assert export(log, taken, looks_like_a_key) == 2
    assert "RunStarted" not in taken.read_text("utf-8")
    assert (await CassettePlayer(taken, looks_like_a_key).complete(REQUEST)).text == "hello"


async def test_a_torn_last_line_is_left_out_and_written_over(tape: Path) -> None:
    await record(tape, (REQUEST, "hello"))
    with tape.open("a", encoding="utf-8") as file:
        file.write('{"type": "ModelRequ')
    assert (await CassettePlayer(tape, looks_like_a_key).complete(REQUEST)).text == "hello"

    other = replace(REQUEST, repeat=1)
    await record(tape, (other, "more"))

    player = CassettePlayer(tape, looks_like_a_key)
    assert [(await player.complete(request)).text for request in (REQUEST, other)] == ["hello", "more"]


async def test_a_last_line_without_its_newline_is_kept(tape: Path) -> None:
    await record(tape, (REQUEST, "hello"))
    tape.write_text(tape.read_text("utf-8").rstrip("\n"), "utf-8")
    other = replace(REQUEST, repeat=1)

    await record(tape, (other, "more"))

    player = CassettePlayer(tape, looks_like_a_key)
    assert [(await player.complete(request)).text for request in (REQUEST, other)] == ["hello", "more"]


async def test_a_key_in_a_recording_is_refused_at_load(tape: Path) -> None:
    await record(tape, (REQUEST, "hello"))
    tape.write_text(tape.read_text("utf-8").replace("hello", "sk-abcdef"), "utf-8")

    with pytest.raises(ModelError) as raised:
        CassettePlayer(tape, looks_like_a_key)

    assert raised.value.kind == "configuration"
    assert "tape.jsonl, line 2" in raised.value.message
    assert "sk-abcdef" not in f"{raised.value.message}{raised.value.hint}"


async def test_a_key_is_never_written(tape: Path) -> None:
    recorder = CassetteRecorder(ScriptedModel("the key is sk-abcdef"), tape, looks_like_a_key)

    with pytest.raises(ModelError, match="looks like a key"):
        await recorder.complete(REQUEST)

    assert not tape.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00binary",
        b"[]\n[]\n",
        b"{}\n{}\n",
        b"not json\n{}\n",
        b'{"type": "ModelReplied"}\n',
        b'{"type": "ModelReplied", "key": "k", "text": 3}\n',
        b'{"type": "ModelReplied", "key": "k", "tool_calls": [{"id": 1}]}\n',
        b'{"type": "ModelRequested", "key": "k", "components": [], "model": "m"}\n',
        b'{"type": "RunStarted", "run": "r"}\n',
        b"[" * 100_000 + b"\n{}\n",
    ],
)
def test_what_is_no_recording_is_refused_with_a_sentence(tape: Path, content: bytes) -> None:
    tape.write_bytes(content)

    with pytest.raises(ModelError) as raised:
        CassettePlayer(tape, nothing)

    assert raised.value.kind == "configuration"
    assert "tape.jsonl" in raised.value.message and raised.value.hint


@pytest.mark.parametrize("path", ["missing.jsonl", "."])
def test_a_file_that_is_not_there_is_told(tmp_path: Path, path: str) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        CassettePlayer(tmp_path / path, nothing)


names = st.text(min_size=1, max_size=8)
wire_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
tool_calls = st.lists(st.builds(ToolCall, names, names, st.text(max_size=20)), max_size=3).map(tuple)
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.text(max_size=30),
    tool_calls,
    st.none() | names,
)
requests = st.builds(
    Request,
    model=st.sampled_from(["a/b", "c/d"]),
    messages=st.lists(messages, min_size=1, max_size=4).map(tuple),
    tools=st.sampled_from([ToolSet(), ToolSet((TOOL,))]),
    tool_choice=st.sampled_from(["auto", "none", "list_actions"]),
    parameters=st.dictionaries(names, wire_json, max_size=2),
    repeat=st.integers(0, 2),
)
counts = st.integers(0, 10**9)
responses = st.builds(
    Response,
    text=st.text(max_size=40),
    tool_calls=tool_calls,
    finish_reason=st.sampled_from(["stop", "length", "tool_calls"]),
    usage=st.builds(Usage, counts, counts, counts, st.booleans()),
    cost=st.none() | st.floats(0, 1000),
    fingerprint=st.none() | names,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(requests, responses), min_size=1, max_size=5))
def test_replay_gives_exactly_what_was_recorded(pairs: list[tuple[Request, Response]]) -> None:
    async def there_and_back() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tape.jsonl"
            recorder = CassetteRecorder(ScriptedModel(*(response for _, response in pairs)), path, nothing)
            recorded = [await recorder.complete(request) for request, _ in pairs]
            player = CassettePlayer(path, nothing)
            replayed = [await player.complete(request) for request, _ in pairs]
        expected = [
            replace(response, model=request.model)
            for (request, _), response in zip(pairs, recorded, strict=True)
        ]
        assert replayed == expected
        assert player.remaining == 0

    asyncio.run(there_and_back())
