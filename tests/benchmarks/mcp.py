"""MCP servers: what a call costs over the protocol's bare SDK, calls side by side, forty servers, and the first call.

The servers are programs of the tests, which speak the protocol without any SDK. Calls of both sides take turns, so that
what else the machine does falls on each alike.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerList
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.sessions.runs import run_lifecycle
from tests.support.mcp_http import http_server
from tests.support.mcp_servers import program

CALLS, SERVERS, TOOLS, QUICK = 300, 40, 527, 49
SLOW_SECONDS = "2"
LOOK = 15  # times of a listing or a search


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        first_call(root)
        one_call(root)
        side_by_side(root)
        many_servers(root)


def session_of(root: Path, servers: Sequence[McpServer]) -> reyn.Session:
    # Search goes by words: an index that is built meanwhile would take its share of the two cores.
    config = {"action_retrieval": {"embedding_class": None}, "permissions": {"allow": ["mcp__*"]}}
    return reyn.Session(root, store="memory", namespace={}, mcp_servers=McpServerList(servers), config=config)


def on_engine(work: Awaitable[Any]) -> Any:
    async def awaited() -> Any:
        return await work

    return asyncio.run_coroutine_threadsafe(awaited(), ENGINE.loop).result()


async def milliseconds(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return 1000 * (time.perf_counter() - began)


def first_call(root: Path) -> None:
    """Print how long the engine's loop stood still while the first call loaded the SDK."""
    found = subprocess.run(
        [sys.executable, "-c", FIRST, str(root)], check=True, capture_output=True, text=True
    )
    print(f"first call of a process: {found.stdout.strip()}")


FIRST = """
import sys, threading, time
import reyn_jupyter as reyn
from reyn_jupyter.runtime.access.mcp_access import McpServerList
from reyn_jupyter.sessions.assembly import ENGINE
from tests.support.mcp_servers import program
session = reyn.Session(sys.argv[1], store="memory", namespace={}, mcp_servers=McpServerList([program()]))
session.list_actions("file")
lags, over = [], threading.Event()
def watch():
    while not over.wait(0.002):
        served, began = threading.Event(), time.perf_counter()
        ENGINE.loop.call_soon_threadsafe(served.set)
        served.wait()
        lags.append(time.perf_counter() - began)
watching = threading.Thread(target=watch)
watching.start()
began = time.perf_counter()
args = {"tool": "lab__number", "tool_args": {}}
assert session.invoke_action("mcp__call_tool", args).error is None
took = time.perf_counter() - began
over.set()
watching.join()
print(f"{1000 * took:.0f} ms, of which the loop stood still {1000 * max(lags):.0f} ms at most")
session.close()
"""


async def never(question: object) -> str:
    """Deny what is asked; the rules of the benchmark ask nothing."""
    return "no"


