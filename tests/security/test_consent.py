"""A person consents to what was shown, all of it, and nobody else answers in their place.

Each test is an attack: a call whose harm would stand where nobody looks, or a connection that answers a question which
it was not asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.notebook.serving.protocol import PROTOCOL
from reyn_jupyter.runtime.questions.approval_queue import UnknownQuestionError, queue_of
from reyn_jupyter.runtime.questions.consent import PAGE, Question
from reyn_jupyter.sessions.runs.background_run import BackgroundRun
from tests.security.security_support import Attacker, invoke
from tests.support.waiting import PATIENCE, until

# Each draws nothing, or a space: between two letters of a name or a line nobody sees them.
INVISIBLE = (
    "\u3164\u115f\u1160\uffa0\u2800\ufe0f\ufe0e\ufe00\U000e0100\U000e01ef\u00ad\u034f\u061c\u17b4\u17b5\u180b\u180e"
    "\u200b\u200c\u200d\u200e\u202e\u2060\u2061\u2064\u2066\u206a\ufeff\ufff9\U0001bca0\U0001d173\U0001d159\U000e0001"
    "\U000e0061\u00a0\u2003\u202f\u205f\u3000\u2028"
)


def asked(attacker: Attacker, name: str, /, **args: Any) -> Question:
    """Return the question that a call asks."""
    attacker.call(name, **args)
    (question,) = attacker.questions
    return question


def keeps(question: Question, shown: int | None = None) -> bool:
    """Return whether "always" is offered once `shown` lines were shown; None stands for all."""
    offered = question.choices if shown is None else question.choices_after(shown)
    return any(each.keeps for each in offered)


# What a question shows


def test_a_change_at_column_601_is_seen(workspace: Path) -> None:
    (workspace / "long.txt").write_text("x" * 600 + "safe\n")
    question = asked(Attacker(workspace), "file__write", path="long.txt", content="x" * 600 + "evil\n")
    assert "safe" in question.text and "evil" in question.text
    assert "The next line changes from character 601 on." in question.text


def test_a_file_of_101_lines_is_shown_to_the_last_and_always_waits_for_it(workspace: Path) -> None:
    content = "".join(f"line {number}\n" for number in range(PAGE)) + "the payload\n"
    question = asked(Attacker(workspace), "file__write", path="new.txt", content=content)
    assert "+the payload" in question.text
    assert not any("payload" in each.text for each in question.page(0))
    assert any("payload" in each.text for each in question.page(PAGE))
    assert not keeps(question, PAGE) and keeps(question)


@pytest.mark.parametrize("lines", [3000, 20_000])
def test_a_change_too_large_to_compare_is_shown_whole_too(workspace: Path, lines: int) -> None:
    (workspace / "large.txt").write_text("old\n" * lines)
    content = "".join(f"line {number}\n" for number in range(lines)) + "the payload\n"
    question = asked(Attacker(workspace), "file__write", path="large.txt", content=content)
    assert "+the payload" in question.text


def test_the_content_of_a_reference_is_shown(workspace: Path) -> None:
    attacker = Attacker(workspace)
    blob = attacker.stored("one\nthe payload\n")
    question = asked(attacker, "file__write", path="new.txt", content={"$blob": blob})
    assert "+the payload" in question.text and blob not in question.text


def test_a_control_character_makes_no_text_unreadable(workspace: Path) -> None:
    question = asked(Attacker(workspace), "file__write", path="new.txt", content="\0\nthe payload\n")
    assert "+␀" in question.text and "+the payload" in question.text


def test_the_end_of_a_long_memory_is_shown(workspace: Path) -> None:
    question = asked(
        Attacker(workspace),
        "memory_operation__remember_shared",
        slug="note", name="Note", description="A note.", type="project", body="x " * 4000 + "the payload",
    )  # fmt: skip
    assert question.text.replace("\n  ┆ ", "").endswith("the payload")


def test_what_a_mask_or_bytes_hide_is_never_always_allowed(workspace: Path) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nrm -rf /\n-----END PRIVATE KEY-----\n"
    question = asked(Attacker(workspace), "file__write", path="new.txt", content=key)
    assert "rm -rf" not in question.text and "is masked" in question.text and not keeps(question)
    (workspace / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    question = asked(Attacker(workspace), "file__delete", path="picture.png")
    assert "is no text (6 bytes) and is not shown" in question.text and not keeps(question)


@pytest.mark.parametrize("character", INVISIBLE, ids=lambda each: f"U+{ord(each):04X}")
def test_an_invisible_character_is_shown_in_a_name_and_in_a_line(workspace: Path, character: str) -> None:
    path, content = f"a{character}b.txt", f"c{character}d\n"
    question = asked(Attacker(workspace), "file__write", path=path, content=content)
    assert character not in question.text + question.heading
    assert question.text.count(f"⟨U+{ord(character):04X}⟩") >= 2


# Who answers


class Page:
    """A connection of a front end.

    Args:
        approves: whether it says that it puts questions before a person.
    """

    def __init__(self, hub: Hub, *, approves: bool) -> None:
        self._messages: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.heard: list[dict[str, Any]] = []
        self._number = 0
        self.connection = Connection(hub, self._messages.put, None)
        self.ask("hello", protocol=PROTOCOL, host="page", version="0", approves=approves)

    def send(self, op: str, **args: Any) -> int:
        self._number += 1
        self.connection.receive({"type": "request", "id": self._number, "op": op, "args": args})
        return self._number

    def ask(self, op: str, **args: Any) -> dict[str, Any]:
        """Request, and wait for the answer."""
        number = self.send(op, **args)
        while True:
            message = self._messages.get(timeout=PATIENCE)
            if message.get("id") == number and message["type"] in ("answer", "error"):
                return message
            self.heard.append(message)

    def questions(self) -> list[dict[str, Any]]:
        """Return the questions that it was sent until now."""
        self.ask("approval.pending")
        return [each["event"] for each in self.heard if each.get("event", {}).get("name") == "approval"]

    def question(self) -> dict[str, Any]:
        return until(self.questions)[0]


@pytest.fixture
def session(workspace: Path) -> reyn.Session:
    content = "".join(f"line {number}\n" for number in range(PAGE))
    return reyn.Session(
        workspace, model=ScriptedModel(invoke("file__write", path="new.txt", content=content), "Done.")
    )


@pytest.fixture
def hub(session: reyn.Session) -> Iterator[Hub]:
    made = Hub(lambda: session)
    yield made
    for connection in list(made.connections):
        connection.close()


@pytest.fixture
def person(hub: Hub) -> Page:
    return Page(hub, approves=True)


@pytest.fixture
def run(session: reyn.Session, person: Page) -> Iterator[BackgroundRun]:
    made = session.start("write it")
    yield made
    made.cancel()
    made.result(PATIENCE)


def secret(question: dict[str, Any], answer: str) -> Any:
    return next(each["secret"] for each in question["choices"] if each["answer"] == answer)


def test_no_beginning_of_an_id_answers(run: BackgroundRun, person: Page) -> None:
    question = person.question()
    for digit in "0123456789abcdef":
        with pytest.raises(UnknownQuestionError):
            queue_of(digit).answer(digit, "once")
        with pytest.raises(UnknownQuestionError):
            run.answer(digit, "once")
        refused = person.ask("approval.answer", id=digit, answer="once", secret=secret(question, "once"))
        assert refused["type"] == "error"
    with pytest.raises(UnknownQuestionError):
        queue_of(question["id"][:-1]).answer(question["id"][:-1], "once")
    assert run.pending


def test_a_connection_that_shows_no_questions_learns_of_none_and_answers_none(
    run: BackgroundRun, person: Page, hub: Hub
) -> None:
    question = person.question()
    other = Page(hub, approves=False)
    assert other.questions() == [] and other.ask("approval.pending")["value"] == {"questions": []}
    stolen = secret(question, "once")
    for given in ("", stolen, other.connection.answer_key.secret(question["id"], "once")):
        refused = other.ask("approval.answer", id=question["id"], answer="once", secret=given)
        assert refused["type"] == "error" and "not asked" in refused["message"]
    assert other.ask("approval.page", id=question["id"], start=0)["type"] == "error"
    assert run.pending


def test_the_secret_of_another_connection_of_another_answer_or_of_none_is_refused(
    run: BackgroundRun, person: Page, hub: Hub
) -> None:
    question = person.question()
    other = Page(hub, approves=True).question()
    for given in (secret(other, "once"), secret(question, "deny"), "", "é"):
        refused = person.ask("approval.answer", id=question["id"], answer="once", secret=given)
        assert refused["type"] == "error"
    assert run.pending
    assert person.ask("approval.answer", id=question["id"], answer="once", secret=secret(question, "once"))
    until(lambda: not run.pending)


def test_a_connection_cannot_consent_to_its_own_call_unless_it_was_asked(
    hub: Hub, person: Page, workspace: Path
) -> None:
    other = Page(hub, approves=False)
    number = other.send("catalog.invoke", name="file__write", typed={"path": "own.txt", "content": "x"})
    question = person.question()
    refused = other.ask("approval.answer", id=question["id"], answer="once", secret="")
    assert refused["type"] == "error" and not (workspace / "own.txt").exists()
    person.ask("approval.answer", id=question["id"], answer="deny", secret=secret(question, "deny"))
    until(lambda: other.questions() or any(each.get("id") == number for each in other.heard))
    assert not (workspace / "own.txt").exists()


def test_always_cannot_be_answered_before_the_last_line_was_sent(run: BackgroundRun, person: Page) -> None:
    question = person.question()
    shown = len(question["lines"])
    assert shown == PAGE < question["total"] and secret(question, "always") is None
    refused = person.ask(
        "approval.answer", id=question["id"], answer="always", secret=secret(question, "once")
    )
    assert refused["type"] == "error" and run.pending
    page = person.ask("approval.page", id=question["id"], start=shown)["value"]
    assert shown + len(page["lines"]) == question["total"]
    assert page["lines"][-1]["text"] == f"+line {PAGE - 1}"
    person.ask("approval.answer", id=question["id"], answer="always", secret=secret(page, "always"))
    assert run.result(PATIENCE).calls[0].ok


def test_always_cannot_be_answered_after_a_page_that_left_lines_out(run: BackgroundRun, person: Page) -> None:
    question = person.question()
    shown = len(question["lines"])
    for start in (10**9, question["total"], question["total"] - 1, shown + 1):
        page = person.ask("approval.page", id=question["id"], start=start)["value"]
        assert secret(page, "always") is None and secret(page, "once") is not None
    page = person.ask("approval.page", id=question["id"], start=shown)["value"]
    assert secret(page, "always") is not None
