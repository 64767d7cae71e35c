"""Limits of single calls: a deadline, and how many run at once; neither can be held up by a handler."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Effect, Operation, Purity, Tool
from reyn_jupyter.catalog.call_limits import CallLimits
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.events import ActionProgressed
from reyn_jupyter.runtime.services import ToolContext
from tests.support.courier import probe, schema
from tests.support.waiting import LoopClock, until

LOOK = call("invoke_action", action_name="probe__it", args={})


def session(workspace: Path, *categories: Category, **config: Any) -> reyn.Session:
    return reyn.Session(workspace, store="memory", categories=categories, config=config)


def probed(made: reyn.Session, **options: Any) -> Any:
    return made.ask("look", model=ScriptedModel(LOOK, "Done."), **options).calls[0]


async def never() -> None:
    """Pass a minute on the loop's clock, then wait for what never comes."""
    LoopClock().advance(60)
    await asyncio.Event().wait()


def test_a_call_that_takes_too_long_is_stopped_and_says_which_limit_it_was(workspace: Path) -> None:
    cleaned = []

    async def look(args: Any, context: ToolContext) -> str:
        context.report("half", 1, 2, partial=["the first half"])
        try:
            await never()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)
        return "unreached"

    found = probed(session(workspace, probe(look, limits=CallLimits(seconds=30))))
    assert cleaned == [True]
    answer = json.loads(found.finished.output)
    assert answer["error"] == "probe__it was stopped after 30 s: probe_it allows a call no more."
    assert "calls.seconds: {probe: …}" in answer["hint"] and answer["code"] == "call_timeout"
    assert json.loads(answer["partial"]) == ["the first half"] and found.finished.partial


@pytest.mark.parametrize(
    ("category", "tool", "setting", "words"),
    [
        (30, None, None, "30 s: the category probe allows"),
        (None, 20, None, "20 s: probe_it allows"),
        (30, 20, None, "20 s: probe_it allows"),
        (30, 20, 10, "10 s: the setting calls.seconds of probe allows"),
        (None, None, 10, "10 s: the setting calls.seconds of probe allows"),
    ],
)
def test_the_persons_word_goes_before_the_tools_and_that_before_the_categorys(
    workspace: Path, category: float | None, tool: float | None, setting: float | None, words: str
) -> None:
    async def look(args: Any, context: ToolContext) -> None:
        await never()

    limited = Tool("probe_it", look, Purity.READ, limits=CallLimits(seconds=tool))
    made = Category(
        "probe",
        "Look.",
        (Operation("it", "Look at it.", schema(), limited),),
        limits=CallLimits(seconds=category),
    )
    config = {"calls": {"seconds": {"probe": setting}}} if setting else {}
    assert words in probed(session(workspace, made, **config)).finished.error


def test_waiting_for_the_person_does_not_count(workspace: Path) -> None:
    async def look(args: Any, context: ToolContext) -> str:
        await context.ask(Effect("network", "slow.example"))
        await asyncio.sleep(0)
        return "in time"

    async def hesitate(question: Question) -> Answer:
        LoopClock().advance(3600)
        await asyncio.sleep(0.01)
        return "once"

    made = session(workspace, probe(look, limits=CallLimits(seconds=30)))
    assert probed(made, ask=hesitate).finished.output == "in time"


def test_the_clock_goes_on_after_the_answer(workspace: Path) -> None:
    async def look(args: Any, context: ToolContext) -> None:
        await context.ask(Effect("network", "slow.example"))
        await never()

    async def allow(question: Question) -> Answer:
        return "once"

    found = probed(session(workspace, probe(look, limits=CallLimits(seconds=30))), ask=allow)
    assert found.finished.code == "call_timeout"


class Stubborn:
    """A handler that ignores every cancellation until it is let go."""

    def __init__(self) -> None:
        self.reached, self.let_go, self.ended = threading.Event(), threading.Event(), threading.Event()

    async def __call__(self, args: Any, context: ToolContext) -> str:
        self.reached.set()
        while not self.let_go.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                context.report(partial="what it had")
        context.report("after the call")
        self.ended.set()
        return "too late"


def test_a_handler_that_ignores_its_cancellation_holds_nothing_up(workspace: Path) -> None:
    async def look(args: Any, context: ToolContext) -> str:
        LoopClock().advance(60)  # its time is over as soon as it began
        return await stubborn(args, context)

    stubborn = Stubborn()
    made = session(workspace, probe(look, limits=CallLimits(seconds=30)))
    trace = made.ask("look", model=ScriptedModel(LOOK, "Done."))
    assert trace.answer == "Done."
    assert "It ignores its cancellation" in trace.calls[0].finished.error
    assert "what it had" in trace.calls[0].finished.output
    events = len(made.trace().events)
    stubborn.let_go.set()
    assert stubborn.ended.wait(60)
    assert len(made.trace().events) == events  # nothing of it is heard any more
    assert made.list_actions("probe").error is None


def test_an_interrupt_ends_a_run_whose_handler_ignores_it(workspace: Path) -> None:
    stubborn = Stubborn()
    run = session(workspace, probe(stubborn)).start("look", model=ScriptedModel(LOOK, "Done."))
    assert stubborn.reached.wait(60)
    run.cancel()
    assert run.result(60).status == "interrupted"
    assert not stubborn.ended.is_set()
    stubborn.let_go.set()
    assert stubborn.ended.wait(60)


