"""The log of model calls: what was sent, what came back, retries; without secrets, and only where it is on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.base import Message, ModelError, Request
from reyn_jupyter.models.call_log import ModelCallLog
from reyn_jupyter.models.retry import RetryingModel, RetryPolicy
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.support.secrets import Redactor
from tests.notebook.conftest import run  # noqa: F401 - a fixture

SECRET = "sk-" + "proj-abcdefghijklmnopqrstuvwx"
REQUEST = Request("scripted", (Message("user", f"Hello \x1b[2J {SECRET}"),))


def logged(*steps: Any, on: bool = True) -> tuple[RetryingModel, list[str]]:
    shown: list[str] = []

    async def show(text: str) -> None:
        shown.append(text)

    log = ModelCallLog(lambda: on, show, Redactor({"OPENAI_API_KEY": SECRET}))
    policy = replace(RetryPolicy(first_wait=0.001), retries=2)
    return RetryingModel(ScriptedModel(*steps), policy, log=log), shown


async def test_a_call_is_shown_as_it_went_out_and_as_it_came_back_without_secrets() -> None:
    model, shown = logged(f"The answer {SECRET}")
    assert SECRET in (await model.complete(REQUEST)).text, "the call itself is what it was"
    sent, back = shown
    call_id = sent.split()[3]
    assert call_id in back and len(call_id) == 12
    assert "payload:" in sent and "Hello" in sent
    assert "raw body:" in back and "extracted content:" in back and back.count("The answer") == 2
    assert SECRET not in sent + back and "\x1b" not in sent + back


async def test_retries_and_the_error_at_last_are_shown() -> None:
    model, shown = logged(*[ModelError("rate_limited", "Come later.", retryable=True)] * 3)
    with pytest.raises(ModelError):
        await model.complete(REQUEST)
    back = shown[-1]
    assert "retry 1 in" in back and "retry 2 in" in back and "error: Come later." in back


async def test_calls_of_tools_are_what_is_taken_out_of_an_answer_without_text() -> None:
    model, shown = logged(call("file__read", path="notes.txt"))
    await model.complete(REQUEST)
    taken = shown[-1].partition("extracted content:\n")[2]
    name, _, arguments = taken.partition(" ")
    assert name == "file__read" and json.loads(arguments) == {"path": "notes.txt"}


async def test_nothing_is_shown_where_nobody_asked() -> None:
    model, shown = logged("there", on=False)
    await model.complete(REQUEST)
    assert shown == []


@pytest.mark.parametrize("switch", ["variable", "setting"])
def test_a_turn_of_a_notebook_shows_its_calls(
    workspace: Path,
    run: Callable[[str], str],  # noqa: F811 - the fixture above
    monkeypatch: pytest.MonkeyPatch,
    switch: str,
) -> None:
    from reyn_jupyter.sessions import current

    made = reyn.Session(workspace, model=ScriptedModel(*["A quiet answer."] * 2))
    current._current.append(made)
    assert "payload:" not in run('%reyn ask "Hello there"')
    if switch == "variable":
        monkeypatch.setenv("LLM_LOG", "1")
    else:
        run("%reyn config llm_log on")
    said = run('%reyn ask "Hello there"')
    assert "payload:" in said and "Hello there" in said and said.count("A quiet answer.") >= 2
