"""Thoughts of a model are a part of its reply: recorded, passed back within their turn, never an answer."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.base import Reasoning, Response, Usage
from reyn_jupyter.models.scripted import call
from reyn_jupyter.runtime.record.run_outcome import RunOutcome
from tests.router.router_support import invoke, session

THOUGHT = Reasoning(
    "I read it first.", ({"type": "thinking", "thinking": "I read it first.", "signature": "sig"},)
)


def calling(**fields: Any) -> Response:
    read = invoke("file__read", path="notes.txt")
    return Response(tool_calls=(read,), finish_reason="tool_calls", reasoning=THOUGHT, **fields)


def test_thoughts_go_back_with_their_calls_within_the_turn_only(workspace: Path) -> None:
    s = session(workspace, calling(), "Three lines.", "Yes.")
    s.ask("what is in notes.txt?")
    sent = [message.wire for message in s.model.requests[1].messages if message.role == "assistant"]
    assert sent[0]["reasoning_content"] == "I read it first."
    assert sent[0]["thinking_blocks"][0]["signature"] == "sig"
    s.ask("is that all?")
    later = [message.wire for message in s.model.requests[2].messages if message.role == "assistant"]
    assert later and not any("reasoning_content" in each or "thinking_blocks" in each for each in later)


def test_thoughts_are_recorded_and_shown_apart_from_the_answer(workspace: Path) -> None:
    s = session(
        workspace, calling(usage=Usage(9, 7, reasoning_tokens=5)), "<think>Three?</think>\n\nThree lines."
    )
    trace = s.ask("what is in notes.txt?")
    assert trace.answer == "Three lines."
    replied = [step.replied for step in trace.steps]
    assert [each.reasoning for each in replied if each is not None] == ["I read it first.", "Three?"]
    assert replied[0] is not None and replied[0].reasoning_tokens == 5


def test_secret_in_thoughts_is_neither_recorded_nor_sent(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "a-plain-secret-4f9a8b7c"
    monkeypatch.setenv("SERVICE_API_KEY", key)
    thought = Reasoning(f"The key is {key}.", ({"type": "thinking", "thinking": key, "signature": "sig"},))
    s = session(workspace, Response(tool_calls=calling().tool_calls, reasoning=thought), "Done.")
    trace = s.ask("go")
    assert key not in json.dumps([message.wire for message in s.model.requests[1].messages])
    assert key not in str(trace.events)


def test_limit_used_up_by_thoughts_says_what_to_raise(workspace: Path) -> None:
    s = session(workspace, Response(finish_reason="length", reasoning=Reasoning("Let me think. " * 40)))
    trace = s.ask("go")
    assert trace.status == "error" and len(s.model.requests) == 1
    assert "limit of tokens after" in str(trace.error) and "max_tokens" in str(trace.events[-1].hint)


def test_refusal_is_declined_and_not_asked_again(workspace: Path) -> None:
    s = session(workspace, Response("I can't help with that.", finish_reason="refusal"))
    trace = s.ask("go")
    assert trace.outcome is RunOutcome.DECLINED and len(s.model.requests) == 1


@pytest.mark.parametrize("reason", ["insufficient_system_resource", "abort", "a reason of tomorrow"])
def test_unknown_end_of_a_reply_is_not_a_complete_answer(workspace: Path, reason: str) -> None:
    trace = session(workspace, Response("Thr", finish_reason=reason)).ask("go")
    assert trace.outcome is RunOutcome.ENDED_EARLY
    assert any(reason in note for note in trace.events[-1].notes)


@pytest.mark.parametrize(
    "name",
    ["functions.list_actions", "functions.list_actions:0", "list_actions<|channel|>commentary", "List-Actions",
     "`list_actions`", "to=functions.list_actions", "default_api.list_actions"],
)  # fmt: skip
def test_dressed_name_of_a_tool_is_that_tool(workspace: Path, name: str) -> None:
    trace = session(workspace, call(name, category=["file"]), "fine").ask("go")
    assert trace.calls[0].label == "list_actions" and trace.calls[0].finished.ok


def test_provider_that_refuses_thoughts_is_asked_without_them(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def reply(body: dict[str, Any]) -> tuple[int, str]:
        seen.append(body)
        if any("reasoning_content" in message for message in body["messages"]):
            said = "property 'messages.2.reasoning_content' is unsupported"
            return 400, json.dumps({"error": {"message": said, "type": "invalid_request_error"}})
        called = any(message["role"] == "tool" for message in body["messages"])
        given = {
            "index": 0,
            "id": "call_1",
            "type": "function",
            "function": {"name": "list_actions", "arguments": "{}"},
        }
        delta = {"content": "Done."} if called else {"reasoning_content": "Hm.", "tool_calls": [given]}
        chunks = [(delta, None), ({}, "stop" if called else "tool_calls")]
        events = [
            {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
             "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
            for delta, finish in chunks
        ]  # fmt: skip
        return 200, "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            status, text = reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.send_header("Content-Type", "application/json" if status == 400 else "text/event-stream")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    entry = {"model": "openai/strict", "api_base": f"http://127.0.0.1:{server.server_address[1]}/v1"}
    s = reyn.Session(tmp_path, config={"models": {"standard": entry}}, store="memory", namespace={})
    try:
        trace = s.ask("what can you do?")
    finally:
        s.close()
        server.shutdown()
    assert trace.answer == "Done."
    assert ["reasoning_content" in str(body) for body in seen] == [False, True, False]


def test_reasoning_effort_of_a_turn_and_of_the_settings_reaches_the_model(workspace: Path) -> None:
    s = session(workspace, "One.", "Two.", config={"router": {"reasoning_effort": "low"}})
    s.ask("go")
    s.ask("go on", effort="high")
    assert [request.parameters["reasoning_effort"] for request in s.model.requests] == ["low", "high"]
