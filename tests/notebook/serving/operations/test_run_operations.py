"""Runs as a view asks for them: opened, looked into step by step, listed, compared, stopped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reyn_jupyter import Session
from reyn_jupyter.catalog.action import Category, Entry, Purity, Resources, Tool
from reyn_jupyter.models import scripted
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.scripted import ScriptedModel, Step
from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.runtime.record import runlog
from reyn_jupyter.runtime.record.events import RunEnded
from tests.notebook.render.samples import HOSTILE, NOW, asked, call, said, started

Ask = Callable[..., dict[str, Any]]


def invoke(action: str, /, **args: Any) -> Any:
    return scripted.call("invoke_action", action_name=action, args=args)


def asking(session: Session) -> Ask:
    """Asks over a connection, as every view does; the answer, or {"error", "hint"}."""
    answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
    connection = Connection(Hub(lambda: session), answers.put, None)

    def ask(op: str, **args: Any) -> dict[str, Any]:
        connection.receive({"type": "request", "id": 1, "op": op, "args": args})
        answer = answers.get(timeout=120)
        if answer["type"] == "error":
            return {"error": answer["message"], "hint": answer["hint"]}
        return dict(answer["value"])

    return ask


def ran(workspace: Path, *steps: Step, **options: Any) -> tuple[Ask, str, Session]:
    off = {"action_retrieval": {"embedding_class": None}}  # whether search is on depends on no clock
    session = Session(workspace, model=ScriptedModel(*steps), config=off)
    run = session.ask("How many lines has notes.txt?", **options).run
    return asking(session), run, session


def words(value: Any) -> str:
    """Every text of an answer, those of one line together."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        parts = [words(each) for key, each in value.items() if key != "spans"]
        line = "".join(span["text"] for span in value.get("spans", ()))
        return "\n".join([line, *parts])
    return "\n".join(words(each) for each in value) if isinstance(value, list) else ""


def rows(opened: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(row["id"], row["title"], row["state"]) for row in opened["steps"]]


def test_a_run_opens_with_its_head_its_answer_and_its_steps_in_order(workspace: Path) -> None:
    ask, run, _ = ran(workspace, invoke("file__read", path="notes.txt"), "It holds **three** lines.")
    opened = ask("trace.open", run=run[-12:])
    assert opened["run"] == run and not opened["running"]
    assert opened["view"]["title"] == "scripted" and "three" in words(opened["view"]["blocks"])
    assert rows(opened) == [
        ("m1", "Step 1", "✓ replied"),
        ("c0", "file__read", "✓ ok"),
        ("m2", "Step 2", "✓ replied"),
    ]
    assert all(
        0 <= row["start"] <= 1 and 0 <= row["start"] + row["share"] <= 1.0001 for row in opened["steps"]
    )


def test_a_model_step_shows_what_was_new_in_its_request_and_the_reply(workspace: Path) -> None:
    ask, run, _ = ran(workspace, invoke("file__read", path="notes.txt"), "Three.")
    first, second = (ask("trace.part", run=run, id=each) for each in ("m1", "m2"))
    assert "How many lines has notes.txt?" in words(first["request"])
    assert "4 tools offered" in words(first["request"]) and "asks for invoke_action" in words(
        first["response"]
    )
    assert "How many lines" not in words(second["request"]), "only the messages that are new"
    assert "second line" in words(second["request"]) and "Three." in words(second["response"])
    assert second["response"]["badges"][0]["text"] == "✓ replied"


def test_a_call_shows_arguments_permission_result_and_what_it_changed(workspace: Path) -> None:
    ask, run, _ = ran(
        workspace, invoke("file__write", path="new.txt", content="one\n"), "Done.", approve="all"
    )
    part = ask("trace.part", run=run, id="c0")
    facts = dict(part["request"]["blocks"][0]["pairs"])
    assert facts["asked through"] == "invoke_action" and facts["action"].startswith("file__write (write)")
    assert facts["permission"] == "allowed by --approve (write new.txt)"
    assert "created, +1 −0" in words(part["response"])


def test_what_was_forgiven_is_named_with_the_arguments_as_they_were_given(workspace: Path) -> None:
    call_as_tool = scripted.call("file__read", path="notes.txt", limit="2")
    ask, run, _ = ran(workspace, call_as_tool, "Done.")
    request = words(ask("trace.part", run=run, id="c0")["request"])
    assert "salvaged" in request and "called as if it were a tool" in request
    assert "coerced" in request and "as it was given" in request


def test_a_stored_result_is_named_so_that_it_can_be_inspected(workspace: Path) -> None:
    (workspace / "long.txt").write_text("a line of some length\n" * 4000)
    ask, run, session = ran(workspace, invoke("file__read", path="long.txt"), "Long.")
    part = ask("trace.part", run=run, id="c0")
    assert part["blob"] == session.blobs.rows[0]["blob"]
    assert f"%reyn inspect {part['blob']}" in words(part["response"])


