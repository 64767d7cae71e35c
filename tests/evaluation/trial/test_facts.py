"""What the facts of a trial tell of the calls that a call made in turn."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool
from reyn_jupyter.models.scripted import ScriptedModel, Step, call
from reyn_jupyter.runtime.record.call_facts import MOST_INNER, call_facts
from reyn_jupyter.runtime.services import ToolContext
from tests.categories.peer_support import Agents, ask, invoke

FREE = {"type": "object", "properties": {}, "additionalProperties": True}


def category(name: str, handler: Any) -> Category:
    tool = Tool(f"{name}_do", handler, Purity.READ)
    return Category(name, "Do it.", (Operation("do", "Do it.", FREE, tool),))


def test_no_number_of_other_calls_within_hides_one_of_another_action(workspace: Path) -> None:
    async def answer(args: Any, context: ToolContext) -> str:
        return "done"

    async def through(args: Any, context: ToolContext) -> str:
        for at in range(MOST_INNER + 20):
            await context.invoke("look__do", {"at": at})
            await context.invoke("look__do", {"at": 0})
        await context.invoke("order__do")
        return "done"

    made = (category("look", answer), category("order", answer), category("flow", through))
    model = ScriptedModel(call("invoke_action", action_name="flow__do", args={}), "Done.")
    with closing(reyn.Session(workspace, store="memory", categories=made)) as session:
        (fact,) = call_facts(session.ask("Do it.", model=model, approve="all"))
    assert "order__do" in {each.name for each in fact.inner}
    assert [each.args["at"] for each in fact.inner if each.name == "look__do"] == list(range(MOST_INNER + 1))


def test_an_inner_run_that_cannot_be_read_is_no_call_without_further_ones(workspace: Path) -> None:
    async def through(args: Any, context: ToolContext) -> str:
        await context.invoke("order__do")
        return "done"

    async def order(args: Any, context: ToolContext) -> str:
        return "done"

    made = (category("order", order), category("flow", through), category("outer", through))
    model = ScriptedModel(call("invoke_action", action_name="flow__do", args={}), "Done.")
    with closing(reyn.Session(workspace, categories=made)) as session:
        trace = session.ask("Do it.", model=model, approve="all")
        (fact,) = call_facts(trace)
        assert fact.unread is None and [each.name for each in fact.inner] == ["order__do"]
    (record,) = (workspace / ".reyn" / "runs").glob("*.inner.jsonl")
    record.write_text("no record\n")
    with closing(reyn.Session(workspace, categories=made)) as session:
        (fact,) = call_facts(session.trace(trace.run))
    assert fact.inner == () and fact.unread is not None and "cannot be read" in fact.unread


def test_what_a_peer_looked_at_is_no_call_of_it(workspace: Path) -> None:
    (workspace / "a.txt").write_text("text")
    main: list[Step] = [ask("ann"), "Done."]
    ann: list[Step] = [call("list_actions"), call("describe_action", action_name="file__delete")]
    agents = Agents(main=main, ann=[*ann, invoke("file__read", path="a.txt"), "Read."])
    with closing(
        agents.session(workspace, {"ann": {"description": "Reads files.", "categories": ["file"]}})
    ) as session:
        (fact,) = call_facts(session.ask("Do it.", approve="all"))
    assert fact.ok, fact
    assert [each.name for each in fact.inner] == ["file__read"]