def test_an_interrupt_while_the_handler_asks_ends_both(workspace: Path) -> None:
    asked = threading.Event()

    async def look(args: Any, context: ToolContext) -> None:
        await context.ask(Effect("network", "slow.example"))

    async def hesitate(question: Question) -> Answer:
        asked.set()
        await asyncio.Event().wait()
        return "once"

    made = session(workspace, probe(look, limits=CallLimits(seconds=30)))
    run = made.start("look", model=ScriptedModel(LOOK, "Done."), ask=hesitate)
    assert asked.wait(60)
    run.cancel()
    trace = run.result(60)
    assert trace.status == "interrupted" and not trace.calls[0].further and trace.calls[0].ok is False


class Counted:
    """Reads that count how many of them run at once, together and for each server; each waits until `most` do."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.order: list[int] = []
        self.peak = 0
        self.peaks: dict[str, int] = {}
        self.hold = threading.Event()
        self.hold.set()

    async def __call__(self, args: Any, context: ToolContext) -> int:
        self.order.append(args["number"])
        self.running.append(args["server"])
        self.peak = max(self.peak, len(self.running))
        at_server = self.running.count(args["server"])
        self.peaks[args["server"]] = max(self.peaks.get(args["server"], 0), at_server)
        try:
            for _ in range(20):
                await asyncio.sleep(0)
            while not self.hold.is_set():
                await asyncio.sleep(0.01)
        finally:
            self.running.remove(args["server"])
        return int(args["number"])

    def category(self, tool: CallLimits, category: CallLimits) -> Category:
        face = schema(server={"type": "string"}, number={"type": "integer"})
        limited = Tool("probe_it", self, Purity.READ, limits=tool)
        return Category("probe", "Look.", (Operation("it", "Look.", face, limited),), limits=category)


def calls(servers: Sequence[str]) -> Any:
    return [
        call("invoke_action", action_name="probe__it", args={"server": server, "number": number})
        for number, server in enumerate(servers)
    ]


def server_of(arguments: dict[str, Any]) -> str:
    return str(arguments["server"])


@pytest.mark.parametrize(
    ("tool", "category", "setting", "peak", "per_server"),
    [
        (CallLimits(), CallLimits(), None, 8, 4),
        (CallLimits(), CallLimits(at_once=3), None, 3, None),
        (CallLimits(at_once=1, at_once_per=server_of), CallLimits(), None, 2, 1),
        (CallLimits(at_once=2, at_once_per=server_of), CallLimits(at_once=3), None, 3, 2),
        (CallLimits(), CallLimits(at_once=3), 1, 1, 1),
    ],
)
def test_so_many_calls_run_at_once_and_the_others_wait_in_order(
    workspace: Path,
    tool: CallLimits,
    category: CallLimits,
    setting: int | None,
    peak: int,
    per_server: int | None,
) -> None:
    counted = Counted()
    config = {"calls": {"at_once": {"probe": setting}}} if setting else {}
    made = session(workspace, counted.category(tool, category), **config)
    heard: list[Any] = []
    trace = made.ask("look", model=ScriptedModel(calls("abababab"), "Done."), on_event=heard.append)
    assert [each.finished.output for each in trace.calls] == [str(number) for number in range(8)]
    assert counted.peak == peak
    assert per_server is None or max(counted.peaks.values()) == per_server
    if tool == CallLimits():
        assert counted.order == sorted(counted.order)
    waits = [event for event in trace.events if isinstance(event, ActionProgressed)]
    assert any("waiting for" in event.message for event in waits) == (peak < 8)


def test_an_interrupt_ends_waiting_and_the_place_is_free_afterwards(workspace: Path) -> None:
    counted = Counted()
    counted.hold.clear()
    made = session(workspace, counted.category(CallLimits(at_once=1), CallLimits()))
    first = made.start("look", model=ScriptedModel(calls("a"), "Done."))
    until(lambda: counted.running)
    second = made.start("look", model=ScriptedModel(calls("b"), "Done."))
    third = made.start("look", model=ScriptedModel(calls("c"), "Done."))

    def says(run: Any) -> str:
        if not made.parts.runs.holds(run.run_id):
            return ""
        found = made.parts.runs.load(run.run_id)
        return found.calls[0].progress.text if found.calls and found.calls[0].progress else ""

    until(lambda: says(second) and says(third))
    assert "of probe_it: 1 at once" in says(second)
    second.cancel()
    assert second.result(60).status == "interrupted"
    counted.hold.set()
    assert first.result(60).answer == third.result(60).answer == "Done."
    assert counted.peaks.keys() == {"a", "c"} and counted.peak == 1


def test_a_target_that_cannot_be_told_is_the_calls_own_failure(workspace: Path) -> None:
    def lost(arguments: dict[str, Any]) -> str:
        return str(arguments["no such argument"])

    counted = Counted()
    made = session(workspace, counted.category(CallLimits(at_once=1, at_once_per=lost), CallLimits()))
    trace = made.ask("look", model=ScriptedModel(calls("a"), "Done."))
    assert trace.answer == "Done." and "KeyError" in trace.calls[0].finished.error


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"seconds": -1}, {"at_once": 0}])
def test_a_limit_that_no_call_could_keep_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="None sets no limit"):
        CallLimits(**wrong)