@pytest.mark.parametrize(
    ("steps", "options", "state", "said"),
    [
        ([invoke("file__read", path="missing.txt"), "No."], {}, "✗ failed", "missing.txt does not exist"),
        ([invoke("file__raed", path="x"), "No."], {}, "✗ unknown action", "file__raed"),
        ([invoke("file__delete", path="notes.txt"), "No."], {"approve": "read"}, "⊘ denied", "denied"),
    ],
    ids=["failed", "unknown", "denied"],
)
def test_what_went_wrong_stands_on_its_line_and_behind_it(
    workspace: Path, steps: list[Step], options: dict[str, Any], state: str, said: str
) -> None:
    ask, run, _ = ran(workspace, *steps, **options)
    row = ask("trace.open", run=run)["steps"][1]
    assert row["state"] == state
    assert said in words(ask("trace.part", run=run, id=row["id"]))


def test_a_model_that_failed_is_a_failed_step_with_its_reason(workspace: Path) -> None:
    ask, run, _ = ran(workspace, ModelError("auth", "The key was refused.", "Set another one."))
    opened = ask("trace.open", run=run)
    assert rows(opened) == [("m1", "Step 1", "✗ failed")] and "key was refused" in opened["steps"][0]["about"]
    assert "The key was refused. (auth)" in words(ask("trace.part", run=run, id="m1")["response"])


def test_a_call_by_hand_is_a_run_without_a_model(workspace: Path) -> None:
    session = Session(workspace)
    result = session.invoke_action("file__read", {"path": "notes.txt"})
    assert result.trace is not None
    opened = asking(session)("trace.open", run=result.trace.run)
    assert rows(opened) == [("c0", "file__read", "✓ ok")] and opened["steps"][0]["depth"] == 0


