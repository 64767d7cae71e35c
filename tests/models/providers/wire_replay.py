"""A loopback server that replays the entries of `tests/data/wire`, streamed and whole.

An entry says what a reply has in it; this module puts it into the form of the server's API.
"""

from __future__ import annotations

import json
import struct
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

CORPUS = Path(__file__).parents[2] / "data" / "wire"
STREAM, LINES, JSON, AWS = (
    "text/event-stream",
    "application/x-ndjson",
    "application/json",
    "application/vnd.amazon.eventstream",
)


def corpus() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each entry by its name, with what its file says of the server."""
    shared = yaml.safe_load((CORPUS / "shared.yaml").read_text(encoding="utf-8"))
    for file in sorted(CORPUS.glob("*.yaml")):
        if file.name == "shared.yaml":
            continue
        for server in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            entries = (
                {**shared[server["like"]], **server["entries"]} if "like" in server else server["entries"]
            )
            for name, entry in entries.items():
                if entry is not None:
                    yield f"{file.name}, {server['server']}, {name}", {**server, **entry}


def forms(entry: dict[str, Any]) -> Iterator[tuple[str, bytes, str]]:
    """Yield the forms of a reply: its name, its body, and its type."""
    if "body" in entry:
        body = entry["body"]
        yield "body", (body if isinstance(body, str) else json.dumps(body)).encode(), JSON
    elif "raw" in entry:
        yield "stream", entry["raw"].encode(), STREAM
    elif "events" in entry:
        yield "stream", _events(entry, entry["events"]), STREAM
    elif "say" in entry:
        stream, whole = {
            "blocks": _anthropic,
            "converse": _converse,
            "ollama": _ollama,
            "gemini": _gemini,
        }.get(entry.get("api", "chat"), _chat)(entry)
        if entry.get("streams", True):
            yield ("stream", *stream)
        if entry.get("whole", True):
            yield "whole", json.dumps(whole).encode(), JSON


class Replay:
    """A server that answers every request with one recorded reply."""

    def __init__(self) -> None:
        self.status, self.headers, self.reply, self.kind = 200, dict[str, str](), b"", JSON
        self.refuses_streams = False
        self.requests: list[dict[str, Any]] = []
        replay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                replay.requests.append(asked)
                streams = asked.get("stream") or "stream" in self.path.rpartition("/")[2].lower()
                if replay.refuses_streams and streams:
                    self.answer(400, {}, b'{"error": {"message": "stream is not supported"}}', JSON)
                else:
                    self.answer(replay.status, replay.headers, replay.reply, replay.kind)

            def answer(self, status: int, headers: dict[str, str], body: bytes, kind: str) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def set(self, entry: dict[str, Any], form: str, body: bytes, kind: str) -> None:
        """Send this form of an entry to every later request."""
        self.status, self.headers = entry.get("status", 200), entry.get("headers", {})
        self.reply, self.kind, self.refuses_streams = body, kind, form == "whole"


def _events(entry: dict[str, Any], events: list[Any]) -> bytes:
    """Return server-sent events; a text is sent as it is, and a pair has a name."""
    lines = []
    for event in events:
        if isinstance(event, list):
            lines.append(f"event: {event[0]}\ndata: {json.dumps(event[1])}\n\n")
        else:
            lines.append(event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n")
    return "".join([*lines, "data: [DONE]\n\n" if entry.get("done", True) else ""]).encode()


def _chat(entry: dict[str, Any]) -> tuple[tuple[bytes, str], dict[str, Any]]:
    """Return the form of OpenAI's chat completions, which most servers have."""
    deltas = [_delta(entry, said) for said in entry["say"]]
    about = {
        "id": "chatcmpl-1",
        "created": 1,
        "model": entry["model"].partition("/")[2],
        **entry.get("chunk", {}),
    }
    finish, extra = entry.get("finish"), entry.get("choice", {})
    events: list[Any] = []
    for place, delta in enumerate(deltas):
        if isinstance(delta, str):
            events.append(delta)
            continue
        role = {"role": "assistant"} if place == 0 else {}
        choice = {"index": 0, "delta": {**role, **delta}, "finish_reason": None, **extra}
        events.append({**about, "object": "chat.completion.chunk", "choices": [choice]})
    if finish is not None:
        choice = {"index": 0, "delta": {}, "finish_reason": finish, **extra}
        events.append({**about, "object": "chat.completion.chunk", "choices": [choice]})
    usage = {"usage": entry["usage"]} if "usage" in entry else {}
    if usage:
        events.append({**about, "object": "chat.completion.chunk", "choices": [], **usage})
    message = {"role": "assistant", **_merged([delta for delta in deltas if isinstance(delta, dict)])}
    choice = {"index": 0, "message": message, "finish_reason": finish, **extra}
    return (_events(entry, events), STREAM), {
        **about,
        "object": "chat.completion",
        "choices": [choice],
        **usage,
    }


