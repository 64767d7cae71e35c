"""Requests that fit what a model takes: the messages alone, and whole turns against a server that refuses long ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reyn_jupyter as reyn
from reyn_jupyter.models.base import Message, ModelError, Request, ToolCall, ToolSet
from reyn_jupyter.models.local.local_model import LocalModel
from reyn_jupyter.models.local.model_server import ModelServer
from reyn_jupyter.models.providers import litellm_loader
from reyn_jupyter.models.providers.overflow import Overflow, read_overflow
from reyn_jupyter.models.providers.provider_facts import first_word_patience
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.router.context.fit_context import ContextFitter, ContextLengths, fit
from tests.router.router_support import valid_history
from tests.support.openai_server import Answer, Call, Failure, OpenAIServer, Received

TEXTS = st.text(alphabet="ab\n漢\ud800", max_size=40).flatmap(
    lambda text: st.sampled_from([1, 3, 20, 90]).map(lambda times: text * times)
)


@st.composite
def steps(draw: st.DrawFn, first: int) -> list[Message]:
    """The messages of a turn: the person's text, then calls with their results, then perhaps an answer."""
    made = [Message("user", draw(TEXTS))]
    for step in range(draw(st.integers(0, 4))):
        ids = [f"{first}-{step}-{number}" for number in range(draw(st.integers(1, 3)))]
        name = draw(st.sampled_from(["list_actions", "invoke_action"]))
        arguments = json.dumps({"args": draw(st.dictionaries(st.sampled_from("abcd"), TEXTS, max_size=3))})
        made.append(Message("assistant", draw(TEXTS), tuple(ToolCall(each, name, arguments) for each in ids)))
        stored = draw(st.sampled_from(["", "[blob:01890000-0000-7000-8000-000000000000 a table]\n"]))
        made += [Message("tool", stored + draw(TEXTS), (), each) for each in ids]
    return [*made, *([Message("assistant", draw(TEXTS))] if draw(st.booleans()) else [])]


@st.composite
def requests(draw: st.DrawFn) -> tuple[list[Message], int]:
    """A request's messages, and the place where its turn begins."""
    before = [Message("system", draw(TEXTS))]
    for turn in range(draw(st.integers(0, 3))):
        before += draw(steps(turn))
    return before + draw(steps(9)), len(before)


def size(messages: Any) -> int:
    return sum(message.tokens for message in messages)


@given(requests(), st.integers(1, 6_000))
def test_a_fitted_request_is_valid_no_longer_than_asked_where_that_is_possible_and_fits_as_it_is(
    given_: tuple[list[Message], int], room: int
) -> None:
    messages, turn = given_
    fitted = fit(messages, room, turn=turn)

    assert fitted.tokens == size(fitted.messages) <= size(messages)
    assert fitted.tokens <= room or fitted.tokens == fit(messages, 1, turn=turn).tokens
    assert valid_history(Request("m", fitted.messages)) == valid_history(Request("m", tuple(messages)))
    calls = [[(each.id, each.name) for each in message.tool_calls] for message in messages]
    assert [[(each.id, each.name) for each in message.tool_calls] for message in fitted.messages] == calls
    assert all(
        isinstance(json.loads(each.arguments), dict)
        for message in fitted.messages
        for each in message.tool_calls
    )
    assert fit(fitted.messages, room, turn=turn).messages == fitted.messages
    kept = [message for message in messages[turn:] if message.role == "user"]
    assert [message for message in fitted.messages[turn:] if message.role == "user"] == kept
    assert fitted.messages[0] == messages[0]