def test_a_record_cut_off_at_any_byte_opens_as_far_as_it_goes(workspace: Path) -> None:
    _, run, _ = ran(workspace, invoke("file__read", path="notes.txt"), "Three.")
    file = workspace / ".reyn" / "runs" / f"{run}.jsonl"
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole), max(1, len(whole) // 25)):
        file.write_bytes(whole[:end])
        later = asking(Session(workspace))
        opened = later("trace.open", run=run)
        assert not opened["running"] and "cut off" in words(opened["view"]["badges"])
        for row in opened["steps"]:
            assert "request" in later("trace.part", run=run, id=row["id"])


def test_a_run_that_ends_while_it_is_looked_at_goes_on_until_the_next_look_and_is_not_cut_off(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks, go_on = threading.Event(), threading.Event()

    async def waits(_request: object) -> str:
        asks.set()
        await asyncio.to_thread(go_on.wait, 120)
        return "Three."

    session = Session(workspace, model=ScriptedModel(waits))
    run = session.start("How many lines has notes.txt?")
    ask, runs = asking(session), session.parts.runs
    assert asks.wait(120)
    load = runs.load

    def load_and_end(wanted: str) -> Any:
        trace = load(wanted)
        go_on.set()
        run.result(120)
        return trace

    monkeypatch.setattr(runs, "load", load_and_end)
    opened = ask("trace.open", run=run.run_id)
    assert opened["running"] and "cut off" not in words(opened["view"]["badges"])
    opened = ask("trace.open", run=run.run_id)
    assert not opened["running"] and "Three." in words(opened["view"])


def test_a_damaged_record_and_an_unknown_run_say_what_to_do(workspace: Path) -> None:
    ask, run, session = ran(workspace, "Hello.", "Again.")
    other = session.ask("once more").run
    file = workspace / ".reyn" / "runs" / f"{run}.jsonl"
    lines = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join([lines[0], b'{"type": "ModelReplied", "step": []}', *lines[1:]]))
    damaged = asking(Session(workspace))("trace.open", run=run)
    assert "line 2: not an event of a run" in damaged["error"] and "%reyn runs" in damaged["hint"]
    for unknown in ("nothing", "../../etc/passwd", "", "-900"):
        answer = ask("trace.open", run=unknown)
        assert "run" in answer["error"] or "ids" in answer["error"]
    assert "no step 'c9'" in ask("trace.part", run=other, id="c9")["error"]
    assert "no step" in ask("trace.part", run=other, id="m²")["error"]
    assert "at most 200 characters" in ask("trace.open", run="x" * 300)["error"]


def test_long_texts_are_cut_and_name_what_gives_all_of_them(workspace: Path) -> None:
    prompt = "ä" * 300_000
    session = Session(workspace, model=ScriptedModel("b" * 200_000))
    run = session.ask(prompt).run
    part = asking(session)("trace.part", run=run, id="m1")
    assert len(words(part).encode()) < 64 * 1024
    assert f'session.trace("{run[-12:]}").steps[0].requested.messages[1]' in words(part["request"])
    assert ".steps[0].replied.text" in words(part["response"])


def test_a_reply_with_very_many_long_calls_stays_small_and_counts_them(workspace: Path) -> None:
    calls = [invoke("file__read", path=f"{n}" * 3000) for n in range(90)]
    ask, run, _ = ran(workspace, calls, "Done.", max_steps=200)
    for line in ("m1", "m2"):
        part = ask("trace.part", run=run, id=line)
        assert len(words(part).encode()) < 64 * 1024 and "more calls; each stands in the list" in words(part)


def test_three_hundred_calls_are_as_many_lines(workspace: Path) -> None:
    calls = [invoke("file__read", path="notes.txt", offset=1 + n % 3) for n in range(300)]
    ask, run, _ = ran(workspace, calls, "Done.", max_steps=400)
    opened = ask("trace.open", run=run)
    assert len(opened["steps"]) == 302
    assert "notes.txt" in words(ask("trace.part", run=run, id="c299"))


def test_secrets_of_the_environment_are_shown_nowhere(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2M3n4"
    ask, run, session = ran(workspace, invoke("file__read", path=secret), f"The key is {secret}.")
    other = session.ask(f"say {secret}", model=ScriptedModel(f"no: {secret}")).run
    monkeypatch.setenv("SOME_API_KEY", secret)
    answers = [ask("trace.open", run=run), ask("runs.list"), ask("trace.diff", a=run, b=other)]
    answers += [ask("trace.part", run=run, id=row["id"]) for row in answers[0]["steps"]]
    answers.append(ask("trace.pair", a=run, b=other, id="p0"))
    assert secret not in words(answers)


@given(text=st.one_of(st.sampled_from(HOSTILE), st.text(), st.text(st.characters())))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_a_record_holds_it_opens(tmp_path: Path, text: str) -> None:
    odd = replace_messages(text)
    events = [
        started(text, prompt=text, run="r-1"), odd, said(1, text, error_kind=text, finish_reason=text,
        tool_calls=({"id": text, "name": text, "arguments": text},)),
        *call(1, text, {"action_name": text, "args": text}, text, flags=("decoded",), blob=text, content_kind=text),
        *call(2, None, text, text, ok=False, error=text, problem="malformed", wrapper=text),
        RunEnded(run="r-1", at=NOW, status="error", answer=text, error=text),
    ]  # fmt: skip
    runlog.write(tmp_path / ".reyn" / "runs" / "r-1.jsonl", events)
    ask = asking(Session(tmp_path))
    opened = ask("trace.open", run="r-1")
    assert len(opened["steps"]) == 3
    for row in opened["steps"]:
        assert "error" not in ask("trace.part", run="r-1", id=row["id"])
    assert ask("trace.diff", a="r-1", b="r-1")["pairs"][0]["same"] == "same"


def replace_messages(text: str) -> Any:
    """A request whose messages have every shape that a file may hold."""
    from dataclasses import replace

    shapes = (
        {"role": text, "content": text},
        {"role": "user", "content": [{"type": "text", "text": text}]},
        {"content": None, "tool_calls": [{"function": {"name": text, "arguments": text}}, text, None]},
        {"role": "tool", "tool_call_id": 7, "content": 12},
        {},
    )
    return replace(asked(1), messages=shapes, tools=(text,), parameters={text: text}, tool_choice=text)


def test_runs_are_listed_newest_first_to_choose_from(workspace: Path) -> None:
    ask, _, session = ran(workspace, "Hello.", "Again.")
    later = session.ask("And now?").run
    listed = ask("runs.list", limit=1)
    assert [row["run"] for row in listed["rows"]] == [later] and "1 older" in listed["more"]
    assert [row["title"] for row in ask("runs.list")["rows"]] == ["And now?", "How many lines has notes.txt?"]


def test_two_runs_are_compared_pair_by_pair(workspace: Path) -> None:
    ask, a, session = ran(
        workspace, invoke("file__read", path="notes.txt"), "It holds three lines.",
        invoke("file__read", path="data/orders.csv"), "It holds four lines.",
    )  # fmt: skip
    b = session.ask("And orders?", new=True).run
    compared = ask("trace.diff", a=a, b=b)
    assert [(pair["id"], pair["same"]) for pair in compared["pairs"]] == [("p0", "other arguments")]
    assert "bold is what the other does not have" in words(compared["answers"])
    pair = ask("trace.pair", a=a, b=b, id="p0")
    assert "orders.csv" in words(pair["differing"])
    assert [side["title"] for side in pair["sides"]] == ["a: file__read", "b: file__read"]
    assert "no pair" in ask("trace.pair", a=a, b=b, id="p7")["error"]
    assert "no run has" in ask("trace.diff", a=a, b="nothing")["error"]


def test_a_run_without_a_step_and_equal_runs_are_compared_too(workspace: Path) -> None:
    session = Session(workspace, model=ScriptedModel(ModelError("auth", "No key.", ""), otherwise="Three."))
    empty, full, same = (session.ask("how many?", new=True).run for _ in range(3))
    ask = asking(session)
    assert ask("trace.diff", a=empty, b=full)["pairs"] == []
    equal = ask("trace.diff", a=full, b=same)
    assert equal["view"]["badges"][0]["text"] == "the same" and equal["answers"] == []


async def test_a_background_run_is_followed_and_stopped(workspace: Path) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def waits(_request: object) -> str:
        reached.set()
        await go_on.wait()
        return "never said"

    session = Session(workspace, model=ScriptedModel(waits))
    ask = asking(session)
    background = session.start("think for long")
    while not ask("runs.list")["rows"]:
        await asyncio.sleep(0.02)
    run = background.run_id
    while not (opened := ask("trace.open", run=run))["steps"]:
        await asyncio.sleep(0.02)
    assert opened["running"] and opened["stoppable"] and "Stop button" in words(opened["view"])
    assert rows(opened) == [("m1", "Step 1", "… waiting")]
    assert "has not answered yet" in words(ask("trace.part", run=run, id="m1")["response"])
    assert ask("run.stop", run=run) == {"stopping": True}
    await asyncio.to_thread(background.result, 120)
    ended = ask("trace.open", run=run)
    assert not ended["running"] and not ended["stoppable"]
    assert ask("run.stop", run=run) == {"stopping": False}


async def test_a_background_run_is_opened_before_its_record_begins(workspace: Path) -> None:
    go_on = threading.Event()

    async def entries() -> list[Entry]:
        await asyncio.to_thread(go_on.wait, 120)
        return []

    async def nothing(args: dict[str, Any], context: Any) -> str:
        return ""

    rule = Resources(Tool("look", nothing, Purity.READ), lambda entry, args: {}, "look", entries)
    slow = Category("thing", "Look.", resources=rule)
    session = Session(workspace, model=ScriptedModel("Done."), store="memory", categories=[slow])
    run = session.start("go").run_id
    opening = asyncio.create_task(asyncio.to_thread(asking(session), "trace.open", run=run))
    assert (await asyncio.to_thread(asking(session), "runs.list"))["rows"] == []
    go_on.set()
    assert (await opening)["run"] == run


def test_a_run_of_a_cell_is_not_stopped_from_a_view(workspace: Path) -> None:
    ask, run, _ = ran(workspace, "Hello.")
    answer = ask("run.stop", run=run)
    assert "no background run" in answer["error"] and "interrupting the cell" in answer["hint"]


def test_a_chart_of_the_table_of_an_answer_is_drawn_on_request(workspace: Path) -> None:
    (workspace / "orders.csv").write_text("region,amount\nnorth,10\nsouth,30\n")
    query = invoke(
        "table__query", sql="SELECT * FROM orders ORDER BY region", sources={"orders": "orders.csv"}
    )
    ask, run, _ = ran(workspace, query, "Here.", approve="all")
    assert [item["label"] for item in toolbar(ask("trace.open", run=run))][:2] == ["Table", "Chart"]
    (chart, *_) = ask("trace.chart", run=run)["blocks"]
    assert chart["type"] == "chart" and chart["data"] and "north" in words(chart["table"])


def test_an_answer_without_a_table_has_no_chart_and_says_why(workspace: Path) -> None:
    ask, run, _ = ran(workspace, invoke("file__read", path="notes.txt"), "Read.", approve="all")
    assert "Chart" not in [item["label"] for item in toolbar(ask("trace.open", run=run))]
    refused = ask("trace.chart", run=run)
    assert "gave no table" in refused["error"] and "chart__draw" in refused["hint"]


def test_a_table_for_which_no_chart_suggests_itself_is_said_to_be_one(workspace: Path) -> None:
    (workspace / "twice.csv").write_text("region,amount\nnorth,10\nnorth,30\n")
    query = invoke("table__query", sql="SELECT * FROM twice", sources={"twice": "twice.csv"})
    ask, run, _ = ran(workspace, query, "Here.", approve="all")
    (said_so,) = ask("trace.chart", run=run)["blocks"]
    assert "No chart suggests itself" in said_so["text"] and "chart__draw" in said_so["hint"]


def toolbar(opened: dict[str, Any]) -> list[dict[str, Any]]:
    return next(block["blocks"] for block in opened["view"]["blocks"] if block["type"] == "toolbar")