def one_call(root: Path) -> None:
    """Print the time of a call over our client and as an action, beside the SDK's client with its own transport."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server, args = program(), {"text": "x"}
    session = session_of(root, [server])
    ready(session)
    access = session.parts.services.mcp
    times: dict[str, list[float]] = {"bare": [], "client": [], "turn": [], "action": [], "by hand": []}
    spent: dict[str, list[float]] = {name: [] for name in times}

    async def measure() -> None:
        parameters = StdioServerParameters(command=server.command, args=list(server.args))
        async with Client(stdio_client(parameters)) as client:
            run = await run_lifecycle.by_client(session.parts, "benchmark", "calls of a model", never)
            model_args = json.dumps({"action_name": "mcp__lab__echo", "args": args})
            number = itertools.count()

            async def as_model() -> object:
                """Make a call as a step of a turn does, whose run goes on."""
                planned = session.parts.wrappers.plan(f"c{next(number)}", "invoke_action", model_args, run, 1)
                outcome = await planned.run()
                assert outcome.ok
                return outcome

            ways: dict[str, Callable[[], Awaitable[Any]]] = {
                "bare": lambda: client.call_tool("echo", args),
                "turn": as_model,
                "client": lambda: access.call("lab__echo", args, None),
                "action": lambda: session.aio.invoke_action("mcp__lab__echo", args),
            }
            for turn in range(CALLS + 20):
                for name, way in ways.items():
                    before = time.thread_time()
                    took = await milliseconds(way)
                    if turn >= 20:
                        times[name].append(took)
                        spent[name].append(1000 * (time.thread_time() - before))

    on_engine(measure())
    for _ in range(CALLS):
        began = time.perf_counter()
        session.invoke_action("mcp__lab__echo", args)
        times["by hand"].append(1000 * (time.perf_counter() - began))
    session.close()
    middle = {name: statistics.median(each) for name, each in times.items()}
    # Where cores are shared with other work, this says what the code takes, and the time what one waits.
    cpu = {name: statistics.median(each) for name, each in spent.items() if each}
    print(
        f"a call, p50: the SDK alone {middle['bare']:.2f} ms, {cpu['bare']:.2f} ms of them of the processor"
    )
    for name, label in (
        ("client", "our connection to the server"),
        ("turn", "as a call of a model, judged and recorded"),
        ("action", "as a call by hand, a run of its own"),
        ("by hand", "the same from another thread, as a cell calls"),
    ):
        more, limit = middle[name] - middle["bare"], ""
        if name in cpu:
            own = cpu[name] - cpu["bare"]
            limit = f", of the processor {own:+.2f}, {own / cpu['bare']:+.2f} × the SDK's"
        if name in ("client", "turn"):
            limit += f"  limit +1: {'yes' if more <= 1 else 'NO'}"
        print(f"  {label:<47}{middle[name]:>6.2f} ms, {more:+.2f}{limit}")


def side_by_side(root: Path) -> None:
    """Print how long quick calls take while a slow one is under way on the same server."""
    with http_server() as far:
        for server, slow, args in (
            (program(), "lab__slow", {"text": SLOW_SECONDS}),
            (far.entry(), "far__hang", {}),
        ):
            session = session_of(root, [server])
            ready(session)

            async def measure(
                session: reyn.Session = session,
                server: McpServer = server,
                slow: str = slow,
                args: Any = args,
            ) -> tuple[float, bool]:
                echo = f"mcp__{server.name}__echo"
                held = asyncio.ensure_future(session.aio.invoke_action(f"mcp__{slow}", args))
                await asyncio.sleep(0.1)
                calls = [session.aio.invoke_action(echo, {"text": str(n)}) for n in range(QUICK)]
                took = await milliseconds(lambda: asyncio.gather(*calls))
                waits = not held.done()
                held.cancel()
                await asyncio.wait([held])
                return took, waits

            took, waits = asyncio.run(measure())
            still = "still under way" if waits else "ALREADY OVER"
            print(
                f"{QUICK} calls beside a slow one, {server.transport}: {took:.0f} ms; the slow one is {still}"
            )
            session.close()


def many_servers(root: Path) -> None:
    """Print what forty servers cost at the start, in the catalog and in a search, beside none."""
    share, more = divmod(TOOLS, SERVERS)
    servers = [
        program(f"s{n:02}", options={"bare": True, "count": share + (n < more)}) for n in range(SERVERS)
    ]
    few, many = session_of(root, []), session_of(root, servers)
    few.list_actions("file")
    began = time.perf_counter()
    ready(many)
    print(f"{SERVERS} servers with {TOOLS} tools: all ready after {time.perf_counter() - began:.2f} s")

    async def rebuild(session: reyn.Session) -> None:
        session.parts.catalog.push("mcp")
        await session.parts.catalog.refresh()

    ways: dict[str, Callable[[reyn.Session], Any]] = {
        "catalog built again": lambda session: on_engine(rebuild(session)),
        "list_actions()": lambda session: session.list_actions(),
        "search_actions": lambda session: session.search_actions("read the lines of a file"),
    }
    for label, way in ways.items():
        beside, took = (middle_of(lambda each=each, way=way: way(each)) for each in (few, many))
        print(f"  {label:<22}{took:>8.2f} ms    without servers {beside:>8.2f} ms")
    without, with_them = prompt_bytes(few), prompt_bytes(many)
    print(f"  the prompt and its tools  {with_them:,} bytes    without servers {without:,}")
    few.close()
    began = time.perf_counter()
    many.close()
    print(f"  all ended after {time.perf_counter() - began:.2f} s")


def middle_of(way: Callable[[], Any]) -> float:
    way()
    taken = []
    for _ in range(LOOK):
        began = time.perf_counter()
        way()
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


def ready(session: reyn.Session) -> None:
    """Start all servers, and wait until they are ready."""
    session.invoke_action("mcp__list_servers")
    waiting = threading.Event()
    while any(each.phase != "ready" for each in session.parts.services.mcp.states()):
        waiting.wait(0.02)
    session.list_actions("mcp")


def prompt_bytes(session: reyn.Session) -> int:
    model = ScriptedModel("Done.")
    session.ask("go", model=model, new=True)
    request = model.requests[0]
    return len(str(request.messages[0].content) + str(request.tools))


if __name__ == "__main__":
    main()