def test_old_results_shrink_before_new_ones_and_say_how_to_see_the_rest() -> None:
    blob = "[blob:01890000-0000-7000-8000-000000000000 csv]\n" + "1,2\n" * 800

    def called(name: str, result: str, identity: str) -> list[Message]:
        call = ToolCall(identity, name, "{}")
        return [Message("assistant", "", (call,)), Message("tool", result, (), identity)]

    old = [Message("user", "before"), *called("f", blob, "a"), Message("assistant", "so")]
    own = [Message("user", "now"), *called("list_actions", "x" * 4_000, "b")]
    own += [*called("list_actions", "y" * 4_000, "c"), *called("f", "z" * 4_000, "d")]
    messages = [Message("system", "S"), *old, *own]

    def shrunk(room: int) -> list[int]:
        return sorted(fit(messages, room, turn=5).shrunk)

    assert shrunk(size(messages)) == []
    assert shrunk(size(messages) - 1) == [3, 7]  # the old result, then the listing that another one follows
    assert shrunk(size(messages) // 2) == [3, 7, 9]
    assert shrunk(400) == [3, 7, 9, 11]
    last = fit(messages, size(messages) // 2, turn=5).messages
    assert last[3].content.endswith("inspect it again to see the rest of it]")
    assert last[3].content.startswith("[blob:01890000-0000-7000-8000-000000000000 csv]")
    assert last[7].content.endswith("list again, with a filter, to see it]")
    assert fit(messages, 400, turn=5).messages[11].content.endswith("call it again to see the rest of it]")


@pytest.mark.parametrize(
    ("said", "asked", "taken"),
    [
        (
            "request (10814 tokens) exceeds the available context size (8192 tokens), try increasing it",
            10814,
            8192,
        ),
        ("{'type': 'exceed_context_size_error', 'n_prompt_tokens': 14429, 'n_ctx': 8192}", 14429, 8192),
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            9000,
            8192,
        ),
        (
            "maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages)",
            112946,
            16384,
        ),
        ("prompt is too long: 215000 tokens > 200000 maximum", 215000, 200000),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            1200000,
            1048576,
        ),
        ("Requested tokens (2065) exceed context window of 1800", 2065, 1800),
        (
            "maximum context length is 4097 tokens, however you requested 5 tokens (3 in your prompt; 2 for the",
            3,
            4097,
        ),
        (
            "too large: 9000. This model's maximum context length is 4096 tokens and your request has 20 input tokens",
            20,
            4096,
        ),
        (
            "You passed 4097 input tokens. However, the model's context length is only 4096 tokens",
            4097,
            4096,
        ),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
            190000,
            200000,
        ),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 500 `inputs` tokens and 9000 `max_new_tokens`",
            500,
            4096,
        ),
        ("Input prompt (2664 tokens) is too long and exceeds limit of 2048/2560", 2664, 2048),
        ("the input is too long for this model", None, None),
    ],
)
def test_the_words_of_a_refusal_say_what_was_asked_and_what_is_taken(
    said: str, asked: int | None, taken: int | None
) -> None:
    assert read_overflow(said) == Overflow(asked, taken)


# Over HTTP


@pytest.fixture(scope="module")
def running() -> Iterator[OpenAIServer]:
    litellm_loader.load()
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def server(running: OpenAIServer) -> OpenAIServer:
    running.clear()
    running.otherwise = Answer("ok")
    return running


def tokens_of(received: Received) -> int:
    return len(json.dumps(received.body["messages"])) // 4


WORDS = "request ({} tokens) exceeds the available context size ({} tokens), try increasing it"
ROOM = 3_500  # tokens that the server takes


def small(most: int = ROOM, words: str = WORDS) -> Any:
    """Lists four times, each time by another word, and refuses what is longer than it takes."""

    def reply(received: Received) -> Answer | Failure:
        if (asked := tokens_of(received)) > most:
            return Failure(400, words.format(asked, most))
        listed = sum(message["role"] == "tool" for message in received.body["messages"])
        filters = ("the", "of", "and", "to")
        return (
            Answer(calls=(Call("list_actions", {"filter": filters[listed]}),))
            if listed < 4
            else Answer("done")
        )

    return reply


def session(
    workspace: Path,
    server: OpenAIServer,
    model: str = "openai/test",
    parameters: dict[str, Any] | None = None,
    **router: Any,
) -> reyn.Session:
    (workspace / "long.txt").write_text(
        "The quick brown fox jumps.\n" * 260
    )  # just short enough to be no blob
    entry = {"model": model, "api_base": server.url, "tier": "light", "parameters": parameters or {}}
    config = {"models": {"light": entry}, "router_model": "light", "router": router}
    return reyn.Session(workspace, config=config, store="memory")


MODELS = "/v1/models"


