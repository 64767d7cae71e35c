"""Hostile handlers, hostile values, huge input: the turn goes on, the record is whole, the engine lives."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Entry, Operation, Purity, Resources, Tool
from reyn_jupyter.models.scripted import call, raw_call
from reyn_jupyter.runtime.action_error import ActionError
from tests.end_to_end.e2e_support import category, history_is_valid, invoke, paired, results, scripted
from tests.support.processes import child


class WordlessError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class ExitingError(Exception):
    def __str__(self) -> str:
        raise SystemExit("from __str__")


class Touchy:
    """An object of the person's that objects to being looked at."""

    def __getattribute__(self, name: str) -> Any:
        pytest.fail(f"{name} was asked of it")

    def __repr__(self) -> str:
        pytest.fail("its repr was asked")


RAISED = [
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
    StopAsyncIteration(),
    MemoryError(),
    RecursionError(),
    BaseException("plain"),
    ExceptionGroup("several", [ValueError("a"), KeyError("b")]),
    BaseExceptionGroup("worse", [SystemExit(1)]),
    WordlessError(),
    ExitingError(),
    ActionError("no", hint=["not", "text"]),  # type: ignore[arg-type]
    ValueError("x" * 2_000_000),
    ValueError("\ud800 half"),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("beside", [0, 2])
def test_whatever_a_handler_raises_is_an_answer_and_the_engine_lives(
    workspace: Path, error: BaseException, beside: int
) -> None:
    async def fail(args: Any, context: Any) -> None:
        raise error

    async def fine(args: Any, context: Any) -> str:
        await asyncio.sleep(0.01)
        return "fine"

    calls = [invoke("odd__fail"), *(invoke("odd__fine", n=number) for number in range(beside))]
    s, model = scripted(workspace, calls, "went on", categories=[category(fail=fail, fine=fine)])
    trace = s.ask("go")
    assert (trace.status, trace.answer) == ("ok", "went on")
    assert [each.ok for each in trace.calls] == [False, *[True] * beside]
    answer = json.loads(results(model.requests[-1].messages)[0])
    assert set(answer) == {"error", "hint", "blob"} and len(json.dumps(answer)) < 1000
    assert paired(trace) and history_is_valid(s)
    assert s.invoke_action("odd__fail").error and s.invoke_action("odd__fine").value == "fine"


def odd_values() -> list[Any]:
    async def coroutine() -> int:
        return 1

    cyclic: list[Any] = []
    cyclic.append(cyclic)
    deep: Any = 1
    for _ in range(10_000):
        deep = [deep]
    return [
        Touchy(),
        coroutine(),
        (number for number in range(3)),
        object,
        cyclic,
        deep,
        {Touchy(): Touchy()},
        {1, 2},
    ]


@pytest.mark.parametrize("number", range(len(odd_values())))
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_whatever_a_handler_returns_becomes_text_without_running_any_of_it(
    workspace: Path, number: int
) -> None:
    async def give(args: Any, context: Any) -> Any:
        return odd_values()[number]

    s, model = scripted(workspace, invoke("odd__give"), "ok", categories=[category(give=give)])
    trace = s.ask("go")
    assert trace.answer == "ok" and trace.calls[0].ok
    assert 0 < len(results(model.requests[-1].messages)[0]) <= 800


@pytest.mark.parametrize("kind", ["text", "lines", "frame", "objects", "error"])
def test_fifty_megabytes_become_a_summary_and_a_blob(workspace: Path, kind: str) -> None:
    async def give(args: Any, context: Any) -> Any:
        import pandas as pd

        if kind == "error":
            raise ValueError("漢" * 17_000_000)
        return {
            "text": lambda: "漢" * 17_000_000,
            "lines": lambda: "a line of text\n" * 3_500_000,
            "frame": lambda: pd.DataFrame({"n": range(1_000_000), "name": "a name that repeats"}),
            "objects": lambda: [{"id": n, "name": "x" * 400} for n in range(120_000)],
        }[kind]()

    s, model = scripted(workspace, invoke("odd__give"), "ok", categories=[category(give=give)], store="files")
    trace = s.ask("go")
    text = results(model.requests[-1].messages)[0]
    finished = trace.calls[0].finished
    assert finished is not None and finished.blob and finished.size > 40_000_000
    assert len(text.encode()) <= (800 if kind == "error" else 400)
    run_file = workspace / ".reyn" / "runs" / f"{trace.run}.jsonl"
    assert run_file.stat().st_size < 20_000


def test_a_megabyte_of_prompt_is_one_message_and_one_record(workspace: Path) -> None:
    prompt = '{"a": ${b}} {{c}} \N{PARTY POPPER} \x00\u202e' * 30_000 + "\ud800"
    s, model = scripted(workspace, "ok", "ok", store="files")
    s.ask(prompt)
    assert model.requests[0].messages[-1].content == prompt[:-1] + "\N{REPLACEMENT CHARACTER}"
    assert s.ask("again").answer == "ok"
    assert reyn.Session(workspace).trace().prompt == "again"


@pytest.mark.parametrize("depth", [65, 900, 10_000, 100_000])
@pytest.mark.parametrize("wrapper", ["invoke_action", "list_actions", "file__write", "inspect", "made_up"])
def test_arguments_nested_too_deep_are_answered(workspace: Path, depth: int, wrapper: str) -> None:
    nested = '{"a":' * depth + "1" + "}" * depth
    text = f'{{"action_name": "file__write", "args": {{"path": "x", "content": {nested}}}}}'
    s, model = scripted(workspace, raw_call(wrapper, text), "ok", store="files")
    trace = s.ask("go", approve="all")
    assert trace.answer == "ok" and trace.calls[0].ok is False and paired(trace)
    assert len(results(model.requests[-1].messages)[0]) <= 8192
    assert reyn.Session(workspace).trace(trace.run).answer == "ok"
    assert not (workspace / "x").exists()


@pytest.mark.parametrize(
    "name", ["x" * 1_000_000, "\ud800", "file__\x00", "", " ", "__", "a__b" * 5000, "file__read\n"]
)
def test_names_of_any_shape_are_answered(workspace: Path, name: str) -> None:
    calls = [invoke(name), call(name), call("describe_action", action_name=name)]
    s, model = scripted(workspace, calls, "ok", store="files")
    trace = s.ask("go")
    assert trace.answer == "ok" and paired(trace) and history_is_valid(s)
    assert all(len(text) < 8192 for text in results(model.requests[-1].messages))
    assert all(len(each.resolved.wrapper) <= 200 for each in trace.calls)


def test_a_blocking_handler_cannot_hold_the_notebook_for_good(workspace: Path) -> None:
    """An action that never awaits stops the engine's thread; an interrupt leaves it, says so, and goes on."""
    code = """
        import os, signal, sys, threading, time
        from tests.end_to_end.e2e_support import category, invoke, scripted
        from reyn_jupyter.runtime.pump import Interrupted

        async def block(args, context):
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            time.sleep(600)

        async def fine(args, context):
            return "fine"

        # A suite that a shell runs in the background starts with interrupts ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        s, _ = scripted(sys.argv[1], invoke("odd__block"), "never", categories=[category(block=block, fine=fine)])
        try:
            s.ask("go")
        except Interrupted as interrupted:
            print(interrupted.why)
        print(s.invoke_action("odd__fine").value)
        sys.stdout.flush()
        os._exit(0)
    """
    done = child(code, str(workspace))
    said = done.stdout.splitlines()
    assert "without ever giving way" in said[0], done
    assert said[1] == "fine"


def test_a_category_that_fails_in_every_way_takes_no_other_with_it(workspace: Path) -> None:
    async def fine(args: Any, context: Any) -> str:
        return "fine"

    async def entries() -> Any:
        raise SystemExit(1)

    async def twice() -> Any:
        return [Entry("a", "one", {"type": "object"}), Entry("a", "two", {"type": "object"})]

    def exits() -> Any:
        raise SystemExit(2)

    def fails(*args: Any) -> Any:
        raise SystemExit(3)

    tool = Tool("look", fine, Purity.READ)
    broken_rule = Operation(
        "go", "Go.", {"type": "object"}, Tool("go_rule", fine, Purity.READ, effects=fails)
    )
    broken_transform = Operation("move", "Move.", {"type": "object"}, Tool("move", fine, Purity.READ), fails)
    broken = [
        Category("bad.entries", "x", resources=Resources(tool, lambda e, a: a, "look", entries)),
        Category("bad.twice", "x", resources=Resources(tool, lambda e, a: a, "look", twice)),
        Category(
            "bad.revision", "x", resources=Resources(tool, lambda e, a: a, "look", twice), revision=exits
        ),
        Category("bad.visible", "x", (broken_rule,), hidden=exits),
        Category("odd", "takes the name of another", (broken_rule,)),
        Category("Bad Name", "x", (broken_rule,)),
        Category("bad.rules", "x", (broken_rule, broken_transform)),
        "no category at all",
    ]
    calls = [invoke("odd__fine"), invoke("bad.rules__go"), invoke("bad.rules__move")]
    s, _ = scripted(workspace, calls, "ok", categories=[category(fine=fine), *broken])  # type: ignore[list-item]
    trace = s.ask("go")
    assert [each.ok for each in trace.calls] == [True, False, False] and paired(trace)
    problems = " ".join(line for _, lines in s.status.sections for line in lines)
    assert all(
        name in problems for name in ("bad.entries", "bad.twice", "bad.revision", "bad.visible", "Bad Name")
    )
    assert "a second category 'odd'" in problems and "str" in problems


def test_a_category_that_hangs_is_left_out_after_its_time(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reyn_jupyter.runtime.live_catalog import catalog_cache

    async def entries() -> Any:
        await asyncio.sleep(60)

    async def fine(args: Any, context: Any) -> str:
        return "fine"

    monkeypatch.setattr(catalog_cache, "SECONDS", 0.1)
    hangs = Category(
        "slow", "x", resources=Resources(Tool("t", fine, Purity.READ), lambda e, a: a, "look", entries)
    )
    s, _ = scripted(workspace, categories=[category(fine=fine), hangs])
    assert s.invoke_action("odd__fine").value == "fine"
    assert "slow" in str(s.status.sections)


def test_a_persons_arguments_that_are_no_json_are_refused_and_recorded_by_their_type(workspace: Path) -> None:
    s, _ = scripted(workspace, store="files")
    for args in ({"path": object()}, {"path": "a", "content": threading.Lock()}, "text", [1], 5, {1: 2}):
        result = s.invoke_action("file__write", args)  # type: ignore[arg-type]
        assert result.error
    assert len(reyn.Session(workspace).runs) == 6