def _delta(entry: dict[str, Any], said: Any) -> dict[str, Any] | str:
    if isinstance(said, str):
        return {"content": said}
    if "raw" in said:
        return str(said["raw"])
    delta = {name: value for name, value in said.items() if name not in ("thought", "call")}
    if "thought" in said:
        delta = {"content": entry.get("beside_thoughts"), **delta}
        delta |= dict.fromkeys(entry.get("thoughts", "reasoning_content").split(), said["thought"])
    if "call" in said:
        index, identity, name, arguments = said["call"]
        function = {
            key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None
        }
        call = {"index": index, "function": function}
        if identity is not None:
            call |= {"id": identity, "type": "function"}
        delta["tool_calls"] = [call]
    return delta


def _merged(deltas: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the message that deltas make up."""
    message: dict[str, Any] = {"content": None}
    for delta in deltas:
        for name, value in delta.items():
            held = message.get(name)
            if name == "tool_calls":
                message[name] = _merged_calls(held or [], value)
            elif name == "function_call" and held:
                message[name] = {**held, "arguments": held["arguments"] + value["arguments"]}
            elif held is None or not isinstance(value, type(held)):
                message[name] = value if held is None or value is not None else held
            elif isinstance(value, str | list):
                message[name] = held + value
    return message


def _merged_calls(held: list[dict[str, Any]], calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for call in calls:
        known = next((each for each in held if each.get("index") == call.get("index")), None)
        if known is None or (known["function"].get("name") and call["function"].get("name")):
            held = [*held, {**call, "function": dict(call["function"])}]
        else:
            known["function"]["arguments"] += call["function"]["arguments"]
    return held


def _blocks(entry: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    for index, said in enumerate(entry["say"]):
        yield index, {"text": said} if isinstance(said, str) else said


def _anthropic(entry: dict[str, Any]) -> tuple[tuple[bytes, str], dict[str, Any]]:
    """Return the form of Anthropic's messages."""
    usage = {"input_tokens": 25, "output_tokens": 22, **entry.get("usage", {})}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "stop_sequence": None,
    }
    events: list[Any] = [
        ["message_start", {"type": "message_start", "message": {**message, "content": [], "stop_reason": None,
                                                                "usage": {**usage, "output_tokens": 1}}}],
        ["ping", {"type": "ping"}],
    ]  # fmt: skip
    content: list[dict[str, Any]] = []

    def block(index: int, empty: dict[str, Any], *deltas: dict[str, Any]) -> None:
        events.append(
            ["content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}]
        )
        events.extend(
            ["content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}]
            for delta in deltas
        )
        events.append(["content_block_stop", {"type": "content_block_stop", "index": index}])

    for index, said in _blocks(entry):
        if "thought" in said:
            block(
                index,
                {"type": "thinking", "thinking": "", "signature": ""},
                *({"type": "thinking_delta", "thinking": word} for word in said["thought"].split("|")),
                {"type": "signature_delta", "signature": said["signature"]},
            )
            thought = said["thought"].replace("|", "")
            content.append({"type": "thinking", "thinking": thought, "signature": said["signature"]})
        elif "redacted" in said:
            redacted = {"type": "redacted_thinking", "data": said["redacted"]}
            block(index, redacted)
            content.append(redacted)
        elif "call" in said:
            identity, name, arguments = said["call"]
            call = {"type": "tool_use", "id": identity, "name": name}
            block(
                index,
                {**call, "input": {}},
                {"type": "input_json_delta", "partial_json": ""},
                {"type": "input_json_delta", "partial_json": json.dumps(arguments)},
            )
            content.append({**call, "input": arguments})
        else:
            block(index, {"type": "text", "text": ""}, {"type": "text_delta", "text": said["text"]})
            content.append({"type": "text", "text": said["text"]})
    if "error" in entry:
        events.append(["error", {"type": "error", "error": entry["error"]}])
    else:
        end = {"stop_reason": entry["finish"], "stop_sequence": None}
        events.append(["message_delta", {"type": "message_delta", "delta": end, "usage": usage}])
        events.append(["message_stop", {"type": "message_stop"}])
    whole = {**message, "content": content, "stop_reason": entry.get("finish"), "usage": usage}
    return (_events({"done": False}, events), STREAM), whole


def _converse(entry: dict[str, Any]) -> tuple[tuple[bytes, str], dict[str, Any]]:
    """Return the form of Bedrock's Converse, whose streams are binary frames."""
    usage = {"inputTokens": 25, "outputTokens": 22, "totalTokens": 47, **entry.get("usage", {})}
    frames = [_frame("messageStart", {"role": "assistant"})]
    content: list[dict[str, Any]] = []
    for index, said in _blocks(entry):
        deltas: list[dict[str, Any]]
        start = {}
        if "thought" in said:
            signed = {"signature": said["signature"]}
            deltas = [{"reasoningContent": {"text": word}} for word in said["thought"].split("|")]
            deltas.append({"reasoningContent": signed})
            thought = {"text": said["thought"].replace("|", ""), **signed}
            content.append({"reasoningContent": {"reasoningText": thought}})
        elif "call" in said:
            identity, name, arguments = said["call"]
            start = {"toolUse": {"toolUseId": identity, "name": name}}
            deltas = [{"toolUse": {"input": json.dumps(arguments)}}]
            content.append({"toolUse": {"toolUseId": identity, "name": name, "input": arguments}})
        else:
            deltas = [{"text": said["text"]}]
            content.append({"text": said["text"]})
        if start:
            frames.append(_frame("contentBlockStart", {"contentBlockIndex": index, "start": start}))
        frames += [
            _frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta}) for delta in deltas
        ]
        frames.append(_frame("contentBlockStop", {"contentBlockIndex": index}))
    if "error" in entry:
        name, message = entry["error"]
        frames.append(_frame(name, {"message": message}, exception=True))
    else:
        frames.append(_frame("messageStop", {"stopReason": entry["finish"]}))
        frames.append(_frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}))
    whole = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": entry.get("finish"),
        "usage": usage,
        "metrics": {"latencyMs": 1},
    }
    return (b"".join(frames), AWS), whole


