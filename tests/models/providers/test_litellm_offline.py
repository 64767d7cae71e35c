"""The offline model through LiteLLM, end to end; and what LiteLLM may not do when it is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from reyn_jupyter.models.base import Message, Request, ToolSet
from reyn_jupyter.models.offline import OfflineModel
from reyn_jupyter.models.providers.litellm_loader import load
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel
from reyn_jupyter.models.providers.litellm_offline import register
from reyn_jupyter.models.scripted import ScriptedModel, call

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # LiteLLM filters this warning when it is imported, and each test begins with pytest's filters again.
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier"),
]

TOOLS = ToolSet(
    (
        {
            "type": "function",
            "function": {"name": "list_actions", "parameters": {"type": "object", "properties": {}}},
        },
    )
)


async def test_the_offline_model_answers_the_same_through_litellm_as_directly() -> None:
    load().custom_provider_map = []
    messages = (Message("system", "You act by tools."), Message("user", "What can you do?"))
    request = Request("offline", messages, TOOLS)

    direct = await OfflineModel().complete(request)
    through = await LiteLLMModel("offline/offline", tier="light", environ={}).complete(request)

    assert through.text == direct.text
    assert [(each.name, each.arguments) for each in through.tool_calls] == [
        (each.name, each.arguments) for each in direct.tool_calls
    ]


async def test_streams_and_several_tool_calls_come_through_the_provider() -> None:
    scripted = ScriptedModel([call("list_actions", category=["file"]), call("list_actions")], "two\nlines")
    register(load(), scripted)
    model = LiteLLMModel("offline/scripted", environ={})
    heard: list[str] = []

    calls = await model.complete(Request("x", (Message("user", "Hello"),), TOOLS), heard.append)
    text = await model.complete(Request("x", (Message("user", "Hello"),)), heard.append)

    assert [each.arguments for each in calls.tool_calls] == ['{"category": ["file"]}', "{}"]
    assert calls.finish_reason == "tool_calls"
    assert (text.text, heard) == ("two\nlines", ["two\n", "lines"])
    assert scripted.requests[0].tools == TOOLS


async def test_loading_reads_no_dotenv_of_the_folder_and_asks_no_network(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_BASE=https://elsewhere.example\n")
    code = (
        "import os, socket\n"
        "asked = []\n"
        "def refuse(*arguments, **named):\n"
        "    asked.append(arguments[:2])\n"
        "    raise OSError('no network')\n"
        "socket.getaddrinfo = refuse\n"
        "socket.socket.connect = refuse\n"
        "from reyn_jupyter.models.providers.litellm_loader import load\n"
        "load()\n"
        "print(asked, os.environ.get('OPENAI_API_BASE'))\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM_")}
    # Fed through standard input, as in a notebook, there is no main file: then LiteLLM would look in the folder.
    done = subprocess.run(
        [sys.executable, "-i", "-q"],
        input=code,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert "[] None" in done.stdout
