"""A category that says that its entries moved is seen by pages and by the next request of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Entry, Purity, Resources, Tool
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.serving.answer_key import AnswerKey
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.notebook.serving.protocol import CatalogChanged, Hello, ViewEvent
from reyn_jupyter.sessions import current
from tests.support.waiting import until

SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}


class Page:
    """A connection that keeps what is sent to it."""

    hello: Hello | None = None
    client = ""

    def __init__(self) -> None:
        self.answer_key = AnswerKey()
        self.hears_in_cell = False
        self.is_alive = True
        self.sent: list[Any] = []

    def send(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def revisions(self) -> list[str]:
        events = [message.event for message in self.sent if isinstance(message, ViewEvent)]
        return [event.revision for event in events if isinstance(event, CatalogChanged)]


def growing_session(workspace: Path, *, push: bool) -> reyn.Session:
    """Return a session with resources whose revision never moves: each call adds one."""
    names = ["a"]

    async def entries() -> list[Entry]:
        return [Entry(name, f"The thing {name}.", SCHEMA) for name in names]

    async def look(args: dict[str, Any], context: Any) -> str:
        names.append(f"{names[-1]}a")
        if push:
            context.services.changed("thing")
        return "seen"

    rule = Resources(Tool("look_thing", look, Purity.READ), lambda entry, args: {}, "look", entries)
    return reyn.Session(workspace, store="memory", categories=[Category("thing", "Look.", resources=rule)])


def test_pages_hear_of_a_push(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = growing_session(workspace, push=True)
    monkeypatch.setattr(current, "_current", [session])
    hub, page = Hub(lambda: session), Page()
    hub.join(page)
    try:
        hub.look()
        until(lambda: page.revisions)
        session.invoke_action("thing__a")
        until(lambda: len(page.revisions) == 2)
        assert page.revisions[-1] == session.catalog.hash
        for _ in range(3):
            session.parts.services.changed("thing")
        session.invoke_action("thing__a")
        until(lambda: page.revisions[-1] == session.catalog.hash)
    finally:
        hub.leave(page)


@pytest.mark.parametrize(("push", "found"), [(True, ["thing__a", "thing__aa"]), (False, ["thing__a"])])
def test_the_next_request_of_a_model_sees_it_also_after_a_call_that_only_reads(
    workspace: Path, push: bool, found: list[str]
) -> None:
    session = growing_session(workspace, push=push)
    steps = (
        call("invoke_action", action_name="thing__a", args={}),
        call("list_actions", category=["thing"]),
        "done",
    )
    trace = session.ask("go", model=ScriptedModel(*steps))
    listed = trace.calls[1].finished
    assert listed is not None
    assert [name for name in ("thing__a", "thing__aa") if f'"{name}"' in listed.output] == found
