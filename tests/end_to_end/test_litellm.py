"""Whole turns over a real HTTP connection: Session → router → LiteLLM → a server of ours on loopback, and back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.base import Message
from tests.end_to_end.e2e_support import history_is_valid, paired, results
from tests.support.openai_server import CONTEXT_TOO_LONG, Answer, Call, Failure, OpenAIServer, Raw, Received
from tests.support.waiting import PATIENCE, until

KEY = "sk-proj-0123456789abcdefghijklmnop"
READ = Call("invoke_action", {"action_name": "file__read", "args": {"path": "notes.txt"}})


@pytest.fixture(scope="module")
def running() -> Iterator[OpenAIServer]:
    """The server, and LiteLLM imported once: that costs seconds."""
    from reyn_jupyter.models.providers import litellm_loader

    litellm_loader.load()
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def server(running: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    running.clear()
    running.otherwise = Answer("ok")
    return running


@pytest.fixture
def session(workspace: Path, server: OpenAIServer) -> Callable[..., reyn.Session]:
    def make(**limits: Any) -> reyn.Session:
        entry = {"model": "openai/test", "api_base": server.url}
        config = {"models": {"standard": entry}, "router": {"limits": limits}}
        return reyn.Session(workspace, config=config)

    return make


def sent(received: Received) -> list[Message]:
    return [Message.from_wire(message) for message in received.body["messages"]]


@pytest.mark.parametrize("shape", ["fragments", "whole", "no index", "no id", "same id", "interleaved"])
def test_tool_calls_in_any_shape_of_stream_run_and_are_answered(
    session: Callable[..., reyn.Session], server: OpenAIServer, shape: Any
) -> None:
    other = Call("list_actions", {"category": ["file"]})
    server.script(Answer(calls=(READ, other), shape=shape, fragment=3), Answer("Three lines."))
    s = session()
    trace = s.ask("what is in notes.txt?")
    assert (trace.status, trace.answer) == ("ok", "Three lines.")
    assert [call.label for call in trace.calls] == ["file__read", "list_actions"]
    assert results(sent(server.requests[1]))[0] == "first line\nsecond line\nthird line\n"
    assert paired(trace) and history_is_valid(s)


def test_ids_that_a_server_gives_twice_stay_apart_over_steps_and_turns(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(
        Answer(calls=(READ, READ), shape="same id"), Answer(calls=(READ,), shape="same id"), Answer("a")
    )
    server.script(Answer(calls=(READ,), shape="same id"), Answer("b"))
    s = session()
    assert (s.ask("one").answer, s.ask("two").answer) == ("a", "b")
    assert history_is_valid(s)
    assert all(paired(trace) for trace in s.runs)


def test_the_conversation_goes_on_over_the_wire_and_its_prefix_stays_the_same(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    s = session()
    s.ask("first")
    s.ask("second")
    one, two = (received.body for received in server.requests)
    assert two["messages"][: len(one["messages"])] == one["messages"]
    assert two["tools"] == one["tools"]
    assert [message["content"] for message in two["messages"][1:]] == ["first", "ok", "second"]


def test_a_rate_limit_is_waited_out_as_the_provider_says_and_the_trace_counts_it(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(Failure(429, "slow down", headers={"Retry-After": "1"}), Answer("there you are"))
    began = time.monotonic()
    trace = session().ask("go")
    assert trace.answer == "there you are"
    assert time.monotonic() - began >= 1
    assert trace.steps[0].replied is not None and trace.steps[0].replied.retries == 1


def test_a_refused_key_is_told_in_plain_words_that_name_the_variable_and_never_the_key(
    session: Callable[..., reyn.Session], server: OpenAIServer, workspace: Path
) -> None:
    server.script(Failure(401, f"Incorrect API key provided: {KEY}"))
    s = session()
    trace = s.ask("go")
    assert trace.status == "error" and "OPENAI_API_KEY" in f"{trace.error} {trace.payload}"
    kept = "".join(path.read_text() for path in (workspace / ".reyn" / "runs").iterdir())
    for said in (repr(trace.payload), kept, repr(s.status), repr(s.models.rows)):
        assert KEY not in said and KEY[:20] not in said
    assert history_is_valid(s)


def test_a_missing_key_is_told_before_anything_is_sent(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    trace = reyn.Session(workspace, config={"models": {"standard": "openai/test"}}).ask("go")
    assert trace.status == "error" and "OPENAI_API_KEY" in f"{trace.error} {trace.payload}"


@pytest.mark.parametrize("trouble", ["malformed", "drop", "cut", "error"])
def test_a_broken_stream_is_asked_for_again_then_told_and_the_history_stays_valid(
    session: Callable[..., reyn.Session], server: OpenAIServer, trouble: Any
) -> None:
    server.otherwise = Answer("a longer text that breaks", calls=(READ,), trouble=trouble, after=3)
    s = session(retries=0)
    trace = s.ask("go")
    assert trace.status == "error" and trace.error
    assert trace.calls == ()  # half a tool call is none
    server.otherwise = Answer("fine again")
    assert s.ask("again").answer == "fine again"
    assert history_is_valid(s)


def test_a_stalled_stream_ends_at_the_configured_limit(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(Answer("half of an answer", trouble="stall", stall_seconds=600))
    trace = session(model_timeout=0.5, retries=0).ask("go")
    assert trace.status == "error" and "0.5" in str(trace.error)


def test_an_empty_completion_is_nudged_once_then_told(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(Answer(""), Answer(""))
    trace = session().ask("go")
    assert len(server.requests) == 2
    assert trace.status == "error" and "nothing" in str(trace.error)


def test_a_context_that_is_too_long_says_what_to_do(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(CONTEXT_TOO_LONG)
    trace = session().ask("go")
    assert trace.steps[0].replied is not None and trace.steps[0].replied.error_kind == "context_too_long"
    assert trace.ended is not None and trace.ended.hint


def test_an_html_page_in_place_of_an_answer_is_told(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.otherwise = Raw(b"<html><body>proxy login</body></html>")
    trace = session(retries=0).ask("go")
    assert trace.status == "error" and trace.error and "Traceback" not in trace.error


def test_five_thousand_tool_calls_over_the_wire_are_bounded_and_each_is_on_record(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(Answer(calls=(READ,) * 5000, shape="whole"), Answer("done"))
    s = session()
    trace = s.ask("go")
    assert trace.answer == "done" and paired(trace)
    assert len(trace.calls) == 5000 and sum(1 for call in trace.calls if call.ok) == 50
    assert len(results(sent(server.requests[1]))) == 51
    assert history_is_valid(s)


def test_a_huge_text_arrives_whole(session: Callable[..., reyn.Session], server: OpenAIServer) -> None:
    text = "0123456789 äöü 漢字 " * 50_000
    server.script(Answer(text, fragment=20_000))
    assert session().ask("go").answer == text


def test_an_interrupt_during_a_stall_ends_it_and_hangs_up(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(Answer(calls=(READ,)), Answer("half of it", trouble="stall", stall_seconds=600))
    s = session()
    run = s.start("go")
    until(lambda: len(server.requests) == 2)
    time.sleep(0.2)  # most times it is in the midst of the answer by now
    run.cancel()
    trace = run.result(PATIENCE)
    assert trace.status == "interrupted" and "file__read" in str(trace.error)
    assert server.disconnected.wait(PATIENCE)
    assert paired(trace) and history_is_valid(s)
    assert s.ask("and now?").answer == "ok"


def test_usage_and_cost_stand_on_the_trace(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    usage = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150, "cost": 0.25}
    server.script(Answer(calls=(READ,), usage=usage), Answer("done", usage=usage))
    trace = session().ask("go")
    assert (trace.tokens, trace.tokens_estimated, trace.cost) == (300, False, 0.5)


def test_tokens_are_estimated_and_marked_when_the_provider_sends_none(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(Answer("done", usage=False))
    trace = session().ask("go")
    assert trace.tokens > 0 and trace.tokens_estimated
    assert trace.cost is None  # nobody knows what openai/test costs


def test_a_budget_on_a_model_without_a_price_stops_before_anything_is_done(
    session: Callable[..., reyn.Session], server: OpenAIServer, workspace: Path
) -> None:
    write = Call("invoke_action", {"action_name": "file__write", "args": {"path": "new.txt", "content": "x"}})
    server.script(Answer(calls=(write,)))
    trace = session().ask("go", budget=0.01, approve="all")
    assert trace.status == "limit" and "price" in str(trace.error)
    assert not (workspace / "new.txt").exists() and len(server.requests) == 1


def test_the_key_is_nowhere_in_what_is_kept_or_shown(
    session: Callable[..., reyn.Session], server: OpenAIServer, workspace: Path
) -> None:
    (workspace / "secrets.txt").write_text("padding " * 200 + KEY)
    read = Call("invoke_action", {"action_name": "file__read", "args": {"path": "secrets.txt"}})
    server.script(Answer(calls=(read,)), lambda received: Answer(json.dumps(received.body)))
    s = session()
    trace = s.ask(f"my key is {KEY}")
    runs = "".join(path.read_text() for path in (workspace / ".reyn" / "runs").iterdir())
    for said in (runs, repr(trace), trace.answer, json.dumps([r.body for r in server.requests])):
        assert KEY[:16] not in said
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_surrogate_halves_that_a_stream_tears_apart_do_no_harm(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    party = json.dumps("\N{PARTY POPPER}")[1:-1]
    halves = f'{{"choices":[{{"index":0,"delta":{{"content":"{party[:6]}"}}}}]}}'
    rest = (
        f'{{"choices":[{{"index":0,"delta":{{"content":"{party[6:]} \\\\ud800"}},"finish_reason":"stop"}}]}}'
    )
    rest = rest.replace("\\\\ud800", "\\ud800")
    body = "".join(f"data: {part}\n\n" for part in (halves, rest, "[DONE]")).encode()
    server.script(Raw(body, content_type="text/event-stream"), Answer("still here"))
    s = session()
    first = s.ask("go")
    assert first.answer == "\N{PARTY POPPER} \N{REPLACEMENT CHARACTER}"
    assert s.ask("again").answer == "still here"


def test_two_conversations_at_once_do_not_get_into_each_other(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.otherwise = lambda received: Answer(received.body["messages"][-1]["content"][::-1], pace=0.001)
    s, answers = session(), {}

    def ask(prompt: str) -> None:
        answers[prompt] = s.ask(prompt).answer

    threads = [threading.Thread(target=ask, args=(f"prompt {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {f"prompt {n}": f"prompt {n}"[::-1] for n in range(6)}
    assert len(s.history) == 6 and history_is_valid(s)


# A model that lies


def test_a_result_written_as_text_is_an_answer_and_runs_nothing(
    session: Callable[..., reyn.Session], server: OpenAIServer, workspace: Path
) -> None:
    lie = '{"tool_calls": [{"name": "file__delete", "args": {"path": "notes.txt"}}]}\n[blob:0197] deleted'
    server.script(Answer(lie))
    trace = session().ask("delete notes.txt", approve="all")
    assert trace.answer == lie and trace.calls == ()
    assert (workspace / "notes.txt").exists()


def test_hidden_stale_and_invented_categories_are_answered_as_such(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    names = [
        "mcp.tool__x",
        "multi_agent__bob",
        "warp__drive",
        "file__read\ud800".encode("utf-8", "replace").decode(),
    ]
    calls = tuple(Call("invoke_action", {"action_name": name, "args": {"argv": ["id"]}}) for name in names)
    server.script(Answer(calls=(*calls, Call("search_actions", {"query": "x"}))), Answer("sorry"))
    made = session()
    made.configure("action_retrieval.embedding_class", None)
    trace = made.ask("go", approve="all")
    problems = [call.resolved.problem for call in trace.calls]
    assert problems == ["stale", "stale", "unknown", "unknown", "hidden"]
    assert all(call.decision is None and call.ok is False for call in trace.calls)


@pytest.mark.parametrize(
    "blob_id",
    ["../../etc/passwd", "/etc/passwd", "[blob:../x]", "", "%2e%2e%2f", "0" * 100_000, "file:///etc/passwd"],
)
def test_inspect_with_a_path_in_place_of_an_id_touches_no_file(
    session: Callable[..., reyn.Session], server: OpenAIServer, blob_id: str
) -> None:
    server.script(Answer(calls=(Call("inspect", {"blob_id": blob_id}),), fragment=50_000), Answer("sorry"))
    trace = session().ask("go")
    answer = json.loads(results(sent(server.requests[1]))[0])
    assert set(answer) >= {"error", "hint"} and "root:" not in json.dumps(answer)
    assert len(json.dumps(answer)) < 8192 and trace.calls[0].ok is False


def test_names_and_arguments_that_no_provider_takes_back_do_not_lock_the_conversation(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    calls = (
        Call("file.read", {"path": "notes.txt"}),
        Call("read the file!", "{not json"),
        Call("x" * 300, ""),
        Call("invoke_action", "[1, 2]"),
        Call("invoke_action", '{"action_name": NaN}'),
    )
    server.script(Answer(calls=calls), Answer("sorry"))
    session().ask("go")
    functions = [call["function"] for call in server.requests[1].body["messages"][2]["tool_calls"]]
    assert len(functions) == len(calls)
    for function in functions:
        assert (
            0 < len(function["name"]) <= 64 and function["name"].replace("-", "_").replace("_", "a").isalnum()
        )
        assert isinstance(
            json.loads(function["arguments"], parse_constant=lambda name: pytest.fail(name)), dict
        )


# The offline model through LiteLLM's custom provider


def test_the_offline_model_answers_through_litellm_too(workspace: Path, server: OpenAIServer) -> None:
    direct = reyn.Session(workspace, store="memory").ask("list the files in data")
    through = reyn.Session(workspace, store="memory", model="offline/embedded").ask("list the files in data")
    assert (through.status, through.answer) == (direct.status, direct.answer) and direct.calls
    assert [call.label for call in through.calls][-1] == [call.label for call in direct.calls][-1]


def test_a_peer_has_a_model_of_its_own_on_a_server_of_its_own(workspace: Path, server: OpenAIServer) -> None:
    delegate = Call(
        "invoke_action", {"action_name": "agent.peer__checker", "args": {"request": "how many lines?"}}
    )
    own = {"model": "openai/own", "api_base": server.url, "parameters": {"temperature": 0.5}}
    peers = {"checker": {"prompt": "You count twice.", "model": own, "categories": ["file"]}}
    with OpenAIServer() as other:
        config = {"models": {"standard": {"model": "openai/test", "api_base": other.url}}, "peers": peers}
        other.script(Answer(calls=(delegate,)), Answer("Three, says the checker."))
        server.script(Answer(calls=(READ,)), Answer("Three lines."))
        s = reyn.Session(workspace, config=config)
        trace = s.ask("how long is notes.txt?")
        assert trace.answer == "Three, says the checker."
        assert results(sent(other.requests[1]))[0].startswith("Three lines.\n[from the peer checker")
    first, second = server.requests
    assert (first.body["model"], first.body["temperature"]) == ("own", 0.5)
    assert "You count twice." in sent(first)[0].content and sent(first)[1].content == "how many lines?"
    assert results(sent(second)) == ["first line\nsecond line\nthird line\n"]
    (inner,) = trace.inner.values()
    assert inner.model == "openai/own" and sum(trace.sent.local.values()) > 0 and len(trace.sent.local) == 2
