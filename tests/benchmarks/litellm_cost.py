"""What LiteLLM itself costs: CPU time of one streamed call, beside the same call by bare httpx.

The server runs in a process of its own, so that its work is not counted.

    python -m tests.benchmarks.litellm_cost
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from reyn_jupyter.models.base import Message, Request, ToolSet
from reyn_jupyter.models.providers.litellm_loader import load
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel
from tests.support.openai_server import Answer, Call, OpenAIServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from multiprocessing.connection import Connection

MODEL = "openai/gpt-4o-mini"
CALLS = 100
WARM_UP = 10
TOOL = {
    "type": "function",
    "function": {"name": "list_actions", "parameters": {"type": "object", "properties": {}}},
}
REQUEST = Request(
    MODEL, (Message("system", "You act by tools."), Message("user", "Which files?")), ToolSet((TOOL,))
)


def main() -> None:
    """Print CPU milliseconds a call for httpx, LiteLLM, and LiteLLM behind the seam."""
    with _server() as url:
        figures = asyncio.run(_measure(url))
    print(f"LiteLLM's own cost, CPU a streamed call with one tool call (mean of {CALLS}):")
    for name, seconds in figures.items():
        print(f"  {name:<28} {seconds * 1000:6.2f} ms")


async def _measure(url: str) -> dict[str, float]:
    import httpx

    litellm = load()
    model = LiteLLMModel(MODEL, api_base=url, environ={})
    body = {
        **REQUEST.wire,
        "model": "gpt-4o-mini",
        "stream": True,
        "stream_options": {"include_usage": True},
    }

    async with httpx.AsyncClient() as client:

        async def by_httpx() -> None:
            async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        json.loads(line[6:])

        async def by_litellm() -> None:
            arguments: dict[str, Any] = {**body, "model": MODEL, "api_base": url, "api_key": "no-key"}
            async for _ in await litellm.acompletion(**arguments, num_retries=0, max_retries=0):
                pass

        async def by_seam() -> None:
            await model.complete(REQUEST)

        return {
            "httpx": await _cpu(by_httpx),
            "LiteLLM": await _cpu(by_litellm),
            "LiteLLM behind the seam": await _cpu(by_seam),
        }


async def _cpu(call: Callable[[], Awaitable[None]]) -> float:
    """Mean CPU seconds of this process for one call."""
    for _ in range(WARM_UP):
        await call()
    begin = time.process_time()
    for _ in range(CALLS):
        await call()
    return (time.process_time() - begin) / CALLS


@contextmanager
def _server() -> Iterator[str]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("stop")
        process.join(10)


def _serve(connection: Connection) -> None:
    with OpenAIServer(Answer(calls=(Call("list_actions", {"category": ["file"]}),))) as server:
        connection.send(server.url)
        connection.recv()


if __name__ == "__main__":
    main()