def test_a_model_whose_server_says_its_length_never_gets_a_request_that_is_too_long(
    workspace: Path, server: OpenAIServer
) -> None:
    server.told[MODELS] = {"data": [{"id": "test", "max_model_len": ROOM}]}
    server.otherwise = small(ROOM)
    trace = session(workspace, server).ask("What can you do?")

    assert (trace.status, trace.answer) == ("ok", "done")
    assert max(map(tokens_of, server.requests)) <= ROOM
    assert [step.replied.error for step in trace.steps if step.replied is not None] == [None] * 5
    asked = [step.requested for step in trace.steps if step.requested is not None]
    assert {each.context for each in asked} == {ROOM}
    shrunk = [each for request in asked for each in request.shrunk]
    assert shrunk and all(each["spared"] > 0 for each in shrunk)
    assert trace.ended is not None
    assert any("to fit the model's context of 3,500 tokens" in note for note in trace.ended.notes)


@pytest.mark.parametrize("words", [WORDS, "context size"])
def test_a_refusal_for_length_shortens_the_request_and_is_remembered(
    workspace: Path, server: OpenAIServer, words: str
) -> None:
    server.otherwise = small(ROOM, words)
    s = session(workspace, server)
    first = s.ask("What can you do?")
    refused = [
        step.replied.error_kind for step in first.steps if step.replied is not None and step.replied.error
    ]

    assert (first.status, first.answer) == ("ok", "done")
    assert refused and set(refused) == {"context_too_long"}
    if "{}" in words:
        again = s.ask("And what else?")
        assert again.answer == "done"
        assert all(step.replied is not None and step.replied.error is None for step in again.steps)


def test_where_nothing_can_shrink_the_turn_ends_and_says_what_to_do(
    workspace: Path, server: OpenAIServer
) -> None:
    server.otherwise = small(100)
    trace = session(workspace, server).ask("What can you do?")

    assert trace.status == "error"
    assert trace.error is not None and "Even with everything shortened" in trace.error
    assert trace.ended is not None and "longer context" in str(trace.ended.hint)


def strict(received: Received) -> Answer | Failure:
    """Refuse a request that leaves no room for as long a reply as it asks for, as hosted models do."""
    asked, reply = tokens_of(received), received.body["max_tokens"]
    if asked + reply > ROOM:
        return Failure(
            400,
            f"This model's maximum context length is {ROOM} tokens. However, you requested {asked + reply} tokens "
            f"({asked} in the messages, {reply} in the completion). Please reduce the length of the messages or "
            "completion.",
            "context_length_exceeded",
        )
    return Answer("done")


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("most", [ROOM - 100, ROOM, 100_000])
def test_a_limit_of_the_reply_that_leaves_no_room_is_lowered_and_nothing_is_shortened_for_it(
    workspace: Path, server: OpenAIServer, most: int, told: bool
) -> None:
    if told:
        server.told[MODELS] = {"data": [{"id": "test", "max_model_len": ROOM}]}
    server.otherwise = strict
    trace = session(workspace, server, parameters={"max_tokens": most}).ask("Say hello.")

    assert (trace.status, trace.answer) == ("ok", "done")
    assert len(server.requests) == (1 if told else 2)
    assert len({json.dumps(request.body["messages"]) for request in server.requests}) == 1
    sent = server.requests[-1].body["max_tokens"]
    assert ROOM / 3 < sent < most
    assert (
        trace.steps[-1].requested is not None and trace.steps[-1].requested.parameters["max_tokens"] == sent
    )
    assert trace.ended is not None
    said = f"the limit of a reply (max_tokens) was lowered from {most:,} to {sent:,} tokens to fit the model's context"
    assert any(said in note for note in trace.ended.notes)


def test_a_limit_of_the_reply_that_fits_is_kept_however_long_the_conversation_grows(
    workspace: Path, server: OpenAIServer
) -> None:
    server.told[MODELS] = {"data": [{"id": "test", "max_model_len": ROOM}]}
    server.otherwise = small(ROOM - 600)
    trace = session(workspace, server, parameters={"max_tokens": 600}).ask("What can you do?")

    assert (trace.status, trace.answer) == ("ok", "done")
    assert {request.body["max_tokens"] for request in server.requests} == {600}


async def test_a_refusal_that_does_not_count_the_request_lowers_the_limit_of_the_reply_first() -> None:
    messages = [Message("system", "Help."), Message("user", "Look."), Message("assistant", "word " * 3_000)]
    length = size(messages) + 2_100
    known = ContextLengths({"it": length})
    fitter = ContextFitter(ScriptedModel([]), "it", known, {"max_tokens": 2_000})
    assert (await fitter.fit(messages, 1, 1, ToolSet())).shrunk == {} and fitter.lowered_limits == {}
    refusal = ModelError("context_too_long", f"The maximum context length is {length} tokens.")
    assert fitter.shrink_after(refusal)
    assert (await fitter.fit(messages, 1, 1, ToolSet())).shrunk == {}
    assert 1_500 < fitter.lowered_limits["max_tokens"] < 2_000


