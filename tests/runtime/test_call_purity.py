"""The purity of a call may depend on its arguments: what only reads runs side by side, is merged, and runs again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Arguments, Purity
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.trace import Trace
from tests.security.security_support import invoke
from tests.support.till import Till

REFERABLE = {"type": "string", "x-reference": ["string"]}


def by_name(args: Arguments) -> Purity:
    return Purity.READ if args["amount"].startswith("get") else Purity.WRITE


def till(purity: Any = by_name, **options: Any) -> Till:
    return Till(effects=lambda args: [], purity=purity, **options)


def session(workspace: Path, used: Till, **options: Any) -> reyn.Session:
    made = reyn.Session(workspace, store="memory", categories=(used.category(),), **options)
    made.parts.ask_person = lambda question: "once"
    return made


def steps(*amounts: object) -> list[Any]:
    return [[invoke("till__pay", amount=amount) for amount in amounts], "done"]


def asked(made: reyn.Session, *amounts: object, **options: Any) -> Trace:
    return made.ask("go", model=ScriptedModel(*steps(*amounts)), new=True, **options)


def meeting(used: Till, number: int) -> None:
    """Let each call wait until so many run at once, or until nothing else can begin."""

    async def wait() -> None:
        for _ in range(50):
            if used.running >= number:
                return
            await asyncio.sleep(0)

    used.gate = wait


def test_reads_of_one_server_run_side_by_side_and_what_changes_runs_alone(workspace: Path) -> None:
    used = till()
    meeting(used, 3)
    trace = asked(session(workspace, used), "get a", "get b", "get c")
    assert used.most == 3 and {call.resolved.purity for call in trace.calls} == {"read"}
    used.most = 0
    trace = asked(session(workspace, used), "set a", "set b", "get c")
    assert used.most == 1 and [call.resolved.purity for call in trace.calls] == ["write", "write", "read"]


def test_equal_reads_are_one_call_and_equal_changes_are_two(workspace: Path) -> None:
    used = till()
    trace = asked(session(workspace, used), "get a", "get a", "set b", "set b")
    assert [each["amount"] for each in used.calls] == ["get a", "set b", "set b"]
    assert ["merged" in call.resolved.flags for call in trace.calls] == [False, True, False, False]


def test_a_read_needs_no_consent_and_a_change_does(workspace: Path) -> None:
    questions: list[Question] = []

    def deny(question: Question) -> Answer:
        questions.append(question)
        return "deny"

    used = till()
    made = session(workspace, used)
    made.parts.ask_person = deny
    trace = asked(made, "get a", "set b")
    assert [call.ok for call in trace.calls] == [True, False] and len(questions) == 1


def fails(args: Arguments) -> Purity:
    raise KeyError("amount")


def leaves(args: Arguments) -> Purity:
    raise SystemExit


def changes(args: Arguments) -> Purity:
    args.clear()
    return Purity.READ


@pytest.mark.parametrize("rule", [fails, leaves, lambda args: "read", lambda args: None, lambda args: True])
def test_a_function_that_cannot_say_makes_the_call_unknown_and_never_repeatable(
    workspace: Path, rule: Any
) -> None:
    used = till(rule)
    meeting(used, 2)
    trace = asked(session(workspace, used), "get a", "get a")
    assert used.most == 1 and len(used.calls) == 2
    assert [call.resolved.purity for call in trace.calls] == ["unknown"] * 2
    assert [call.decision.by for call in trace.calls] == ["person"] * 2


def test_a_function_cannot_change_what_runs(workspace: Path) -> None:
    used = till(changes)
    asked(session(workspace, used), "get a")
    assert used.calls == [{"amount": "get a"}]


def test_what_a_reference_brings_decides_consent_and_until_then_the_call_runs_alone(workspace: Path) -> None:
    questions: list[Question] = []

    def deny(question: Question) -> Answer:
        questions.append(question)
        return "deny"

    used = till(properties={"amount": REFERABLE})
    meeting(used, 2)
    names = {"read": "get all", "change": "set all"}
    made = session(workspace, used, namespace=names, config={"variables": "schema"})
    made.parts.ask_person = deny
    trace = asked(made, {"$var": "read"}, {"$var": "read"}, {"$var": "change"})
    assert [call.ok for call in trace.calls] == [True, True, False] and used.most == 1
    assert len(questions) == 1


def test_in_a_replay_a_read_runs_again_and_a_change_comes_from_the_record_or_asks(workspace: Path) -> None:
    questions: list[Question] = []

    def deny(question: Question) -> Answer:
        questions.append(question)
        return "deny"

    used = till()
    made = session(workspace, used)
    first = asked(made, "get a", "set b")
    used.calls.clear()
    made.parts.ask_person = deny
    made.replay(first.run, model=ScriptedModel(*steps("get a", "set b")))
    assert [each["amount"] for each in used.calls] == ["get a"] and not questions
    made.replay(first.run, model=ScriptedModel(*steps("set c")))
    assert [each["amount"] for each in used.calls] == ["get a"] and len(questions) == 1


def test_an_action_whose_purity_varies_is_shown_as_unknown(workspace: Path) -> None:
    made = session(workspace, till())
    (row,) = list(made.list_actions())
    assert row["purity"] == "unknown" and row["permission"] == "asks"
