"""Every recorded reply of a model server becomes what it means, over HTTP and through LiteLLM."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from reyn_jupyter.models.base import Message, ModelError, Request, Response, ToolSet
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*`ReadOnly` qualifier", "ignore:Pydantic serializer warnings"
)

CORPUS = Path(__file__).parents[2] / "data" / "wire"
KEYS = {f"{name}_API_KEY": "no-real-key-0000" for name in ("OPENAI", "ANTHROPIC", "OLLAMA", "GEMINI")}
TOOLS = ToolSet(
    tuple(
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
        for name in ("list_actions", "inspect")
    )
)


class Replay:
    """A server that answers every request with one recorded reply."""

    def __init__(self) -> None:
        self.reply: dict[str, Any] = {}
        replay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                body, kind = replay.body()
                self.send_response(replay.reply.get("status", 200))
                for name, value in replay.reply.get("headers", {}).items():
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

    def body(self) -> tuple[bytes, str]:
        reply = self.reply
        if "events" in reply:
            lines = "".join(f"data: {json.dumps(each)}\n\n" for each in reply["events"])
            return (
                f"{lines}{'data: [DONE]' if reply.get('done', True) else ''}\n\n".encode(),
                "text/event-stream",
            )
        if "named" in reply:
            events = (f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in reply["named"])
            return "".join(events).encode(), "text/event-stream"
        if "lines" in reply:
            return "".join(
                f"{json.dumps(each)}\n" for each in reply["lines"]
            ).encode(), "application/x-ndjson"
        body = reply["body"]
        return (body if isinstance(body, str) else json.dumps(body)).encode(), "application/json"


@pytest.fixture(scope="module")
def replay() -> Iterator[Replay]:
    made = Replay()
    yield made
    made.server.shutdown()


def problems(expect: dict[str, Any], got: Response | ModelError) -> list[str]:
    if isinstance(got, ModelError):
        text = f"{got.message} {got.hint}"
        found: dict[str, Any] = {"error": got.kind, "retryable": got.retryable}
        wrong = [
            f"{name}: {value!r} is not in {text!r}"
            for name, value in expect.items()
            if name in ("says", "hint") and str(value) not in text
        ]
    else:
        signatures = [block.get("signature") for block in got.reasoning.blocks]
        found = {
            "text": got.text,
            "raw_text": got.text,
            "calls": [[call.name, json.loads(call.arguments)] for call in got.tool_calls],
            "finish": got.finish_reason,
            "reasoning": got.reasoning.text,
            "signature": signatures[0] if signatures else None,
            "prompt_tokens": got.usage.prompt_tokens,
            "cached_tokens": got.usage.cached_tokens,
            "cache_write_tokens": got.usage.cache_write_tokens,
            "reasoning_tokens": got.usage.reasoning_tokens,
        }
        wrong = []
        if not got.usage.estimated and got.usage.completion_tokens == 0:
            wrong.append("no tokens were counted")
    return wrong + [
        f"{name}: {found.get(name)!r} in place of {value!r}"
        for name, value in expect.items()
        if name not in ("says", "hint") and found.get(name) != value
    ]


def test_every_recorded_reply_is_read_right(replay: Replay) -> None:
    wrong = []

    async def ask(model: str) -> Response | ModelError:
        base = replay.url if model.startswith(("ollama", "anthropic")) else f"{replay.url}/v1"
        asked = LiteLLMModel(model, api_base=base, environ=KEYS)
        try:
            return await asked.complete(Request(model, (Message("user", "How many?"),), TOOLS, timeout=20.0))
        except ModelError as error:
            return error

    async def ask_all() -> None:
        for file in sorted(CORPUS.glob("*.yaml")):
            recorded = yaml.safe_load(file.read_text(encoding="utf-8"))
            assert recorded["source"], file
            for name, entry in recorded["entries"].items():
                replay.reply = entry["reply"]
                got = await ask(recorded["model"])
                wrong.extend(f"{file.name}, {name}: {each}" for each in problems(entry["expect"], got))

    asyncio.run(ask_all())
    assert not wrong, "\n".join(wrong)