def test_a_short_limit_of_the_reply_is_never_lowered_to_a_longer_one(
    workspace: Path, server: OpenAIServer
) -> None:
    server.told[MODELS] = {"data": [{"id": "test", "max_model_len": 100}]}
    trace = session(workspace, server, parameters={"max_tokens": 40}).ask("Say hello.")
    assert server.requests[-1].body["max_tokens"] == 40
    assert trace.ended is not None and not any("was lowered" in note for note in trace.ended.notes)


def test_a_limit_of_the_reply_is_named_where_nothing_tells_that_it_is_too_large(
    workspace: Path, server: OpenAIServer
) -> None:
    server.otherwise = Failure(400, "context size")
    trace = session(workspace, server, parameters={"max_tokens": 8_000}).ask("Say hello.")
    assert trace.ended is not None and "a lower max_tokens than 8,000" in str(trace.ended.hint)


def test_without_the_key_a_limit_of_the_reply_that_leaves_no_room_is_named(
    workspace: Path, server: OpenAIServer
) -> None:
    server.otherwise = strict
    s = session(workspace, server, parameters={"max_tokens": ROOM}, weak={"fit_context": False})
    trace = s.ask("Say hello.")
    assert len(server.requests) == 1
    assert trace.ended is not None and "Set a lower max_tokens" in str(trace.ended.hint)


def test_without_the_key_the_refusal_ends_the_turn(workspace: Path, server: OpenAIServer) -> None:
    server.otherwise = small(ROOM)
    trace = session(workspace, server, weak={"fit_context": False}).ask("What can you do?")

    assert trace.status == "error"
    assert sum(bool(step.replied and step.replied.error) for step in trace.steps) == 1


def test_a_model_that_could_not_say_its_length_is_asked_again_in_the_next_turn_alone(workspace: Path) -> None:
    class Starting(ScriptedModel):
        asked = 0

        async def context_length(self) -> int | None:
            self.asked += 1
            if self.asked == 1:
                raise ModelError("unavailable", "It starts.")
            return 4_000

    model = Starting("One.", "Two.", "Three.")
    s = reyn.Session(workspace, model=model, config={"router": {"weak": {"fit_context": True}}})
    traces = [s.ask(f"question {number}") for number in range(3)]
    assert model.asked == 2
    assert [trace.steps[0].requested.context for trace in traces] == [None, 4_000, 4_000]


def test_a_server_on_this_machine_has_time_to_read_unless_it_is_to_be_given_up_soon() -> None:
    assert first_word_patience("127.0.0.1:8080", 60.0) == first_word_patience("localhost", 300.0) == 300.0
    assert first_word_patience("api.openai.com", 60.0) == 60.0
    assert first_word_patience("127.0.0.1:8080", 0.5) == 0.5


# The real server


def test_a_real_model_whose_context_an_old_conversation_overflows_still_answers(workspace: Path) -> None:
    """Its own tokens for Japanese are far more than estimated, so that the server refuses, in its own words."""
    server = ModelServer(LocalModel("local/smollm2")._server.file, context=1_024)
    model = LocalModel("local/smollm2", server=server, parameters={"temperature": 0, "max_tokens": 4})
    router = {"surface": "flat", "mandate": "none", "edit_rule": "none", "limits": {"max_steps": 1}}
    s = reyn.Session(workspace, store="memory", categories=[], config={"router": router})
    for turn in range(2):
        s.ask(f"turn {turn}", model=ScriptedModel("日本語の長い答え。" * 40))
    try:
        trace = s.ask("Say hello.", model=model)
    finally:
        server.close()

    replies = [step.replied for step in trace.steps if step.replied is not None]
    assert replies[0].error_kind == "context_too_long"
    assert "exceeds the available context size (1024 tokens)" in str(replies[0].error)
    assert replies[-1].error is None and 0 < replies[-1].prompt_tokens < 1_024
    assert trace.status in ("ok", "limit") and trace.ended is not None
    assert any("to fit the model's context of 1,024 tokens" in note for note in trace.ended.notes)
