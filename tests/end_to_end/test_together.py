"""Things that happen at once: calls of one round, turns of one conversation, sessions inside sessions, interrupts."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Purity
from reyn_jupyter.models.base import Request, Response, ToolCall, Usage
from reyn_jupyter.models.scripted import ScriptedModel, call
from tests.end_to_end.e2e_support import category, history_is_valid, invoke, paired, results, scripted
from tests.support.waiting import PATIENCE, awaited, until

hanging = threading.Event()


async def hang(args: Any, context: Any) -> str:
    hanging.set()
    await asyncio.sleep(60)
    return "never"


async def fine(args: Any, context: Any) -> str:
    await asyncio.sleep(0)
    return "fine"


def interrupted(session: reyn.Session, prompt: str, finished: int = 0) -> Any:
    """The trace of a turn that is interrupted once an action of it hangs, or a question inside one, and so many
    others have finished."""
    hanging.clear()
    run = session.start(prompt)
    assert hanging.wait(PATIENCE)
    until(lambda: sum(each.finished is not None for each in session.trace(run.run_id).calls) >= finished)
    run.cancel()
    return run.result(PATIENCE)


def test_an_interrupt_leaves_every_call_of_the_round_with_its_two_events_and_a_result(
    workspace: Path,
) -> None:
    calls = [
        invoke("odd__fine", n=1),
        invoke("odd__hang", n=1),
        invoke("odd__hang", n=1),
        invoke("odd__hang", n=2),
        call("list_actions"),
        invoke("late__go"),
        invoke("odd__fine", n=2),
    ]
    writes = category("late", Purity.WRITE, go=fine)
    s, model = scripted(workspace, calls, "later", categories=[category(fine=fine, hang=hang), writes])
    trace = interrupted(s, "go", finished=2)  # the first, and the listing
    assert trace.status == "interrupted" and paired(trace) and history_is_valid(s)
    assert len(trace.calls) == len(calls)
    assert "odd__fine" in str(trace.error) and "late__go" not in str(trace.error)
    assert s.ask("and now?").answer == "later"
    assert [text for text in results(model.requests[-1].messages) if "interrupted" in text] != []


def test_an_interrupt_before_a_round_began_answers_all_of_it(workspace: Path) -> None:
    """The cancellation arrives between the reply and the first step of any call."""
    tasks: list[Any] = []

    def reply(request: Request) -> list[ToolCall]:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        asyncio.get_running_loop().call_soon(task.cancel)
        return [invoke("odd__hang", n=1), invoke("odd__hang", n=2)]

    s, _ = scripted(workspace, reply, "later", categories=[category(hang=hang)])
    trace = s.ask("go")
    assert trace.status == "interrupted" and paired(trace) and len(trace.calls) == 2
    assert s.ask("again").answer == "later" and history_is_valid(s)


def test_a_change_that_was_made_before_the_interrupt_is_told_and_can_be_undone(workspace: Path) -> None:
    write = invoke("file__write", path="notes.txt", content="new")
    asked_again = threading.Event()

    async def never(request: Request) -> str:
        asked_again.set()
        return await asyncio.sleep(600, "never")

    s, _ = scripted(workspace, [write, write], never, store="files")
    run = s.start("go", approve="all")
    assert asked_again.wait(PATIENCE)
    run.cancel()
    trace = run.result(PATIENCE)
    assert "file__write" in str(trace.error)
    s.undo()
    assert (workspace / "notes.txt").read_text().startswith("first line")


def test_background_and_foreground_turns_of_one_conversation_both_end_up_in_it_whole(workspace: Path) -> None:
    async def slow(request: Request) -> Any:
        await asyncio.sleep(0.3)
        return invoke("odd__fine") if request.messages[-1].role == "user" else "from behind"

    def quick(request: Request) -> Any:
        return invoke("odd__fine") if request.messages[-1].role == "user" else "in front"

    s, _ = scripted(workspace, categories=[category(fine=fine)])
    behind = s.start("in the background", model=ScriptedModel(otherwise=slow))
    front = [s.ask(f"question {n}", model=ScriptedModel(otherwise=quick)).answer for n in range(3)]
    assert behind.result(PATIENCE).answer == "from behind" and front == ["in front"] * 3
    assert sorted(row["prompt"] for row in s.history.rows)[0] == "in the background"
    assert len(s.history) == 4 and history_is_valid(s)


def test_a_cell_that_is_run_again_while_its_first_run_goes_on_keeps_one_turn(workspace: Path) -> None:
    ran_again = threading.Event()

    async def slow(request: Request) -> str:
        await asyncio.to_thread(ran_again.wait, PATIENCE)
        return "first run"

    s, _ = scripted(workspace, "second run")
    behind = s.start("ask", cell="cell-1", model=ScriptedModel(slow))
    s.ask("ask", cell="cell-1")
    ran_again.set()
    behind.result(PATIENCE)
    assert len(s.history) == 1


def test_turns_of_many_threads_are_all_recorded(workspace: Path) -> None:
    s, _ = scripted(workspace, otherwise="ok", store="files")
    threads = [threading.Thread(target=s.ask, args=(f"prompt {number}",)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(s.history) == len(s.runs) == 20 and history_is_valid(s)


def test_a_question_inside_an_action_changes_no_setting_of_the_turn_around_it(workspace: Path) -> None:
    seen: list[int] = []
    s, _ = scripted(workspace, invoke("odd__nested"), "outer", otherwise="outer")

    async def nested(args: Any, context: Any) -> str:
        inner = await s.aio.ask("inner", model=ScriptedModel("inner answer"), max_steps=1, surface="flat")
        seen.append(context.services.settings().router.limits.max_steps)
        return inner.answer

    s.parts.catalog._load = lambda: ([category(nested=nested)], [])
    trace = s.ask("go")
    assert trace.answer == "outer" and trace.calls[0].ok
    assert seen == [8] and s.parts.settings.router.limits.max_steps == 8


def test_another_session_inside_an_action_keeps_its_own_rules(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    strict = reyn.Session(
        tmp_path / "other", store="memory", config={"permissions": {"deny": ["file__write"]}}
    )

    async def through(args: Any, context: Any) -> str:
        done = await strict.aio.invoke_action("file__write", {"path": "x", "content": "y"})
        return str(done.error)

    lenient = {"permissions": {"allow": ["file__write"]}}
    s, model = scripted(
        workspace, invoke("odd__through"), "ok", categories=[category(through=through)], config=lenient
    )
    s.ask("go", max_steps=3)
    assert "Denied" in results(model.requests[-1].messages)[0]
    assert not (tmp_path / "other" / "x").exists()


def test_an_interrupt_reaches_a_question_inside_an_action(workspace: Path) -> None:
    s, _ = scripted(workspace, invoke("odd__nested"), "outer")
    inner: list[str] = []

    async def forever(request: Request) -> str:
        hanging.set()
        await asyncio.sleep(60)
        return "never"

    async def nested(args: Any, context: Any) -> str:
        try:
            return (await s.aio.ask("inner", model=ScriptedModel(forever))).answer
        finally:
            inner.append(s.parts.conversation.turns[0].status)

    s.parts.catalog._load = lambda: ([category(nested=nested)], [])
    trace = interrupted(s, "go")
    assert trace.status == "interrupted" and trace.answer == ""
    assert inner == ["interrupted"] and history_is_valid(s)


async def test_cancelling_a_call_by_hand_ends_its_run_as_interrupted(workspace: Path) -> None:
    s, _ = scripted(workspace, categories=[category(hang=hang)])
    hanging.clear()
    task = asyncio.create_task(s.aio.invoke_action("odd__hang"))
    await awaited(hanging.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    trace = s.trace()
    assert trace.status == "interrupted" and paired(trace)


def test_a_loop_that_closes_under_a_background_run_does_not_take_it_along(workspace: Path) -> None:
    seen: list[Any] = []

    async def main() -> Any:
        run = s.start("go", on_event=seen.append)
        await awaited(lambda: seen)
        return run

    closed = threading.Event()

    async def slow(request: Request) -> str:
        await asyncio.to_thread(closed.wait, PATIENCE)
        return "done all the same"

    s, _ = scripted(workspace, slow)
    run = asyncio.run(main())
    closed.set()
    assert run.result(PATIENCE).answer == "done all the same"


def test_a_merged_read_that_fails_fails_for_all_who_asked(workspace: Path) -> None:
    async def fail(args: Any, context: Any) -> str:
        await asyncio.sleep(0.01)
        raise ValueError("no")

    s, _ = scripted(workspace, [invoke("odd__fail")] * 3, "ok", categories=[category(fail=fail)])
    trace = s.ask("go")
    assert [each.ok for each in trace.calls] == [False] * 3 and paired(trace)
    assert [each.resolved.flags for each in trace.calls] == [(), ("merged",), ("merged",)]


def test_an_action_is_not_run_once_the_budget_is_spent(workspace: Path) -> None:
    ran: list[str] = []

    async def effect(args: Any, context: Any) -> str:
        ran.append("x")
        return "done"

    dear = Response(tool_calls=(invoke("odd__effect"),), usage=Usage(10, 10), cost=1.0)
    s, _ = scripted(workspace, dear, categories=[category(purity=Purity.WRITE, effect=effect)])
    trace = s.ask("go", approve="all", budget=0.5)
    assert (trace.status, ran) == ("limit", []) and paired(trace)
    assert trace.calls[0].finished is not None and "0.5" in trace.calls[0].finished.output


# What a conversation knows of the catalog


def test_a_dropped_listing_closes_the_gate_again_and_gives_the_hint_again(workspace: Path) -> None:
    listing, read = call("list_actions"), invoke("file__read", path="notes.txt")
    off = {"action_retrieval": {"embedding_class": None}}
    s, model = scripted(workspace, listing, "ok", read, "ok", listing, "ok", tier="light", config=off)
    s.ask("look")
    s.drop(1)
    assert s.ask("read").calls[0].resolved.problem == "gated"
    s.drop(1)
    s.ask("look again")
    assert "search_hint" in json.loads(results(model.requests[-1].messages)[0])


def test_a_fork_knows_what_its_turns_have_seen(workspace: Path) -> None:
    listing, read = call("list_actions"), invoke("file__read", path="notes.txt")
    s, _ = scripted(workspace, listing, "ok", "plain", read, "ok", tier="light")
    s.ask("look")
    s.ask("something else")
    s.fork(1)
    assert s.ask("read").calls[0].ok


def test_neither_salvage_nor_repair_gets_around_the_gate(workspace: Path) -> None:
    calls = [call("file.read", path="notes.txt"), invoke("file.read", path="notes.txt")]
    config = {"router": {"repair": True}}
    s, _ = scripted(workspace, calls, "ok", tier="light", config=config)
    assert [each.resolved.problem for each in s.ask("go").calls] == ["gated", None]
    s, _ = scripted(workspace, calls[:1], "ok", tier="light", config=config)
    assert [each.resolved.problem for each in s.ask("go").calls] == ["gated"]


def test_constrained_names_hold_on_in_the_next_turn(workspace: Path) -> None:
    config = {"router": {"constrain_names": True}}
    s, model = scripted(workspace, call("list_actions", category=["file"]), "ok", "ok", config=config)
    s.ask("look")
    s.ask("and now")

    def enum(request: Request) -> Any:
        spec = next(tool for tool in request.tools.specs if tool["function"]["name"] == "invoke_action")
        return spec["function"]["parameters"]["properties"]["action_name"].get("enum")

    assert enum(model.requests[0]) is None
    assert enum(model.requests[1]) == enum(model.requests[2]) and enum(model.requests[2])


def test_an_automatic_surface_is_decided_once_and_an_explicit_one_is_obeyed(workspace: Path) -> None:
    config = {"router": {"surface": "auto", "limits": {"flat_tokens": 100_000}}}
    s, model = scripted(workspace, otherwise="ok", config=config, tier="light")
    first = s.ask("one")
    s.configure("router.limits.flat_tokens", 10)
    s.ask("two")
    s.ask("three", surface="universal")
    flat = ["file__read" in request.tools.names for request in model.requests]
    assert flat == [True, True, False]
    assert not any("list-first" in mandate for mandate in first.started.mandates)


def test_without_forgiveness_arguments_beside_args_are_refused_not_dropped(workspace: Path) -> None:
    beside = call("invoke_action", action_name="file__grep", pattern="line", path="data")
    s, _ = scripted(workspace, beside, "ok", config={"router": {"forgive": False}})
    made = s.ask("go").calls[0]
    assert made.resolved.problem == "invalid" and made.finished is not None
    assert "/path" in made.finished.output


def test_results_of_earlier_turns_shrink_once_and_stay_as_they_are(workspace: Path) -> None:
    async def wide(args: Any, context: Any) -> str:
        return "漢" * 260

    steps = [step for n in range(5) for step in (invoke("odd__wide", n=n), "done")]
    s, model = scripted(workspace, *steps, categories=[category(wide=wide)])
    for number in range(5):
        s.ask(f"question {number}")
    *stubs, last = results(model.requests[-1].messages)
    assert len(stubs) == 4 and last == "漢" * 260
    assert all(text.count("[shrunk:") == 1 and "780 bytes" in text for text in stubs)
    assert len(set(stubs)) == 1


def test_a_replay_of_a_later_turn_is_not_stopped_by_the_gate(workspace: Path) -> None:
    read = invoke("file__read", path="notes.txt")
    s, _ = scripted(workspace, call("list_actions"), "ok", read, "done", tier="light")
    s.ask("look")
    second = s.ask("read")
    again = s.replay(second.run)
    assert again.answer == "done" and [each.resolved.problem for each in again.calls] == [None]


def test_undo_takes_back_this_sessions_change_first(workspace: Path) -> None:
    mine, other = reyn.Session(workspace), reyn.Session(workspace)
    mine.invoke_action("file__write", {"path": "mine.txt", "content": "x"})
    other.invoke_action("file__write", {"path": "other.txt", "content": "x"})
    assert mine.trace().prompt.startswith("invoke file__write")
    mine.undo()
    assert not (workspace / "mine.txt").exists() and (workspace / "other.txt").exists()


def test_without_schemas_in_listings_nothing_promises_them(workspace: Path) -> None:
    s, model = scripted(workspace, otherwise="ok", config={"router": {"list_schemas": False}}, tier="light")
    s.ask("go")
    specs = {tool["function"]["name"]: tool["function"] for tool in model.requests[0].tools.specs}
    assert "schema" not in specs["list_actions"]["description"]
    assert "and the arguments it takes" not in model.requests[0].messages[0].content
    assert "input_schema" not in json.dumps(s.list_actions("file").payload)


def test_an_always_that_cannot_be_kept_holds_for_this_call(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = [invoke("file__write", path=f"{n}.txt", content="x") for n in range(2)]
    s, _ = scripted(workspace, writes, "ok")
    (workspace / "file").write_text("no folder")
    monkeypatch.setenv("REYN_STATE_DIR", str(workspace / "file" / "state"))
    s, _ = scripted(workspace, writes, "ok")
    asked: list[str] = []
    s.parts.ask_person = lambda question: asked.append(question.action) or "always"  # type: ignore[func-returns-value]
    trace = s.ask("go")
    assert [each.ok for each in trace.calls] == [True, True] and len(asked) == 2


def test_an_answer_that_was_cut_off_and_costs_nobody_knows_are_told(workspace: Path) -> None:
    cut = Response("half of an", finish_reason="length", usage=Usage(10, 10), cost=None)
    s, _ = scripted(workspace, cut, config={"router": {"limits": {"turn_cost": 1.0}}})
    notes = " ".join(s.ask("go").ended.notes)  # type: ignore[union-attr]
    assert "cut off" in notes and "no known price" in notes


def test_a_model_that_calls_tools_in_the_closing_call_runs_nothing_and_is_on_record(workspace: Path) -> None:
    write = invoke("file__write", path="new.txt", content="x")
    s, _ = scripted(workspace, otherwise=[write, write])
    trace = s.ask("go", max_steps=1)
    assert trace.status == "limit" and paired(trace) and len(trace.calls) == 4
    assert not any(each.ok for each in trace.calls) and not (workspace / "new.txt").exists()
    assert history_is_valid(s)
