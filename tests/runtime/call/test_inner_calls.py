"""Calls within a call: through the one gate, in an inner run, within the outer call's limits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Effect, Entry, Operation, Purity, Resources, Tool
from reyn_jupyter.catalog.call_limits import CallLimits
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.action_error import ActionError, PermissionDeniedError
from reyn_jupyter.runtime.live_catalog import category_lifecycle
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.events import InnerEvent, PermissionDecided
from reyn_jupyter.runtime.services import Source, ToolContext
from tests.support.courier import schema
from tests.support.waiting import LoopClock, until

FREE = {"type": "object", "properties": {}, "additionalProperties": True}
Handler = Callable[[Any, ToolContext], Any]


def flow(name: str, handler: Handler, purity: Purity = Purity.READ, **options: Any) -> Category:
    """Return the category of one action, `NAME__run`, which takes any arguments."""
    limits = options.pop("tool_limits", CallLimits())
    tool = Tool(f"{name}_run", handler, purity, limits=limits, **options.pop("tool", {}))
    return Category(name, "Run steps.", (Operation("run", f"Run {name}.", FREE, tool),), **options)


def writer() -> Category:
    """Return the category of `store__put`, which writes a file of the workspace."""

    async def put(args: Any, context: ToolContext) -> str:
        context.workspace.write_atomic(args["path"], args["text"].encode())
        return f"wrote {args['path']}"

    tool = Tool("store_put", put, Purity.WRITE, lambda args, _: [Effect("write", args["path"])])
    text = {"type": "string"}
    return Category("store", "Keep.", (Operation("put", "Put.", schema(path=text, text=text), tool),))


def session(workspace: Path, *categories: Category, **options: Any) -> reyn.Session:
    return reyn.Session(workspace, categories=categories, **options)


def calling(name: str, **arguments: Any) -> Handler:
    async def run(args: Any, context: ToolContext) -> Any:
        return await context.invoke(name, arguments)

    return run


async def three(args: Any, context: ToolContext) -> int:
    return 3


PUT = {"path": "out.txt", "text": "new"}


def test_a_call_within_a_call_gives_its_value_and_stands_in_an_inner_run(workspace: Path) -> None:
    made = session(workspace, flow("outer", calling("leaf__run", x=1)), flow("leaf", three))
    result = made.invoke_action("outer__run")
    assert result.value == 3
    trace = made.trace()
    assert [each.label for each in trace.calls] == ["outer__run"]
    (inner,) = trace.inner.values()
    assert [each.label for each in inner.calls] == ["leaf__run"]
    assert inner.started.run_kind == "inner" and inner.started.parent is not None
    assert inner.started.parent.run == trace.run and inner.started.parent.call == trace.calls[0].id
    assert inner.calls[0].resolved.actor == "workflow" and inner.calls[0].resolved.inner == {"x": 1}
    assert inner.status == "ok" and not trace.inner_problems


def test_the_inner_run_is_found_again_from_the_files(workspace: Path) -> None:
    session(workspace, flow("outer", calling("leaf__run")), flow("leaf", three)).invoke_action("outer__run")
    again = session(workspace)
    (inner,) = again.trace().inner.values()
    assert inner.calls[0].finished is not None and inner.calls[0].finished.output == "3"
    assert again.trace(inner.run[-12:]).run == inner.run
    assert again.parts.runs.ids() == [again.trace().run]


def test_several_calls_of_one_call_share_its_inner_run(workspace: Path) -> None:
    async def twice(args: Any, context: ToolContext) -> list[int]:
        return list(await asyncio.gather(context.invoke("leaf__run"), context.invoke("leaf__run", {"n": 2})))

    made = session(workspace, flow("outer", twice), flow("leaf", three))
    assert made.invoke_action("outer__run").value == [3, 3]
    (inner,) = made.trace().inner.values()
    assert [(each.id, each.ok) for each in inner.calls] == [("1", True), ("2", True)]


def test_a_call_without_inner_calls_opens_no_inner_run(workspace: Path) -> None:
    made = session(workspace, flow("leaf", three))
    made.invoke_action("leaf__run")
    assert not made.trace().inner and not made.parts.runs.inner_ids()


def test_a_failure_of_an_inner_call_has_its_own_words_and_code(workspace: Path) -> None:
    caught: list[ActionError] = []

    async def fail(args: Any, context: ToolContext) -> None:
        raise ActionError("The tank is empty.", "Fill it.", code="tank_empty")

    async def outer(args: Any, context: ToolContext) -> None:
        try:
            await context.invoke("leaf__run")
        except ActionError as error:
            caught.append(error)
            raise

    made = session(workspace, flow("outer", outer), flow("leaf", fail))
    result = made.invoke_action("outer__run")
    assert (caught[0].message, caught[0].hint, caught[0].code) == (
        "The tank is empty.",
        "Fill it.",
        "tank_empty",
    )
    payload = result.payload
    assert (payload["error"], payload["hint"], payload["code"]) == (
        "The tank is empty.",
        "Fill it.",
        "tank_empty",
    )
    (inner,) = made.trace().inner.values()
    assert inner.status == "error" and inner.calls[0].ok is False


def test_an_action_that_is_not_there_is_said_with_suggestions(workspace: Path) -> None:
    made = session(workspace, flow("outer", calling("leaf__ran")), flow("leaf", three))
    answer = made.invoke_action("outer__run").payload
    assert "leaf__ran" in answer["error"]
    (inner,) = made.trace().inner.values()
    assert inner.calls[0].resolved.problem == "unknown"


def test_wrong_arguments_of_an_inner_call_are_named(workspace: Path) -> None:
    made = session(workspace, flow("outer", calling("store__put", path=7)), writer())
    assert "store__put" in made.invoke_action("outer__run").payload["error"]


# Consent: a call within a call asks as itself.


def asked(answers: list[Question], answer: Answer) -> Any:
    async def ask(question: Question) -> Answer:
        answers.append(question)
        return answer

    return ask


def turned(made: reyn.Session, name: str = "outer__run", **options: Any) -> Any:
    model = ScriptedModel(call("invoke_action", action_name=name, args={}), "Done.")
    return made.ask("go", model=model, **options)


def test_an_inner_call_asks_as_itself_and_says_who_called_it(workspace: Path) -> None:
    made = session(workspace, flow("outer", calling("store__put", **PUT)), writer())
    questions: list[Question] = []
    trace = turned(made, ask=asked(questions, "once"))
    assert (workspace / "out.txt").read_text() == "new"
    (question,) = questions
    assert question.action == "store__put" and question.callers == ("outer__run",)
    assert question.title == "store__put, called by outer__run, asks for consent to:"
    assert question.run == trace.run  # so that it stands on the card of the run that a person sees
    (inner,) = trace.inner.values()
    assert inner.calls[0].decision is not None and inner.calls[0].decision.by == "person"


def test_consent_to_the_outer_call_is_none_to_the_inner_one(workspace: Path) -> None:
    write = flow("outer", calling("store__put", **PUT), Purity.WRITE)
    made = session(workspace, write, writer())
    questions: list[Question] = []

    async def ask(question: Question) -> Answer:
        questions.append(question)
        return "once" if question.action == "outer__run" else "deny"

    trace = turned(made, ask=ask)
    assert [each.action for each in questions] == ["outer__run", "store__put"]
    assert not (workspace / "out.txt").exists() and trace.calls[0].ok is False


def test_a_call_by_hand_is_no_consent_to_what_it_calls(workspace: Path) -> None:
    made = session(workspace, flow("outer", calling("store__put", **PUT), Purity.WRITE), writer())
    made.parts.ask_person = lambda question: "deny"
    assert made.invoke_action("outer__run").payload["error"].startswith("Denied: store__put")
    assert not (workspace / "out.txt").exists()


def test_a_rule_that_denies_the_inner_call_denies_it_whatever_is_approved(workspace: Path) -> None:
    caught: list[Exception] = []

    async def outer(args: Any, context: ToolContext) -> str:
        try:
            await context.invoke("store__put", PUT)
        except PermissionDeniedError as error:
            caught.append(error)
        return "went on"

    rules = {"permissions": {"deny": ["store__put"]}}
    made = session(workspace, flow("outer", outer, Purity.WRITE), writer(), config=rules)
    assert turned(made, approve="all").calls[0].finished.output == "went on"
    assert caught and not (workspace / "out.txt").exists()


def test_in_the_background_an_inner_call_that_would_ask_is_denied(workspace: Path) -> None:
    made = session(workspace, flow("outer", calling("store__put", **PUT)), writer())
    run = made.start(
        "go", model=ScriptedModel(call("invoke_action", action_name="outer__run", args={}), "Done.")
    )
    (inner,) = run.result(60).inner.values()
    assert inner.calls[0].denied and not (workspace / "out.txt").exists()


def test_questions_of_an_inner_call_wait_on_the_outer_run(workspace: Path) -> None:
    made = session(workspace, flow("outer", calling("store__put", **PUT)), writer())
    model = ScriptedModel(call("invoke_action", action_name="outer__run", args={}), "Done.")
    run = made.start("go", model=model, waits=True)
    (waiting,) = until(lambda: run.pending)
    run.answer(waiting.id, "once")
    assert run.result(60).answer == "Done." and (workspace / "out.txt").exists()


# Depth, circles, places.


def test_a_call_that_leads_back_to_itself_is_refused(workspace: Path) -> None:
    made = session(workspace, flow("a", calling("b__run")), flow("b", calling("a__run")))
    answer = made.invoke_action("a__run").payload
    assert answer["code"] == "call_circle" and "a__run → b__run → a__run" in answer["hint"]


def test_a_call_with_ever_other_arguments_ends_at_the_deepest_level(workspace: Path) -> None:
    async def deeper(args: Any, context: ToolContext) -> Any:
        return await context.invoke("a__run", {"level": args.get("level", 0) + 1})

    made = session(workspace, flow("a", deeper))
    answer = made.invoke_action("a__run").payload
    assert answer["code"] == "call_too_deep" and "8" in answer["error"]
    depth, trace = 0, made.trace()
    while trace.inner:
        (trace,) = trace.inner.values()
        depth += 1
    assert depth == 8
    assert not trace.inner_problems


def test_a_call_may_call_its_own_category_that_runs_one_at_a_time(workspace: Path) -> None:
    one = CallLimits(at_once=1)

    async def outer(args: Any, context: ToolContext) -> list[Any]:
        return list(await asyncio.gather(*(context.invoke("x__leaf", {"n": n}) for n in range(3))))

    running: list[int] = []

    async def leaf(args: Any, context: ToolContext) -> int:
        running.append(args["n"])
        assert len(running) == 1
        await asyncio.sleep(0)
        running.remove(args["n"])
        return int(args["n"])

    operations = (
        Operation("outer", "Outer.", FREE, Tool("x_outer", outer, Purity.READ)),
        Operation("leaf", "Leaf.", FREE, Tool("x_leaf", leaf, Purity.READ)),
    )
    made = session(workspace, Category("x", "X.", operations, limits=one))
    assert made.invoke_action("x__outer").value == [0, 1, 2]


def test_two_calls_that_wait_for_each_others_place_are_told_apart(workspace: Path) -> None:
    both = threading.Barrier(2, timeout=60)

    def crossing(other: str) -> Handler:
        async def run(args: Any, context: ToolContext) -> Any:
            if args.get("leaf"):
                return "leaf"
            await asyncio.to_thread(both.wait)
            try:
                return await context.invoke(other, {"leaf": True})
            except ActionError as error:
                return error.code

        return run

    one = CallLimits(at_once=1)
    made = session(
        workspace, flow("x", crossing("y__run"), limits=one), flow("y", crossing("x__run"), limits=one)
    )
    model = ScriptedModel(
        [call("invoke_action", action_name=f"{name}__run", args={}) for name in "xy"], "Done."
    )
    trace = made.ask("go", model=model)
    assert sorted(each.finished.output for each in trace.calls) == ["call_deadlock", "leaf"]


# Deadlines, starts, cancellation.


async def forever(args: Any, context: ToolContext) -> None:
    await asyncio.Event().wait()


def test_the_deadline_of_the_outer_call_ends_the_inner_one(workspace: Path) -> None:
    cleaned: list[bool] = []

    async def slow(args: Any, context: ToolContext) -> None:
        LoopClock().advance(60)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    outer = flow("outer", calling("leaf__run"), limits=CallLimits(seconds=30))
    made = session(workspace, outer, flow("leaf", slow))
    assert made.invoke_action("outer__run").payload["code"] == "call_timeout"
    (inner,) = made.trace().inner.values()
    assert cleaned == [True] and inner.calls[0].ok is False
    assert "the end of outer__run" in inner.calls[0].finished.error
    assert inner.ended is not None and inner.status != "ok"


def test_the_outer_deadline_stands_still_while_an_inner_call_asks(workspace: Path) -> None:
    async def hesitate(question: Question) -> Answer:
        LoopClock().advance(3600)
        await asyncio.sleep(0.01)
        return "once"

    outer = flow("outer", calling("store__put", **PUT), limits=CallLimits(seconds=30))
    trace = turned(session(workspace, outer, writer()), ask=hesitate)
    assert trace.calls[0].finished.output == "wrote out.txt"


def test_the_start_of_a_category_does_not_count_in_a_calls_deadline(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(category_lifecycle, "START_SECONDS", 1_000.0)

    async def start() -> None:
        LoopClock().advance(400)
        await asyncio.sleep(0.01)

    limited = CallLimits(seconds=100)
    leaf = flow("leaf", three, start=start, limits=limited)
    outer = flow("outer", calling("leaf__run"), limits=limited)
    assert session(workspace, leaf).invoke_action("leaf__run").value == 3
    assert session(workspace, outer, flow("leaf", three, start=start)).invoke_action("outer__run").value == 3


def test_an_interrupt_ends_the_inner_call_too(workspace: Path) -> None:
    reached = threading.Event()

    async def slow(args: Any, context: ToolContext) -> None:
        reached.set()
        await asyncio.Event().wait()

    made = session(workspace, flow("outer", calling("leaf__run")), flow("leaf", slow))
    run = made.start(
        "go", model=ScriptedModel(call("invoke_action", action_name="outer__run", args={}), "Done.")
    )
    assert reached.wait(60)
    run.cancel()
    trace = run.result(60)
    (inner,) = trace.inner.values()
    assert trace.status == "interrupted" and inner.status == "interrupted" and inner.calls[0].ok is False


def test_an_inner_call_that_nobody_waits_for_ends_with_the_outer_one(workspace: Path) -> None:
    left: list[Any] = []
    ended: list[bool] = []

    async def slow(args: Any, context: ToolContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def outer(args: Any, context: ToolContext) -> str:
        left.append(context)
        left.append(asyncio.create_task(context.invoke("leaf__run")))
        await asyncio.sleep(0.01)
        return "gone on"

    made = session(workspace, flow("outer", outer), flow("leaf", slow), flow("late", three))
    assert made.invoke_action("outer__run").value == "gone on"
    assert ended == [True]

    async def late(args: Any, context: ToolContext) -> None:
        await left[0].invoke("late__run")

    again = session(workspace, flow("other", late))
    assert "the call is over" in again.invoke_action("other__run").payload["error"]


def test_a_handler_that_ignores_its_end_adds_nothing_to_a_record_that_is_closed(workspace: Path) -> None:
    reached, let_go, ended = threading.Event(), threading.Event(), threading.Event()

    async def stubborn(args: Any, context: ToolContext) -> str:
        reached.set()
        while not let_go.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                context.report("still here")
        with suppress(ActionError):
            await context.invoke("late__run")
        ended.set()
        return "too late"

    middle = flow("middle", calling("leaf__run"))
    made = session(
        workspace, flow("outer", calling("middle__run")), middle, flow("leaf", stubborn), flow("late", three)
    )
    run = made.start(
        "go", model=ScriptedModel(call("invoke_action", action_name="outer__run", args={}), "Done.")
    )
    assert reached.wait(60)
    run.cancel()
    trace = run.result(60)
    let_go.set()
    assert ended.wait(60)
    files = sorted((workspace / ".reyn" / "runs").iterdir())
    assert len(files) == 3  # the run and two inner ones: the late call made none
    assert all(file.read_text().splitlines()[-1].startswith('{"type":"RunEnded"') for file in files)
    assert [each.status for each in trace.all_inner] == ["interrupted", "interrupted"]


def test_a_call_as_a_peer_is_recorded_as_one(workspace: Path) -> None:
    async def outer(args: Any, context: ToolContext) -> Any:
        return await context.invoke("leaf__run", actor="peer"), await context.invoke("leaf__run")

    made = session(workspace, flow("outer", outer), flow("leaf", three))
    made.invoke_action("outer__run")
    (inner,) = made.trace().inner.values()
    assert [each.resolved.actor for each in inner.calls] == ["peer", "workflow"]


# What others hear and see of it.


def test_listeners_hear_of_inner_events_apart_from_those_of_the_run(workspace: Path) -> None:
    made = session(workspace, flow("outer", calling("leaf__run")), flow("leaf", three))
    heard: list[Any] = []
    trace = turned(made, on_event=heard.append)
    (inner,) = trace.inner.values()
    apart = [each for each in heard if isinstance(each, InnerEvent)]
    assert [each.event for each in apart] == list(inner.events) and {each.run for each in apart} == {
        inner.run
    }
    own = [each for each in heard if not isinstance(each, InnerEvent) and each is not None]
    assert [each for each in own if each in trace.events] == list(trace.events)


def test_what_an_inner_call_adds_to_the_catalog_is_there_for_the_next_one(workspace: Path) -> None:
    entries = ["first"]

    async def add(args: Any, context: ToolContext) -> None:
        entries.append("second")

    async def outer(args: Any, context: ToolContext) -> Any:
        await context.invoke("add__run")
        return await context.invoke("thing__second")

    async def listed() -> list[Entry]:
        return [Entry(name, "A thing.", FREE) for name in entries]

    rule = Resources(Tool("read_thing", three, Purity.READ), lambda entry, args: args, "read it", listed)
    things = Category("thing", "Things.", resources=rule, revision=lambda: len(entries))
    made = session(workspace, flow("outer", outer), flow("add", add, Purity.WRITE), things)
    assert turned(made, approve="all").calls[0].finished.output == "3"


def test_what_an_inner_call_read_of_the_persons_counts_as_read_by_the_outer(workspace: Path) -> None:
    async def reader(args: Any, context: ToolContext) -> str:
        context.used(Source("file", "notes.txt"))
        return "text"

    made = session(workspace, flow("outer", calling("leaf__run")), flow("leaf", reader))
    trace = turned(made)
    assert {"kind": "file", "name": "notes.txt"} in [dict(each) for each in trace.calls[0].finished.sources]


def test_the_decision_on_an_inner_call_stands_in_the_inner_run_alone(workspace: Path) -> None:
    made = session(workspace, flow("outer", calling("store__put", **PUT)), writer())
    trace = turned(made, approve="all")
    (inner,) = trace.inner.values()
    inside = [each.name for each in inner.events if isinstance(each, PermissionDecided)]
    outside = [each.name for each in trace.events if isinstance(each, PermissionDecided)]
    assert inside == ["store__put"] and "store__put" not in outside
