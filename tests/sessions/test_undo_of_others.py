"""Whose run an undo takes back: this session's by itself, another's by name and with the person's yes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.sessions.runs import undo
from reyn_jupyter.sessions.runs.undo import NothingToUndoError, UndoDeclinedError
from reyn_jupyter.support.files.plain_files import PlainFolder


def write(session: reyn.Session, name: str) -> str:
    session.invoke_action("file__write", {"path": name, "content": "x"})
    return session.trace().run


def answers(session: reyn.Session, answer: Answer) -> list[Question]:
    """Let the session's person give an answer; returns what they were asked."""
    asked: list[Question] = []

    def person(question: Question) -> Answer:
        asked.append(question)
        return answer

    session.parts.ask_person = person
    return asked


@pytest.fixture
def notebook(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], reyn.Session]:
    """A session as a kernel of a notebook in the workspace makes it."""

    def begin(name: str) -> reyn.Session:
        session = reyn.Session(workspace)
        session.parts.environ = {"JPY_SESSION_NAME": str(workspace / name)}
        return session

    return begin


def test_without_a_target_only_this_sessions_runs_are_undone(
    workspace: Path, notebook: Callable[[str], reyn.Session]
) -> None:
    mine, other = notebook("mine.ipynb"), notebook("other.ipynb")
    write(mine, "first.txt")
    run = write(other, "other.txt")
    asked = answers(mine, "once")
    mine.undo()
    assert not (workspace / "first.txt").exists() and (workspace / "other.txt").exists()
    with pytest.raises(NothingToUndoError, match=f"other.ipynb.*%reyn undo {run[-12:]}"):
        mine.undo()
    assert (workspace / "other.txt").exists() and not asked


@pytest.mark.parametrize("by", ["id", "notebook"])
def test_another_notebooks_run_is_undone_by_name_once_the_person_says_yes(
    workspace: Path, notebook: Callable[[str], reyn.Session], by: str
) -> None:
    mine, other = notebook("mine.ipynb"), notebook("sub/other.ipynb")
    run = write(other, "other.txt")
    asked = answers(mine, "once")
    card = mine.undo(run[-12:] if by == "id" else "sub/other.ipynb")
    assert "1 file removed" in card.title and not (workspace / "other.txt").exists()
    [question] = asked
    said = question.text
    assert "sub/other.ipynb" in said and "other.txt" in said and run[-12:] in said and "20" in said
    with pytest.raises(NothingToUndoError, match="is undone"):
        mine.undo("sub/other.ipynb")
    with pytest.raises(NothingToUndoError, match="undone"):
        other.undo()


@pytest.mark.parametrize(("answer", "why"), [("deny", "you said no"), ("nobody", "nobody is here")])
def test_without_a_yes_nothing_of_another_session_is_undone(
    workspace: Path, notebook: Callable[[str], reyn.Session], answer: Answer, why: str
) -> None:
    mine, other = notebook("mine.ipynb"), notebook("other.ipynb")
    run = write(other, "other.txt")
    answers(mine, answer)
    with pytest.raises(UndoDeclinedError, match=why):
        mine.undo(run)
    assert (workspace / "other.txt").exists()
    assert [row["kind"] for row in mine.runs.rows] == ["manual"]


def test_after_a_restart_the_notebooks_own_runs_are_undone_once_the_person_says_yes(
    workspace: Path, notebook: Callable[[str], reyn.Session]
) -> None:
    write(notebook("mine.ipynb"), "mine.txt")
    again = notebook("mine.ipynb")
    asked = answers(again, "deny")  # a cloned workspace may bring a run that says it is of this notebook
    with pytest.raises(UndoDeclinedError):
        again.undo()
    assert (workspace / "mine.txt").exists() and "mine.txt" in asked[0].text
    answers(again, "once")
    again.undo()
    assert not (workspace / "mine.txt").exists()


def test_what_another_session_undid_is_not_undone_twice(
    workspace: Path, notebook: Callable[[str], reyn.Session]
) -> None:
    mine, other = notebook("mine.ipynb"), notebook("other.ipynb")
    write(mine, "first.txt")
    second = write(mine, "second.txt")
    answers(other, "once")
    other.undo(second)
    mine.undo()
    assert not (workspace / "first.txt").exists() and not (workspace / "second.txt").exists()


def test_looking_for_what_to_undo_does_not_list_all_runs_once_a_run(
    workspace: Path, notebook: Callable[[str], reyn.Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workspace / ".reyn" / "runs"
    folder.mkdir(parents=True)
    for number in range(60):
        run = f"0197f9a2-7c1b-7e3c-8a55-{number:012x}"
        started = {
            "type": "RunStarted",
            "run": run,
            "at": 1.0,
            "run_kind": "turn",
            "session": "s",
            "prompt": "p",
        }
        (folder / f"{run}.jsonl").write_text(json.dumps(started) + "\n")
    mine = notebook("mine.ipynb")
    looks: list[str] = []
    entries = PlainFolder.entries

    def watched(folder: PlainFolder) -> tuple[list[str], list[str]]:
        looks.append(folder.path.name)
        return entries(folder)

    monkeypatch.setattr(PlainFolder, "entries", watched)
    with pytest.raises(NothingToUndoError):
        mine.undo()
    assert looks.count("runs") < 10


def test_a_run_of_very_many_calls_is_read_once_not_once_a_call(
    workspace: Path, notebook: Callable[[str], reyn.Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = "0197f9a2-7c1b-7e3c-8a55-3b0f8e1d2c4a"
    call = {"step": 1, "wrapper": "invoke_action", "name": "file__read"}
    lines: list[dict[str, object]] = [
        {"type": "RunStarted", "run": run, "at": 1.0, "run_kind": "turn", "session": "s", "prompt": "p"}
    ]
    for number in range(200):
        own = {**call, "call": str(number)}
        lines += [
            {"type": "ActionResolved", "at": 2.0, "actor": "model", "arguments": {}, **own},
            {"type": "ActionFinished", "at": 3.0, "ok": True, "output": "", "seconds": 1.0, **own},
        ]
    folder = workspace / ".reyn" / "runs"
    folder.mkdir(parents=True)
    (folder / f"{run}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    looks: list[object] = []

    class Counting(type):
        def __instancecheck__(cls, event: object) -> bool:
            looks.append(event)
            return False

    monkeypatch.setattr(undo, "FileChanging", Counting("FileChanging", (), {}))
    with pytest.raises(NothingToUndoError, match="changed no file"):
        notebook("mine.ipynb").undo(run)
    assert len(looks) <= 10 * len(lines)
