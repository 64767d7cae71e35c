"""Calls, results and questions of megabytes are redacted off the engine's loop, which hears an interrupt meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.runtime.services import ToolContext
from reyn_jupyter.support.secrets import Redactor
from tests.security.security_support import invoke

LARGE = "a line of words\n" * 30_000
FREE = {"type": "object", "properties": {}, "additionalProperties": True}


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads that looked through a large text for secrets."""
    seen: list[str] = []
    spans = Redactor.spans

    def watched(redactor: Redactor, given: Any) -> Any:
        if len(given) >= len(LARGE):
            seen.append(threading.current_thread().name)
        return spans(redactor, given)

    monkeypatch.setattr(Redactor, "spans", watched)
    return seen


def test_the_loop_looks_through_no_large_argument(workspace: Path, threads: list[str]) -> None:
    session = reyn.Session(
        workspace, model=ScriptedModel(invoke("file__write", path="new.txt", content=LARGE), "Done.")
    )
    session.parts.ask_person = lambda question: "once"
    trace = session.ask("write it")
    assert trace.answer == "Done." and (workspace / "new.txt").read_text() == LARGE
    assert len(threads) >= 2 and "reyn-engine" not in threads


async def say(args: Any, context: ToolContext) -> Any:
    return args["text"]


async def fail(args: Any, context: ToolContext) -> Any:
    raise ValueError(args["text"])


async def pass_on(args: Any, context: ToolContext) -> Any:
    return await context.invoke("flow__say", {"text": LARGE})


def flow() -> Category:
    steps = (("say", say), ("fail", fail), ("pass_on", pass_on))
    return Category(
        "flow",
        "Run steps.",
        tuple(
            Operation(name, f"Run {name}.", FREE, Tool(f"{name}_flow", handler, Purity.READ))
            for name, handler in steps
        ),
    )


def by_hand(name: str, **args: Any) -> Callable[[reyn.Session], object]:
    return lambda session: session.invoke_action(name, args)


@pytest.mark.parametrize(
    "work",
    [
        by_hand("flow__say", text=LARGE),
        by_hand("flow__pass_on"),
        by_hand("flow__fail", text=LARGE),
        by_hand("flow__none", text=LARGE),
        lambda session: session.ask(LARGE, model=ScriptedModel("done")),
        lambda session: session.ask("go", model=ScriptedModel(invoke("flow__fail", text=LARGE), "done")),
        lambda session: session.ask("go", model=ScriptedModel(invoke("flow__none", text=LARGE), "done")),
    ],
    ids=["by hand", "inner", "error", "refused", "question", "error of a model's", "refused to a model"],
)
def test_nor_does_it_by_hand_in_inner_calls_in_errors_in_refusals_and_in_questions(
    workspace: Path, threads: list[str], work: Callable[[reyn.Session], object]
) -> None:
    work(reyn.Session(workspace, categories=(flow(),)))
    assert threads and "reyn-engine" not in threads