def _frame(name: str, payload: dict[str, Any], *, exception: bool = False) -> bytes:
    """Return one message of `application/vnd.amazon.eventstream`."""
    kind = "exception" if exception else "event"
    fields = {":message-type": kind, f":{kind}-type": name, ":content-type": "application/json"}
    head = b"".join(
        struct.pack("!B", len(key)) + key.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for key, value in fields.items()
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", 16 + len(head) + len(body), len(head))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + head + body
    return message + struct.pack("!I", zlib.crc32(message))


def _ollama(entry: dict[str, Any]) -> tuple[tuple[bytes, str], dict[str, Any]]:
    """Return the form of Ollama's own API."""
    about = {"model": "qwen3", "created_at": "2026-01-01T00:00:00Z"}
    said = [{"content": each} if isinstance(each, str) else each for each in entry["say"]]
    lines = [
        {**about, "message": {"role": "assistant", "content": "", **each}, "done": False} for each in said
    ]
    ended = {"done_reason": entry.get("finish"), "done": True, "prompt_eval_count": 26, "eval_count": 298}
    lines.append({**about, "message": {"role": "assistant", "content": ""}, **ended})
    if "error" in entry:
        lines[-1:] = [{"error": entry["error"]}]
    stream = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    return (stream, LINES), {
        **about,
        "message": {"role": "assistant", **_merged([{"content": ""}, *said])},
        **ended,
    }


def _gemini(entry: dict[str, Any]) -> tuple[tuple[bytes, str], dict[str, Any]]:
    """Return the form of Gemini's `generateContent`."""
    parts = [{"text": each} if isinstance(each, str) else each for each in entry["say"]]
    usage = {
        "promptTokenCount": 2000,
        "candidatesTokenCount": 9,
        "totalTokenCount": 2009,
        **entry.get("usage", {}),
    }
    about = {"usageMetadata": usage, "modelVersion": "gemini-2.5-flash", "responseId": "r1"}
    end = {"finishReason": entry["finish"]} if "finish" in entry else {}

    def candidate(parts: list[Any], end: dict[str, Any]) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0, **end}], **about}

    last = len(parts) - 1
    events: list[Any] = [candidate([part], end if n == last else {}) for n, part in enumerate(parts)]
    if not parts:
        events = [{"candidates": [{"index": 0, **end}], **about}]
    return (_events({"done": False}, events), STREAM), candidate(parts, end)
