"""A server's tool has two names: as an action of its own, and by `mcp__call_tool`. Each rule means the same for both.

Whether it ran is what the server's own counter says, so that no entrance can go round the gate unseen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.notebook.serving.protocol import PROTOCOL
from reyn_jupyter.runtime.access.mcp_access import McpServerList
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.result_objects import ActionFailedError
from tests.security.security_support import invoke
from tests.support.mcp_servers import program
from tests.support.waiting import PATIENCE

NAMES: dict[str, dict[str, Any]] = {
    "mcp__lab__echo": {"text": "x"},
    "mcp__call_tool": {"tool": "lab__echo", "tool_args": {"text": "x"}},
}
DENIED = dict.fromkeys(
    ("model", "model, approve read", "model, approve all", "by hand", "form", "replay", "script"), "denied"
)
FREE = DENIED | {"model, approve all": "ran", "by hand": "ran", "replay": "recorded", "script": "ran"}
RULES: dict[tuple[str, str], dict[str, str]] = {
    ("", ""): FREE | {"model": "asked", "form": "asked"},
    ("allow", "*(mcp:lab/*)"): dict.fromkeys(DENIED, "ran") | {"replay": "recorded"},
    ("allow", "mcp__call_tool(mcp:lab/echo)"): dict.fromkeys(DENIED, "ran") | {"replay": "recorded"},
    ("ask", "mcp__call_tool(mcp:lab/echo)"): FREE | {"model": "asked", "form": "asked"},
    **dict.fromkeys(
        (
            ("deny", "*(mcp:lab/echo)"),
            ("deny", "mcp__lab__*"),
            ("deny", "mcp__lab__echo"),
            ("deny", "mcp__call_tool"),
            ("deny", "mcp__*(mcp:lab/*)"),
        ),
        DENIED,
    ),
}


def opened(root: Path, permissions: dict[str, list[str]]) -> reyn.Session:
    """Return a session whose server is ready."""
    made = reyn.Session(
        root,
        config={"permissions": permissions, "action_retrieval": {"embedding_class": None}},
        namespace={},
        mcp_servers=McpServerList([program()]),
    )
    assert made.invoke_action("mcp__list_tools", {"server": "lab"}).error is None
    return made


class Free:
    """A session in which no rule stands against anything, and its runs, in which the tool was called by each name."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.session = opened(root, {})
        self.runs = {
            name: self.session.ask("go", model=ScriptedModel(invoke(name, **args), "done"), approve="all").run
            for name, args in NAMES.items()
        }


class Door:
    """A session under one rule, and each way in."""

    def __init__(self, rule: tuple[str, str], free: Free) -> None:
        self._free = free
        self.asked = 0
        self.session = opened(free.root, {rule[0]: [rule[1]]} if rule[0] else {})
        self.session.parts.ask_person = self._deny

    def _deny(self, question: Question) -> Answer:
        self.asked += 1
        return "deny"

    def outcome(self, enter: Callable[[], Any]) -> str:
        """Return what happened to a call."""
        states = self.session.parts.services.mcp.states
        before, self.asked = states()[0].calls, 0
        recorded = enter()
        if states()[0].calls > before:
            return "ran"
        return "asked" if self.asked else "recorded" if recorded is True else "denied"

    def model(self, name: str, **options: Any) -> None:
        self.session.ask("go", model=ScriptedModel(invoke(name, **NAMES[name]), "done"), new=True, **options)

    def by_hand(self, name: str) -> None:
        self.session.invoke_action(name, NAMES[name])

    def form(self, name: str) -> None:
        messages: SimpleQueue[dict[str, Any]] = SimpleQueue()
        page = Connection(Hub(lambda: self.session), messages.put, None)
        try:
            hello = {"protocol": PROTOCOL, "host": "page", "version": "0", "approves": True}
            page.receive({"type": "request", "id": 1, "op": "hello", "args": hello})
            typed = {
                key: each if isinstance(each, str) else json.dumps(each) for key, each in NAMES[name].items()
            }
            args = {"name": name, "typed": typed}
            page.receive({"type": "request", "id": 2, "op": "catalog.invoke", "args": args})
            while (message := messages.get(timeout=PATIENCE)).get("id") != 2:
                event = message.get("event", {})
                if event.get("name") == "approval":
                    self.asked += 1
                    (secret,) = [each["secret"] for each in event["choices"] if each["answer"] == "deny"]
                    answer = {"id": event["id"], "answer": "deny", "secret": secret}
                    page.receive({"type": "request", "id": 3, "op": "approval.answer", "args": answer})
            assert message.get("error") is None, message
        finally:
            page.close()

    def replay(self, name: str) -> bool:
        return all(call.ok for call in self.session.replay(self._free.runs[name]).calls)

    def script(self, name: str) -> None:
        current._current[:] = [self.session]
        with suppress(ActionFailedError):
            exec(self._free.session.script(self._free.runs[name]).code, {})


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Free]:
    made = Free(tmp_path_factory.mktemp("workspace"))
    yield made
    made.session.close()


@pytest.mark.parametrize("rule", RULES, ids=" ".join)
def test_both_names_of_a_tool_come_under_the_same_rules_at_every_entrance(
    free: Free, rule: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(current, "_current", [])
    door = Door(rule, free)
    entrances: dict[str, Callable[[str], Any]] = {
        "model": door.model,
        "model, approve read": lambda name: door.model(name, approve="read"),
        "model, approve all": lambda name: door.model(name, approve="all"),
        "by hand": door.by_hand,
        "form": door.form,
        "replay": door.replay,
        "script": door.script,
    }
    happened = {
        (entrance, name): door.outcome(lambda enter=enter, name=name: enter(name))
        for entrance, enter in entrances.items()
        for name in NAMES
    }
    door.session.close()
    assert happened == {(entrance, name): RULES[rule][entrance] for entrance, name in happened}
