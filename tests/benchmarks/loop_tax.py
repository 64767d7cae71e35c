"""What the loop itself costs: CPU time a turn with a scripted model, beside three other agent loops.

A turn is one question, one tool call of a tool that returns a constant, and one answer; the model is a Python
function in all four. Ours runs as people run it: run log on disk, redaction on, permissions, a catalog. Each loop
runs in a process of its own, so that none pays for another's imports.

Beside it: the way of one warm `%%reyn` cell through the house, in calls from a function of one room into another.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

TURNS = 120
PEERS = ("reyn", "pydantic_ai", "smolagents", "langgraph")


def main() -> None:
    rows = {name: apart(name) for name in PEERS}
    ours = rows["reyn"]
    print(f"{'loop':<14}{'ms CPU a turn':>16}{'of ours':>10}{'turn 100 : turn 1':>20}")
    for name, row in rows.items():
        if row is None:
            print(f"{name:<14}{'not installed':>16}")
            continue
        growth = f"{row['growth']:.2f}" if row["growth"] else "fresh each turn"
        ratio = f"{row['ms'] / ours['ms']:.1f} ×" if ours else ""
        print(f"{name:<14}{row['ms']:>16.3f}{ratio:>10}{growth:>20}")
    if way := apart("way"):
        print("one warm %%reyn cell, offline model: {calls:,} calls of ours, {files} files".format(**way))
        print("room switches: {switches}; most: {most}".format(**way))


def apart(name: str) -> dict[str, Any] | None:
    """What a function of this module reports from a process of its own; None where its package is not installed."""
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, name], capture_output=True, text=True, check=False
    )
    found: dict[str, Any] | None = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
    return found


def measure(turn: Callable[[], Any]) -> list[float]:
    times = []
    for _ in range(TURNS):
        began = time.process_time()
        turn()
        times.append((time.process_time() - began) * 1000)
    return times


def report(times: list[float], *, conversation: bool) -> None:
    early, late = statistics.median(times[10:30]), statistics.median(times[-20:])
    growth = late / early if conversation else None
    print(json.dumps({"ms": statistics.median(times[10:]), "growth": growth}))


def reyn() -> None:
    import reyn_jupyter as reyn
    from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool
    from reyn_jupyter.models.base import Response, Usage
    from reyn_jupyter.models.scripted import ScriptedModel, call

    async def handler(args: dict[str, Any], context: Any) -> str:
        return "hello"

    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    say = Operation("say", "Say a word.", schema, Tool("say_echo", handler, Purity.PURE))
    asked = call("invoke_action", action_name="echo__say", args={"text": "a"})

    def answer(request: Any) -> Response:
        if request.messages[-1].role == "user":
            return Response(tool_calls=(asked,), finish_reason="tool_calls", usage=Usage(10, 5), cost=0.0)
        return Response("It says hello.", usage=Usage(10, 5), cost=0.0)

    with tempfile.TemporaryDirectory() as folder:
        model = ScriptedModel(otherwise=answer)
        session = reyn.Session(folder, model=model, categories=(Category("echo", "echo", (say,)),))
        session.build_embeddings()  # else its beginning in the background would count as the loop's
        times = measure(lambda: session.ask("say it"))
        assert len(list(Path(folder, ".reyn", "runs").glob("*.jsonl"))) == TURNS
    report(times, conversation=True)


def way() -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    import reyn_jupyter

    house = str(Path(reyn_jupyter.__file__).parent) + "/"
    files: set[str] = set()
    switches: Counter[str] = Counter()
    calls, counting = 0, False

    def room(frame: FrameType | None) -> str | None:
        file = frame.f_code.co_filename if frame is not None else ""
        return file.removeprefix(house).partition("/")[0] if file.startswith(house) else None

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        entered = room(frame) if counting and event == "call" else None
        if entered is None:
            return
        calls += 1
        files.add(frame.f_code.co_filename)
        caller = frame.f_back
        while caller is not None and room(caller) is None:  # through asyncio, functools and the like
            caller = caller.f_back
        left = room(caller)
        if left is not None and left != entered:
            switches[f"{left} → {entered}"] += 1

    threading.setprofile(count)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), capture_output():
        Path("orders.csv").write_text("id,amount\n1,3\n2,5\n3,10\n")
        shell = InteractiveShell.instance()
        shell.run_line_magic("load_ext", "reyn_jupyter")
        reyn_jupyter.session().build_embeddings()
        for _ in range(5):
            shell.run_cell_magic("reyn", "-m offline", "how many rows are in orders.csv?")
        sys.setprofile(count)
        counting = True
        shell.run_cell_magic("reyn", "-m offline", "how many rows are in orders.csv?")
        counting = False
        sys.setprofile(None)
    most = ", ".join(f"{pair} {number}" for pair, number in switches.most_common(5))
    row = {"switches": switches.total(), "calls": calls, "files": len(files), "most": most}
    print(json.dumps(row))


def pydantic_ai() -> None:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: Any, info: Any) -> Any:
        if messages[-1].parts[-1].part_kind == "tool-return":
            return ModelResponse(parts=[TextPart("It says hello.")])
        return ModelResponse(parts=[ToolCallPart("say", {"text": "a"})])

    agent = Agent(FunctionModel(answer))

    @agent.tool_plain
    def say(text: str) -> str:
        return "hello"

    history: list[Any] = []

    async def turn() -> None:
        result = await agent.run("say it", message_history=history)
        history[:] = result.all_messages()

    report(_awaited(turn), conversation=True)


def smolagents() -> None:
    from smolagents import Model, Tool, ToolCallingAgent
    from smolagents.models import (
        ChatMessage,
        ChatMessageToolCall,
        ChatMessageToolCallFunction,
        MessageRole,
    )

    class Scripted(Model):  # type: ignore[misc]
        steps = 0

        def generate(self, messages: Any, **options: Any) -> Any:
            self.steps += 1
            name, args = ("say", {"text": "a"}) if self.steps % 2 else ("final_answer", {"answer": "hello"})
            function = ChatMessageToolCallFunction(name=name, arguments=args)
            calls = [ChatMessageToolCall(function=function, id=f"c{self.steps}", type="function")]
            return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)

    class Say(Tool):  # type: ignore[misc]
        name, description, output_type = "say", "Say a word.", "string"
        inputs: ClassVar[dict[str, Any]] = {"text": {"type": "string", "description": "the word"}}

        def forward(self, text: str) -> str:
            return "hello"

    agent = ToolCallingAgent(tools=[Say()], model=Scripted(), verbosity_level=0)
    report(measure(lambda: agent.run("say it")), conversation=False)


def langgraph() -> None:
    import warnings

    warnings.simplefilter("ignore")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.prebuilt import create_react_agent

    @tool
    def say(text: str) -> str:
        """Say a word."""
        return "hello"

    def replies() -> Any:
        number = 0
        while True:
            number += 1
            yield AIMessage("", tool_calls=[{"name": "say", "args": {"text": "a"}, "id": f"c{number}"}])
            yield AIMessage("It says hello.")

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

    agent = create_react_agent(Scripted(messages=replies()), [say])
    state: dict[str, Any] = {"messages": []}

    async def turn() -> None:
        nonlocal state
        state = await agent.ainvoke({"messages": [*state["messages"], ("user", "say it")]})

    report(_awaited(turn), conversation=True)


def _awaited(turn: Callable[[], Awaitable[None]]) -> list[float]:
    async def all_turns() -> list[float]:
        times = []
        for _ in range(TURNS):
            began = time.process_time()
            await turn()
            times.append((time.process_time() - began) * 1000)
        return times

    return asyncio.run(all_turns())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        globals()[sys.argv[1]]()
    else:
        main()
