"""A call is planned once: effects, preview and handler see one plan, which ends with the call."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Arguments, Category, Effect, Operation, Purity, Tool
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import ToolContext
from tests.evaluation.trial_support import Scripts, scenario, suite
from tests.security.security_support import Attacker, invoke
from tests.support.courier import schema
from tests.support.waiting import PATIENCE, awaited


@dataclass
class Plan:
    """A plan that knows what became of it."""

    root: Path
    seen: list[str] = field(default_factory=list)
    closed: int = 0

    def close(self) -> None:
        self.closed += 1


@dataclass
class Planner:
    """A category with one action that is planned."""

    fails: str = ""
    plans: list[Plan] = field(default_factory=list)
    begun: threading.Event = field(default_factory=threading.Event)
    released: threading.Event | None = None  # what planning waits for

    def category(self, *, slow: bool = False) -> Category:
        tool = Tool(
            "act", self.act, Purity.WRITE, self.effects, self.preview, plan=self.plan, plan_is_slow=slow
        )
        return Category("world", "Act.", (Operation("act", "Act.", schema(), tool),))

    def plan(self, args: Arguments, context: ToolContext) -> Plan:
        if self.fails == "plan":
            raise ActionError("no plan", "Think again.")
        if self.released is not None:
            self.begun.set()
            assert self.released.wait(PATIENCE)
        self.plans.append(Plan(context.services.root))
        return self.plans[-1]

    def effects(self, args: Arguments, context: ToolContext) -> list[Effect]:
        context.plan.seen.append("effects")
        if self.fails == "effects":
            raise ActionError("no effects")
        return [Effect("write", "a.txt")]

    def preview(self, args: Arguments, context: ToolContext) -> str:
        context.plan.seen.append("preview")
        return "a change"

    async def act(self, args: Arguments, context: ToolContext) -> str:
        context.plan.seen.append(f"handler, closed {context.plan.closed}")
        if self.fails == "handler":
            raise ValueError("failed")
        return "acted"


def test_effects_preview_and_handler_see_one_plan_which_is_closed_at_the_end(workspace: Path) -> None:
    planner = Planner()
    attacker = Attacker(workspace, categories=(planner.category(),), answer="once")
    assert "acted" in attacker.calls(invoke("world__act"), invoke("world__act"))
    assert [(plan.seen, plan.closed) for plan in planner.plans] == [
        (["effects", "preview", "handler, closed 0"], 1)
    ] * 2


@pytest.mark.parametrize(
    ("fails", "answer", "deny", "seen"),
    [
        ("effects", "once", [], ["effects"]),
        ("handler", "once", [], ["effects", "preview", "handler, closed 0"]),
        ("", "deny", [], ["effects", "preview"]),
        ("", "once", ["world__act"], ["effects"]),
    ],
)
def test_a_plan_is_closed_whatever_becomes_of_the_call(
    workspace: Path, fails: str, answer: Any, deny: list[str], seen: list[str]
) -> None:
    planner = Planner(fails)
    attacker = Attacker(workspace, {"deny": deny}, categories=(planner.category(),), answer=answer)
    attacker.call("world__act")
    (plan,) = planner.plans
    assert (plan.seen, plan.closed) == (seen, 1)


def test_what_cannot_be_planned_is_refused_before_anybody_is_asked(workspace: Path) -> None:
    attacker = Attacker(workspace, categories=(Planner("plan").category(),), answer="once")
    said = attacker.call("world__act")
    assert "no plan" in said and "Think again" in said and attacker.questions == []


def test_a_call_that_is_answered_from_the_record_closes_its_plan(workspace: Path) -> None:
    planner = Planner()
    session = reyn.Session(workspace, categories=(planner.category(),), store="files", namespace={})
    run = session.ask("go", model=ScriptedModel(invoke("world__act"), "done"), approve="all").run
    session.replay(run)
    assert [(plan.seen, plan.closed) for plan in planner.plans] == [
        (["effects", "handler, closed 0"], 1),
        (["effects"], 1),
    ]


def test_a_trial_that_goes_on_in_a_copy_of_its_workspace_plans_there(workspace: Path) -> None:
    planner = Planner()
    catalog = Catalog.standard() + Catalog((planner.category(),))
    task = scenario(catalog="world", workspace={"notes.md": "hello\n"})
    study = Study(
        None,
        suite(task, catalogs={"world": lambda: catalog}),
        models={"scripted": Scripts(invoke("world__act"), "Done.")},
        allow_actions=["world__act"],
    )
    study.run(Variant("plain", model="scripted"), repeats=1)
    before, within = planner.plans
    assert (before.seen, before.closed) == (["effects"], 1)
    assert (within.seen, within.closed) == (["handler, closed 0"], 1)


async def test_while_a_slow_plan_is_made_other_calls_go_on(workspace: Path) -> None:
    planner, quick = Planner(released=threading.Event()), Planner()
    tool = Tool("see", quick.act, Purity.READ, plan=quick.plan)
    other = Category("other", "See.", (Operation("see", "See.", schema(), tool),))
    session = reyn.Session(workspace, categories=(planner.category(slow=True), other), namespace={})
    waiting = asyncio.ensure_future(session.aio.invoke_action("world__act"))
    assert await asyncio.to_thread(planner.begun.wait, 30)
    assert (await session.aio.invoke_action("other__see")).value == "acted" and not waiting.done()
    assert planner.released is not None
    planner.released.set()
    assert (await waiting).value == "acted"
    assert planner.plans[0].closed == 1


async def test_a_slow_plan_that_comes_after_the_interrupt_is_closed(workspace: Path) -> None:
    planner = Planner(released=threading.Event())
    session = reyn.Session(workspace, categories=(planner.category(slow=True),), namespace={})
    waiting = asyncio.ensure_future(session.aio.invoke_action("world__act"))
    assert await asyncio.to_thread(planner.begun.wait, 30)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert planner.plans == [] and planner.released is not None
    planner.released.set()
    await awaited(lambda: [plan.closed for plan in planner.plans] == [1])
    assert planner.plans[0].seen == []
