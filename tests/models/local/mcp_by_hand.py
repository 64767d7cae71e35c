"""Ask the small model of the tests for an MCP server's tools, as docs/mcp.md tells.

`python -m tests.models.local.mcp_by_hand` prints what it does. Each request is asked twice: free to call or not, and
with a call forced. What it calls is run on the real server.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from reyn_jupyter.models.base import Message, Request, ToolSet
from reyn_jupyter.models.local.local_model import LocalModel
from reyn_jupyter.runtime.access.mcp_access import McpServerList
from reyn_jupyter.sessions.session import Session
from tests.support.mcp_servers import from_python

ASKED = {
    "What time is it in Tokyo now?": ("mcp__time__get_current_time", {"timezone": "Asia/Tokyo"}),
    "What is the time in Paris?": ("mcp__time__get_current_time", {"timezone": "Europe/Paris"}),
    "Tell me the current time in UTC.": ("mcp__time__get_current_time", {"timezone": "UTC"}),
    "When it is 09:00 in Europe/Berlin, what time is it in Europe/Lisbon?": (
        "mcp__time__convert_time",
        {"source_timezone": "Europe/Berlin", "time": "09:00", "target_timezone": "Europe/Lisbon"},
    ),
    "Convert 16:30 from America/New_York to Asia/Kolkata.": (
        "mcp__time__convert_time",
        {"source_timezone": "America/New_York", "time": "16:30", "target_timezone": "Asia/Kolkata"},
    ),
}


async def replies(tools: ToolSet, choice: str) -> list[tuple[str, dict[str, object]] | None]:
    """Return what the model calls for each request, None where it calls nothing."""
    model = LocalModel("local/smollm2")
    found = []
    for prompt in ASKED:
        messages = (Message("system", "You are a helpful assistant."), Message("user", prompt))
        parameters = {"temperature": 0, "max_tokens": 96}
        reply = await model.complete(Request(model.label, messages, tools, choice, parameters))
        calls = reply.tool_calls
        found.append((calls[0].name, json.loads(calls[0].arguments)) if calls else None)
        print(f"{choice:<9} {prompt}\n          {found[-1] or reply.text[:160]!r}", flush=True)
    return found


def main() -> None:
    """Print what was called, and how often it was right."""
    with tempfile.TemporaryDirectory() as folder:
        servers = McpServerList([from_python("time", "--local-timezone=UTC")])
        session = Session(Path(folder), store="memory", namespace={}, mcp_servers=servers)
        specs = []
        for name in sorted({name for name, _ in ASKED.values()}):
            face = session.describe_action(name).payload
            function = {"name": name, "description": face["description"], "parameters": face["input_schema"]}
            specs.append({"type": "function", "function": function})
        for choice in ("auto", "required"):
            found = asyncio.run(replies(ToolSet(tuple(specs)), choice))
            wanted = list(ASKED.values())
            called = [each for each in found if each is not None]
            named = sum(
                each is not None and each[0] == right[0] for each, right in zip(found, wanted, strict=True)
            )
            right = sum(each == right for each, right in zip(found, wanted, strict=True))
            ran = sum(session.invoke_action(name, args).error is None for name, args in called)
            print(f"{choice}: {len(called)} of 5 called, {named} the right tool, {ran} ran, {right} rightly")
        session.close()


if __name__ == "__main__":
    main()
