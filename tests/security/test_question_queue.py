"""Calls that run beside each other ask once where one answer covers them, and never where it does not.

A person who is asked three times for the same host stops to read; one whose "no" or "once" is taken for another change
has consented to what was never shown.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Effect, Purity
from reyn_jupyter.models.base import ToolCall
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.runtime.action_error import PermissionDeniedError
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.runtime.services import ToolContext
from reyn_jupyter.sessions.runs.background_run import BackgroundRun
from tests.security.security_support import invoke
from tests.support.courier import probe
from tests.support.till import Till
from tests.support.waiting import PATIENCE, until


def hosts(args: Any) -> list[Effect]:
    return [Effect("network", host) for host in args["amount"].split()[1:]]


def till() -> Till:
    """Return a server whose calls only read, so that they run beside each other: ``N HOST …`` reaches these hosts."""
    return Till(effects=hosts, purity=Purity.READ)


class Person:
    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.questions: list[Question] = []

    def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def session(workspace: Path, category: Category, person: Person | None = None) -> reyn.Session:
    made = reyn.Session(workspace, store="memory", categories=(category,))
    if person is not None:
        made.parts.ask_person = person
    return made


def pay(*amounts: str) -> list[ToolCall]:
    return [invoke("till__pay", amount=amount) for amount in amounts]


def asked(made: reyn.Session, *amounts: str, **options: Any) -> Trace:
    """Let a model pay these amounts in one step."""
    return made.ask("go", model=ScriptedModel(pay(*amounts), "done"), new=True, **options)


def test_three_calls_to_one_host_ask_once_when_the_answer_is_always(workspace: Path) -> None:
    person, used = Person("always"), till()
    trace = asked(session(workspace, used.category(), person), "1 a.org", "2 A.ORG.", "3 https://a.org/x")
    assert len(person.questions) == 1 and len(used.calls) == 3
    assert [call.decision.by for call in trace.calls] == ["person"] * 3
    assert {call.decision.pattern for call in trace.calls} == {"till__pay(network:a.org)"}


def test_once_and_no_are_for_the_call_that_was_shown(workspace: Path) -> None:
    person, used = Person("deny", "once", "deny"), till()
    trace = asked(session(workspace, used.category(), person), "1 a.org", "2 a.org", "3 a.org")
    assert [call.ok for call in trace.calls] == [False, True, False]
    assert len(person.questions) == 3 and used.calls == [{"amount": "2 a.org"}]
    assert [f'"{number} a.org"' in question.text for number, question in enumerate(person.questions, 1)] == [
        True
    ] * 3


def test_always_answers_no_call_that_reaches_for_more(workspace: Path) -> None:
    person, used = Person("always", "deny"), till()
    trace = asked(session(workspace, used.category(), person), "1 a.org", "2 a.org b.org", "3 a.org")
    assert [call.ok for call in trace.calls] == [True, False, True]
    assert len(person.questions) == 2 and "b.org" in person.questions[1].text


def test_always_for_several_targets_names_and_keeps_each_that_needed_consent(workspace: Path) -> None:
    person, used = Person("always", "deny"), till()
    made = session(workspace, used.category(), person)
    asked(made, "1 a.org b.org:8443")
    assert person.questions[0].patterns == ("till__pay(network:a.org)", "till__pay(network:b.org:8443)")
    assert made.parts.approvals.list() == person.questions[0].patterns
    trace = asked(made, "2 b.org:8443", "3 a.org", "4 b.org", "5 c.org a.org")
    assert [call.ok for call in trace.calls] == [True, True, False, False]
    assert [question.patterns for question in person.questions[1:]] == [
        ("till__pay(network:b.org)",),
        ("till__pay(network:c.org)",),
    ]


def test_questions_that_show_the_same_share_an_answer_of_one_call(workspace: Path) -> None:
    async def look(args: Any, context: ToolContext) -> str:
        async def ask() -> bool:
            try:
                await context.ask(Effect("network", "a.org"), reason="to look")
            except PermissionDeniedError:
                return False
            return True

        return str(await asyncio.gather(ask(), ask(), ask()))

    for answer, said in (("once", "[True, True, True]"), ("deny", "[False, False, False]")):
        person = Person(answer)  # type: ignore[arg-type]
        made = session(workspace, probe(look), person)
        trace = made.ask("go", model=ScriptedModel(invoke("probe__it"), "done"))
        assert trace.calls[0].finished.output == said and len(person.questions) == 1
        assert len(trace.calls[0].further) == 3


def test_questions_that_look_the_same_because_a_secret_is_masked_share_nothing(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = "AKIA" + "ABCDEFGHIJKLMNOP", "AKIA" + "QRSTUVWXYZABCDEF"
    person = Person("once", "deny")
    used = Till(effects=lambda args: [Effect("network", "a.org")], purity=Purity.READ)
    trace = asked(session(workspace, used.category(), person), one, other)
    first, second = person.questions
    assert first.text == second.text and one not in first.text
    assert [call.ok for call in trace.calls] == [True, False] and used.calls == [{"amount": one}]


def begun(made: reyn.Session, *amounts: str) -> BackgroundRun:
    return made.start("go", model=ScriptedModel(pay(*amounts), "done"), waits=True)


def shown(run: BackgroundRun, most: int) -> list[str]:
    """Return the patterns of the open questions, once there are so many."""
    until(lambda: len(run.pending) == most)
    return sorted(" ".join(each.question.patterns) for each in run.pending)


def answer(run: BackgroundRun, pattern: str, given: Answer) -> None:
    (found,) = [each for each in run.pending if " ".join(each.question.patterns) == pattern]
    run.answer(found.id, given)


def test_in_the_background_a_page_shows_one_question_for_each_target_and_always_takes_others_back(
    workspace: Path,
) -> None:
    used = till()
    run = begun(session(workspace, used.category()), "1 a.org", "2 a.org", "3 b.org", "4 b.org a.org")
    a, b = "till__pay(network:a.org)", "till__pay(network:b.org)"
    both = f"{b} {a}"
    assert shown(run, 3) == sorted([a, b, both])
    answer(run, a, "always")
    assert shown(run, 2) == sorted([b, both])
    answer(run, b, "always")
    trace = run.result(PATIENCE)
    assert len(used.calls) == 4 and all(call.ok for call in trace.calls)


def test_a_question_that_is_taken_back_by_its_call_lets_the_next_one_ask(workspace: Path) -> None:
    made: list[asyncio.Task[Any]] = []
    person = Person("once")

    async def look(args: Any, context: ToolContext) -> str:
        first = asyncio.create_task(context.ask(Effect("network", "a.org"), reason="first"))
        second = asyncio.create_task(context.ask(Effect("network", "a.org"), reason="second"))
        made.extend((first, second))
        await asyncio.sleep(0)
        first.cancel()
        await second
        return "allowed"

    async def hesitate(question: Question) -> Answer:
        person(question)
        if "first" in question.text:
            await asyncio.Event().wait()
        return "once"

    trace = session(workspace, probe(look)).ask(
        "go", model=ScriptedModel(invoke("probe__it"), "done"), ask=hesitate
    )
    assert trace.calls[0].finished.output == "allowed" and made[0].cancelled()
    assert ["second" in question.text for question in person.questions][-1]


def test_nobody_there_is_an_answer_for_all_who_wait(workspace: Path) -> None:
    person, used = Person("nobody"), till()
    trace = asked(session(workspace, used.category(), person), "1 a.org", "2 a.org", "3 a.org")
    assert len(person.questions) == 1 and not used.calls
    assert [call.decision.by for call in trace.calls] == ["nobody"] * 3


def test_two_runs_that_pay_the_same_are_asked_about_one_by_one(workspace: Path) -> None:
    used = Till()
    made = session(workspace, used.category())
    one, other = begun(made, "1"), begun(made, "1")
    until(lambda: one.pending and other.pending)
    one.answer(one.pending[0].id, "once")
    one.result(PATIENCE)
    assert len(used.calls) == 1 and other.pending
    other.answer(other.pending[0].id, "deny")
    assert not other.result(PATIENCE).calls[0].ok and len(used.calls) == 1


def test_a_rule_that_always_cannot_keep_asks_the_next_one(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace.parent / "no folder").write_text("")
    monkeypatch.setenv("REYN_STATE_DIR", str(workspace.parent / "no folder"))
    person, used = Person("always", "deny"), till()
    trace = asked(session(workspace, used.category(), person), "1 a.org", "2 a.org")
    assert [call.ok for call in trace.calls] == [True, False] and len(person.questions) == 2
