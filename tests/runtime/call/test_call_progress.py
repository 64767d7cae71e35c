"""What a handler reports on the way reaches listeners and record, bounded and redacted; its last result is kept."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Purity
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.record.events import ActionFinished, ActionProgressed, ActionResolved
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.runtime.services import ToolContext
from tests.support.courier import PageServer, courier, probe
from tests.support.waiting import LoopClock

SECRET = "correct-horse-battery-staple"


def session(workspace: Path, category: Category, store: Any = "memory") -> reyn.Session:
    return reyn.Session(workspace, store=store, categories=(category,))


def probed(made: reyn.Session, name: str = "probe__it", **args: Any) -> tuple[Trace, list[Any]]:
    """Let a model call it, and return the run with all that a listener heard."""
    heard: list[Any] = []
    model = ScriptedModel(call("invoke_action", action_name=name, args=args), "Done.")
    return made.ask("look", model=model, approve="all", on_event=heard.append), heard


def progress(events: Any) -> list[ActionProgressed]:
    return [event for event in events if isinstance(event, ActionProgressed)]


def test_listeners_and_record_hear_how_far_a_call_is_between_its_beginning_and_end(workspace: Path) -> None:
    with PageServer({f"/{number}": {"page": number} for number in range(4)}) as server:
        trace, heard = probed(session(workspace, courier()), "courier__collect", url=server.url(""), pages=4)
    kinds = [type(event) for event in trace.events]
    places = [at for at, kind in enumerate(kinds) if kind is ActionProgressed]
    assert places and kinds.index(ActionResolved) < places[0] and places[-1] < kinds.index(ActionFinished)
    assert progress(heard)
    last = progress(trace.events)[-1]
    assert (last.call, last.message, last.done, last.total) == (
        trace.calls[0].id,
        "all pages are here",
        4.0,
        4.0,
    )
    assert trace.calls[0].progress == last and last.text == "all pages are here (4 of 4)"
    assert Trace.load(trace.save(workspace / "run.jsonl")).calls[0].progress == last


def test_a_million_reports_are_a_few_events(workspace: Path) -> None:
    most = 1_000_000

    async def look(args: Any, context: ToolContext) -> str:
        for number in range(most):
            context.report("counting", number, most)
        await asyncio.to_thread(lambda: [context.report(done=number) for number in range(most)])
        return "counted"

    trace, heard = probed(session(workspace, probe(look)))
    assert trace.calls[0].finished.output == "counted"
    seconds = trace.calls[0].finished.seconds
    assert 1 <= len(progress(heard)) <= 10 * seconds + 2
    assert len(progress(trace.events)) <= 3 + math.log2(1 + seconds)
    assert progress(trace.events)[-1].done == most - 1


def test_the_record_of_a_call_of_hours_stays_short(workspace: Path) -> None:
    minutes = 600

    async def look(args: Any, context: ToolContext) -> str:
        clock = LoopClock()
        for minute in range(minutes):
            context.report(f"minute {minute}", minute, minutes)
            clock.advance(60)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return "done"

    trace, heard = probed(session(workspace, probe(look)))
    assert len(progress(heard)) >= minutes - 1  # more than a tenth of a second lies between two
    assert 5 <= len(progress(trace.events)) <= 20
    assert progress(trace.events)[0].message == "minute 0"
    assert progress(trace.events)[-1].message == f"minute {minutes - 1}"


def test_what_is_left_out_of_a_report_stays_as_it_was_said(workspace: Path) -> None:
    async def look(args: Any, context: ToolContext) -> str:
        context.report("pages", 1, 9)
        context.report(done=2)
        return "done"

    trace, _ = probed(session(workspace, probe(look)))
    assert progress(trace.events)[-1].text == "pages (2 of 9)"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (f"key {SECRET} sent", "key [redacted:DEMO_API_KEY] sent"),
        ("x" * 190 + SECRET, "x" * 190 + "[red"),
        ("y" * 1_000_000, "(a message of 1,000,000 characters)"),
        ("two\nlines\r\n\tof it", "two lines of it"),
        ("\ud800 lone", "lone"),
        (b"bytes", ""),
    ],
)
def test_a_message_is_redacted_then_cut_to_one_short_line(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, message: Any, shown: str
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", SECRET)

    async def look(args: Any, context: ToolContext) -> str:
        context.report(message)
        return "done"

    trace, heard = probed(session(workspace, probe(look)))
    said = progress(trace.events)[-1].message
    assert len(said) <= 200 and SECRET not in repr([trace.events, heard])
    assert shown.rstrip("…") in said and bool(said) == bool(shown)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1, "3", True, 10**400, None])
def test_a_number_that_is_none_is_left_out(workspace: Path, number: Any) -> None:
    async def look(args: Any, context: ToolContext) -> str:
        context.report("odd", number, number)
        return "done"

    trace, _ = probed(session(workspace, probe(look)))
    assert [(each.done, each.total) for each in progress(trace.events)] == [(None, None)]


def test_reports_after_the_call_are_not_heard(workspace: Path) -> None:
    kept: list[ToolContext] = []

    async def look(args: Any, context: ToolContext) -> str:
        if kept:
            kept[0].report("from the grave", partial="late")
            raise ActionError("It broke.")
        kept.append(context)
        return "done"

    made = session(workspace, probe(look))
    probed(made)
    trace, heard = probed(made)
    assert not progress(trace.events) and not progress(heard)
    assert "late" not in trace.calls[0].finished.output and not trace.calls[0].finished.partial


def test_a_call_that_fails_keeps_what_it_had(workspace: Path) -> None:
    with PageServer({"/0": {"page": 0}, "/1": {"page": 1}}) as server:
        made = session(workspace, courier())
        trace, _ = probed(made, "courier__collect", url=server.url(""), pages=3)
        by_hand = made.invoke_action("courier__collect", {"url": server.url(""), "pages": 3})
    finished = trace.calls[0].finished
    answer = json.loads(finished.output)
    assert finished.partial and not finished.ok and finished.code == "upstream"
    assert json.loads(answer["partial"]) == [{"page": 0}, {"page": 1}]
    assert answer["error"].startswith("The server answered 404")
    assert answer["hint"] == "What it had until then is in partial; it is not the whole result."
    assert by_hand.error == answer["error"] and by_hand.payload["partial"] == answer["partial"]


def test_a_large_partial_result_is_stored_like_a_result(workspace: Path) -> None:
    async def look(args: Any, context: ToolContext) -> str:
        context.report(partial=[{"row": number} for number in range(1000)])
        raise ValueError("x" * 5000)

    made = session(workspace, probe(look), "files")
    trace, _ = probed(made)
    finished = trace.calls[0].finished
    assert finished.partial and finished.blob is not None and finished.content_kind == "json_array"
    assert json.loads(finished.output)["partial"].startswith(f"[blob:{finished.blob}]")
    assert '{"row":999}' in made.inspect(finished.blob, "slice:998..1000").text
    assert len(finished.output) < 2000


def test_an_interrupted_call_keeps_what_it_had(workspace: Path) -> None:
    reached = threading.Event()

    async def look(args: Any, context: ToolContext) -> str:
        context.report("half of it", 5, 10, partial={"first": "half"})
        reached.set()
        await asyncio.sleep(3600)
        return "unreached"

    made = session(workspace, probe(look))
    model = ScriptedModel(call("invoke_action", action_name="probe__it", args={}), "Done.")
    run = made.start("look", model=model)
    assert reached.wait(60)
    run.cancel()
    trace = run.result(60)
    finished = trace.calls[0].finished
    assert trace.status == "interrupted" and finished.partial
    answer = json.loads(finished.output)
    assert json.loads(answer["partial"]) == {"first": "half"} and "interrupted" in answer["error"]
    assert trace.calls[0].progress.text == "half of it (5 of 10)"
    # The next turn's model reads it too.
    later = ScriptedModel("Half of it is there.")
    made.ask("and?", model=later)
    assert any("first" in message.content for message in later.requests[0].messages)


def test_a_secret_in_a_partial_result_is_covered(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_API_KEY", SECRET)

    async def look(args: Any, context: ToolContext) -> str:
        context.report(partial=f"it is {SECRET}")
        raise ActionError("It broke.")

    trace, _ = probed(session(workspace, probe(look)))
    assert SECRET not in trace.calls[0].finished.output and trace.calls[0].finished.partial


def test_a_call_that_ends_well_has_its_own_result(workspace: Path) -> None:
    async def look(args: Any, context: ToolContext) -> str:
        context.report(partial="half")
        return "whole"

    trace, _ = probed(session(workspace, probe(look, Purity.PURE)))
    assert trace.calls[0].finished.output == "whole" and not trace.calls[0].finished.partial


def test_a_run_under_way_says_where_its_calls_are(workspace: Path) -> None:
    reached, go = threading.Event(), threading.Event()

    async def look(args: Any, context: ToolContext) -> str:
        context.report("one", 1, 3)
        await asyncio.sleep(0)
        context.report("two", 2, 3)  # too soon for the record
        await asyncio.sleep(0.2)
        reached.set()
        await asyncio.to_thread(go.wait, 60)
        return "done"

    made = session(workspace, probe(look))
    model = ScriptedModel(call("invoke_action", action_name="probe__it", args={}), "Done.")
    run = made.start("look", model=model)
    assert reached.wait(60)
    under_way = made.parts.runs.load(run.run_id)
    assert under_way.calls[0].progress.text == "two (2 of 3)"
    go.set()
    run.result(60)
    assert {row["what"] for row in made.events_of(run.run_id).rows if row["event"] == "ActionProgressed"} == {
        "one (1 of 3)",
        "two (2 of 3)",
    }
